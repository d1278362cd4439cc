"""Tests of what a page claims: over seeds, splits and domains, and all of a page together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.core.intervals import (
    Interval,
    half_width,
    mean_interval,
    percentile_interval,
)
from robust_fairness.inference.adjust import holm
from robust_fairness.inference.estimate import LEVEL

TIE = 12  # decimals
DRAWS = 2000  # of a bootstrap
SAME = 1e-12  # standard error of differences that are the same for every seed
MOST_FLIPPED = 20  # differences of which all signs are tried
TESTED = ["difference", "low", "high", "n", "p"]


def over_seeds(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds by keys: columns ours, std, seeds.

    Rows of one seed with the same keys are averaged first.
    """
    if rows.empty:
        return rows[list(keys)].assign(ours=0.0, std=0.0, seeds=0)
    by_seed = rows.groupby([*keys, "seed"], sort=False)["value"].mean()
    values = by_seed.groupby(level=list(keys), sort=False)
    found = {"ours": values.mean(), "std": values.std(), "seeds": values.count()}
    return pd.DataFrame(found).reset_index()


def over_trials(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over trials of every method by seed: columns dataset, method, seed, value, trials."""
    return rows.groupby(["dataset", "method", "seed"], as_index=False, sort=False).agg(
        value=("value", "mean"), trials=("trial", "nunique")
    )


def with_intervals(rows: pd.DataFrame, value: str, keys: Sequence[str]) -> pd.DataFrame:
    """Mean over seeds with Student's interval by keys: columns ours, low, high, seeds."""
    found = []
    for names, part in rows.groupby(list(keys), sort=False, dropna=False):
        interval = mean_interval(part[value].to_numpy())
        found.append([*names, interval.mean, interval.low, interval.high, interval.n])
    numbers = {"ours": "float64", "low": "float64", "high": "float64", "seeds": "int64"}
    types = {**rows.dtypes[list(keys)], **numbers}  # also without rows
    return pd.DataFrame(found, columns=list(types)).astype(types)


def adjusted(
    p_values: pd.Series, adjust: Callable[[Sequence[float]], np.ndarray] = holm
) -> pd.Series:
    """P-values adjusted for their number, by Holm or another rule; missing ones do not count."""
    known = p_values.dropna()
    return pd.Series(adjust(known.tolist()), known.index, float).reindex(p_values.index)


def sizes_of_splits(splits: pd.DataFrame) -> pd.DataFrame:
    """Training and test rows of the splits of datasets, and the ratio that tests use.

    Args:
        splits: ``tables.SPLITS``.

    Returns:
        A row per dataset: number of splits, mean training and test rows of a split, the share of
        the test rows that another split trains on, and test by training rows, or 0 if nothing is
        shared.
    """
    found = splits.groupby("dataset", sort=False).agg(
        **{
            "splits": ("split", "size"),
            "trained on": ("train_rows", "mean"),
            "tested": ("test_rows", "mean"),
            "reused": ("reused", "mean"),
        }
    )
    found["ratio"] = (found["tested"] / found["trained on"]).where(found["reused"] > 0, 0.0)
    return found.reset_index()


def sign_flip_p(differences: np.ndarray) -> float:
    """Exact two-sided p-value of a mean of 0: the share of signs with a mean at least as large.

    Of k differences it is at least 2 / 2^k. Missing values are left out; without values, or above
    ``MOST_FLIPPED`` of them, it is missing.
    """
    known = differences[np.isfinite(differences)]
    if not 0 < len(known) <= MOST_FLIPPED:
        return np.nan
    signs = 1 - 2 * (np.arange(2 ** len(known))[:, None] >> np.arange(len(known)) & 1)
    sums = np.abs(signs @ known)
    return float(np.mean(sums >= sums[0] * (1 - 1e-12)))


def needed_domains(tests: int, level: float) -> int:
    """The least number of domains of which one of several sign-flip tests can be significant.

    With k domains no p-value is below 2 / 2^k, and Holm multiplies the smallest one by the number
    of tests.
    """
    return int(np.ceil(1 + np.log2(max(1, tests) / level)))


@dataclass(frozen=True)
class OverDomains(Interval):
    """A mean over domains with its standard error and the p-value of a mean of 0."""

    error: float = np.nan
    p: float = np.nan


def over_domains(changes: pd.DataFrame, draws: int = DRAWS, seed: int = 0) -> OverDomains:
    """Mean of a table of source by target domains, with an interval that resamples domains.

    A crossed bootstrap: domains are drawn with replacement, sources and targets of the same name
    together, since cells of a row or a column share a model or rows. Its standard error gives
    Student's interval: quantiles of resampled means are too narrow for a few domains. Missing cells
    are left out. ``n`` is the number of targets; the interval is missing for a single one.

    The p-value is the larger one of Student's, with this standard error, and of the sign-flip test
    over targets, which no assumption of normality lowers. The latter alone takes targets to be
    independent; if sources differ and are shared by all targets, it rejects a mean of 0 at 5 % in
    more than half of all cases.
    """
    changes = changes.dropna(axis=0, how="all").dropna(axis=1, how="all")
    cells, targets = changes.to_numpy(np.float64), changes.shape[1]
    if not targets:
        return OverDomains(np.nan, np.nan, np.nan, 0)
    mean, flipped = float(np.nanmean(cells)), sign_flip_p(np.nanmean(cells, axis=0))
    if targets == 1:
        return OverDomains(mean, np.nan, np.nan, 1, p=flipped)
    names = list(changes.columns)
    # a set of several domains is a source of its own, which is not drawn
    own = [names.index(one) if one in names else -1 for one in changes.index]
    picks = np.random.default_rng(seed).multinomial(targets, np.full(targets, 1 / targets), draws)
    rows = np.where(np.array(own) < 0, 1, picks[:, own])
    weights = rows[:, :, None] * picks[:, None, :] * np.isfinite(cells)
    sums, totals = (weights * np.nan_to_num(cells)).sum((1, 2)), weights.sum((1, 2))
    # resampling k values gives the variance of their mean times (k - 1) / k
    error = np.std(sums[totals > 0] / totals[totals > 0]) * np.sqrt(targets / (targets - 1))
    found = {name: float(one) for name, one in student_tests(mean, error, targets).items()}
    return OverDomains(mean=mean, n=targets, **found | {"p": float(np.fmax(found["p"], flipped))})


def detectable(error: Any, n: Any, power: float = 0.8, level: float = LEVEL) -> Any:
    """The mean of n values, with this standard error, that a two-sided t-test finds.

    From the noncentral t distribution of the statistic.
    """
    critical = special.stdtrit(n - 1, 1 - level / 2)
    return special.nctdtrinc(n - 1, 1 - power, critical) * error


def equivalence_p(mean: Any, error: Any, n: Any, margin: Any) -> Any:
    """P-value of a mean beyond ±margin: the larger one of two one-sided t-tests.

    Below a level, the mean of n values with this standard error is equivalent to 0 within the
    margin (Schuirmann, "A comparison of the two one-sided tests procedure and the power approach",
    J. Pharmacokinetics and Biopharmaceutics 15, 1987).
    """
    return special.stdtr(n - 1, (np.abs(mean) - margin) / error)


def rank_correlations(a: pd.DataFrame, b: pd.DataFrame) -> tuple["Bootstrapped", "Bootstrapped"]:
    """Spearman's rank correlation of two tables ``[seeds, methods]``, over all and within methods.

    Over all pairs of a method and a seed it mixes differences between methods with those between
    seeds of a method, which may have the opposite sign; within methods it is the mean over
    methods. A bootstrap resample draws methods and seeds with replacement, the same seeds of every
    method, since methods share splits and initial weights.
    """
    rng = np.random.default_rng(0)
    seeds, methods = a.shape
    rows = rng.integers(0, seeds, (DRAWS, seeds, 1))
    columns = rng.integers(0, methods, (DRAWS, 1, methods))
    x, y = a.to_numpy(), b.to_numpy()
    drawn = [values[rows, columns] for values in (x, y)]
    over_all = _spearman(*(values.reshape(DRAWS, -1) for values in drawn))
    of_methods = _spearman(*(values.swapaxes(1, 2) for values in drawn))
    within = pd.DataFrame(of_methods).mean(axis=1).to_numpy()  # of those that vary
    return (
        Bootstrapped(float(_spearman(x.ravel(), y.ravel())), over_all, x.size),
        Bootstrapped(float(pd.Series(_spearman(x.T, y.T)).mean()), within, seeds),
    )


@dataclass(frozen=True)
class Bootstrapped:
    """A number with its values in bootstrap resamples; ``n`` values are behind it."""

    value: float
    draws: np.ndarray
    n: int

    @property
    def p(self) -> float:
        """Two-sided p-value of 0, by the share of resamples on its other side."""
        known = self.draws[np.isfinite(self.draws)]
        if not len(known):
            return np.nan
        tail = min((known <= 0).sum(), (known >= 0).sum())
        return float(min(1.0, 2 * (tail + 1) / (len(known) + 1)))

    @property
    def interval(self) -> Interval:
        """With its percentile interval; the bounds are missing without resamples."""
        known = np.isfinite(self.draws).any()
        bounds = percentile_interval(self.draws) if known else (np.nan, np.nan)
        return Interval(self.value, *bounds, self.n)


def _spearman(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Spearman's rank correlation along the last axis; missing where one of them is constant."""
    from scipy import stats

    ranks = (stats.rankdata(values, axis=-1) for values in (a, b))
    x, y = (one - one.mean(-1, keepdims=True) for one in ranks)
    scale = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    shared = (x * y).sum(-1)
    return np.divide(shared, scale, out=np.full_like(shared, np.nan), where=scale > 0)


def kendall_tau(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""Kendall's rank correlation tau-b of the last axis; missing where one of them is constant.

    Missing numbers are left out; they must be missing from both.

    .. math:: \tau_b = \sum_{i<j} s_{ij} t_{ij} / \sqrt{\sum_{i<j} s_{ij}^2 \sum_{i<j} t_{ij}^2}

    with the signs s and t of the differences between i and j, 0 for a tie (Kendall 1945).
    """
    one, other = np.triu_indices(a.shape[-1], 1)
    # means of the same numbers in another order differ by rounding only: a tie
    differences = (values[..., one] - values[..., other] for values in (a, b))
    s, t = (np.sign(np.round(difference, TIE)) for difference in differences)
    scale = np.sqrt(np.nansum(s**2, -1) * np.nansum(t**2, -1))
    found: np.ndarray = np.divide(
        np.nansum(s * t, -1), scale, out=np.full_like(scale, np.nan), where=scale > 0
    )
    return found


def rank_agreement(a: np.ndarray, b: np.ndarray) -> Interval:
    """Kendall's tau between the means of two tables ``[seeds, methods]``, with its interval.

    Methods are fixed, seeds are a sample: a bootstrap resample draws seeds, the same of both
    tables, and ranks the methods again. Resampled means vary more than the means themselves, so
    the interval is nearer to 0 than the value if many methods are similar. ``n`` is the number of
    methods; tau is missing below three, the interval for a single seed.
    """
    seeds, methods = a.shape
    if methods < 3:  # noqa: PLR2004 - two can only agree or not
        return Interval(np.nan, np.nan, np.nan, methods)
    value = float(kendall_tau(a.mean(0), b.mean(0)))
    if seeds == 1 or np.isnan(value):
        return Interval(value, np.nan, np.nan, methods)
    picks = np.random.default_rng(0).integers(0, seeds, (DRAWS, seeds))
    found = kendall_tau(a[picks].mean(1), b[picks].mean(1))
    return Interval(value, *percentile_interval(found), methods)


def paired_tests(
    differences: pd.DataFrame, by: list[str], ratio: pd.Series | None = None
) -> pd.DataFrame:
    r"""Mean, 95 % interval and p-value of differences, Student's t paired over the other levels.

    Differences of the same method on overlapping random splits depend on each other. Nadeau and
    Bengio ("Inference for the Generalization Error", Machine Learning 52, 2003, section 3,
    corrected resampled t-test) take the variance of the mean of n of them as

    .. math:: s^2 (1 / n + n_{test} / n_{train})

    Args:
        differences: rows of named levels by columns of one name; missing values are left out.
        by: levels of which each combination is a test.
        ratio: test by training rows, 0 where splits do not overlap, by value of the first level of
            ``by``; all 0 by default.

    Returns:
        A row per test and column with values: ``by``, the column, ``TESTED``, error (standard
        error). Interval and p-value are missing for a single value; the p-value is 1 if all
        differences are 0.
    """
    groups = differences.groupby(level=by, sort=False)
    columns = {"difference": groups.mean(), "deviation": groups.std(), "n": groups.count()}
    found = pd.DataFrame({name: one.stack() for name, one in columns.items()})
    found = found[found["n"] > 0]
    first = found.index.get_level_values(by[0])
    shares = 0.0 if ratio is None else ratio.reindex(first).to_numpy()
    mean, deviation, n = (found[name].to_numpy() for name in columns)
    found = found.assign(**mean_tests(mean, deviation, n, shares))
    return found.reset_index()[[*by, differences.columns.name, *TESTED, "error"]]


def mean_tests(mean: Any, deviation: Any, n: Any, ratio: Any) -> dict[str, Any]:
    """Student's t-tests of means of n values: error, low, high and p, see ``paired_tests``."""
    tests = student_tests(mean, deviation * np.sqrt(1 / n + ratio), n)
    return tests | {"p": np.where((mean == 0) & (deviation == 0), 1.0, tests["p"])}


def student_tests(mean: Any, error: Any, n: Any) -> dict[str, Any]:
    """Student's t-tests of means of n values with these standard errors, as ``mean_tests``."""
    half = half_width(error, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * special.stdtr(n - 1, -np.abs(mean) / error)
    return {"error": error, "low": mean - half, "high": mean + half, "p": p}
