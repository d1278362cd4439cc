"""The door for arrays: what comes in has one length, one index, and numbers of 64 bits.

Metrics, estimators, repairs and audits of arrays pass it once; behind it nothing is checked again.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import narwhals
import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError

EXACT = 2**53  # up to which every whole number is one of float64


def require_same_rows(place: str, arrays: Mapping[str, Any]) -> None:
    """Check that arrays have the same number of rows, and the same ones as far as indices tell.

    Rows are matched by position, as in scikit-learn. Values of pandas whose indices differ would
    mix rows up, unless one of them has no labels of its own: an index 0, 1, 2 ... as new values
    have it, beside one that is no part of such a range.

    Raises:
        InputError: lengths differ, or two indices do.
    """
    if len(arrays) < 2:  # noqa: PLR2004
        return
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{place}: arrays differ in length: {listed}")
    indices = {
        name: array.index
        for name, array in arrays.items()
        if isinstance(array, pd.Series | pd.DataFrame)
    }
    for (name, here), (other, there) in combinations(indices.items(), 2):
        if here is there or here.equals(there):
            continue
        counted = [isinstance(index, pd.RangeIndex) for index in (here, there)]
        fresh = any(_is_default(index) for index in (here, there)) and not all(counted)
        if not fresh or here.isin(there).all() or there.isin(here).all():
            raise InputError(
                f"{place}: the indices of {name} and {other} differ, but rows are matched by "
                "position; allowed: the same index, or values without one (.to_numpy())"
            )


def require_unmasked(place: str, arrays: Mapping[str, Any]) -> None:
    """Refuse masked values, which scikit-learn would take for values.

    Raises:
        InputError: an array has some.
    """
    for name, array in arrays.items():
        if np.ma.is_masked(array):
            row = int(np.argwhere(np.ma.getmaskarray(array))[0][0])
            raise InputError(
                f"{place}: {name} has masked values, first in row {row}, allowed: a value in every "
                "row; leave such rows out"
            )


def _is_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)


def as_rows(values: Any) -> Any:
    """Values with a row for each: a series of pandas, or an array of numpy.

    Integers of polars and Arrow with a null stay integers, as pandas' nullable ones; sparse values
    become dense, masked ones are missing, and tensors of torch lose their gradient.

    >>> as_rows(np.ma.array([1, 2], mask=[False, True])).tolist()
    [1, None]
    """
    if isinstance(values, np.ma.MaskedArray):
        plain, mask = np.asarray(values), np.ma.getmaskarray(values)
        if mask.any():
            plain = plain.astype(object)
            plain[mask] = None
        return plain
    if is_tensor(values):
        plain = values.detach().cpu()
        values = (plain.float() if "bfloat16" in str(plain.dtype) else plain).numpy()
    if isinstance(values, np.ndarray | list):
        return np.asarray(values)
    if isinstance(values, pd.Series):
        kind = values.dtype
        return values.astype(kind.subtype) if isinstance(kind, pd.SparseDtype) else values
    if narwhals.dependencies.is_into_series(values):
        column = narwhals.from_native(values, series_only=True)
        if column.dtype.is_integer() and column.null_count():
            return exact_integers(column)
        return column.to_numpy()
    return np.asarray(values)


def is_tensor(values: Any) -> bool:
    """Whether values are a tensor of torch, which is not imported for it."""
    return hasattr(values, "detach") and hasattr(values, "requires_grad")


def exact_integers(cells: Any) -> np.ndarray | pd.arrays.IntegerArray:
    """Whole numbers with missing values: float64, or exact ones of pandas where float64 is not."""
    values, missing = cells.fill_null(0).to_numpy(), cells.is_null().to_numpy()
    if max(abs(int(values.min())), abs(int(values.max()))) > EXACT:
        return pd.arrays.IntegerArray(values.copy(), missing.copy())
    return np.where(missing, np.nan, values)


def as_numbers(place: str, name: str, values: Any) -> np.ndarray:
    """Finite numbers as float64, ``[n]`` or ``[n, columns]``.

    >>> as_numbers("metric", "y_true", np.array([0, 200], np.uint8)) - 201
    array([-201.,   -1.])

    Raises:
        InputError: a value is missing, infinite or no number.
    """
    try:
        if isinstance(values, pd.Series):
            values = values.to_numpy(np.float64, na_value=np.nan) if _numeric(values) else values
        array = np.asarray(as_rows(values))
        if array.dtype.kind not in "biufO":
            raise TypeError
        numbers = array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise InputError(f"{place}: {name} has values that are no finite numbers") from None
    finite = np.isfinite(numbers)
    if not finite.all():
        rows = finite.reshape(len(numbers), -1).all(axis=1)
        raise InputError(
            f"{place}: {name} has values that are no finite numbers, first in row "
            f"{int(rows.argmin())}"
        )
    return numbers


def _numeric(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values.dtype)


def as_weights(place: str, values: Any) -> np.ndarray:
    """Weights of rows, float64 ``[n]``.

    Raises:
        InputError: one is negative, missing or infinite, or all are 0.
    """
    numbers = as_numbers(place, "sample_weight", values)
    with np.errstate(over="ignore"):
        total = numbers.sum()
    if (numbers < 0).any() or not 0 < total < np.inf:
        raise InputError(
            f"{place}: sample_weight must be 0 or more, not 0 everywhere, and have a finite sum"
        )
    return numbers


def factorised(name: str, values: Any) -> tuple[np.ndarray, pd.Index]:
    """Codes of labels ``[n]`` and their distinct values in order; none may be missing.

    Text that is empty or blank is missing.

    >>> codes, names = factorised("sex", ["m", "f", "m"])
    >>> codes.tolist(), names.tolist()
    ([1, 0, 1], ['f', 'm'])

    Raises:
        InputError: a label is missing; the text says in which row.
    """
    labels = pd.Categorical(values)
    codes = labels.codes.astype(np.int64)
    blank = [isinstance(value, str) and not value.strip() for value in labels.categories]
    absent = (codes < 0) | np.append(blank, False)[codes] if any(blank) else codes < 0
    if absent.any():
        raise InputError(
            f"{name}: row {int(absent.argmax())} is missing, allowed: a value in every row; "
            "leave such rows out, or give them a name"
        )
    return codes, labels.categories
