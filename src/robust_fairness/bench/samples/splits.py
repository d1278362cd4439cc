"""Random named splits of rows into training, validation and test parts."""

from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import REQUIRED_PARTS

Fraction = Annotated[float, Field(gt=0, lt=1)]


class SplitParameters(BaseModel, extra="forbid", frozen=True):
    """How the rows of a dataset are split.

    Attributes:
        train_rows: rows of the training part, validation included: a number of rows, or a
            fraction of all. The other rows are the test part.
        val_fraction: fraction of the training part that is cut off for validation.
        seed: seed of the splits; split k depends on it and on k only.
    """

    train_rows: PositiveInt | Fraction = 0.8
    val_fraction: Fraction = 0.2
    seed: NonNegativeInt = 0


class ClassSplitParameters(BaseModel, extra="forbid", frozen=True):
    """How the rows of every class are split.

    Attributes:
        test_fraction: fraction of a class's rows that are tested ("Is Fairness Only Metric Deep?",
            3.3: 50 - 50, "over number of data points per class").
        val_fraction: fraction of its other rows that is cut off for validation.
        seed: seed of the splits; split k depends on it and on k only.
    """

    test_fraction: Fraction = 0.5
    val_fraction: Fraction = 0.2
    seed: NonNegativeInt = 0


def random_splits(
    rows: int, count: int, parameters: SplitParameters, official: int | None = None
) -> pd.DataFrame:
    """Named random splits ``split_0``, ``split_1``, ... of exact sizes.

    Args:
        rows: number of rows.
        count: number of splits.
        parameters: sizes and seed.
        official: rows of a training file, validation included, which a test file follows: the test
            part of each split, of which nothing is drawn. None: parts are drawn from all rows.

    Returns:
        ``rows`` rows and ``count`` categorical columns with categories ``REQUIRED_PARTS``.

    Raises:
        InputError: no split is asked for, or a part would have no row.
    """
    training, drawn_from = parameters.train_rows if official is None else official, rows
    if isinstance(training, float):
        training = round(training * rows)
    if official is not None:
        drawn_from = official
    if count < 1:
        raise InputError(f"splits: {count} asked for, allowed: 1 or more")
    validation = round(parameters.val_fraction * training)
    sizes = (training - validation, validation, rows - training)
    if min(sizes) < 1:
        named = ", ".join(
            f"{part} {size}" for part, size in zip(REQUIRED_PARTS, sizes, strict=True)
        )
        raise InputError(
            f"train_rows {parameters.train_rows} and val_fraction {parameters.val_fraction} leave "
            f"a part of the {rows} rows empty: {named}; every part needs a row"
        )
    parts = np.repeat(REQUIRED_PARTS, sizes)
    splits = {}
    for k in range(count):
        generator = np.random.default_rng([parameters.seed, k])
        drawn = np.concatenate([generator.permutation(parts[:drawn_from]), parts[drawn_from:]])
        splits[f"split_{k}"] = pd.Categorical(drawn, list(REQUIRED_PARTS))
    return pd.DataFrame(splits)


def unit_splits(units: pd.Series, count: int, parameters: SplitParameters) -> pd.DataFrame:
    """As ``random_splits``, with all rows of a unit, such as a person, in the same part.

    The sizes of ``parameters`` are in units.
    """
    numbers, names = pd.factorize(units)
    return random_splits(len(names), count, parameters).iloc[numbers].reset_index(drop=True)


def class_splits(labels: pd.Series, count: int, parameters: ClassSplitParameters) -> pd.DataFrame:
    """As ``random_splits``, of the rows of every class: each class is in training and test.

    A class's only row is in training, one of two rows in training and the other in test, whatever
    the fractions are. A class of three or more rows has validation rows if ``val_fraction`` of its
    rows outside test rounds to one or more. Halves of a row go to training.
    """
    if count < 1:
        raise InputError(f"splits: {count} asked for, allowed: 1 or more")
    codes = labels.cat.codes.to_numpy().astype(np.int64)
    if (codes < 0).any():
        raise InputError(f"row {np.flatnonzero(codes < 0)[0]} has no class, allowed: one per row")
    sizes = np.bincount(codes, minlength=len(labels.cat.categories))
    tested = _nearest(parameters.test_fraction * sizes).clip(min=1).clip(max=(sizes - 1).clip(0))
    left = sizes - tested
    validated = _nearest(parameters.val_fraction * left).clip(max=(left - 1).clip(0))
    for part, rows in zip(REQUIRED_PARTS, (left - validated, validated, tested), strict=True):
        if not rows.any():
            raise InputError(
                f"test_fraction {parameters.test_fraction} and val_fraction "
                f"{parameters.val_fraction} leave the {part} part of the {len(labels)} rows of "
                f"{(sizes > 0).sum()} classes empty; every part needs a row"
            )
    splits = {}
    for k in range(count):
        rank = ranks(codes, np.random.default_rng([parameters.seed, k]))
        parts = np.select(
            [rank < tested[codes], rank < (tested + validated)[codes]], ["test", "val"], "train"
        )
        splits[f"split_{k}"] = pd.Categorical(parts, list(REQUIRED_PARTS))
    return pd.DataFrame(splits)


def require_at_most(field: str, asked: int, available: int) -> int:
    """The number of rows that a parameter asks for; an error if there are fewer."""
    if asked > available:
        raise InputError(f"{field}: {asked}, allowed: up to {available}")
    return asked


def ranks(codes: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Place, from 0, of every row in a random order of the rows that have its code ``[n]``."""
    order = generator.permutation(len(codes))
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = pd.Series(order).groupby(codes[order]).cumcount()
    return rank


def _nearest(values: np.ndarray) -> np.ndarray:
    """The nearest whole numbers, int64; the smaller one of two."""
    return np.ceil(values - 0.5).astype(np.int64)


def described(dataset: str, splits: pd.DataFrame) -> pd.DataFrame:
    """Sizes of splits, as ``tables.SPLITS``, a row per split.

    ``reused`` is the mean over the other splits of the share of its test rows that they train on.
    """
    tested, trained = (
        np.column_stack([splits[split] == part for split in splits]).astype(np.float64)
        for part in ("test", "train")
    )
    shared = tested.T @ trained  # a split has no row in two parts: the diagonal is 0
    others = max(1, splits.shape[1] - 1)
    sizes = tested.sum(0)
    result = {
        "dataset": dataset,
        "split": splits.columns.astype(str),
        "train_rows": trained.sum(0),
        "test_rows": sizes,
        "reused": shared.sum(1) / (others * sizes.clip(min=1)),
    }
    return pd.DataFrame(result).astype(tables.SPLITS)


def require_every_class(splits: pd.DataFrame, labels: pd.Series, place: str = "") -> None:
    """Check that each part of each split has rows of every class; ``place`` begins the message."""
    for split in splits:
        for part in REQUIRED_PARTS:
            counts = labels[(splits[split] == part).to_numpy()].value_counts()
            for missing in counts.index[counts == 0]:
                raise InputError(
                    f"{place}{split}: its {part} part has no row of class {missing!r}; "
                    "take another seed or larger parts"
                )
