"""Some columns of a table that may be larger than memory: read piece by piece, kept as codes.

For tables of predictions, of which a few columns are asked for. Of a column of text its different
values are kept and a code for every row; one of more than ``MOST_TEXTS`` different values has to
be of numbers, which are then kept as such. What stays in memory therefore grows with the rows and
the columns that are asked for, not with the size of the file.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.own_tables import (
    CSV,
    PARQUET,
    first_line,
    header_of,
    require_form,
    size_of,
    wanted_of,
)

MOST_ROWS = 10_000_000
MOST_BYTES = 8 * 2**30  # of a file, uncompressed: a matter of minutes, not of memory
MOST_TEXTS = 10_000  # different cells of a column that are kept as text
BLOCK = 2**23  # bytes of a CSV file that are parsed at once, and the most that a row may have
ROWS_AT_ONCE = 2**16  # of a Parquet file


def stream_columns(
    files: Files,
    name: str,
    columns: Sequence[str],
    delimiter: str = ",",
    missing: Sequence[str] = ("",),
) -> pd.DataFrame:
    """Columns of a CSV or Parquet file of any size up to ``MOST_BYTES`` and ``MOST_ROWS``.

    Cells are what ``read_columns`` makes of them, except that a column of text with more than
    ``MOST_TEXTS`` different values, all of them numbers, is float64.

    Args:
        files: where the file is found.
        name: the file, by its path below the root of ``files``.
        columns: which to read, in this order.
        delimiter: what stands between two cells of a CSV file.
        missing: cells of text that are missing values.

    Returns:
        Text as categories; rows are numbered from 0.

    Raises:
        InputError: the file is missing, damaged, larger than allowed, empty, of another format
            than its name says, or lacks a column or has it twice; or a column has more than
            ``MOST_TEXTS`` different cells that are not all numbers.
    """
    if size_of(files, name) > MOST_BYTES:
        raise _too_large(f"{name}: {size_of(files, name) / 2**30:.1f} GiB")
    if not name.endswith((*CSV, PARQUET)):
        raise InputError(f"{name}: allowed: a file .csv, .csv.gz or .parquet")
    blocks = files.blocks(name)
    first = next(blocks, b"")
    require_form(first, name)
    if name.endswith(PARQUET):
        blocks.close()  # type: ignore[attr-defined]
        pieces = _of_parquet(files, name, columns)
    else:
        pieces = _of_csv(chain([first], blocks), first, name, columns, delimiter)
    found = {column: _Cells(f"{name}, column {column}", missing) for column in columns}
    rows = 0
    for piece in pieces:
        rows += piece.num_rows
        if rows > MOST_ROWS:
            raise _too_large(f"{name}: more than {MOST_ROWS:,} rows")
        for column, cells in zip(piece.schema.names, piece.columns, strict=True):
            found[column].add(cells)
    if not rows:
        raise InputError(f"{name}: has no rows, allowed: at least one")
    return pd.DataFrame({column: found[column].series() for column in columns}, copy=False)


def _too_large(what: str) -> InputError:
    return InputError(
        f"{what}, allowed: up to {MOST_BYTES / 2**30:g} GiB uncompressed and {MOST_ROWS:,} rows; "
        "take a random part of the rows"
    )


class _Cells:
    """Cells of one column, piece after piece."""

    def __init__(self, place: str, missing: Sequence[str]) -> None:
        self.place = place
        self.codes = dict.fromkeys(missing, -1)
        self.texts: list[str] = []
        self.parts: list[Any] = []
        self.rows = 0
        self.form = "text"

    def add(self, cells: Any) -> None:
        """The next cells, an array of pyarrow."""
        import pyarrow as pa

        if not pa.types.is_dictionary(cells.type):
            self.form = "as they are"
            self.parts.append(cells)
            return
        places = cells.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        texts = cells.dictionary.to_pylist()
        if self.form == "text":
            own = np.fromiter(map(self._code, texts), np.int32, len(texts))
            self.parts.append(np.append(own, np.int32(-1))[places])
            if len(self.texts) > MOST_TEXTS:
                lookup = np.append(self._numbers(self.texts), np.nan)
                self._require_numbers(lookup[:-1], self.texts)
                self.parts = [lookup[part] for part in self.parts]
                self.form, self.texts = "numbers", []
        else:
            values = np.append(self._numbers(texts), np.nan)
            self._require_numbers(values[:-1], texts)
            self.parts.append(values[places])
        self.rows += len(cells)

    def series(self) -> pd.Series:
        """All of them."""
        import pyarrow as pa

        parts, self.parts = self.parts, []
        if self.form == "as they are":
            return pa.chunked_array(parts).to_pandas()
        joined = np.concatenate(parts)
        if self.form == "numbers":
            return pd.Series(joined)
        return pd.Series(pd.Categorical.from_codes(joined, pd.Index(self.texts, dtype=object)))

    def _code(self, text: str) -> int:
        """Number of a text, a new one where it is new."""
        code = self.codes.get(text)
        if code is None:
            code = self.codes[text] = len(self.texts)
            self.texts.append(text)
        return code

    def _numbers(self, texts: Sequence[str]) -> np.ndarray:
        """Texts as float64, NaN where one is no number or missing."""
        found = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
        values: np.ndarray = found.to_numpy(np.float64).copy()
        values[[self.codes.get(text, 0) < 0 for text in texts]] = np.nan
        return values

    def _require_numbers(self, values: np.ndarray, texts: Sequence[str]) -> None:
        """Refuse text in a column of so many different values."""
        for text, value in zip(texts, values, strict=True):
            if not np.isfinite(value) and self.codes.get(text, 0) >= 0:
                raise InputError(
                    f"{self.place}: more than {MOST_TEXTS:,} different values, of which {text!r} "
                    "is no finite number, allowed: numbers, which bins cut into groups, or at "
                    "most 100 categories; merge rare values, or say which cells are missing"
                )


class _Bytes(io.RawIOBase):
    """A file of blocks, read once, which counts quotes and refuses too many bytes."""

    def __init__(self, blocks: Iterator[bytes], name: str) -> None:
        super().__init__()
        self.blocks, self.name = blocks, name
        self.left = memoryview(b"")
        self.quotes = self.count = 0

    def readable(self) -> bool:
        """It is."""
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


def _of_csv(
    blocks: Iterator[bytes], first: bytes, name: str, columns: Sequence[str], delimiter: str
) -> Iterator[Any]:
    """Batches of a CSV file, text as dictionaries."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    wanted = wanted_of(header_of(first, name, delimiter), columns, name)
    source = _Bytes(blocks, name)
    try:
        reader = arrow.open_csv(
            pa.PythonFile(io.BufferedReader(source, BLOCK), mode="r"),
            read_options=arrow.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.dictionary(pa.int32(), pa.string())),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
        yield from reader
    except pa.ArrowException as error:
        told = first_line(error)
        if "straddl" in told:
            told = f"a quote is opened and not closed, or a row has more than {BLOCK:,} bytes"
        raise InputError(f"{name}: {told}") from error
    if source.quotes % 2:
        raise InputError(f"{name}: a quote is opened and not closed")


def _of_parquet(files: Files, name: str, columns: Sequence[str]) -> Iterator[Any]:
    """Batches of a Parquet file, text as dictionaries."""
    import pyarrow as pa
    from pyarrow import parquet

    path = files.root / name
    try:
        with parquet.ParquetFile(path) as plain:
            schema, rows = plain.schema_arrow, plain.metadata.num_rows
        if rows > MOST_ROWS:
            raise _too_large(f"{name}: {rows:,} rows")
        wanted = wanted_of(schema.names, columns, name)
        texts = [one for one in wanted if _is_text(schema.field(one).type)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=wanted, use_threads=False):
                yield _encoded(batch)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: no readable Parquet file: {first_line(error)}") from error


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _encoded(batch: Any) -> Any:
    """The batch with all its text as dictionaries."""
    import pyarrow as pa

    cells = [one.dictionary_encode() if _is_text(one.type) else one for one in batch.columns]
    return pa.record_batch(cells, names=batch.schema.names)
