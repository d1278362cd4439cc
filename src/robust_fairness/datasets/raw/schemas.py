"""Schemas of raw tables: what each field may hold, checked by pandera, reported in one line.

A dataset declares its fields, ``{"age": Number(18, 96), "sex": Category(("Male", "Female"))}``, or
has them in a codebook, a YAML file; ``validated`` turns cells (strings) into a typed table or names
the first cell that does not fit.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from robust_fairness.core.errors import InputError, unknown_name

LARGEST = sys.float_info.max


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

    def parse(self, cells: pd.Series) -> pd.Series:
        """Numbers; NaN where the value is missing, infinity where there is no number."""
        values = pd.to_numeric(cells, errors="coerce").astype("float64")
        missing = cells.isin(list(self.missing))
        return values.fillna(np.inf).mask(missing)

    def column(self) -> Any:
        import pandera.pandas as pa

        checks = [pa.Check.in_range(self.low, self.high)]
        if self.whole:
            checks.append(pa.Check(_is_whole, name="whole"))
        return pa.Column("float64", checks, nullable=bool(self.missing))

    def problem(self, cell: str) -> str:
        kind = "whole number" if self.whole else "number"
        if (self.low, self.high) == (-LARGEST, LARGEST):
            allowed = f"a {kind}" if self.whole else "a finite number"
        elif self.high == LARGEST:
            allowed = f"a {kind}, {self.low:g} or more"
        elif self.low == -LARGEST:
            allowed = f"a {kind}, {self.high:g} or less"
        else:
            allowed = f"a {kind} from {self.low:g} to {self.high:g}"
        others = "".join(f" or {mark!r}" for mark in self.missing)
        return f"{cell!r}, allowed: {allowed}{others}"


@dataclass(frozen=True)
class Category:
    """One of the listed categories, categorical in their order.

    Attributes:
        allowed: the categories; or a mapping from the codes of the file to readable names, several
            codes of one name being one category.
    """

    allowed: tuple[str, ...] | Mapping[str, str]

    @property
    def names(self) -> dict[str, str]:
        """Names of the categories by their cells."""
        if isinstance(self.allowed, Mapping):
            return dict(self.allowed)
        return {cell: cell for cell in self.allowed}

    @property
    def kind(self) -> pd.CategoricalDtype:
        """The names in their order, each once."""
        return pd.CategoricalDtype(list(dict.fromkeys(self.names.values())))

    def parse(self, cells: pd.Series) -> pd.Series:
        """Names; missing where the cell is no category."""
        return cells.astype("object").map(self.names).astype(self.kind)

    def column(self) -> Any:
        import pandera.pandas as pa

        return pa.Column(self.kind)

    def problem(self, cell: str) -> str:
        return str(unknown_name("category", cell, self.names))


Field = Number | Category


def codebook(module: str) -> dict[str, Field]:
    """The fields of a table by name, from the YAML file beside its module.

    A field is a list of categories, ``codes`` with the names of categories, or the attributes of a
    ``Number``.
    """
    path = Path(module).with_suffix(".yml")
    return {
        name: _field(written)
        for name, written in yaml.safe_load(path.read_text(encoding="utf-8")).items()
    }


def _field(written: Any) -> Field:
    if isinstance(written, list):
        return Category(tuple(written))
    if "codes" in written:
        return Category(written["codes"])
    return Number(**written | {"missing": tuple(written.get("missing", ()))})


def validated(cells: pd.DataFrame, fields: Mapping[str, Field], file: str) -> pd.DataFrame:
    """The columns of ``fields``, float64 or categorical, indexed as ``cells`` by line number."""
    import pandera.errors
    import pandera.pandas as pa

    for name in fields:
        if name not in cells:
            raise InputError(f"{file}: {unknown_name('column', name, cells.columns)}")
    parsed = pd.DataFrame({name: field.parse(cells[name]) for name, field in fields.items()})
    schema = pa.DataFrameSchema({name: field.column() for name, field in fields.items()})
    try:
        return schema.validate(parsed, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        failures = errors.failure_cases[["index", "column"]]
        declared = list(fields)
        line, name = min(
            failures.itertuples(index=False, name=None),
            key=lambda place: (place[0], declared.index(place[1])),
        )
        problem = fields[name].problem(str(cells.at[line, name]))
        raise InputError(f"{file}, line {line}, column {name}: {problem}") from errors


def _is_whole(values: pd.Series) -> pd.Series:
    return values == values.round()
