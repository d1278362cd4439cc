"""Means over seeds, sizes of splits, rank correlations, and lines through scores of models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

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
        for means in ((a.mean(0)[None], b.mean(0)[None]), (a[picks].mean(1), b[picks].mean(1)))
    )
    return _with_interval(resampled(tau, draws[None], seeds), methods)


def mean_tau(taus: np.ndarray) -> dict[str, float]:
    """The mean of taus of datasets, with Student's interval and their number n."""
    return _with_interval(over_refits(taus[None]), int(np.isfinite(taus).sum()))


def _with_interval(tau: Estimate, n: int) -> dict[str, float]:
    """A rank correlation ``[1]`` with its interval, cut off at -1 and 1."""
    low, high = (float(end[0]) for end in tau.interval())
    return {"tau": float(tau.value[0]), "low": max(low, -1.0), "high": min(high, 1.0), "n": n}


@dataclass(frozen=True)
class Line:
    """A line on the probit scale, or on the raw one, with an intercept for each pair of domains."""

    slope: float
    intercepts: np.ndarray
    probit: bool

    def at(self, at_home: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """The scores elsewhere that scores at home predict."""
        x = special.ndtri(at_home) if self.probit else at_home
        y = self.slope * x + self.intercepts[pairs]
        return np.asarray(special.ndtr(y) if self.probit else y)


def fitted_line(
    at_home: np.ndarray, elsewhere: np.ndarray, pairs: np.ndarray, probit: bool
) -> Line:
    r"""The line through scores of several models in one or more pairs of domains.

    .. math:: \Phi^{-1}(a_{ood}) = b\,\Phi^{-1}(a_{id}) + c_p

    is fitted by least squares, with one slope and an intercept for each pair p. For one pair it is
    that of Taori et al. (2020, arXiv 2007.00644) and Miller et al. (2021, arXiv 2107.04649).

    Args:
        at_home: scores in distribution ``[n]``, proportions within 0 and 1 on the probit scale.
        elsewhere: scores out of distribution ``[n]``.
        pairs: number of the pair of domains of each score, from 0, int ``[n]``.
        probit: use the probit scale, for proportions, instead of the raw one, for gaps.

    Returns:
        The line; its slope is missing where scores at home do not vary within a pair.
    """
    x, y = (special.ndtri(item) if probit else item for item in (at_home, elsewhere))
    counts = np.bincount(pairs)
    mean_x, mean_y = (np.bincount(pairs, item) / counts for item in (x, y))
    from_mean = x - mean_x[pairs]
    spread = np.sum(from_mean**2)
    slope = float(np.sum(from_mean * y) / spread) if spread > 1e-12 else np.nan
    return Line(slope, mean_y - slope * mean_x, probit)


def within(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Proportions of some numbers of rows, kept half a row away from 0 and 1."""
    return np.clip(scores, 0.5 / rows, 1 - 0.5 / rows)
