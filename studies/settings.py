"""Settings of papers beside ours, from their ``settings.yml`` and from ``conf/paper``."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pandas as pd
import yaml
from pydantic import BaseModel

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig, Experiment
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tools.pages import ROOT, STUDIES


@cache
def configured() -> Experiment:
    """The experiment of ``conf/paper``."""
    loader = ConfigLoader(str(ROOT / "conf"), "paper", **CONFIG_LOADER_ARGS)
    return loader.validated_experiment


@cache
def written(paper: str) -> list[dict[str, Any]]:
    """The rows of its ``settings.yml``."""
    text = (STUDIES / paper / "settings.yml").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = yaml.safe_load(text)
    return rows


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


def table(paper: str) -> pd.DataFrame:
    """Setting, the paper's value with its place, ours and the reason, a row per setting."""
    settings = []
    for row in written(paper):
        values = [
            f"`{path.rsplit('.', 1)[1]}` {shown(value_at(configured(), path))}"
            for path in row.get("paths", ())
        ]
        names = ("setting", "paper", "place")
        ours = row.get("ours") or ", ".join(values)
        cells = {name: row[name] for name in names} | {"ours": ours, "reason": row["reason"]}
        settings.append({name: text.replace("|", ",") for name, text in cells.items()})
    return pd.DataFrame(settings)


def deviations(paper: str) -> pd.DataFrame:
    """The settings that differ from the paper or that it leaves open, which have a reason."""
    rows = table(paper)
    return rows[rows["reason"] != ""].drop(columns="place")
