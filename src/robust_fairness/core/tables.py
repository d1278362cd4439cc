"""The tables of a run, declared in ``tables.yml``.

Schema, documentation and the joining of tables follow from it.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml

from robust_fairness.core.escaping import for_markdown

TEXT = "str"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with these begin formulas of spreadsheets


class Column(NamedTuple):
    """A column of a table: its type in pandas, and whether values may be missing."""

    kind: str
    meaning: str
    missing: str = ""


@dataclass(frozen=True, eq=False)
class Table(Mapping[str, str]):
    """The declaration of a table; as a mapping, the types of its columns by name.

    Attributes:
        name: what the catalog and the report call it.
        meaning: what a row is.
        columns: its columns by name.
        fields: prefix of the names of further columns, such as "facets."; "" if there are none.
        part_of: what makes a table that the report reads: cell, trials or drawing (of a
            cell), dataset, domains, generator, reference (of a generator) or run; "" of other
            tables.
    """

    name: str
    meaning: str
    columns: Mapping[str, Column]
    fields: str = ""
    part_of: str = ""

    def __getitem__(self, column: str) -> str:
        return self.columns[column].kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def table(self, rows: list[dict], fields: Sequence[Mapping[str, Any]] = ()) -> pd.DataFrame:
        """A data frame of rows with exactly the declared columns and types.

        Args:
            rows: the rows; text is "" by default.
            fields: values of further columns, one mapping per row. Lists become text joined by
                "+". A column holds numbers where all its values are numbers, else text.
        """
        frame = table(self, rows)
        names = dict.fromkeys(name for values in fields for name in values)
        further = {
            f"{self.fields}{name}": _column([_plain(values.get(name)) for values in fields])
            for name in names
        }
        return pd.concat([frame, pd.DataFrame(further, index=frame.index)], axis=1)

    def joined(self, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """The rows of several data frames of this table, with all their further columns."""
        rows = pd.concat([self.table([]), *frames], ignore_index=True)
        for name in rows.columns.difference(list(self), sort=False):
            rows[name] = _column(rows[name].tolist())
        return rows


def _declared() -> dict[str, Table]:
    written = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    for fields in written.values():
        fields["columns"] = {name: Column(*column) for name, column in fields["columns"].items()}
    return {name: Table(name, **fields) for name, fields in written.items()}


TABLES = _declared()
CELLS = TABLES["cells"]
CHOICES = TABLES["choices"]
COUNTS = TABLES["counts"]
DISTANCES = TABLES["distances"]
GENERATOR_QUALITY = TABLES["generator_quality"]
HISTORY = TABLES["history"]
METRICS = TABLES["metrics"]
PLANES = TABLES["planes"]
SELECTION = TABLES["selection"]
SPLITS = TABLES["splits"]
TRIALS = TABLES["trials"]


def table(columns: Mapping[str, str], rows: list[dict]) -> pd.DataFrame:
    """Data frame of rows with exactly these columns and types; text is "" by default."""
    if not rows:
        return _empty(tuple(columns.items())).copy()
    text: dict[Any, str] = {name: "" for name, kind in columns.items() if kind == TEXT}
    frame = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(text, object))
    return frame.fillna(text).astype(dict(columns))


@cache
def _empty(columns: tuple[tuple[str, str], ...]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns})


def _plain(value: Any) -> Any:
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(values: Sequence[Any]) -> pd.Series:
    """Numbers where all values are numbers or missing, else text with missing values."""
    known = [value for value in values if not pd.isna(value)]
    if known and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    ):
        return pd.to_numeric(pd.Series(values)).astype("float64")
    text = [None if pd.isna(value) else str(value) for value in values]
    return pd.Series(text, dtype=TEXT)


def csv(frame: pd.DataFrame) -> str:
    """A data frame as CSV; text that a spreadsheet would take for a formula gets a quote.

    Lines in a cell end in a newline, and its other control characters are escaped.

    >>> print(csv(pd.DataFrame({"group": ["=1+1", "-1", "a"]})), end="")
    group
    '=1+1
    -1
    a
    """
    safe = frame.copy()
    for name in frame.select_dtypes(exclude="number"):
        values = frame[name].astype("str").where(frame[name].notna())
        values = values.map(_in_a_cell, na_action="ignore")
        starts = values.astype("str").str[:1]  # a column without any value is no text
        is_formula = starts.isin(FORMULA)
        if is_formula.any():
            is_formula &= pd.to_numeric(values, errors="coerce").isna()
        changed = is_formula | (values.notna() & (values != frame[name].astype("str")))
        if changed.any():
            safe[name] = values.mask(is_formula, "'" + values)
    return safe.to_csv(index=False)


def _in_a_cell(text: str) -> str:
    if text.isprintable():
        return text
    lines = re.split("\r\n?|\n", text)
    return "\n".join(CONTROL.sub(lambda sign: f"\\x{ord(sign[0]):02x}", line) for line in lines)


def markdown(frame: pd.DataFrame, write: Callable[[str], str] = for_markdown) -> str:
    """A data frame as a Markdown table, missing values blank; ``write`` escapes its texts."""
    rows = [list(frame.columns), *frame.astype(object).where(frame.notna(), "").to_numpy().tolist()]
    lines = [[write(str(cell)) for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(frame.columns))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex(frame: pd.DataFrame) -> str:
    """A data frame as a LaTeX table for the package booktabs, missing values blank."""
    styled = frame.style.hide(axis="index").format(escape="latex", na_rep="")
    text: str = styled.format_index(escape="latex", axis=1).to_latex(hrules=True)
    return text.replace("±", r"$\pm$")
