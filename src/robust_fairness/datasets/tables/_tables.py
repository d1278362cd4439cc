"""Tables to samples: strict reading, one-hot categories, thresholds at the top share."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.files import Files
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import (
    Fraction,
    SplitParameters,
    random_splits,
    require_every_class,
)


def read_table(
    files: Files, name: str, columns: Sequence[str], rows: int, delimiter: str = ","
) -> pd.DataFrame:
    """File without header, every cell a string.

    Empty lines and lines that begin with ``|`` (comments of the C4.5 format) are left out, and so
    are spaces after a delimiter.

    Args:
        files: where raw files are found.
        name: the file, by its path below the data root.
        columns: names of the fields of a line.
        rows: how many rows the file is documented to have.
        delimiter: what stands between two cells.

    Returns:
        One row a line, indexed by the line's number in the file, from 1.

    Raises:
        InputError: the file cannot be read, a line has too few or too many fields, or the file
            too few or too many rows.
    """
    records = _records(
        files, name, delimiter=delimiter, skipinitialspace=True, quoting=csv.QUOTE_NONE
    )
    kept = [(line, cells) for line, cells in records if not cells[0].startswith("|")]
    return _table(kept, name, columns, rows)


def read_csv(
    files: Files, name: str, columns: Sequence[str], rows: int | None, delimiter: str = ","
) -> pd.DataFrame:
    """Some columns of a file with a header and quoted cells (RFC 4180), every cell a string.

    Cells are taken as they are, spaces and empty ones included; a quoted cell may hold the
    delimiter, doubled quotes and line ends. Empty lines are left out.

    Args:
        files: where raw files are found.
        name: the file, by its path below the data root.
        columns: the columns to read, by their names in the header; a name may stand there twice
            if both columns are equal.
        rows: how many rows the file is documented to have, the header not counted; None if that
            is not documented.
        delimiter: what stands between two cells.

    Returns:
        The columns, one row a record, indexed by the number of the line (from 1) in which the
        record ends; the header is line 1.

    Raises:
        InputError: the file cannot be read, lacks a column, has two different columns of one
            name, a record has too few or too many cells, quotes are damaged, or there are too few
            or too many rows.
    """
    records = _records(files, name, delimiter=delimiter, strict=True)
    _, header = next(records, (1, []))
    table = _table(list(records), name, header, rows)
    for column in columns:
        if column not in header:
            raise InputError(f"{name}: {unknown_name('column', column, header)}")
        if header.count(column) > 1:
            copies = table.loc[:, table.columns == column]
            for line in copies.index[
                copies.ne(copies.iloc[:, 0], axis="index").any(axis="columns")
            ]:
                raise InputError(
                    f"{name}, line {line}: the columns called {column} differ; allowed: equal ones"
                )
    return table.loc[:, ~table.columns.duplicated()][list(columns)]


def header(files: Files, name: str, delimiter: str = ",") -> list[str]:
    """Names of the columns of a file that ``read_csv`` reads; none of an empty file.

    Args:
        files: where raw files are found.
        name: the file, by its path below the data root.
        delimiter: what stands between two cells.

    Raises:
        InputError: the file cannot be read, or its quotes are damaged.
    """
    _, cells = next(_records(files, name, delimiter=delimiter, strict=True), (1, []))
    return cells


def _records(files: Files, name: str, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    """Records of a file that are not empty, each with the number of its last line."""
    lines = csv.reader(io.StringIO(files.text(name)), **dialect)
    try:
        for cells in lines:
            if cells:
                yield lines.line_num, cells
    except csv.Error as error:
        raise InputError(f"{name}, line {lines.line_num}: {error}") from error


def _table(
    records: Sequence[tuple[int, list[str]]], name: str, columns: Sequence[str], rows: int | None
) -> pd.DataFrame:
    """Table of records that all have the same number of cells, and are as many as documented."""
    for line, cells in records:
        if len(cells) != len(columns):
            raise InputError(f"{name}, line {line}: {len(cells)} fields, expected {len(columns)}")
    if rows is not None and len(records) != rows:
        raise InputError(f"{name}: {len(records)} rows, expected {rows}: is it complete?")
    lines = [line for line, _ in records]
    return pd.DataFrame([cells for _, cells in records], columns=list(columns), index=lines)


def require_rows(table: pd.DataFrame, rows: int, file: str, filters: str) -> None:
    """Check how many rows some filters have left.

    Args:
        table: the rows left.
        rows: how many there should be.
        file: name of the file, for the error.
        filters: what left rows out, for the error.

    Raises:
        InputError: there are more or fewer.
    """
    if len(table) != rows:
        raise InputError(f"{file}: {len(table)} rows after {filters}, expected {rows}")


def numbers(column: pd.Series, file: str, within: tuple[float, float] | None = None) -> pd.Series:
    """Cells of a column as finite numbers, float64.

    Args:
        column: strings, indexed by line number.
        file: name of the file, for the error.
        within: smallest and largest allowed value; None allows every finite number.

    Raises:
        InputError: a cell is no finite number or out of range.
    """
    low, high = within or (-np.inf, np.inf)
    values = pd.to_numeric(column, errors="coerce").astype("float64")
    wrong = column[~(np.isfinite(values) & values.between(low, high))]
    for line, cell in wrong.items():
        allowed = f"a number from {low:g} to {high:g}" if within else "a finite number"
        raise InputError(f"{file}, line {line}, column {column.name}: {cell!r}, allowed: {allowed}")
    return values


def categories(column: pd.Series, file: str, allowed: Sequence[str]) -> pd.Series:
    """Cells of a column as categories, in the order of ``allowed``.

    Args:
        column: strings, indexed by line number.
        file: name of the file, for the error.
        allowed: the categories, for example from the codebook.

    Raises:
        InputError: a cell is none of them.
    """
    for line, cell in column[~column.isin(list(allowed))].items():
        problem = unknown_name("category", cell, allowed)
        raise InputError(f"{file}, line {line}, column {column.name}: {problem}")
    return column.astype(pd.CategoricalDtype(list(allowed)))


def one_hot(columns: pd.DataFrame) -> pd.DataFrame:
    """Numeric columns as they are, then one 0/1 column ``name=category`` for every category.

    Every category has its column, also one without rows, so that the features do not depend on
    the rows.

    Args:
        columns: numeric and categorical columns.
    """
    return pd.get_dummies(columns, prefix_sep="=", dtype="uint8")


def only_of(kind: str, allowed: Collection[str]) -> AfterValidator:
    """Check of a parameter that lists names, to annotate ``tuple[str, ...]`` with.

    Args:
        kind: what they name, for the error.
        allowed: the names.
    """

    def check(names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in allowed:
                raise ValueError(str(unknown_name(kind, name, allowed)))
        return names

    return AfterValidator(check)


class TopShareParameters(BaseModel, extra="forbid", frozen=True):
    """How numbers become two categories: the top share and the rest.

    Attributes:
        share: the top share.
        ties: what becomes of values equal to the threshold. ``rank``: the first of them in the
            file are top, so that the share is exact, as the source's footnote has it.
            ``threshold``: all are top, so that equal values stay together and the share is larger.
        top_class: number of the top category: 0 as in the source's footnote, or 1.
    """

    share: Fraction = 0.3
    ties: Literal["rank", "threshold"] = "rank"
    top_class: Literal[0, 1] = 0


def top_share(values: pd.Series, file: str, parameters: TopShareParameters) -> pd.Series:
    """Which values are among the largest, as a categorical column.

    The categories are called ``top 30 %`` (for a share of 0.3) and ``rest``.

    Args:
        values: numbers.
        file: name of the file, for the error.
        parameters: the share, and what becomes of ties.

    Raises:
        InputError: all values are equal.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1 and footnote 4.
    """
    _require_two_values(values, file, str(values.name))
    count = max(1, round(parameters.share * len(values)))
    ranked = values.sort_values(ascending=False, kind="stable")
    if parameters.ties == "rank":
        top = values.index.isin(ranked.index[:count])
    else:
        top = (values >= ranked.iloc[count - 1]).to_numpy()
    names = [f"top {100 * parameters.share:g} %", "rest"]
    ordered = names if parameters.top_class == 0 else names[::-1]
    return pd.Series(
        pd.Categorical(np.where(top, *names), ordered), index=values.index, name=values.name
    )


def _require_two_values(values: pd.Series, file: str, name: str) -> None:
    """Refuse a constant column, which tells no group or class from another."""
    if values.nunique() == 1:
        raise InputError(
            f"{file}: {name} holds the single value {values.iloc[0]}; at least two are needed"
        )


def to_samples(
    *,
    features: pd.DataFrame,
    target: pd.Series,
    attributes: Mapping[str, pd.Series],
    sensitive: Iterable[str],
    parameters: SplitParameters,
    splits: int | pd.DataFrame,
    sources: Mapping[str, str],
) -> Samples:
    """Samples of a table that was read and checked, with random splits unless others are given.

    Args:
        features: numeric columns.
        target: categories (classification) or numbers (a continuous outcome).
        attributes: sensitive attributes by name, categories or numbers.
        sensitive: those that methods mitigate.
        parameters: sizes and seed of random splits.
        splits: number of random splits, or the named splits of the rows.
        sources: SHA-256 of the files read, by name.

    Returns:
        Samples whose ``id`` is the row number in the files, from 0.

    Raises:
        InputError: the target or an attribute has a single value, an attribute does not exist,
            or a part of a split lacks rows or a class.
    """
    for name, values in {"target": target, **attributes}.items():
        _require_two_values(values, ", ".join(sources), name)
    named_splits = (
        random_splits(len(features), splits, parameters) if isinstance(splits, int) else splits
    )
    if isinstance(target.dtype, pd.CategoricalDtype):
        require_every_class(named_splits, target)
        classes = tuple(target.cat.categories)
        y = target.cat.codes.to_numpy(np.int64)
    else:
        classes, y = (), target.to_numpy(np.float32)
    return Samples(
        # a copy: a table of one type lends its own numbers, which may not be written to
        x=features.to_numpy(np.float32, copy=True),
        y=y,
        attributes=pd.DataFrame(dict(attributes)).reset_index(drop=True),
        id=features.index.to_numpy(np.int64),
        splits=named_splits,
        features=tuple(features.columns),
        classes=classes,
        sensitive=tuple(sensitive),
        sources=dict(sources),
    )
