"""The five prediction tasks of folktables on ACS person records of 2018, and their columns."""

from pathlib import Path

import yaml
from pydantic import BaseModel

from robust_fairness.datasets.raw.schemas import Field, Number


class Task(BaseModel, frozen=True):
    """One prediction task.

    Attributes:
        target: column of the label.
        classes: names of the negative and the positive class; ``{threshold}`` stands for the
            threshold.
        features: columns of the features.
        rows: smallest and largest value of the rows kept, by column; a missing cell is dropped.
        threshold: the label is positive above it; None: positive where the target is 1.
        incomplete: numeric features in which a cell may be missing.
    """

    target: str
    classes: tuple[str, str]
    features: tuple[str, ...]
    rows: dict[str, tuple[float, float]] = {}
    threshold: float | None = None
    incomplete: tuple[str, ...] = ()


_ACS = yaml.safe_load(Path(__file__).with_name("acs.yml").read_text(encoding="utf-8"))
TASKS = {name: Task(**fields) for name, fields in _ACS["tasks"].items()}
FEATURES = sorted({name for task in TASKS.values() for name in task.features})
CODES: dict[str, list[int]] = _ACS["codes"]
OPTIONAL_CODES: dict[str, list[int]] = _ACS["optional_codes"]
GROUPED_CODES: dict[str, dict[str, int]] = _ACS["grouped_codes"]
FIPS, SEXES, RACES = _ACS["states"], _ACS["sexes"], _ACS["races"]
_BOUNDS = _ACS["numbers"] | {
    name: (min(codes), max(codes)) for name, codes in (CODES | OPTIONAL_CODES).items()
}
_OPTIONAL = {*_ACS["optional_numbers"], *OPTIONAL_CODES}
FIELDS: dict[str, Field] = {
    name: Number(low, high, whole=True, missing=("",) if name in _OPTIONAL else ())
    for name, (low, high) in _BOUNDS.items()
}
