"""Tables in CSV and Parquet files, read in blocks: the one reader of all tables.

A text column is kept as its distinct values and one code per row. Memory therefore grows with the
rows and the columns that are read, not with the size of the file.
"""

import codecs
import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from robust_fairness.auditing.read.cleaning import (
    BLANK,
    READ_AS,
    WRITTEN,
    Cleaning,
    Decimals,
    telling,
)
from robust_fairness.auditing.read.columns import parsed
from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.extras import needed_by
from robust_fairness.core.frames import as_pandas
from robust_fairness.core.raw_files import BLOCK, FEWER, MOST_BYTES, Files, require_size

if TYPE_CHECKING:
    import pyarrow as pa

CSV, PARQUET = (".csv", ".csv.gz", ".tsv", ".tsv.gz"), ".parquet"
DELIMITERS = (",", ";", "\t", "|")
PARQUET_MAGIC = b"PAR1"
MOST_ROWS = 10_000_000
NUMBER, CODE = 8, 4  # bytes of a cell that is read: a number, or the code of a text
MOST_TEXTS = 10_000  # distinct values of a column that is kept as text
BLOCK_ROWS = 2**11  # that are parsed at once
LONGEST_LINE = 2**24  # letters; a million columns
UTF_8, WINDOWS = "utf-8-sig", "cp1252"


class NoTextError(InputError):
    """Bytes are no text of an encoding."""


def read_columns(
    files: Files,
    name: str,
    columns: Sequence[str] | None = None,
    delimiter: str | None = ",",
    missing: Sequence[str] = ("",),
    text: Collection[str] | None = (),
    *,
    encoding: str | None = None,
    decimal: Decimals | None = None,
) -> pd.DataFrame:
    """Columns of a user's CSV or Parquet file: text as categories, all else as in the file.

    A CSV file has a header and quoted cells (RFC 4180). Its cells are text without any change,
    spaces included; empty lines are skipped. A text column with more than ``MOST_TEXTS`` distinct
    values must be numeric and becomes float64, unless it is one of ``text`` (None: every column).
    ``missing`` are texts of missing values, ``decimal`` is the decimal separator. Without an
    ``encoding`` a file is UTF-8, UTF-16 or, if it is neither, Windows-1252, and without a
    ``delimiter`` the header shows it; ``attrs`` of the table say which they are.
    """
    if not name.endswith((*CSV, PARQUET)):
        raise InputError(f"{name}: unknown format, allowed: .csv, .csv.gz, .tsv, .tsv.gz, .parquet")
    blocks, is_parquet = files.blocks(name), name.endswith(PARQUET)
    first = next(blocks, b"")
    if not first:
        raise InputError(f"{name}: is empty, allowed: a header and rows")
    if is_parquet != first.startswith(PARQUET_MAGIC):
        kind = "no Parquet file" if is_parquet else "a Parquet file"
        raise InputError(f"{name}: is {kind}, which does not match its name")

    notes: list[str] = []
    written: dict[str, list[str]] = {}

    def collector(column: str) -> _Column:
        is_text = text is None or column in text
        place, of_column = f"{name}, column {column}", written.setdefault(column, [])
        most = MOST_ROWS if is_text else MOST_TEXTS
        return _Column(place, Cleaning(missing, decimal), most, notes, of_column)

    if is_parquet:
        for _ in blocks:  # notes the checksum
            pass
        with needed_by(f"{name}: a Parquet file"):
            table = _parquet_columns(files, name, columns, collector)
    else:
        likely = encoding or encoding_of(first)
        delimiter = delimiter or _delimiter_of(first.decode(likely, "replace"), columns or ())
        also = [WINDOWS] if encoding is None and likely == UTF_8 else []
        table = _csv_columns(files, name, columns, delimiter, collector, [likely, *also])
        tried = table.attrs["encoding"]
        if tried != (encoding or UTF_8):
            notes.append(f"{name}: is no UTF-8 text and read as {tried} (encoding)")
    if not len(table):
        raise InputError(f"{name}: has no rows")
    table.attrs |= {READ_AS: notes, WRITTEN: written, "delimiter": delimiter or DELIMITERS[0]}
    return table


def _csv_columns(
    files: Files,
    name: str,
    columns: Sequence[str] | None,
    delimiter: str,
    collector: "Collector",
    encodings: Sequence[str],
) -> pd.DataFrame:
    """The columns of a CSV file by the first of the encodings that it is text of."""
    problems = []
    for encoding in encodings:
        lines = _lines(files.blocks(name), name, encoding)
        rows = records(lines, name, delimiter=delimiter, strict=True)
        try:
            _, header = next(rows, (0, []))
            table = _collected(rows, name, header, _wanted(header, columns, name), collector)
        except NoTextError as error:
            problems.append(error)
            continue
        table.attrs["encoding"] = encoding
        return table
    such = ", such as cp1252 or utf-16" if len(encodings) == 1 else ""
    raise InputError(f"{problems[0]}; declare its encoding{such}")


def encoding_of(first: bytes) -> str:
    """The encoding that the first bytes of a file show: UTF-16, or UTF-8 without any sign of it."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if first[1:2] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if first[:1] == b"\0" else UTF_8


def read_cells(
    blocks: Iterable[bytes],
    name: str,
    columns: Sequence[str] | None = None,
    *,
    header: Sequence[str] | None = None,
    delimiter: str = ",",
    comment: str = "|",
    rows: int | None = None,
) -> pd.DataFrame:
    """Columns of a documented CSV file: every cell as it is, as categories.

    Args:
        blocks: the bytes of the file.
        name: the file, for messages.
        columns: names in the header, all by default; of two columns of one name the first.
        header: names of all columns of a file without a header, in which spaces after a delimiter
            are skipped.
        delimiter: what separates two cells.
        comment: begins the comments of a file without a header.
        rows: the documented number of rows; None if unknown.
    """
    lines = _lines(blocks, name)
    if header is None:
        read = records(lines, name, delimiter=delimiter, strict=True)
        _, header = next(read, (0, []))
    else:
        dialect = {"skipinitialspace": True, "quoting": csv.QUOTE_NONE}
        every = records(lines, name, delimiter=delimiter, **dialect)
        read = ((line, cells) for line, cells in every if not cells[0].startswith(comment))
    wanted = _wanted([*dict.fromkeys(header)], columns and [*dict.fromkeys(columns)], name)
    table = _collected(read, name, header, wanted, lambda column: _Column(column, Cleaning()))
    if rows is not None and len(table) != rows:
        raise InputError(f"{name}: {len(table)} rows, expected {rows}; the file may be incomplete")
    return table


def _delimiter_of(text: str, columns: Sequence[str]) -> str:
    """The column separator with which the header of a CSV text has most of the columns.

    Of several, the one that gives the header most columns.
    """
    headers: dict[str, list[str]] = {}
    for delimiter in DELIMITERS:
        headers[delimiter] = []
        lines = io.StringIO(text, newline="")
        with suppress(csv.Error):  # a name of more characters than a cell may have
            headers[delimiter] += next(csv.reader(lines, delimiter=delimiter), [])
    return max(headers, key=lambda each: (len({*columns} & {*headers[each]}), len(headers[each])))


def records(
    lines: Iterable[str], name: str, **dialect: str | bool | int
) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV file that are not empty, each with the number of its last line.

    The parser of Python's ``csv`` rather than that of pandas, which fills short rows with empty
    cells without an error.

    Raises:
        InputError: a quote is not closed, or the text is not UTF-8.
    """
    reader, before = csv.reader(lines, **dialect), 0  # type: ignore[arg-type]
    try:
        for cells in reader:
            if cells:
                yield reader.line_num, cells
            before = reader.line_num
    except csv.Error as error:
        reason = f"line {reader.line_num}: {error}"
        if "unexpected end" in str(error) or "field limit" in str(error):
            most = csv.field_size_limit()
            reason = (
                f"line {before + 1}: a quote is not closed, or a cell has over {most:,} letters"
            )
        raise InputError(f"{name}, {reason}") from error
    except UnicodeDecodeError as error:
        line = reader.line_num + error.object.count(b"\n", 0, error.start) + 1
        raise NoTextError(
            f"{name}, line {line}: byte 0x{error.object[error.start]:02x} is not "
            f"{error.encoding.upper()} text"
        ) from error


def _lines(blocks: Iterable[bytes], name: str, encoding: str = UTF_8) -> Iterator[str]:
    """Text, with or without a byte order mark, line by line, whatever ends a line.

    Raises:
        InputError: a line is longer than ``LONGEST_LINE``.
    """
    pieces = (block[at : at + BLOCK] for block in blocks for at in range(0, len(block), BLOCK))
    rest = ""  # the last line may go on in the next piece
    for text in codecs.iterdecode(pieces, encoding):
        lines = io.StringIO(rest + text, newline="")
        rest = next(lines)
        for line in lines:
            yield rest
            rest = line
        if len(rest) > LONGEST_LINE:
            raise InputError(f"{name}: a line of more than {LONGEST_LINE:,} letters; {FEWER}")
    if rest:
        yield rest


def _require_rows(rows: int, name: str) -> None:
    if rows > MOST_ROWS:
        raise InputError(f"{name}: at least {rows:,} rows, allowed: {MOST_ROWS:,} rows; {FEWER}")


@dataclass
class _Column:
    """Collects the cells of one column from blocks.

    Attributes:
        place: of the column, for messages.
        cleaning: how its cells are written.
        most_texts: distinct values of a column that is kept as text.
        notes: how its numbers were read is added to them.
        written: its telling texts.
        texts: distinct texts so far.
        parts: blocks of codes of texts, or of numbers where it is ``numeric``.
    """

    place: str
    cleaning: Cleaning
    most_texts: int = MOST_ROWS
    notes: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)
    parts: list[np.ndarray] = field(default_factory=list)
    numeric: bool = False

    def add(self, codes: np.ndarray, texts: Sequence[str]) -> None:
        """Add cells: the code of each in ``texts``, -1 for a missing one."""
        if self.numeric:
            values = self._numbers(texts)
        else:
            known, missing = self.texts, self.cleaning.missing
            of_text = [
                -1 if text in missing else known.setdefault(text, len(known)) for text in texts
            ]
            values = np.array([*of_text, -1], np.min_scalar_type(-len(known) - 1))
        self.parts.append(values[codes])
        if len(self.texts) > self.most_texts:
            values = self._numbers([*self.texts])
            self.parts = [values[part] for part in self.parts]
            self.numeric, self.texts = True, {}

    def series(self) -> pd.Series:
        """All cells."""
        cells, self.parts = np.concatenate(self.parts), []
        if self.numeric:
            return pd.Series(cells)
        return pd.Series(pd.Categorical.from_codes(cells, pd.Index([*self.texts], dtype=object)))

    def _numbers(self, texts: Sequence[str]) -> np.ndarray:
        """The texts as numbers, missing ones as NaN, and NaN at the end for an index of -1."""
        values, missing = parsed(texts), self.cleaning.missing
        self.written[:] = telling([*self.written, *texts])
        if self.cleaning.decimal == "," or not np.isfinite(values).all():
            points, how = self.cleaning.names(texts, self.place, numbers=True)
            if how and not self.numeric:
                comma = any("," in text for text in texts)
                self.cleaning = replace(self.cleaning, decimal="," if comma else ".")
                self.notes.append(how)
            values = parsed(points)
        for text in (texts[int(number)] for number in np.flatnonzero(~np.isfinite(values))):
            if text not in missing and not BLANK.fullmatch(text):
                raise InputError(
                    f"{self.place}: more than {MOST_TEXTS:,} distinct values, of which {text!r} is "
                    "not a finite number, allowed: numbers, or at most 100 categories; merge rare "
                    "values, or declare missing values"
                )
        is_number = np.isfinite(values) & ~np.array([text in missing for text in texts], bool)
        return np.append(np.where(is_number, values, np.nan), np.nan)


Collector = Callable[[str], _Column]  # of the column with a name


def _collected(
    rows: Iterator[tuple[int, list[str]]],
    name: str,
    header: Sequence[str],
    wanted: Sequence[str],
    collector: Collector,
) -> pd.DataFrame:
    """Columns of the rows, which must all have as many cells as the header; empty without any."""
    places = [list(header).index(column) for column in wanted]
    pick = itemgetter(*places, *places[:1])  # of one index alone it would give no tuple
    collected = [collector(column) for column in wanted]
    count = 0
    while block := list(islice(rows, BLOCK_ROWS)):
        count += len(block)
        _require_rows(count, name)
        for line, cells in block:
            if len(cells) != len(header):
                raise InputError(
                    f"{name}, line {line}: {len(cells)} fields, expected {len(header)}"
                )
        picked = np.array([pick(cells) for _, cells in block], dtype=object)
        for column, of_column in zip(collected, picked.T, strict=False):
            codes, texts = pd.factorize(of_column)
            column.add(codes, texts.tolist())
    if not count:
        return pd.DataFrame(columns=list(wanted), dtype="category")
    return pd.DataFrame({n: cells.series() for n, cells in zip(wanted, collected, strict=True)})


def _parquet_columns(
    files: Files, name: str, columns: Sequence[str] | None, collector: Collector
) -> pd.DataFrame:
    """The columns of a Parquet file, one after the other; text as its dictionary."""
    import pyarrow as pa
    from pyarrow import parquet

    path = files.root / name
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata = file.schema_arrow, file.metadata
        wanted = _wanted(schema.names, columns, name)
        _require_rows(metadata.num_rows, name)
        texts = [
            column
            for column in wanted
            if _is_text(schema.field(column).type, f"{name}, column {column}")
        ]
        decoded = metadata.num_rows * (NUMBER * len(wanted) - (NUMBER - CODE) * len(texts))
        require_size(_uncompressed(metadata, wanted) + decoded, MOST_BYTES, name)
        table: dict[str, pd.Series] = {}
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            for column in wanted if metadata.num_rows else ():
                cells = file.read([column], use_threads=False).column(0)
                if column not in texts:
                    table[column] = as_pandas(pa.table({column: cells}))[column]
                    continue
                collected = collector(column)
                for chunk in cells.chunks:
                    is_coded = pa.types.is_dictionary(chunk.type)
                    coded = chunk if is_coded else chunk.dictionary_encode()
                    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                    collected.add(codes, coded.dictionary.to_pylist())
                table[column] = collected.series()
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: not a readable Parquet file: {first_line(error)}") from error
    return pd.DataFrame(table, columns=wanted, copy=False)


def _uncompressed(metadata: "pa.parquet.FileMetaData", columns: Sequence[str]) -> int:
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


def _is_text(kind: "pa.DataType", place: str) -> bool:
    """Whether cells are text; those that are lists, tables or files themselves are refused."""
    import pyarrow as pa

    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(values) or "binary" in str(values):
        raise InputError(
            f"{place}: cells of type {kind}, allowed: text, numbers, truth values and dates; name "
            "the columns to use (features), or write the table without this column"
        )
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
    if not header:
        raise InputError(f"{name}: is empty, allowed: a header and rows")
    for column in wanted:
        if column not in header:
            raise unknown_name("column", column, header, name)
        if list(header).count(column) > 1:
            raise InputError(f"{name}: several columns are named {column!r}; names must be unique")
    return wanted
