"""Columns of CSV and Parquet files, read in blocks.

A text column is kept as its distinct values and one code per row. Memory therefore grows with the
rows and the columns that are read, not with the size of the file.
"""

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.files import Files

CSV, PARQUET = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), ".parquet"
DELIMITERS = (",", ";", "\t", "|")
PARQUET_MAGIC = b"PAR1"
MOST_ROWS = 10_000_000
MOST_BYTES = 8 * 2**30  # of a file, uncompressed
MOST_TEXTS = 10_000  # distinct values of a column that is kept as text
BLOCK = 2**23  # bytes of a CSV file that are parsed at once, and the maximum length of a row
BATCH_ROWS = 2**16  # of a Parquet file


def read_columns(
    files: Files,
    name: str,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    missing: Sequence[str] = ("",),
    text: Collection[str] = (),
) -> pd.DataFrame:
    """Columns of a CSV or Parquet file: text as categories, everything else as in the file.

    A CSV file has a header and quoted cells (RFC 4180). Its cells are text without any change,
    spaces included; empty lines are skipped. A text column with more than ``MOST_TEXTS`` distinct
    values must be numeric and becomes float64, unless it is one of ``text``. ``missing`` are texts
    of missing values.
    """
    if not name.endswith((*CSV, PARQUET)):
        raise InputError(f"{name}: unknown format, allowed: .csv, .csv.gz, .tsv, .tsv.gz, .parquet")
    _require_bytes(_size(files, name), name)
    blocks = files.blocks(name)
    first = next(blocks, b"")
    if name.endswith(PARQUET) != first.startswith(PARQUET_MAGIC):
        found = "a Parquet file" if first.startswith(PARQUET_MAGIC) else "no Parquet file"
        raise InputError(f"{name}: is {found}, which does not match its name")
    if name.endswith(PARQUET):
        for _ in blocks:  # notes the checksum
            pass
        batches = _parquet_batches(files, name, columns)
    else:
        batches = _csv_batches(chain([first], blocks), first, name, columns, delimiter)
    collected: dict[str, _Column] = {}
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        _require_rows(rows, name)
        for column, cells in zip(batch.schema.names, batch.columns, strict=True):
            if column not in collected:
                collected[column] = _Column(f"{name}, column {column}", missing, column in text)
            collected[column].add(cells)
    if not rows:
        raise InputError(f"{name}: has no rows")
    return pd.DataFrame({column: one.series() for column, one in collected.items()}, copy=False)


def delimiter_of(files: Files, name: str, columns: Sequence[str]) -> str:
    """The column separator with which the header of a CSV file has most of the columns."""
    first = next(files.blocks(name), b"")
    if not first:
        raise InputError(f"{name}: is empty, allowed: a header and rows")
    if name.endswith(PARQUET):
        return DELIMITERS[0]
    return max(DELIMITERS, key=lambda one: _known(columns, first, name, one))


def _known(columns: Sequence[str], first: bytes, name: str, delimiter: str) -> int:
    """How many of the columns the header has with a separator; 0 if it cannot be read so."""
    try:
        return len({*columns} & {*_header(first, name, delimiter)})
    except InputError:
        return 0


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
    """Collects the cells of one column from batches."""

    def __init__(self, place: str, missing: Sequence[str], text: bool) -> None:
        self.place, self.missing = place, frozenset(missing)
        self.most_texts = MOST_ROWS if text else MOST_TEXTS
        self.codes: dict[str, int] = dict.fromkeys(missing, -1)
        self.texts: list[str] = []
        self.parts: list[Any] = []  # of codes, of numbers, or of arrays as they are in the file
        self.encoded = self.numeric = False

    def add(self, cells: Any) -> None:
        """Add a pyarrow array; text comes as a dictionary array."""
        import pyarrow as pa

        self.encoded = pa.types.is_dictionary(cells.type)
        if not self.encoded:
            self.parts.append(cells)
            return
        texts = cells.dictionary.to_pylist()
        values = self._numbers(texts) if self.numeric else self._codes(texts)
        self.parts.append(values[cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)])
        if len(self.texts) > self.most_texts:
            values = self._numbers(self.texts)
            self.parts = [values[part] for part in self.parts]
            self.numeric, self.texts = True, []

    def series(self) -> pd.Series:
        """All cells."""
        import pyarrow as pa

        parts, self.parts = self.parts, []
        if not self.encoded:
            return pa.chunked_array(parts).to_pandas()
        joined = np.concatenate(parts)
        if self.numeric:
            return pd.Series(joined)
        return pd.Series(pd.Categorical.from_codes(joined, pd.Index(self.texts, dtype=object)))

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
        for place, text in enumerate(texts):
            if text in self.missing:
                values[place] = np.nan
            elif not np.isfinite(values[place]):
                raise InputError(
                    f"{self.place}: more than {MOST_TEXTS:,} distinct values, of which {text!r} is "
                    "not a finite number, allowed: numbers, or at most 100 categories; merge rare "
                    "values, or declare missing values"
                )
        return values


class _Stream(io.RawIOBase):
    """A file made of blocks, read once; counts quotes and refuses too many bytes."""

    def __init__(self, blocks: Iterator[bytes], name: str) -> None:
        super().__init__()
        self.blocks, self.name = blocks, name
        self.left = memoryview(b"")
        self.quotes = self.count = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, target: Any) -> int:
        """Fill ``target`` as far as the current block reaches; 0 at the end."""
        if not self.left:
            block = next(self.blocks, b"")
            self.quotes += block.count(b'"')
            self.count += len(block)
            if self.count > MOST_BYTES:
                raise _too_large(f"{self.name}: more than {MOST_BYTES / 2**30:g} GiB uncompressed")
            self.left = memoryview(block)
        size = min(len(target), len(self.left))
        target[:size] = self.left[:size]
        self.left = self.left[size:]
        return size


def _csv_batches(
    blocks: Iterator[bytes], first: bytes, name: str, columns: Sequence[str] | None, delimiter: str
) -> Iterator[Any]:
    """Batches of a CSV file, text as dictionaries."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    wanted = _wanted(_header(first, name, delimiter), columns, name)
    stream = _Stream(blocks, name)
    try:
        yield from arrow.open_csv(
            pa.PythonFile(io.BufferedReader(stream, BLOCK), mode="r"),
            read_options=arrow.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.string())),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        _require_closed_quotes(stream)
        reason = first_line(error)
        if "straddl" in reason:
            reason = f"a row has more than {BLOCK:,} bytes"
        raise InputError(f"{name}: {reason}") from error
    _require_closed_quotes(stream)


def _require_closed_quotes(stream: _Stream) -> None:
    quotes = stream.quotes + sum(block.count(b'"') for block in stream.blocks)
    if quotes % 2:
        raise InputError(f"{stream.name}: a quote is not closed")


def _header(first: bytes, name: str, delimiter: str) -> list[str]:
    """Column names of a CSV file that begins with these bytes."""
    try:
        lines = io.TextIOWrapper(io.BytesIO(first), encoding="utf-8-sig", newline="")
        return next(filter(None, csv.reader(lines, delimiter=delimiter, strict=True)), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{name}: not a CSV file in UTF-8: {first_line(error)}") from error


def _parquet_batches(files: Files, name: str, columns: Sequence[str] | None) -> Iterator[Any]:
    """Batches of a Parquet file, text as dictionaries."""
    import pyarrow as pa
    from pyarrow import parquet

    path = files.root / name
    try:
        with parquet.ParquetFile(path) as plain:
            schema, metadata = plain.schema_arrow, plain.metadata
        wanted = _wanted(schema.names, columns, name)
        _require_rows(metadata.num_rows, name)
        _require_bytes(_uncompressed(metadata, wanted), name)
        texts = [one for one in wanted if _is_text(schema.field(one).type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False):
                yield _encoded(batch.select(wanted))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: not a readable Parquet file: {first_line(error)}") from error


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


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _encoded(batch: Any) -> Any:
    import pyarrow as pa

    cells = [one.dictionary_encode() if _is_text(one.type) else one for one in batch.columns]
    return pa.record_batch(cells, names=batch.schema.names)


def _wanted(header: Sequence[str], columns: Sequence[str] | None, name: str) -> list[str]:
    """The columns to read, each of which is in the header exactly once."""
    wanted = list(header if columns is None else columns)
    others = [one for one in ";\t|" if len(header) == 1 and one in header[0]]
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


def first_line(error: BaseException) -> str:
    """First line of an error message of a library."""
    return (str(error).splitlines() or [type(error).__name__])[0]
