"""Tables that users bring: CSV or Parquet, their columns named by parameters, not by code."""

import csv
import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BeforeValidator, Field, field_validator, model_validator

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.files import Files
from robust_fairness.samples import REQUIRED_PARTS
from robust_fairness.samples import columns as cells_of
from robust_fairness.samples.columns import Bins, Kind
from robust_fairness.samples.splits import (
    SplitParameters,
    random_splits,
    require_every_class,
    unit_splits,
)

logger = logging.getLogger(__name__)

CSV, PARQUET = (".csv", ".csv.gz"), ".parquet"
MAGIC = b"PAR1"  # with which a Parquet file begins
MOST_BYTES = 2 * 2**30  # of a file, uncompressed: it is read as a whole
SPLIT = "split_0"


def _as_text(value: Any) -> Any:
    """A cell that YAML took for a number as text; a truth value has to be quoted."""
    if isinstance(value, bool):
        raise ValueError(f"YAML took it for {value}; write it in quotes as it stands in the table")
    return str(value) if isinstance(value, int | float) else value


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) or value is None else (value,)


Cell = Annotated[str, BeforeValidator(_as_text)]
BinsField = Annotated[int, Field(ge=2)] | Annotated[tuple[float, ...], Field(min_length=1)]


class OwnParameters(SplitParameters, extra="forbid", frozen=True):
    """What the parameters of all tables that users bring have in common.

    Attributes:
        file: the table, ``.csv``, ``.csv.gz`` or ``.parquet``, by its path below the data root.
            Paths that lead out of it are refused: a configuration then works on every machine, and
            no manifest or report tells of the folders of one.
        delimiter: what stands between two cells of a CSV file.
        missing: cells of text that stand for an unknown value, beside those of Parquet.
        incomplete: what becomes of rows without a value in a column that is used; a sensitive
            attribute may miss, those rows then belong to no group. ``refuse``: an error; ``drop``:
            they are left out, and the log says how many.
        target: the column to predict.
        outcome: ``binary``: class 1 is ``positive``, class 0 all other values; ``classes``: every
            value is a class, in order; ``continuous``: a number.
        positive: the value of a binary target that is class 1, or several.
        sensitive: columns of the attributes that methods mitigate, at least one.
        types: ``number`` or ``category`` by column, where the rules of ``columns`` would decide
            otherwise or cannot.
        bins: how attributes that are numbers are cut into groups: rising cut points, or a number
            of groups of about equal size.
        id: column of what a row is called, each name once; the row's number, from 0, unless given.
        split: column that says ``train``, ``val`` or ``test``; all seeds then share that split.
        unit: column of which all rows of a value, such as a person, are in the same part.
            ``train_rows`` then counts units.
    """

    file: str
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    missing: Annotated[tuple[Cell, ...], BeforeValidator(_as_list)] = ("",)
    incomplete: Literal["refuse", "drop"] = "refuse"
    target: str
    outcome: Literal["binary", "classes", "continuous"] = "binary"
    positive: Annotated[tuple[Cell, ...], BeforeValidator(_as_list)] = ()
    sensitive: Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
    types: dict[str, Kind] = {}
    bins: dict[str, BinsField] = {}
    id: str | None = None
    split: str | None = None
    unit: str | None = None

    @field_validator("file")
    @classmethod
    def _below_the_root(cls, file: str) -> str:
        return below_the_root(file)

    @model_validator(mode="after")
    def _fields_fit(self) -> "OwnParameters":
        if (self.outcome == "binary") != bool(self.positive):
            raise ValueError("positive: allowed with outcome binary, which needs it, and no other")
        for name in self.bins:
            if name not in self.sensitive:
                raise ValueError(f"bins: {unknown_name('attribute', name, self.sensitive)}")
        roles = [self.target, self.id, self.split]
        for name in filter(None, roles):
            if [*roles, *self.sensitive].count(name) > 1:
                raise ValueError(f"column {name} is given twice, allowed: one of target, id, split")
        if len(set(self.sensitive)) < len(self.sensitive):
            raise ValueError(f"sensitive: {', '.join(self.sensitive)}, allowed: each once")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the fields above name, each once."""
        named = (self.target, *self.sensitive, self.id, self.split, self.unit)
        return tuple(dict.fromkeys(filter(None, named)))

    def require_typed(self, used: Sequence[str]) -> None:
        """Check that types are declared for columns that are used only.

        Raises:
            InputError: one is not.
        """
        for name in self.types:
            if name not in used:
                raise InputError(f"types: {unknown_name('column', name, used)}")


def below_the_root(path: str) -> str:
    """The path, checked to lead nowhere but below the data root.

    Raises:
        ValueError: it is absolute or goes up.
    """
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts or "\\" in path:
        raise ValueError(
            "allowed: a path below the data root, without '..'; put or link it there, or let "
            "ROBUST_FAIRNESS_DATA name its folder"
        )
    return path


def read_columns(
    files: Files,
    name: str,
    columns: Sequence[str] | None,
    delimiter: str = ",",
    missing: Sequence[str] = ("",),
) -> pd.DataFrame:
    """Columns of a CSV or Parquet file.

    A CSV file has a header and quoted cells (RFC 4180); its cells are text as it stands there,
    spaces included, and empty lines are left out.

    Args:
        files: where the file is found.
        name: the file, by its path below the root of ``files``.
        columns: which to read, in this order; all unless given.
        delimiter: what stands between two cells of a CSV file.
        missing: cells of text that are missing values.

    Returns:
        Columns as in the file, text as categories; rows are numbered from 0.

    Raises:
        InputError: the file is missing, damaged, too large, empty, of another format than its name
            says, or lacks a column or has it twice.
    """
    if not name.endswith((*CSV, PARQUET)):
        raise InputError(f"{name}: allowed: a file .csv, .csv.gz or .parquet")
    content = _content(files, name)
    require_form(content, name)
    read = _parquet if name.endswith(PARQUET) else _csv
    table = read(content, name, columns, delimiter)
    if table.empty:
        raise InputError(f"{name}: has no rows, allowed: at least one")
    return table.apply(_marked, missing=list(missing))


def _marked(cells: pd.Series, missing: list[str]) -> pd.Series:
    """A column whose missing cells are missing."""
    if not isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    return cells.cat.remove_categories([one for one in missing if one in cells.cat.categories])


def require_form(content: bytes, name: str) -> None:
    """Check that a file is of the format that its name says.

    Args:
        content: its first bytes, or all of them.
        name: the file.

    Raises:
        InputError: it is not.
    """
    if name.endswith(PARQUET) != content.startswith(MAGIC):
        found = "a Parquet file" if content.startswith(MAGIC) else "no Parquet file"
        raise InputError(f"{name}: is {found}, allowed: the format that its name says")


def size_of(files: Files, name: str) -> int:
    """Bytes of a file as it lies there, or of the same with .gz; 0 where neither does."""
    paths = (files.root / name, files.root / f"{name}.gz")
    return next((path.stat().st_size for path in paths if path.is_file()), 0)


def _content(files: Files, name: str) -> bytes:
    """All bytes, of a file that fits into memory: it is refused before it is read or unpacked."""
    _require_size(size_of(files, name), name)
    pieces, size = [], 0
    for piece in files.blocks(name):
        size += len(piece)
        _require_size(size, name)
        pieces.append(piece)
    return b"".join(pieces)


def _require_size(size: int, name: str) -> None:
    if size > MOST_BYTES:
        raise InputError(
            f"{name}: {size / 2**30:.1f} GiB, allowed: up to {MOST_BYTES / 2**30:g} GiB "
            "uncompressed, since all of it is kept; keep the columns that are needed, or a random "
            "part of the rows"
        )


def _csv(content: bytes, name: str, columns: Sequence[str] | None, delimiter: str) -> pd.DataFrame:
    """Columns of a CSV file, categories of text."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    header = header_of(content, name, delimiter)
    if content.count(b'"') % 2:
        raise InputError(f"{name}: a quote is opened and not closed")
    wanted = wanted_of(header, columns, name)
    text = pa.dictionary(pa.int32(), pa.string())
    try:
        table = arrow.read_csv(
            pa.BufferReader(content),
            read_options=arrow.ReadOptions(use_threads=False),
            parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(
                column_types=dict.fromkeys(wanted, text),
                include_columns=wanted,
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException as error:
        raise InputError(f"{name}: {first_line(error)}") from error
    return table.to_pandas()


def header_of(content: bytes, name: str, delimiter: str) -> list[str]:
    """Names of the columns of a CSV file, of which ``content`` holds the first bytes at least.

    Raises:
        InputError: it does not begin with a line of text.
    """
    try:
        lines = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        return next(filter(None, csv.reader(lines, delimiter=delimiter, strict=True)), [])
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{name}: no CSV file in UTF-8: {first_line(error)}") from error


def _parquet(
    content: bytes, name: str, columns: Sequence[str] | None, delimiter: str
) -> pd.DataFrame:
    """Columns of a Parquet file, text as categories."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        # neither text nor numbers are ever made of what a writer noted about pandas
        file = parquet.ParquetFile(pa.BufferReader(content))
        wanted = wanted_of(file.schema_arrow.names, columns, name)
        _require_size(_unpacked(file.metadata, wanted), name)
        table = file.read(columns=wanted, use_threads=False).replace_schema_metadata()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: no readable Parquet file: {first_line(error)}") from error
    frame = table.select(wanted).to_pandas()
    return frame.apply(lambda cells: cells.astype("category") if _is_text(cells) else cells)


def _unpacked(metadata: Any, columns: Sequence[str]) -> int:
    """Bytes of these columns of a Parquet file when they are unpacked."""
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


def _is_text(cells: pd.Series) -> bool:
    return isinstance(cells.dtype, pd.StringDtype)


def wanted_of(header: Sequence[str], columns: Sequence[str] | None, name: str) -> list[str]:
    """The columns asked for, all unless given, each of which stands in the header once.

    Raises:
        InputError: one does not, or stands there twice.
    """
    wanted = list(header if columns is None else columns)
    for column in wanted:
        if column not in header:
            raise InputError(f"{name}: {unknown_name('column', column, header)}")
        if list(header).count(column) > 1:
            raise InputError(f"{name}: several columns are called {column!r}, allowed: one")
    return wanted


def first_line(error: BaseException) -> str:
    """The first line of an error of a library."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@dataclass(frozen=True)
class Labels:
    """What is known of rows beside their inputs, checked.

    Attributes:
        target: categories, the classes in order, or float64 numbers.
        attributes: sensitive attributes, categorical or float64.
        splits: named splits, categorical.
        id: int64 or str ``[n]``.
    """

    target: pd.Series
    attributes: pd.DataFrame
    splits: pd.DataFrame
    id: np.ndarray


def complete_rows(
    table: pd.DataFrame, needed: Sequence[str], parameters: OwnParameters
) -> pd.DataFrame:
    """The rows that have a value in all columns that must have one.

    Args:
        table: cells.
        needed: columns that must have a value.
        parameters: whether the others are left out or refused.

    Raises:
        InputError: a row is not complete and that is refused, or none is.
    """
    lacking = table[list(needed)].isna()
    incomplete = lacking.any(axis=1).to_numpy()
    if incomplete.any() and parameters.incomplete == "refuse":
        row = cells_of.row_of(incomplete)
        column = lacking.columns[lacking.iloc[row - 1]][0]
        raise InputError(
            f"{parameters.file}, row {row}: no value of {column}, and {incomplete.sum()} rows lack "
            "one in all; incomplete: drop leaves them out"
        )
    if incomplete.all():
        raise InputError(f"{parameters.file}: no row has a value in every column that is used")
    if incomplete.any():
        logger.info(
            "%s: %d of %d rows left out, which lack a value",
            parameters.file, incomplete.sum(), len(table),
        )  # fmt: skip
    return table[~incomplete]


def labels_of(table: pd.DataFrame, parameters: OwnParameters, splits: int) -> Labels:
    """Target, attributes, splits and names of complete rows.

    Args:
        table: the rows, with the columns that ``parameters`` names.
        parameters: what the columns are.
        splits: number of random splits; a split by column is one.

    Raises:
        InputError: a cell does not fit, a target or attribute has a single value, a name stands
            twice, or a part of a split lacks rows or a class.
    """
    table = table.reset_index(names="row")
    target = _target(table[parameters.target], parameters)
    attributes = {
        name: cells_of.attribute(
            table[name], f"{parameters.file}, column {name}", parameters.types.get(name),
            _bins(parameters.bins.get(name)),
        )
        for name in parameters.sensitive
    }  # fmt: skip
    named = _splits(table, parameters, splits)
    if isinstance(target.dtype, pd.CategoricalDtype):
        require_every_class(named, target)
    return Labels(target, pd.DataFrame(attributes), named, _id(table, parameters))


def _bins(bins: Any) -> Bins | None:
    return bins if bins is None or isinstance(bins, int) else tuple(map(float, bins))


def _target(cells: pd.Series, parameters: OwnParameters) -> pd.Series:
    """Classes in order, or numbers."""
    place = f"{parameters.file}, column {parameters.target}"
    if parameters.outcome == "continuous":
        values = cells_of.as_numbers(cells, place)
        cells_of.require_two_values(values, place)
        return values
    values = cells_of.as_categories(cells, place)
    cells_of.require_two_values(values, place)
    if parameters.outcome == "classes":
        return values
    return two_classes(values, parameters.positive, place)


def two_classes(values: pd.Series, positive: Sequence[str], place: str) -> pd.Series:
    """Categories as two classes, of which the second is the positive one.

    They are called by their values, or ``not good`` where several are negative and
    ``good or fair`` where several are positive.

    Args:
        values: categorical ``[n]``.
        positive: the positive categories.
        place: file and column, for the error.

    Raises:
        InputError: one of them does not occur, or no other does.
    """
    present = list(values.cat.remove_unused_categories().cat.categories)
    for name in positive:
        if name not in present:
            raise InputError(f"{place}: {unknown_name('positive value', name, present)}")
    others = [name for name in present if name not in positive]
    if not others:
        raise InputError(f"{place}: every value is positive, allowed: at least one that is not")
    second = " or ".join(positive)
    first = others[0] if len(others) == 1 else f"not {second}"
    codes = values.isin(list(positive)).to_numpy().astype(np.int64)
    kinds = pd.Index([first, second], dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, kinds), index=values.index, name=values.name)


def _splits(table: pd.DataFrame, parameters: OwnParameters, count: int) -> pd.DataFrame:
    """Named splits: by column, by unit or of rows."""
    if parameters.split is not None:
        return _given_split(table, parameters, parameters.split)
    if parameters.unit is not None:
        return unit_splits(_units(table, parameters.unit), count, parameters)
    return random_splits(len(table), count, parameters)


def _units(table: pd.DataFrame, unit: str) -> pd.Series:
    return pd.Series(pd.factorize(table[unit])[0])


def _given_split(table: pd.DataFrame, parameters: OwnParameters, column: str) -> pd.DataFrame:
    """The split that a column gives; no unit is in two parts."""
    place = f"{parameters.file}, column {column}"
    parts = cells_of.as_categories(table[column], place)
    for name in parts.cat.categories:
        if name not in REQUIRED_PARTS:
            raise InputError(f"{place}: {unknown_name('part', name, REQUIRED_PARTS)}")
    for name in REQUIRED_PARTS:
        if not (parts == name).any():
            raise InputError(
                f"{place}: no row is {name}, allowed: rows of each of {REQUIRED_PARTS}"
            )
    if parameters.unit is not None:
        of_unit = parts.astype(object).groupby(_units(table, parameters.unit)).nunique()
        if (of_unit > 1).any():
            first = table[parameters.unit].iloc[
                int(np.flatnonzero(_units(table, parameters.unit) == of_unit.gt(1).idxmax())[0])
            ]
            raise InputError(
                f"{place}: {parameters.unit} {first} is in several parts, allowed: one"
            )
    return pd.DataFrame({SPLIT: parts.astype(pd.CategoricalDtype(list(REQUIRED_PARTS)))})


def _id(table: pd.DataFrame, parameters: OwnParameters) -> np.ndarray:
    """Names of the rows, or their numbers in the file."""
    if parameters.id is None:
        return table["row"].to_numpy(np.int64)
    cells = table[parameters.id]
    twice = cells.duplicated().to_numpy()
    if twice.any():
        name = cells[twice].iloc[0]
        raise InputError(
            f"{parameters.file}, column {parameters.id}: two rows of {name}, allowed: one"
        )
    if pd.api.types.is_integer_dtype(cells.dtype):
        return cells.to_numpy(np.int64)
    return cells.astype(str).to_numpy(dtype=np.str_)
