"""Columns of CSV and Parquet files, read in blocks.

A text column is kept as its distinct values and one code per row. Memory therefore grows with the
rows and the columns that are read, not with the size of the file.
"""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.extras import needed_by
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.text import records

CSV, PARQUET = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), ".parquet"
DELIMITERS = (",", ";", "\t", "|")
PARQUET_MAGIC = b"PAR1"
MOST_ROWS = 10_000_000
MOST_BYTES = 8 * 2**30  # of a file, uncompressed
MOST_TEXTS = 10_000  # distinct values of a column that is kept as text
BLOCK_ROWS = 2**14  # that are parsed at once


def read_columns(
    files: Files,
    name: str,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    missing: Sequence[str] = ("",),
    text: Collection[str] | None = (),
) -> pd.DataFrame:
    """Columns of a CSV or Parquet file: text as categories, everything else as in the file.

    A CSV file has a header and quoted cells (RFC 4180). Its cells are text without any change,
    spaces included; empty lines are skipped. A text column with more than ``MOST_TEXTS`` distinct
    values must be numeric and becomes float64, unless it is one of ``text`` (None: every column).
    ``missing`` are texts of missing values.
    """
    if not name.endswith((*CSV, PARQUET)):
        raise InputError(f"{name}: unknown format, allowed: .csv, .csv.gz, .tsv, .tsv.gz, .parquet")
    _require_bytes(_size(files, name), name)
    blocks = files.blocks(name)
    first = next(blocks, b"")
    if name.endswith(PARQUET) != first.startswith(PARQUET_MAGIC):
        found = "a Parquet file" if first.startswith(PARQUET_MAGIC) else "no Parquet file"
        raise InputError(f"{name}: is {found}, which does not match its name")

    def collector(column: str) -> _Column:
        is_text = text is None or column in text
        return _Column(f"{name}, column {column}", missing, is_text)

    collected: Mapping[str, _Column | _Arrays]
    if name.endswith(PARQUET):
        for _ in blocks:  # notes the checksum
            pass
        with needed_by(f"{name}: a Parquet file"):
            collected = _parquet_columns(files, name, columns, collector)
    else:
        collected = _csv_columns(files, name, columns, delimiter, collector)
    if not collected:
        raise InputError(f"{name}: has no rows")
    return pd.DataFrame({column: cells.series() for column, cells in collected.items()}, copy=False)


def delimiter_of(files: Files, name: str, columns: Sequence[str] = ()) -> str:
    """The column separator with which the header of a CSV file has most of the columns.

    Of several, the one that gives the header most columns.
    """
    first = next(files.blocks(name), b"")
    if not first:
        raise InputError(f"{name}: is empty, allowed: a header and rows")
    if name.endswith(PARQUET):
        return DELIMITERS[0]

    def header(delimiter: str) -> list[str]:
        lines = io.StringIO(first.decode("utf-8-sig", errors="replace"), newline="")
        return next(csv.reader(lines, delimiter=delimiter), [])

    headers = {delimiter: header(delimiter) for delimiter in DELIMITERS}
    return max(headers, key=lambda each: (len({*columns} & {*headers[each]}), len(headers[each])))


def _size(files: Files, name: str) -> int:
    paths = (files.root / name, files.root / f"{name}.gz")
    return next((path.stat().st_size for path in paths if path.is_file()), 0)


def _require_bytes(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise _too_large(f"{name}: {size / 2**30:.1f} GiB")


def _require_rows(rows: int, name: str) -> None:
    if rows > MOST_ROWS:
        raise _too_large(f"{name}: at least {rows:,} rows")


def _too_large(problem: str) -> InputError:
    return InputError(
        f"{problem}, allowed: up to {MOST_BYTES / 2**30:g} GiB uncompressed and {MOST_ROWS:,} "
        "rows; keep only the columns that are used, or a random sample of the rows"
    )


class _Column:
    """Collects the cells of one column from blocks."""

    def __init__(self, place: str, missing: Sequence[str], text: bool) -> None:
        self.place, self.missing = place, frozenset(missing)
        self.most_texts = MOST_ROWS if text else MOST_TEXTS
        self.codes: dict[str, int] = dict.fromkeys(missing, -1)
        self.texts: list[str] = []
        self.parts: list[np.ndarray] = []  # of codes or of numbers
        self.numeric = False

    def add(self, codes: np.ndarray, texts: Sequence[str]) -> None:
        """Add cells: the code of each in ``texts``, -1 for a missing one."""
        values = self._numbers(texts) if self.numeric else self._codes(texts)
        self.parts.append(values[codes])
        if len(self.texts) > self.most_texts:
            values = self._numbers(self.texts)
            self.parts = [values[part] for part in self.parts]
            self.numeric, self.texts = True, []

    def add_array(self, cells: Any) -> None:
        """Add an array of pyarrow, of text or its dictionary."""
        import pyarrow as pa

        if not pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_encode()
        codes = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self.add(codes, cells.dictionary.to_pylist())

    def series(self) -> pd.Series:
        """All cells."""
        cells, self.parts = np.concatenate(self.parts), []
        if self.numeric:
            return pd.Series(cells)
        return pd.Series(pd.Categorical.from_codes(cells, pd.Index(self.texts, dtype=object)))

    def _codes(self, texts: Sequence[str]) -> np.ndarray:
        """Codes of the texts, and -1 at the end for an index of -1."""
        for text in texts:
            if text not in self.codes:
                self.codes[text] = len(self.texts)
                self.texts.append(text)
        return np.array([*map(self.codes.__getitem__, texts), -1], np.int32)

    def _numbers(self, texts: Sequence[str]) -> np.ndarray:
        """The texts as numbers, missing ones as NaN, and NaN at the end for an index of -1."""
        parsed = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
        values = np.append(parsed.to_numpy(np.float64), np.nan)
        for number, text in enumerate(texts):
            if text in self.missing:
                values[number] = np.nan
            elif not np.isfinite(values[number]):
                raise InputError(
                    f"{self.place}: more than {MOST_TEXTS:,} distinct values, of which {text!r} is "
                    "not a finite number, allowed: numbers, or at most 100 categories; merge rare "
                    "values, or declare missing values"
                )
        return values


class _Arrays:
    """Collects the cells of a column of Parquet that is no text."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def add_array(self, cells: Any) -> None:
        """Add an array of pyarrow."""
        self.parts.append(cells)

    def series(self) -> pd.Series:
        """All cells."""
        import pyarrow as pa

        parts, self.parts = self.parts, []
        return pa.chunked_array(parts).to_pandas()


class _Stream(io.RawIOBase):
    """A file made of blocks, read once; refuses too many bytes."""

    def __init__(self, blocks: Iterator[bytes], name: str) -> None:
        super().__init__()
        self.blocks, self.name = blocks, name
        self.left = memoryview(b"")
        self.count = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, target: Any) -> int:
        """Fill ``target`` as far as the current block reaches; 0 at the end."""
        if not self.left:
            block = next(self.blocks, b"")
            self.count += len(block)
            if self.count > MOST_BYTES:
                raise _too_large(f"{self.name}: more than {MOST_BYTES / 2**30:g} GiB uncompressed")
            self.left = memoryview(block)
        size = min(len(target), len(self.left))
        target[:size] = self.left[:size]
        self.left = self.left[size:]
        return size


Collector = Callable[[str], _Column]  # of the column with a name


def _csv_columns(
    files: Files, name: str, columns: Sequence[str] | None, delimiter: str, collector: Collector
) -> dict[str, _Column]:
    """The columns of a CSV file, parsed in blocks of rows.

    The parser of Python's ``csv`` rather than that of pandas, which fills short rows with empty
    cells and cuts off long ones without an error.
    """
    stream = _Stream(files.blocks(name), name)
    lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="")
    rows = records(lines, name, delimiter=delimiter, strict=True)
    _, header = next(rows, (1, []))
    if not header:
        raise InputError(f"{name}: is empty, allowed: a header and rows")
    places = {column: header.index(column) for column in _wanted(header, columns, name)}
    collected = {column: collector(column) for column in places}
    count = 0
    while block := list(islice(rows, BLOCK_ROWS)):
        count += len(block)
        _require_rows(count, name)
        for line, cells in block:
            if len(cells) != len(header):
                raise InputError(
                    f"{name}, line {line}: {len(cells)} fields, expected {len(header)}"
                )
        for column, place in places.items():
            of_column = np.array([cells[place] for _, cells in block], dtype=object)
            codes, texts = pd.factorize(of_column)
            collected[column].add(codes, texts.tolist())
    return collected if count else {}


def _parquet_columns(
    files: Files, name: str, columns: Sequence[str] | None, collector: Collector
) -> dict[str, _Column | _Arrays]:
    """The columns of a Parquet file, in blocks of rows."""
    import pyarrow as pa
    from pyarrow import parquet

    path = files.root / name
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        wanted = _wanted(schema.names, columns, name)
        _require_rows(metadata.num_rows, name)
        _require_bytes(_uncompressed(metadata, wanted), name)
        for column in wanted:
            _require_flat(schema.field(column).type, f"{name}, column {column}")
        texts = [column for column in wanted if _is_text(schema.field(column).type)]
        collected = {
            column: collector(column) if column in texts else _Arrays() for column in wanted
        }
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(BLOCK_ROWS, columns=wanted, use_threads=False):
                for column in wanted:
                    collected[column].add_array(batch.column(column))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: not a readable Parquet file: {first_line(error)}") from error
    return collected if metadata.num_rows else {}


def _uncompressed(metadata: Any, columns: Sequence[str]) -> int:
    chunks = (
        metadata.row_group(group).column(place)
        for group in range(metadata.num_row_groups)
        for place in range(metadata.num_columns)
    )
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema.partition(".")[0] in columns
    )


def _require_flat(kind: Any, place: str) -> None:
    """Refuse cells that are lists or tables themselves."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        raise InputError(
            f"{place}: cells of type {kind}, allowed: text, numbers, truth values and dates; name "
            "the columns to use (features), or write the table without this column"
        )


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(values) or pa.types.is_large_string(values)


def _wanted(header: Sequence[str], columns: Sequence[str] | None, name: str) -> list[str]:
    """The columns to read, each of which is in the header exactly once."""
    wanted = list(header if columns is None else columns)
    others = [other for other in DELIMITERS if len(header) == 1 and other in header[0]]
    if others:
        raise InputError(
            f"{name}: the only column is {header[0]!r}, allowed: the right delimiter, here perhaps "
            f"{others[0]!r}"
        )
    for column in wanted:
        if column not in header:
            raise InputError(f"{name}: {unknown_name('column', column, header)}")
        if list(header).count(column) > 1:
            raise InputError(f"{name}: several columns are named {column!r}; names must be unique")
    return wanted
