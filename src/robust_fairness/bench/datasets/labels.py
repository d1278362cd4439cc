"""Parameters that say what the columns of a table are, and the labels that follow from them."""

import logging
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, Field, model_validator

from robust_fairness.auditing.read.cleaning import READ_AS, Cleaning, Decimals
from robust_fairness.auditing.read.columns import (
    Kind,
    Period,
    as_categories,
    as_numbers,
    as_periods,
    attribute,
    merged_spellings,
    require_distinct,
    require_one_spelling,
    require_two_values,
    row_of,
    two_classes,
    without_suffix,
)
from robust_fairness.auditing.read.reading import read_columns
from robust_fairness.bench.datasets.base import Listed, TypedTable
from robust_fairness.bench.samples.splits import SplitParameters
from robust_fairness.core.errors import Collected, InputError, unknown_name
from robust_fairness.core.raw_files import Files, RawPath
from robust_fairness.core.samples import REQUIRED_PARTS

logger = logging.getLogger(__name__)

SPLIT = "split_0"
UNKNOWN = "unknown"  # the group of rows without a value, if they are one


def _as_text(value: object) -> object:
    """A number of YAML as text; a truth value has to be quoted."""
    if isinstance(value, bool):
        raise ValueError(f"YAML read it as {value}; put it in quotes as it is in the table")
    return str(value) if isinstance(value, int | float) else value


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) or value is None else (value,)


def _as_names(value: object) -> object:
    """Names, or one alone; several in one text are refused."""
    if isinstance(value, str) and "," in value:
        raise ValueError(f"several names are a list, write [{value}]")
    return _as_list(value)


Text = Annotated[str, BeforeValidator(_as_text)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_as_list)]
Names = Annotated[Listed[str], BeforeValidator(_as_names)]
BinsField = Annotated[int, Field(ge=2)] | Annotated[tuple[float, ...], Field(min_length=1)]


class RawTableParameters(SplitParameters, extra="forbid", frozen=True):
    """Parameters shared by all datasets that are made of a user's own table.

    Attributes:
        file: path of the table (``.csv``, ``.csv.gz`` or ``.parquet``) below the data root, so that
            a configuration works on every machine.
        delimiter: column separator of a CSV file.
        encoding: of a CSV file; default: UTF-8, or found out.
        decimal: decimal separator of numbers in text.
        missing: texts of missing values, besides the missing values of Parquet.
        incomplete: rows that lack a value in a column that is used: ``refuse`` (an error),
            ``drop`` (logged), or ``impute``: a missing number is replaced by a value of the
            training rows (``Protocol.imputation``) and has an indicator column, a missing category
            is a category of its own. Sensitive attributes that are no features may be missing.
        missing_sensitive: rows without a value of a categorical sensitive attribute belong to
            ``no_group`` (default), or to a ``group`` of that attribute called ``unknown``.
        target: the column to predict.
        outcome: ``binary``: class 1 is ``positive``, class 0 the other value; ``classes``: every
            value is a class, in order; ``continuous``: a number.
        positive: the value, or values, of class 1 of a binary target.
        negative: the values of class 0, or ``rest`` for all others; needed if there are several.
        values: spellings that mean the same, by column: ``{sex: {f: [F, "f "]}}``.
        suffixes: unit of measure after the numbers of a column, ``{weight: kg}``.
        types: ``number`` or ``category`` by column, where the rules of ``columns`` decide
            otherwise or cannot decide.
        dates: columns of dates, by what they become: ``year``, ``quarter``, ``month`` or ``day``,
            as categories in order, or the ``number`` of days since 1970.
        date_format: their format as of ``strptime``; ISO 8601 by default.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins.
        id: column of unique row names; default: the number of the row, from 0.
        split: column with ``train``, ``val`` or ``test``; all seeds then share that split.
        unit: column of units, such as persons, all of whose rows are in the same part;
            ``train_rows`` then counts units.
        domain: column of domains, such as hospitals, of which some can be trained on; it is no
            feature by default.
    """

    file: RawPath
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    encoding: str | None = None
    decimal: Decimals | None = None
    missing: Texts = ("",)
    incomplete: Literal["refuse", "drop", "impute"] = "refuse"
    missing_sensitive: Literal["no_group", "group"] = "no_group"
    target: str
    outcome: Literal["binary", "classes", "continuous"] = "binary"
    positive: Texts = ()
    negative: Texts = ()
    values: dict[str, dict[Text, Texts]] = {}
    suffixes: dict[str, str] = {}
    sensitive: Names
    types: dict[str, Kind] = {}
    dates: dict[str, Period] = {}
    date_format: str = "ISO8601"
    bins: dict[str, BinsField] = {}
    id: str | None = None
    split: str | None = None
    unit: str | None = None
    domain: str | None = None

    @model_validator(mode="after")
    def _fields_fit(self) -> "RawTableParameters":
        if (self.outcome == "binary") != bool(self.positive):
            raise ValueError("positive: required with outcome binary, not allowed with others")
        if self.negative and self.outcome != "binary":
            raise ValueError("negative: allowed with outcome binary only")
        for name in self.bins:
            if name not in self.sensitive:
                raise ValueError(f"bins: {unknown_name('attribute', name, self.sensitive)}")
        roles = [self.target, self.id, self.split]
        for name in filter(None, roles):
            if [*roles, *self.sensitive].count(name) > 1:
                raise ValueError(
                    f"column {name} has two roles; it can be only one of target, id and split"
                )
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a role, each once."""
        named = (
            self.target, *self.sensitive, self.id, self.split, self.unit, self.domain,
        )  # fmt: skip
        return tuple(dict.fromkeys(filter(None, named)))

    def place(self, column: str) -> str:
        return f"{self.file}, column {column}"

    def read(
        self, files: Files, columns: Sequence[str] | None, text: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Columns of the table, all if None; ``text`` columns are kept as text."""
        named = (self.id, self.split, self.unit, self.domain, *self.dates)
        kept = {
            *text, *filter(None, named), *self.suffixes,
            *(k for k, v in self.types.items() if v == "category"),
        }  # fmt: skip
        table = read_columns(
            files, self.file, columns, self.delimiter, self.missing, kept,
            encoding=self.encoding, decimal=self.decimal,
        )  # fmt: skip
        for note in table.attrs[READ_AS]:
            logger.warning(note)
        if self.decimal == ",":
            cleaning = Cleaning(self.missing, self.decimal)
            for name in {*map(str, table)} - kept:
                table[name], _ = cleaning.cleaned(table[name], self.place(name), 0)
        for name in (*self.values, *self.suffixes):
            if name not in table:
                raise InputError(f"{self.file}: {unknown_name('column', name, table.columns)}")
        for name, names in self.values.items():
            table[name] = merged_spellings(table[name], names, self.place(name))
        for name, suffix in self.suffixes.items():
            table[name] = without_suffix(table[name], suffix)
        periods = {
            name: as_periods(table[name], self.place(name), period, self.date_format)
            for name, period in self.dates.items()
            if name in table
        }
        return table.assign(**periods)

    def require_typed(self, used: Sequence[str]) -> None:
        """Check that types are declared for used columns only."""
        for field, named in (("types", self.types), ("dates", self.dates)):
            for name in named:
                if name not in used:
                    raise InputError(f"{field}: {unknown_name('column', name, used)}")


def complete_rows(
    table: pd.DataFrame, needed: Sequence[str], parameters: RawTableParameters
) -> pd.DataFrame:
    """The rows that have a value in all needed columns."""
    lacking = table[list(needed)].isna()
    incomplete = lacking.any(axis=1).to_numpy()
    if incomplete.any() and parameters.incomplete != "drop":
        row = row_of(incomplete)
        column = lacking.columns[lacking.iloc[row - 1]][0]
        raise InputError(
            f"{parameters.file}, row {row}: {column} is missing; {incomplete.sum()} rows lack a "
            "value; incomplete: drop excludes them, incomplete: impute replaces missing features"
        )
    if incomplete.all():
        raise InputError(f"{parameters.file}: no row has a value in every column that is used")
    if incomplete.any():
        logger.info(
            "%s: %d of %d rows left out, which lack a value",
            parameters.file, incomplete.sum(), len(table),
        )  # fmt: skip
    return table[~incomplete]


def typed_table(
    table: pd.DataFrame,
    features: pd.DataFrame,
    parameters: RawTableParameters,
    wrong: Collected | None = None,
) -> TypedTable:
    """Features of complete rows with their target, attributes, names and split, if a column has it.

    ``wrong`` are mistakes that were found before, and are reported with those of target and
    attributes.
    """
    table, wrong = table.reset_index(names="row"), wrong or Collected()
    domain, unit = parameters.domain or "", parameters.unit
    attributes = {}
    with wrong.noting():
        target = _target(table[parameters.target], parameters)
    for name in parameters.sensitive:
        with wrong.noting():
            attributes[name] = _sensitive(table[name], parameters)
    with wrong.noting():
        if domain:
            place = parameters.place(domain)
            domains = require_two_values(as_categories(table[domain], place), place)
            attributes[domain] = require_one_spelling(domains, place)
    wrong.require_none(parameters.file)
    named = None if parameters.split is None else _split_column(table, parameters, parameters.split)
    return TypedTable(
        features, target, attributes, named, _id(table, parameters), domain=domain,
        units=None if unit is None else table[unit],
    )  # fmt: skip


def _sensitive(cells: pd.Series, parameters: RawTableParameters) -> pd.Series:
    """A sensitive attribute; its missing values are logged."""
    name = str(cells.name)
    place, bins = parameters.place(name), parameters.bins.get(name)
    values = attribute(cells, place, parameters.types.get(name), bins)
    missing = values.isna()
    if not missing.any():
        return values
    in_group = parameters.missing_sensitive == "group" and isinstance(
        values.dtype, pd.CategoricalDtype
    )
    logger.warning(
        "%s: %d of %d rows have no value and belong to %s",
        place, missing.sum(), len(values), f"the group {UNKNOWN}" if in_group else "no group",
    )  # fmt: skip
    if not in_group:
        return values
    groups = values.cat.categories.drop(UNKNOWN, errors="ignore")
    return values.cat.set_categories([*groups, UNKNOWN]).fillna(UNKNOWN)


def _target(cells: pd.Series, parameters: RawTableParameters) -> pd.Series:
    """Classes in order, or numbers."""
    place = parameters.place(parameters.target)
    if parameters.outcome == "continuous":
        return require_two_values(as_numbers(cells, place), place)
    values = require_two_values(as_categories(cells, place), place)
    require_one_spelling(values, place)
    if parameters.outcome == "classes":
        return values
    return two_classes(values, parameters.positive, place, parameters.negative)


def _split_column(table: pd.DataFrame, parameters: RawTableParameters, column: str) -> pd.DataFrame:
    """The split of a column; no unit may be in two parts."""
    place = parameters.place(column)
    parts = as_categories(table[column], place)
    for name in parts.cat.categories:
        if name not in REQUIRED_PARTS:
            raise InputError(f"{place}: {unknown_name('part', name, REQUIRED_PARTS)}")
    for name in REQUIRED_PARTS:
        if not (parts == name).any():
            raise InputError(f"{place}: no row is {name}; every part needs rows: {REQUIRED_PARTS}")
    if parameters.unit is not None:
        units = table[parameters.unit]
        mixed = parts.astype(object).groupby(units.to_numpy()).transform("nunique") > 1
        if mixed.any():
            first = units[mixed].iloc[0]
            raise InputError(
                f"{place}: {parameters.unit} {first} is in several parts; all its rows must be in "
                "one part"
            )
    return pd.DataFrame({SPLIT: parts.astype(pd.CategoricalDtype(list(REQUIRED_PARTS)))})


def _id(table: pd.DataFrame, parameters: RawTableParameters) -> np.ndarray:
    """Names of the rows, or their numbers in the file."""
    if parameters.id is None:
        return table["row"].to_numpy(np.int64)
    cells = table[parameters.id]
    require_distinct(cells, parameters.place(parameters.id))
    if pd.api.types.is_integer_dtype(cells.dtype):
        return cells.to_numpy(np.int64)
    return cells.astype(str).to_numpy(dtype=np.str_)
