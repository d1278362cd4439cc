"""Groups of rows by their attributes, and attributes as numbers.

A group is a code. Its values stand in a table beside the codes, and its name is made of them where
it is shown: names are never joined, split or compared to find a group.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.arrays import factorised
from robust_fairness.core.errors import InputError, unknown_name

MOST_NAMES = 20  # in a note


@dataclass(frozen=True)
class Groups:
    """Group number of every row, with the values of each number.

    Attributes:
        codes: integers ``[n]`` of any size, 0 to ``len(values) - 1``; -1 where an attribute is
            missing.
        values: of every group one value per column, such as ``("female",)`` or ``("female",
            "black")``.
    """

    codes: np.ndarray
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def named(cls, codes: np.ndarray, names: Iterable[str]) -> "Groups":
        """Groups by a single column, with these values."""
        return cls(codes, tuple((name,) for name in names))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name per group to show, ``female`` or ``female & black``, no two of them equal."""
        return tuple(map(shown, self.values))

    def take(self, rows: np.ndarray) -> "Groups":
        """The groups of some rows, by number."""
        return Groups(self.codes[rows], self.values)

    @property
    def index(self) -> np.ndarray:
        """The codes as int64 ``[n]``, to calculate with."""
        return np.asarray(self.codes, np.int64)

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows in each group, int64 ``[groups]``; missing values are not counted."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))


def shown(values: Sequence[str]) -> str:
    """The values of a group, or the columns of an intersection, as one text.

    A part that contains the separator is quoted, so that different values never look the same.

    >>> shown(["Black", "Asian & White"]), shown(["Black & Asian", "White"])
    ('Black & "Asian & White"', '"Black & Asian" & White')
    """
    if len(values) == 1:
        return values[0]
    return " & ".join(
        json.dumps(part, ensure_ascii=False) if {"&", '"'} & {*part} else part for part in values
    )


def intersection(parts: Sequence[Groups]) -> Groups:
    """Every combination that occurs of groups by several columns of the same rows."""
    complete = np.all([part.codes >= 0 for part in parts], axis=0)
    # Numbers of the combinations of the first columns, in order; never more than there are rows.
    numbers = np.zeros(complete.sum(), dtype=np.int64)
    values: list[tuple[str, ...]] = [()]
    for part in parts:
        pairs = numbers * len(part.values) + part.index[complete]
        numbers, occurring = pd.factorize(pairs, sort=True)
        both = (divmod(pair, len(part.values)) for pair in occurring.tolist())
        values = [(*values[before], *part.values[code]) for before, code in both]
    codes = np.full(len(complete), -1, dtype=np.int64)
    codes[complete] = numbers
    return Groups(codes, tuple(values))


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
    alone = [
        Groups.named(values.cat.codes.to_numpy(), map(str, values.cat.categories))
        for values in (attributes[column] for column in columns)
    ]
    return alone[0] if len(alone) == 1 else intersection(alone)


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


def as_groups(sensitive_features: Any) -> Groups:
    """Groups of rows: themselves, by one label per row or by a frame; none may be missing.

    Of several columns the combinations that occur are the groups.
    """
    if isinstance(sensitive_features, Groups):
        return sensitive_features
    if isinstance(sensitive_features, pd.DataFrame):
        columns = [as_groups(values) for _, values in sensitive_features.items()]
        return columns[0] if len(columns) == 1 else intersection(columns)
    index, values = factorised("sensitive_features", sensitive_features)
    names = tuple(map(str, values))
    if len(set(names)) < len(names):
        raise InputError(
            "sensitive_features: different labels have the same text, such as 1 and '1'"
        )
    return Groups.named(index, names)


def as_groups_of_both(here: Any, there: Any) -> tuple[Groups, Groups]:
    """Groups of two sets of rows, where a number means the same group in both."""
    if isinstance(here, Groups) and isinstance(there, Groups):
        return here, there
    frames = [pd.DataFrame(values) for values in (here, there)]
    if list(frames[0]) != list(frames[1]):
        raise InputError("sensitive_features: other columns than in training, allowed: the same")
    both = as_groups(pd.concat(frames, ignore_index=True))
    first, second = np.split(both.index, [len(here)])
    return Groups(first, both.values), Groups(second, both.values)


def everyone(rows: int) -> Groups:
    """All rows in one group without a name."""
    return Groups.named(np.zeros(rows, dtype=np.int64), [""])


def subgroups(
    y: np.ndarray, group: np.ndarray, y_train: np.ndarray, group_train: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Subgroups (group and class) that occur among these rows or the training rows.

    Returns:
        Group and class of every subgroup ``[subgroups, 2]``, and the subgroup of each of these
        rows and of each training row.
    """
    classes = int(max(y.max(initial=0), y_train.max(initial=0))) + 1
    here, there = group * classes + y, group_train * classes + y_train
    index, keys = pd.factorize(np.concatenate([here, there]), sort=True)
    return np.stack(np.divmod(keys, classes), axis=1), index[: len(y)], index[len(y) :]


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Names for a note: the first ones, and how many more there are."""
    more = len(names) - MOST_NAMES
    shown_names = between.join(names[:MOST_NAMES])
    return f"{shown_names} and {more:,} more" if more > 0 else shown_names
