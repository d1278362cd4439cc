"""American Community Survey 2018: the tasks of Ding et al. (2021) by state.

Read from the Census Bureau's own zip files of person records (1-Year PUMS).
"""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, Field, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import EACH_ONCE, TableDataset, TableParameters, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.archives import Packed, packed, parsed
from robust_fairness.datasets.raw.schemas import Field as Cell
from robust_fairness.datasets.raw.schemas import Number, validated
from robust_fairness.datasets.tables._tables import (
    coded,
    grouped,
    only_of,
    two_categories,
    with_indicators,
)
from robust_fairness.samples.splits import Fraction


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
FIELDS: dict[str, Cell] = {
    name: Number(low, high, whole=True, missing=("",) if name in _OPTIONAL else ())
    for name, (low, high) in _BOUNDS.items()
}
YEAR = "2018"
STATES = ("HI", "ME", "MT", "NE", "NM", "RI", "SD", "WV")
NOT_APPLICABLE = "not applicable"


FEATURE_COLUMNS = {
    "sex": ("SEX",),
    "race": ("RAC1P",),
    "race_full": ("RAC1P",),
    "age": ("AGEP",),
}  # of the features, by the attribute that they reveal


class PersonParameters(TableParameters):
    """Parameters of tables of person records.

    Attributes:
        states: states by their two letters.
        drop: features left out, for example POBP, the place of birth, which reveals the state.
        sensitive: ``race`` is White or other, ``race_full`` the nine codes of RAC1P.
        train_rows: fraction of the households for training, validation included.
    """

    states: tuple[str, ...]
    drop: Annotated[tuple[str, ...], only_of("feature", FEATURES)] = ()
    sensitive: tuple[Literal["sex", "race", "race_full", "age"], ...] = ("sex",)
    train_rows: Fraction = 0.8


class Acs(TableDataset):
    """Person records of some states, with the attributes sex, race, race_full, age and state.

    Numbers stay numbers, with 0 and an indicator column where a cell may be missing; codes are
    one-hot, "not applicable" being a category; OCCP and POBP are merged into major groups.
    ``id`` counts the rows of all files read, in the order of ``states``, from 0.

    Source: F. Ding et al., "Retiring Adult: New Datasets for Fair Machine Learning", NeurIPS 2021.
    """

    class Parameters(PersonParameters):
        """Parameters of the ACS tasks.

        Attributes:
            threshold: the label of Income (dollars) and TravelTime (minutes) is positive above it;
                None: 50,000 and 20, as in the source.
        """

        task: Literal["Income", "PublicCoverage", "Mobility", "Employment", "TravelTime"] = "Income"
        states: Annotated[
            tuple[str, ...], only_of("state", FIPS), EACH_ONCE, Field(min_length=1)
        ] = STATES
        threshold: float | None = None

        @model_validator(mode="after")
        def _fit_together(self) -> "Acs.Parameters":
            if self.threshold is not None and TASKS[self.task].threshold is None:
                raise ValueError(
                    f"threshold: task {self.task} has none; tasks with a threshold: Income, "
                    "TravelTime"
                )
            return self

    feature_columns: ClassVar = FEATURE_COLUMNS

    def required_files(self) -> tuple[str, ...]:
        return tuple(archive(state) for state in self.parameters.states)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, task = self.parameters, TASKS[self.parameters.task]
        tables = [read_state(files, state, task) for state in parameters.states]
        table = task_rows(pd.concat(tables, ignore_index=True), task)
        target = _label(table[task.target], task, parameters.threshold)
        return typed_persons(table, target, table["SERIALNO"], task, parameters)


def task_rows(persons: pd.DataFrame, task: Task) -> pd.DataFrame:
    """The records that belong to a task."""
    kept = [persons[column].between(*limits) for column, limits in task.rows.items()]
    return persons[np.logical_and.reduce(kept)] if kept else persons


def typed_persons(
    table: pd.DataFrame,
    target: pd.Series,
    households: pd.Series,
    task: Task,
    parameters: PersonParameters,
) -> TypedTable:
    """The records of a task with features and attributes typed; the units are ``households``."""
    used = [name for name in task.features if name not in parameters.drop]
    features = pd.DataFrame({name: _feature(table[name]) for name in used})
    attributes = {
        "sex": coded(table["SEX"], SEXES),
        "race": two_categories(table["RAC1P"] != 1, ("White", "other")),
        "race_full": coded(table["RAC1P"], RACES),
        "age": table["AGEP"],
    }
    if len(parameters.states) > 1:
        attributes["state"] = table["state"].astype(pd.CategoricalDtype(list(parameters.states)))
    return TypedTable(
        features=with_indicators(features, task.incomplete),
        target=target,
        attributes=attributes,
        domain="state" if len(parameters.states) > 1 else "",
        units=households,
    )


def archive(state: str) -> str:
    """Zip file of the person records of a state, by its path below the data root."""
    return f"acs_{YEAR}/csv_p{state.lower()}.zip"


def read_state(files: Files, state: str, task: Task) -> pd.DataFrame:
    """All person records of a state: the columns of a task, ``SERIALNO`` and ``state``.

    The records of the last files are kept in memory, so that the trainings of a matrix of states
    parse each file once.
    """
    used = {"ST", "AGEP", "SEX", "RAC1P", task.target, *task.features, *task.rows}
    found = packed(files, archive(state), f"psam_p{FIPS[state]:02}.csv")
    return _records(found, state, tuple(column for column in FIELDS if column in used)).copy()


@lru_cache(maxsize=2 * len(STATES))
def _records(found: Packed, state: str, columns: tuple[str, ...]) -> pd.DataFrame:
    """Some columns of the records of a state, validated."""
    name = found.archive
    cells = parsed(found.text, found.place, ["SERIALNO", *columns])
    other = ~cells["SERIALNO"].str.startswith(YEAR)
    for line, serial in cells["SERIALNO"][other].items():
        raise InputError(
            f"{name}, line {line}, column SERIALNO: {serial!r}, allowed: records of {YEAR}"
        )
    table = validated(cells, {column: FIELDS[column] for column in columns}, name)
    for line, code in table["ST"][table["ST"] != FIPS[state]].items():
        raise InputError(
            f"{name}, line {line}, column ST: {code:g}, allowed: {FIPS[state]} ({state})"
        )
    return table.assign(SERIALNO=cells["SERIALNO"], state=state)


def _label(values: pd.Series, task: Task, threshold: float | None) -> pd.Series:
    """The class of every row; a missing value is negative, as in the source."""
    limit = task.threshold if threshold is None else threshold
    positive = values == 1 if limit is None else values > limit
    negative_name, positive_name = (name.format(threshold=limit) for name in task.classes)
    return two_categories(positive, (negative_name, positive_name))


def _feature(values: pd.Series) -> pd.Series:
    """A column as a feature: numbers as they are, codes as categories."""
    name = str(values.name)
    if name in CODES:
        return coded(values, {code: str(code) for code in CODES[name]})
    if name in OPTIONAL_CODES:
        return coded(values, {code: str(code) for code in OPTIONAL_CODES[name]}, NOT_APPLICABLE)
    if name in GROUPED_CODES:
        return grouped(values, GROUPED_CODES[name], NOT_APPLICABLE)
    return values
