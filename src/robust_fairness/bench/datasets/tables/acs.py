"""American Community Survey: the tasks of Ding et al. (2021) by state, in the years 2014 to 2023.

Read from the Census Bureau's own zip files of person records (1-Year PUMS).
"""

import io
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
import yaml
from pydantic import BaseModel, model_validator

from robust_fairness.auditing.read.columns import row_of
from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Field as Cell
from robust_fairness.auditing.read.schemas import Number, validated
from robust_fairness.bench.datasets.base import Listed, TableDataset, TableParameters, TypedTable
from robust_fairness.bench.datasets.tables._tables import (
    coded,
    grouped,
    only_of,
    two_categories,
    with_indicators,
)
from robust_fairness.bench.samples.splits import Fraction
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import exact
from robust_fairness.core.raw_files import Files, unzipped


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

    def of(self, year: int) -> "Task":
        """The task with the features as they are named in a year."""
        features = tuple(column(name, year) for name in self.features)
        return self.model_copy(update={"features": features})


_ACS = yaml.safe_load(Path(__file__).with_name("acs.yml").read_text(encoding="utf-8"))
TASKS = {name: Task(**fields) for name, fields in _ACS["tasks"].items()}
RENAMED = {name: (new["name"], new["from"]) for name, new in _ACS["renamed"].items()}
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
YEAR = 2018
SERIAL_WITH_YEAR = 2017  # from then on serial numbers begin with the year
STATES = ("HI", "ME", "MT", "NE", "NM", "RI", "SD", "WV")
NOT_APPLICABLE = "not applicable"
FILE = "acs_states.parquet"
INCOME = TASKS["Income"]
LABEL = "above_50000"


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
        weights: have PWGTP, the number of people that a person stands for, as an attribute.
        train_rows: fraction of the households for training, validation included.
    """

    states: tuple[str, ...]
    drop: tuple[str, ...] = ()
    sensitive: tuple[Literal["sex", "race", "race_full", "age"], ...] = ("sex",)
    weights: bool = False
    train_rows: Fraction = 0.8


class Acs(TableDataset):
    """American Community Survey: the tasks of Ding et al. (2021) by state, 2014 to 2023.

    Person records of some states, with the attributes sex, race, race_full, age and state.

    Numbers stay numbers, with 0 and an indicator column where a cell may be missing; codes are
    one-hot, "not applicable" being a category; OCCP and POBP are merged into major groups.
    ``id`` counts the rows of all files read, in the order of ``states``, from 0.

    Source: F. Ding et al., "Retiring Adult: New Datasets for Fair Machine Learning", NeurIPS 2021.
    """

    name = "acs"

    class Parameters(PersonParameters):
        """Parameters of the ACS tasks.

        Attributes:
            year: year of the survey. There is no standard file of 2020. From 2019 on the features
                RELP and JWTR are RELSHIPP and JWTRNS, with other codes.
            threshold: the label of Income (dollars of the year) and TravelTime (minutes) is
                positive above it; None: 50,000 and 20, as in the source.
        """

        year: Literal[2014, 2015, 2016, 2017, 2018, 2019, 2021, 2022, 2023] = 2018
        task: Literal["Income", "PublicCoverage", "Mobility", "Employment", "TravelTime"] = "Income"
        states: Annotated[Listed[str], only_of("state", lambda: FIPS)] = STATES
        threshold: float | None = None

        @model_validator(mode="after")
        def _fit_together(self) -> "Acs.Parameters":
            if self.threshold is not None and TASKS[self.task].threshold is None:
                raise ValueError(
                    f"threshold: task {self.task} has none; tasks with a threshold: Income, "
                    "TravelTime"
                )
            features = {name for task in TASKS.values() for name in task.of(self.year).features}
            for name in self.drop:
                if name not in features:
                    raise ValueError(f"{self.year}: {unknown_name('feature', name, features)}")
            return self

    feature_columns: ClassVar = FEATURE_COLUMNS

    def required_files(self) -> tuple[str, ...]:
        return tuple(archive(state, self.parameters.year) for state in self.parameters.states)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters, year = self.parameters, self.parameters.year
        task = TASKS[parameters.task].of(year)
        tables = [read_state(files, state, task, year) for state in parameters.states]
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
    if parameters.weights:
        attributes["PWGTP"] = table["PWGTP"]
    if len(parameters.states) > 1:
        attributes["state"] = table["state"].astype(pd.CategoricalDtype(list(parameters.states)))
    return TypedTable(
        features=with_indicators(features, task.incomplete),
        target=target,
        attributes=attributes,
        domain="state" if len(parameters.states) > 1 else "",
        units=households,
    )


def column(name: str, year: int) -> str:
    """What a column of 2018 is called in a year."""
    new, since = RENAMED.get(name, (name, YEAR))
    return new if year >= since else name


def archive(state: str, year: int = YEAR) -> str:
    """Zip file of the person records of a state, by its path below the data root."""
    return f"acs_{year}/csv_p{state.lower()}.zip"


def member(state: str, year: int = YEAR) -> str:
    """The file in ``archive``."""
    if year < SERIAL_WITH_YEAR:
        return f"ss{year % 100}p{state.lower()}.csv"
    return f"psam_p{FIPS[state]:02}.csv"


def read_state(files: Files, state: str, task: Task, year: int = YEAR) -> pd.DataFrame:
    """All person records of a state: the columns of a task, ``SERIALNO`` and ``state``.

    The records of the last files are kept in memory, so that the trainings of a matrix of states
    parse each file once.
    """
    used = {column("ST", year), "AGEP", "SEX", "RAC1P", "PWGTP", task.target}
    used.update(task.features, task.rows)
    content = files.packed(archive(state, year), member(state, year))
    return _records(content, state, year, tuple(name for name in FIELDS if name in used)).copy()


@lru_cache(maxsize=2 * len(STATES))
def _records(content: bytes, state: str, year: int, columns: tuple[str, ...]) -> pd.DataFrame:
    """Some columns of the records of a state, validated."""
    name, inside = archive(state, year), member(state, year)
    text = unzipped(content, name, inside)
    cells = read_cells([text], f"{name}, {inside}", ["SERIALNO", *columns])
    fields: dict[str, Cell | None] = {field: FIELDS[field] for field in columns}
    table = validated(cells, fields | {"SERIALNO": None}, name)
    place = column("ST", year)
    # earlier serial numbers do not say their year
    of_year = table["SERIALNO"].str.startswith(str(year)) | (year < SERIAL_WITH_YEAR)
    for field, wrong, allowed in (
        ("SERIALNO", ~of_year, f"records of {year}"),
        (place, table[place] != FIPS[state], f"{FIPS[state]} ({state})"),
    ):
        if wrong.any():
            row = row_of(wrong.to_numpy())
            cell = str(cells[field].iloc[row - 1])
            raise InputError(f"{name}, row {row}, column {field}: {cell!r}, allowed: {allowed}")
    return table.assign(state=state)


def _label(values: pd.Series, task: Task, threshold: float | None) -> pd.Series:
    """The class of every row; a missing value is negative, as in the source."""
    limit = task.threshold if threshold is None else threshold
    positive = values == 1 if limit is None else values > limit
    said = "" if limit is None else exact(limit)
    negative_name, positive_name = (name.format(threshold=said) for name in task.classes)
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


class AcsStates(TableDataset):
    """Income in eight states, from the American Community Survey 2018; bundled.

    The rows, features, attributes and households of ``acs`` for Income in its default states, in a
    file that ``tools/acs_states.py`` makes from the archives that ``acs`` reads. ``id`` is the
    number of the row in it, from 0.

    Source: US Census Bureau, American Community Survey 2018, 1-Year Public Use Microdata Sample;
    task of F. Ding et al., "Retiring Adult: New Datasets for Fair Machine Learning", NeurIPS 2021.
    """

    name = "acs_states"
    raw_files = (FILE,)

    class Parameters(PersonParameters):
        """Parameters of Income in eight states; the place of birth is left out by default."""

        states: Annotated[Listed[str], only_of("state", lambda: STATES)] = STATES
        drop: Annotated[tuple[str, ...], only_of("feature", lambda: INCOME.features)] = ("POBP",)
        sensitive: tuple[Literal["sex", "race", "race_full", "age"], ...] = ("sex", "race")

    feature_columns: ClassVar = FEATURE_COLUMNS

    def read(self, files: Files, splits: int) -> TypedTable:
        states = self.parameters.states
        table = pd.read_parquet(io.BytesIO(files.content(FILE)))
        table = table[table["state"].isin(states)].astype({"AGEP": "float64"})  # as in ``acs``
        target = two_categories(table[LABEL], ("at most 50000", "above 50000"))
        return typed_persons(table, target, table["household"], INCOME, self.parameters)
