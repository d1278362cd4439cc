"""Write the tables of deviations of papers/*.md from ``papers/deviations.yml``.

    python docs/deviation_tables.py

What a table says of our configuration is read from ``conf/paper``.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import yaml
from pages import DOCS, Page
from pydantic import BaseModel

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig, Experiment
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS

PAPERS = DOCS / "papers"
SETTINGS = PAPERS / "deviations.yml"


def configured() -> Experiment:
    """The experiment of ``conf/paper``."""
    conf = DOCS.parent / "conf"
    return ConfigLoader(str(conf), "paper", **CONFIG_LOADER_ARGS).validated_experiment


def value_at(experiment: Experiment, path: str) -> Any:
    """The value of a field of a dataset, of its source, or of a cell's default trial."""
    name, *rest = path.split(".")
    dataset = next(configured for configured in experiment.datasets if configured.name == name)
    *place, field = rest
    return getattr(_owner(dataset, place), field)


def _owner(dataset: DatasetConfig, place: Sequence[str]) -> DatasetConfig | Cell | BaseModel:
    """What has a field: the dataset, its source, a cell, or a part of its default trial."""
    if not place:
        return dataset
    first, *part = place
    if first == "source":
        return dataset.source.parameters
    cell = next(configured for configured in dataset.cells if configured.label == first)
    owner: Any = getattr(cell.replicas([{}])[0], part[0]) if part else cell
    return owner


def shown(value: Any) -> str:
    """A value in a cell of a table; of a model the fields that are not at their defaults."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(part)}" for name, part in value.items())
    if isinstance(value, tuple):
        return "; ".join(map(shown, value))
    return str(value)


def table(experiment: Experiment, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Setting, the paper's value with its place, ours and the reason, a row per setting."""
    settings = []
    for row in rows:
        values = [
            f"`{path.rsplit('.', 1)[1]}` {shown(value_at(experiment, path))}"
            for path in row.get("paths", ())
        ]
        names = ("setting", "paper", "place")
        ours = row.get("ours") or ", ".join(values)
        cells = {name: row[name] for name in names} | {"ours": ours, "reason": row["reason"]}
        settings.append({name: text.replace("|", ",") for name, text in cells.items()})
    return pd.DataFrame(settings)


def deviations(experiment: Experiment, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The settings that differ from the paper or that it leaves open, which have a reason."""
    return table(experiment, [row for row in rows if row["reason"]]).drop(columns="place")


def pages(experiment: Experiment) -> list[Page]:
    """The pages of papers: deviations, and all settings as CSV."""
    settings: dict[str, Any] = yaml.safe_load(SETTINGS.read_text())
    makers = {"deviations": deviations, "settings": table}
    return [
        Page(
            PAPERS / f"{paper}.md",
            {name: partial(make, experiment, rows) for name, make in makers.items()},
        )
        for paper, rows in settings.items()
    ]


if __name__ == "__main__":
    for page in pages(configured()):
        page.write()
