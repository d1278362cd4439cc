"""The columns of a table in outline, and the roles that they may have."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from robust_fairness.auditing.read.cleaning import MOST_CODES, Cleaning
from robust_fairness.auditing.read.columns import FIRST_ROWS, MOST_CATEGORIES, canonical
from robust_fairness.auditing.read.reading import UTF_8, read_columns
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted
from robust_fairness.core.raw_files import Files

Type = Literal["constant", "binary", "category", "number", "measure", "date", "mixed", "text"]

LISTED = 4  # values that are shown with their counts
# Texts that tables use for a missing value.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None")
# Formats of dates, as of ``strptime``, that a configuration has to name.
DATE_FORMATS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d")
SENSITIVE = ("sex", "gender", "race", "ethnicity", "age", "age_group", "religion", "disability")
DOMAINS = (
    "domain", "hospital", "site", "centre", "center", "clinic", "state", "region", "country",
    "city", "school", "branch", "year", "quarter", "semester", "term", "period",
)  # fmt: skip
UNITS = ("patient", "person", "customer", "client", "student", "household", "subject", "unit")
TARGETS = ("target", "label", "y", "outcome", "class")
POSITIVE = ("1", "yes", "true", "y", "t", "positive", "bad", "default")
ORDERED = ("year", "quarter", "semester", "term", "period")
MOST_DOMAINS = 50
EACH_ONCE = 5  # domains, up to which each is left out once
EARLIEST = 1900  # year of a date that a number may say
SMALL = 30  # rows of a group that are few
MEASURE = re.compile(r"[-+]?\d+(?:\.\d+)?\s*(%|[^\W\d_][^\d]*)")  # 45 kg, 4.5%
BINS = 3  # groups of a numeric attribute


@dataclass(frozen=True)
class ColumnProfile:
    """A column of a table.

    Attributes:
        name: as in the header.
        type: what its cells are; ``mixed`` has numbers and text, ``measure`` numbers with a unit.
        missing: number of missing cells.
        counts: rows by distinct value, the most frequent first.
    """

    name: str
    type: Type
    missing: int
    counts: pd.Series

    @property
    def values(self) -> list[str]:
        """Its distinct values, in order."""
        result = [str(count) for count in self.counts.index]
        return sorted(result, key=float if self.type == "number" else str)

    @property
    def suffix(self) -> str:
        """The unit of measure that all its numbers end with, "" if there is none."""
        return _suffix(self.counts.index)

    def __str__(self) -> str:
        """Its values in a few words."""
        if self.type in ("number", "date"):
            return f"{self.values[0]} to {self.values[-1]}"
        if self.type == "measure":
            return f"numbers in {self.suffix}"
        if self.type == "mixed":
            text = next(item for item in self.counts.index if not _are_numbers([item]))
            return f"numbers, and text such as {text!r}"
        if len(self.counts) <= LISTED:
            return ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        return f"{len(self.counts):,} different, smallest {self.counts.iloc[-1]:,}"


@dataclass(frozen=True)
class Profile:
    """A table in outline: its columns by name, rows, and how the file is written."""

    columns: dict[str, ColumnProfile]
    rows: int
    delimiter: str
    missing: tuple[str, ...]
    encoding: str | None = None
    decimal: str = "."


@dataclass
class Roles:
    """Roles of columns; empty where there is no such column."""

    target: str
    positive: str
    sensitive: list[str]
    domain: str = ""
    unit: str = ""
    id: str = ""
    ignored: list[str] = field(default_factory=list)


def profile(path: Path) -> Profile:
    """The columns of a CSV or Parquet file.

    Raises:
        InputError: the file cannot be read, or has no rows.
    """
    if not path.is_file():
        raise InputError(f"{path}: No such file or directory")
    cells = read_columns(Files(path.parent), path.name, delimiter=None, missing=(), text=None)
    counts = {str(name): _counts(cells[name]) for name in cells}
    marks = tuple(
        mark for mark in MISSING if any(mark in values.index for values in counts.values())
    )
    known = {name: values.drop(list(marks), errors="ignore") for name, values in counts.items()}
    plain = {name: _with_points(values, name) for name, values in known.items()}
    commas = any(plain[name] is not values for name, values in known.items())
    columns = {name: _column(name, values, len(cells)) for name, values in plain.items()}
    likely = cells.attrs.get("encoding", UTF_8)
    return Profile(
        columns, len(cells), cells.attrs["delimiter"], marks or ("",),
        None if likely == UTF_8 else likely, "," if commas else ".",
    )  # fmt: skip


def _with_points(counts: pd.Series, name: str) -> pd.Series:
    """The counts by number with a decimal point, if all values are numbers with a comma."""
    texts = list(counts.index)
    if not any("," in text for text in texts):
        return counts
    try:
        named, how = Cleaning().names(texts, name, numbers=True)
    except InputError:  # decimals or thousands
        return counts
    return counts.set_axis(pd.Index(named, dtype=object)) if how else counts


def _counts(cells: pd.Series) -> pd.Series:
    """Rows by distinct value as text, the most frequent first."""
    counts = cells.value_counts()
    return counts[counts > 0].set_axis(counts.index[counts > 0].map(str).astype(object))


def _column(name: str, counts: pd.Series, rows: int) -> ColumnProfile:
    return ColumnProfile(name, _type(list(counts.index), rows), rows - int(counts.sum()), counts)


def _type(values: list[str], rows: int) -> Type:
    """Type of the distinct values of a column."""
    if len(values) <= 2:
        return "binary" if len(values) == 2 else "constant"
    if _are_numbers(values):
        return "number"
    if pd.to_datetime(pd.Series(values), format="ISO8601", errors="coerce", utc=True).notna().all():
        return "date"
    if any(_are_numbers([value]) for value in values):
        return "mixed"
    if _suffix(values):
        return "measure"
    return "category" if len(values) <= min(MOST_CATEGORIES, rows / 2) else "text"


def _suffix(values: Iterable[str]) -> str:
    """What follows the number in each of the values, if it is the same text."""
    matches = [MEASURE.fullmatch(value.strip()) for value in values]
    suffixes = {match[1] if match else "" for match in matches}
    return suffixes.pop() if len(suffixes) == 1 else ""


def _are_numbers(values: Iterable[str]) -> bool:
    return bool(pd.to_numeric(pd.Series(list(values)), errors="coerce").notna().all())


def suggested(table: Profile) -> Roles:
    """Roles by the names and types of columns; the first of several that fit."""
    columns = table.columns
    binary = [name for name, item in columns.items() if item.type == "binary"]
    sensitive = _named(columns, SENSITIVE)
    target = next(
        iter(
            [
                *_named(binary, TARGETS),
                *(item for item in reversed(binary) if item not in sensitive),
            ]
        ),
        list(columns)[-1],
    )
    grouping = [
        name for name, item in columns.items()
        if item.type in ("binary", "category") and len(item.counts) <= MOST_CODES and name != target
    ]  # fmt: skip
    domains = [
        name for name in _named(columns, DOMAINS)
        if 2 <= len(columns[name].counts) <= MOST_DOMAINS
    ]  # fmt: skip
    domains += [name for name, item in columns.items() if item.type == "date"]
    keys = [name for name in columns if name.casefold().endswith("id") or name in UNITS]
    units = [name for name in keys if MOST_CODES < len(columns[name].counts) < table.rows]
    ids = [name for name in keys if len(columns[name].counts) == table.rows]
    roles = Roles(
        target=target,
        positive=positive_value(columns[target]),
        sensitive=[name for name in sensitive if name != target][:2] or grouping[:1],
        domain=next(iter(domains), ""),
        unit=next(iter(units), ""),
        id=next(iter(ids), ""),
    )
    used = {roles.target, roles.domain, roles.unit, roles.id, *roles.sensitive}
    roles.ignored = [
        name
        for name, item in columns.items()
        if item.type in ("text", "constant") and name not in used
    ]
    return roles


def positive_value(target: ColumnProfile) -> str:
    """The value of a target that is probably the positive one: the last in order if unclear."""
    values = target.values or [""]
    return next((value for value in values if value.casefold() in POSITIVE), values[-1])


def hints(table: Profile) -> list[str]:
    """A line per column that may be dates of another form, or has two names of one value."""
    lines = []
    for name, column in table.columns.items():
        if forms := _date_formats(column):
            written = " or ".join(f"date_format: '{form}'" for form in forms)
            lines.append(
                f"{name}: dates such as {column.counts.index[0]}? To use them: dates: "
                f"{{{name}: quarter}} and {written}, and not in drop"
            )
        for short, long in _alike(column):
            lines.append(
                f"{name}: {short!r} ({counted({'rows': column.counts[short]})}) and {long!r} "
                f"({counted({'rows': column.counts[long]})})? If they are the same: "
                f"values: {{{name}: {json.dumps({long: [short]}, ensure_ascii=False)}}}"
            )
    return lines


def _date_formats(column: ColumnProfile) -> list[str]:
    """The formats other than ISO 8601 of which every value of a column is a date."""
    if column.type in ("constant", "date", "measure"):
        return []
    values = pd.Series(list(column.counts.index), dtype=object)

    def fits(form: str, some: pd.Series) -> bool:
        dates = pd.to_datetime(some, format=form, errors="coerce")
        return bool((dates.dt.year >= EARLIEST).all())

    return [form for form in DATE_FORMATS if fits(form, values[:FIRST_ROWS]) and fits(form, values)]


def _alike(column: ColumnProfile) -> list[tuple[str, str]]:
    """Pairs of values that may be the same: an initial and the word, or two spellings."""
    if column.type not in ("binary", "category") or len(column.counts) > MOST_CODES:
        return []
    names = [(canonical(value), value) for value in column.values]
    pairs = []
    for short, value in names:
        same = [
            other for key, other in names
            if other != value and (
                (key == short and other < value)
                or (len(short) == 1 and short.isalpha() and len(key) > 1 and key[0] == short)
            )
        ]  # fmt: skip
        pairs += [(value, same[0])] if len(same) == 1 else []
    return pairs


def _named(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The columns with one of some names, in the order of the names."""
    known = {name.casefold(): name for name in columns}
    return [known[name] for name in names if name in known]
