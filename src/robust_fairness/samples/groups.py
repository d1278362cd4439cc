"""Groups of rows by their attributes, and attributes as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name


@dataclass(frozen=True)
class Groups:
    """Group number of every row, with the readable name of each number.

    Attributes:
        codes: integers ``[n]`` of any size, 0 to ``len(names) - 1``; -1 where an attribute is
            missing.
        names: one per group, for example ``"female"`` or ``"female & black"``.
    """

    codes: np.ndarray
    names: tuple[str, ...]

    @property
    def index(self) -> np.ndarray:
        """The codes as int64 ``[n]``, to calculate with."""
        return np.asarray(self.codes, np.int64)

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows in each group, int64 ``[groups]``; missing values are not counted."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))


def require_categorical(attributes: pd.DataFrame, columns: Sequence[str]) -> None:
    """Check that some attributes define groups."""
    if not columns:
        raise InputError(
            f"groups: no attribute is given, allowed: {', '.join(map(str, attributes))}"
        )
    for column in columns:
        if column not in attributes:
            raise unknown_name("attribute", column, attributes.columns)
        if not isinstance(attributes[column].dtype, pd.CategoricalDtype):
            raise InputError(
                f"attribute {column!r} is continuous and defines no groups; divide it into bins"
            )


def groups_of(attributes: pd.DataFrame, columns: Sequence[str]) -> Groups:
    """Groups of one categorical attribute, or of every combination that occurs of several.

    A single attribute keeps all its categories, also those without rows, in their order; of
    several, the combinations found in the data are counted, never enumerated.
    """
    require_categorical(attributes, columns)
    if len(columns) == 1:
        only = attributes[columns[0]].cat
        return Groups(only.codes.to_numpy(), tuple(map(str, only.categories)))
    codes = [attributes[column].cat.codes.to_numpy() for column in columns]
    complete = np.all([code >= 0 for code in codes], axis=0)
    # Numbers of the combinations of the first columns, in order; never more than there are rows.
    inverse = np.zeros(complete.sum(), dtype=np.int64)
    for column, code in zip(columns, codes, strict=True):
        joined = inverse * len(attributes[column].cat.categories) + code[complete]
        _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    index = np.full(len(attributes), -1, dtype=np.int64)
    index[complete] = inverse
    names = [
        np.array([str(name) for name in attributes[column].cat.categories], dtype=object)[
            code[complete][first]
        ]
        for column, code in zip(columns, codes, strict=True)
    ]
    return Groups(index, tuple(map(" & ".join, zip(*names, strict=True))))


def numbers_of(values: pd.Series) -> np.ndarray:
    """Numbers that stand for an attribute, float64 ``[n, columns]``; NaN where it is missing.

    A continuous one has one column, a categorical one a column of 0 and 1 for each category, and
    at least two, so that it is never taken for a number.
    """
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values.to_numpy(np.float64)[:, None]
    codes = values.cat.codes.to_numpy()
    columns = np.eye(width_of(values))[codes]
    columns[codes < 0] = np.nan
    return columns


def width_of(values: pd.Series) -> int:
    """Number of columns of ``numbers_of``."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return 1
    return max(2, len(values.cat.categories))


def values_of(values: pd.Series) -> np.ndarray:
    """Values of an attribute to compare rows by, ``[n]``: numbers, or codes of categories."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values.to_numpy(np.float64)
    return values.cat.codes.to_numpy()
