"""Means over seeds, sizes of splits, and rank correlations with their uncertainty."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from robust_fairness.numbers.estimate import REFITS, Component, Estimate, over_refits, resampled

TIE = 12  # decimals
DRAWS = 2000  # of a bootstrap
FEWEST = 3  # methods of a rank correlation: two can only agree or not


def over_seeds(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds by keys: columns ours, std, seeds.

    Rows of one seed with the same keys are averaged first.
    """
    if rows.empty:
        return rows[list(keys)].assign(ours=0.0, std=0.0, seeds=0)
    by_seed = rows.groupby([*keys, "seed"], sort=False)["value"].mean()
    values = by_seed.groupby(level=list(keys), sort=False)
    result = {"ours": values.mean(), "std": values.std(), "seeds": values.count()}
    return pd.DataFrame(result).reset_index()


def over_trials(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over trials of every method by seed: columns dataset, method, seed, value, trials."""
    return rows.groupby(["dataset", "method", "seed"], as_index=False, sort=False).agg(
        value=("value", "mean"), trials=("trial", "nunique")
    )


def with_intervals(rows: pd.DataFrame, value: str, keys: Sequence[str]) -> pd.DataFrame:
    """Mean over seeds with Student's interval by keys: columns ours, low, high, seeds."""
    values = rows.groupby(list(keys), sort=False, dropna=False)[value]
    result = values.agg(ours="mean", low="var", high="var", seeds="count")
    seeds = result["seeds"].to_numpy()
    part = Component(result["low"].to_numpy() / seeds, np.maximum(seeds - 1.0, 1))
    result["low"], result["high"] = Estimate(result["ours"].to_numpy(), {REFITS: part}).interval()
    return result.reset_index()


def sizes_of_splits(splits: pd.DataFrame) -> pd.DataFrame:
    """Training and test rows of the splits of datasets, and the ratio that tests use.

    Args:
        splits: ``tables.SPLITS``.

    Returns:
        A row per dataset: number of splits, mean training and test rows of a split, the share of
        the test rows that another split trains on, and test by training rows, or 0 if nothing is
        shared.
    """
    result = splits.groupby("dataset", sort=False).agg(
        **{
            "splits": ("split", "size"),
            "trained on": ("train_rows", "mean"),
            "tested": ("test_rows", "mean"),
            "reused": ("reused", "mean"),
        }
    )
    result["ratio"] = (result["tested"] / result["trained on"]).where(result["reused"] > 0, 0.0)
    return result.reset_index()


def kendall_tau(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""Kendall's rank correlation tau-b of the last axis; missing where one of them is constant.

    Missing numbers are left out; they must be missing from both.

    .. math:: \tau_b = \sum_{i<j} s_{ij} t_{ij} / \sqrt{\sum_{i<j} s_{ij}^2 \sum_{i<j} t_{ij}^2}

    with the signs s and t of the differences between i and j, 0 for a tie (Kendall 1945).
    """
    first, second = np.triu_indices(a.shape[-1], 1)
    # means of the same numbers in another order differ by rounding only: a tie
    differences = (values[..., first] - values[..., second] for values in (a, b))
    s, t = (np.sign(np.round(difference, TIE)) for difference in differences)
    scale = np.sqrt(np.nansum(s**2, -1) * np.nansum(t**2, -1))
    result: np.ndarray = np.divide(
        np.nansum(s * t, -1), scale, out=np.full_like(scale, np.nan), where=scale > 0
    )
    return result


def rank_agreement(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Kendall's tau between the means of two tables ``[seeds, methods]``, with its interval.

    Methods are fixed, seeds are a sample: a bootstrap resample draws seeds, the same of both
    tables, and ranks the methods again.

    Returns:
        tau, missing below three methods; low and high, missing for a single seed; n, the number of
        methods.
    """
    seeds, methods = a.shape
    picks = np.random.default_rng(0).integers(0, seeds, (DRAWS, seeds))
    tau, draws = (
        kendall_tau(*means) if methods >= FEWEST else np.full(len(means[0]), np.nan)
        for means in (
            (a.mean(0)[None], b.mean(0)[None]),
            (a[picks].mean(1), b[picks].mean(1)),
        )
    )
    return _with_interval(resampled(tau, draws[None], seeds), methods)


def mean_tau(taus: np.ndarray) -> dict[str, float]:
    """The mean of taus of datasets, with Student's interval and their number n."""
    return _with_interval(over_refits(taus[None]), int(np.isfinite(taus).sum()))


def _with_interval(tau: Estimate, n: int) -> dict[str, float]:
    """A rank correlation ``[1]`` with its interval, cut off at -1 and 1."""
    low, high = (float(end[0]) for end in tau.interval())
    return {"tau": float(tau.value[0]), "low": max(low, -1.0), "high": min(high, 1.0), "n": n}
