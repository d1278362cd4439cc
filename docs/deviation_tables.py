"""Write the tables of deviations of papers/*.md from ``papers/deviations.yml``.

    python docs/deviation_tables.py

What a table says of our configuration is read from ``conf/paper``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import BaseModel

from robust_fairness.core import tables
from robust_fairness.experiment.experiment import Cell, Dataset, Experiment
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS

PAPERS = Path(__file__).resolve().parent / "papers"
SETTINGS = PAPERS / "deviations.yml"


def configured() -> Experiment:
    """The experiment of ``conf/paper``."""
    conf = PAPERS.parents[1] / "conf"
    return ConfigLoader(str(conf), "paper", **CONFIG_LOADER_ARGS).validated_experiment


def value_at(experiment: Experiment, path: str) -> Any:
    """The value of a field of a dataset, of its source, or of a cell's default trial."""
    name, *rest = path.split(".")
    dataset = next(one for one in experiment.datasets if one.name == name)
    *place, field = rest
    return getattr(_owner(dataset, place), field)


def _owner(dataset: Dataset, place: Sequence[str]) -> Dataset | Cell | BaseModel:
    """What has a field: the dataset, its source, a cell, or a part of its default trial."""
    if not place:
        return dataset
    first, *part = place
    if first == "source":
        return dataset.source.parameters
    cell = next(one for one in dataset.cells if one.label == first)
    found: Any = getattr(cell.replicas([{}])[0], part[0]) if part else cell
    return found


def shown(value: Any) -> str:
    """A value in a cell of a table; of a model the fields that are not at their defaults."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    if isinstance(value, tuple):
        return "; ".join(map(shown, value))
    return str(value)


def table(experiment: Experiment, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Setting, the paper's value with its place, ours and the reason, a row per setting."""
    found = []
    for row in rows:
        values = [
            f"`{path.rsplit('.', 1)[1]}` {shown(value_at(experiment, path))}"
            for path in row.get("paths", ())
        ]
        names = ("setting", "paper", "place")
        ours = row.get("ours") or ", ".join(values)
        cells = {name: row[name] for name in names} | {"ours": ours, "reason": row["reason"]}
        found.append({name: text.replace("|", ",") for name, text in cells.items()})
    return pd.DataFrame(found)


def written(page: str, rows: pd.DataFrame) -> str:
    """The page with a new table between its two comments."""
    return tables.in_page(page, {"deviations": lambda: rows})


def pages(experiment: Experiment) -> dict[Path, str]:
    """Every page as it has to be, by its path."""
    settings: dict[str, Any] = yaml.safe_load(SETTINGS.read_text())
    found = {}
    for paper, rows in settings.items():
        path = PAPERS / f"{paper}.md"
        found[path] = written(path.read_text(), table(experiment, rows))
    return found


if __name__ == "__main__":
    for path, page in pages(configured()).items():
        path.write_text(page)
