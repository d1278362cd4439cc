"""From the rows of a table to features, as in training: a part of a model that MLflow keeps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from robust_fairness.auditing.read.columns import canonical, name_of_category, row_of
from robust_fairness.bench.datasets.base import MISSING, one_hot
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.samples import Samples

# Categories that the datasets have for a missing cell.
FOR_MISSING = (MISSING, "not applicable")


class TableColumn(BaseModel, extra="forbid", frozen=True, ser_json_inf_nan="constants"):
    """A column of a table, and what the features have of it.

    Attributes:
        categories: of a categorical column; none of numbers.
        missing: feature of a missing number, which has an indicator; None: it has to be known.
    """

    name: str
    categories: tuple[str, ...] = ()
    missing: float | None = None

    def encoded(self, cells: pd.Series) -> dict[str, pd.Series]:
        """Columns of numbers, or of categories, by name.

        Raises:
            InputError: a cell that training had not, with its row, from 0.
        """
        if self.categories:
            return {self.name: pd.Series(self._categories(cells))}
        values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        is_missing = cells.isna().to_numpy()
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(values.astype(np.float32)) & ~is_missing
        self._require(cells, wrong, "a finite number")
        if self.missing is None:
            self._require(cells, is_missing, "a finite number")
            return {self.name: pd.Series(values)}
        numbers = pd.Series(np.where(is_missing, self.missing, values))
        return {self.name: numbers, f"{self.name}={MISSING}": pd.Series(is_missing.astype("uint8"))}

    def _categories(self, cells: pd.Series) -> Any:
        spelled = [canonical(name) for name in self.categories]
        known = {text: code for code, text in enumerate(spelled) if spelled.count(text) == 1} | {
            name: code for code, name in enumerate(self.categories)
        }
        codes, values = pd.factorize(cells)
        for_missing = next((known[name] for name in FOR_MISSING if name in self.categories), -1)
        names = [name_of_category(value, self.name) for value in values]
        places = [known.get(name, known.get(canonical(name), -1)) for name in names]
        result = np.array([*places, for_missing])[codes]
        self._require(cells, result < 0, ", ".join(self.categories))
        return pd.Categorical.from_codes(result.tolist(), pd.Index(self.categories))

    def _require(self, cells: pd.Series, wrong: np.ndarray, allowed: str) -> None:
        if wrong.any():
            row = row_of(wrong) - 1
            (cell,) = cells.iloc[[row]].tolist()  # 5, which numpy shows as np.int64(5)
            shown = "missing" if pd.isna(cell) else repr(cell)
            raise InputError(f"row {row}, column {self.name}: {shown}, allowed: {allowed}")


def columns_of(samples: Samples) -> tuple[TableColumn, ...]:
    """The columns of the table that the features of samples were made of."""
    features = samples.features
    made_of = samples.columns or features
    categories: dict[str, list[str]] = {}
    for feature, name in zip(features, made_of, strict=True):
        values = categories.setdefault(name, [])
        if feature != name:
            values.append(feature[len(f"{name}=") :])
    indicators = {name: f"{name}={MISSING}" for name in categories}
    absent: Mapping[str, float] = {
        name: np.nan if np.isnan(samples.arrays["x"][:, features.index(name)]).any() else 0.0
        for name in categories
        if indicators[name] in features and not categories[name]
    }
    return tuple(
        TableColumn(name=name, categories=tuple(values), missing=absent.get(name))
        for name, values in categories.items()
        if name not in indicators.values()
    )


def encoded(
    table: pd.DataFrame, columns: tuple[TableColumn, ...], features: tuple[str, ...]
) -> np.ndarray:
    """Features float32 ``[n, d]`` of the rows of a table.

    Raises:
        InputError: a column is missing, or has a cell that training had not.
    """
    typed: dict[str, pd.Series] = {}
    for column in columns:
        if column.name not in table:
            raise unknown_name("column", column.name, map(str, table.columns))
        typed |= column.encoded(table[column.name])
    return one_hot(pd.DataFrame(typed))[list(features)].to_numpy(np.float32, copy=True)
