"""Text files of documented tables, read strictly: every cell a string, indexed by its line."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.files import Files


def read_table(
    files: Files, name: str, columns: Sequence[str], rows: int, delimiter: str = ","
) -> pd.DataFrame:
    """File without header, every cell a string, indexed by line number from 1.

    Empty lines, lines that begin with ``|`` (comments of the C4.5 format) and spaces after a
    delimiter are skipped. ``rows`` is the documented number of rows.
    """
    records = _records(
        files, name, delimiter=delimiter, skipinitialspace=True, quoting=csv.QUOTE_NONE
    )
    kept = [(line, cells) for line, cells in records if not cells[0].startswith("|")]
    return table_of(kept, name, columns, rows)


def read_csv(
    files: Files, name: str, columns: Sequence[str], rows: int | None, delimiter: str = ","
) -> pd.DataFrame:
    """Some columns of a file with a header and quoted cells (RFC 4180), every cell a string.

    Cells are taken as they are, spaces and empty ones included; a quoted cell may hold the
    delimiter, doubled quotes and line ends. Empty lines are skipped.

    Args:
        files: finds the file.
        name: the file, by its path below the data root.
        columns: names in the header; a name may occur twice if both columns are equal.
        rows: the documented number of rows without the header; None if unknown.
        delimiter: what separates two cells.

    Returns:
        The columns, indexed by the number of the line in which the record ends; the header is 1.
    """
    records = _records(files, name, delimiter=delimiter, strict=True)
    _, header = next(records, (1, []))
    table = table_of(list(records), name, header, rows)
    for column in columns:
        if column not in header:
            raise InputError(f"{name}: {unknown_name('column', column, header)}")
        if header.count(column) > 1:
            copies = table.loc[:, table.columns == column]
            for line in copies.index[
                copies.ne(copies.iloc[:, 0], axis="index").any(axis="columns")
            ]:
                raise InputError(
                    f"{name}, line {line}: the columns named {column} differ; they must be equal"
                )
    return table.loc[:, ~table.columns.duplicated()][list(columns)]


def header(files: Files, name: str, delimiter: str = ",") -> list[str]:
    """Names of the columns of a file that ``read_csv`` reads; none of an empty file."""
    _, cells = next(_records(files, name, delimiter=delimiter, strict=True), (1, []))
    return cells


def _records(files: Files, name: str, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    return records(io.StringIO(files.text(name)), name, **dialect)


def records(lines: Iterable[str], name: str, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV file that are not empty, each with the number of its last line.

    Raises:
        InputError: a quote is not closed, or the text is not UTF-8.
    """
    reader, before = csv.reader(lines, **dialect), 0
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
            before = reader.line_num
    except csv.Error as error:
        reason = f"line {reader.line_num}: {error}"
        if "unexpected end" in str(error) or "field limit" in str(error):
            reason = f"line {before + 1}: a quote is not closed"
        raise InputError(f"{name}, {reason}") from error
    except UnicodeDecodeError as error:
        line = reader.line_num + error.object.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}, line {line}: byte 0x{error.object[error.start]:02x} is not UTF-8 text"
        ) from error


def table_of(
    records: Sequence[tuple[int, list[str]]], name: str, columns: Sequence[str], rows: int | None
) -> pd.DataFrame:
    """Table of records that all have the same number of cells, and are as many as documented."""
    for line, cells in records:
        if len(cells) != len(columns):
            raise InputError(f"{name}, line {line}: {len(cells)} fields, expected {len(columns)}")
    if rows is not None and len(records) != rows:
        raise InputError(
            f"{name}: {len(records)} rows, expected {rows}; the file may be incomplete"
        )
    lines = [line for line, _ in records]
    return pd.DataFrame([cells for _, cells in records], columns=list(columns), index=lines)
