"""What the fields of a documented table may hold.

``validated`` turns cells into a typed table or names the first cell that does not fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name

LARGEST = float(np.finfo(np.float64).max)
TEXT = "text"  # the declared type of cells that are taken as they are


@dataclass(frozen=True)
class Number:
    """A finite number from ``low`` to ``high``, float64.

    Attributes:
        whole: only whole numbers.
        missing: cells of an unknown value, which becomes NaN.
    """

    low: float = -LARGEST
    high: float = LARGEST
    whole: bool = False
    missing: tuple[str, ...] = ()

    def typed(self, texts: pd.Index, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of cells, and which of the distinct ``texts`` are none that is allowed."""
        values = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(np.float64)
        missing = texts.isin(list(self.missing))
        wrong = ~((self.low <= values) & (values <= self.high))
        if self.whole:
            wrong |= values != np.round(values)
        return np.where(missing, np.nan, values)[codes], wrong & ~missing

    def problem(self, cell: str) -> str:
        """What is wrong with a cell."""
        kind = "whole number" if self.whole else "number"
        limits = [f"{self.low:g} or more"] if self.low > -LARGEST else []
        limits += [f"{self.high:g} or less"] if self.high < LARGEST else []
        others = "".join(f" or {mark!r}" for mark in self.missing)
        return f"{cell!r}, allowed: a finite {', '.join([kind, *limits])}{others}"


@dataclass(frozen=True)
class Category:
    """One of the listed categories, categorical in their order.

    Attributes:
        allowed: the categories; or a mapping from the codes of the file, texts or numbers, to
            readable names, several codes of one name being one category.
        missing: cells of an unknown value.
    """

    allowed: Sequence[str] | Mapping[Any, str]
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> dict[Any, str]:
        """Names of the categories by their cells."""
        if isinstance(self.allowed, Mapping):
            return dict(self.allowed)
        return {cell: cell for cell in self.allowed}

    def typed(self, texts: pd.Index, codes: np.ndarray) -> tuple[pd.Categorical, np.ndarray]:
        """The names of cells, and which of the distinct ``texts`` are no category."""
        names = self.names
        kinds = pd.Index(list(dict.fromkeys(names.values())), dtype=object)
        keys: Sequence[Any] = list(texts)
        if not all(isinstance(key, str) for key in names):
            keys = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").tolist()
        places = kinds.get_indexer(pd.Index([names.get(key) for key in keys], dtype=object))
        wrong = (places < 0) & ~texts.isin(list(self.missing))
        return pd.Categorical.from_codes(places[codes], kinds), wrong

    def problem(self, cell: str) -> str:
        """What is wrong with a cell."""
        return str(unknown_name("category", cell, map(str, self.names)))


Field = Number | Category


def field(written: Any) -> Field | None:
    """A field as YAML declares it; None of cells that are taken as they are.

    Nothing of a number, ``text`` or a number of categories of text, a list of categories, or the
    attributes of a ``Number`` or (``codes``) a ``Category``.
    """
    if written is None:
        return Number()
    if written == TEXT or isinstance(written, int):
        return None
    if isinstance(written, list):
        return Category(tuple(written))
    missing = tuple(written.get("missing", ()))
    if "codes" in written:
        return Category(written["codes"], missing)
    return Number(**written | {"missing": missing})


def validated(cells: pd.DataFrame, fields: Mapping[str, Field | None], file: str) -> pd.DataFrame:
    """The columns of ``fields``: float64, categorical, or text.

    ``cells`` are categories of text, as ``reading.read_cells`` reads them.
    """
    table: dict[str, pd.Series | np.ndarray | pd.Categorical] = {}
    for name, declared in fields.items():
        if name not in cells:
            raise InputError(f"{file}: {unknown_name('column', name, cells.columns)}")
        if declared is None:
            table[name] = cells[name].astype(object)
            continue
        texts, codes = cells[name].cat.categories, cells[name].cat.codes.to_numpy()
        table[name], wrong = declared.typed(texts, codes)
        if wrong.any():
            row = int(wrong[codes].argmax())
            problem = declared.problem(str(texts[codes[row]]))
            raise InputError(f"{file}, row {row + 1}, column {name}: {problem}")
    return pd.DataFrame(table, index=cells.index)
