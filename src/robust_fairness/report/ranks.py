"""Ranks of methods over datasets, and whether they differ by more than chance.

The procedure is that of J. Demsar, "Statistical Comparisons of Classifiers over Multiple Data
Sets" (JMLR 7, 2006), 3.2.2: Friedman's test of the average ranks, with the correction of Iman and
Davenport, then Nemenyi's critical difference between any two of them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.core.numbers import written
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.report.results import UNSHIFTED, of_shown_trial, where

FEWEST = 3  # methods, and datasets, of which a test says anything


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of equal average ranks.

    ``chi_squared`` is corrected for ties; ``f`` is the statistic of Iman and Davenport, infinite if
    all datasets rank alike, and ``p`` its p-value, 1 if every dataset is one tie.
    """

    chi_squared: float
    f: float
    p: float


@dataclass(frozen=True)
class Comparison:
    """Methods that were ranked on datasets.

    Attributes:
        ranks: average rank by method, best first; 1 is best. Empty where there is not enough.
        datasets: names of the datasets that were used.
        had: numbers of datasets and methods with any score.
        left_out: methods and datasets that lack scores of each other.
        test: None where there is not enough to test.
        critical_difference: that of Nemenyi at ``LEVEL``; missing without a test.
    """

    ranks: pd.Series
    datasets: tuple[str, ...]
    had: tuple[int, int]
    left_out: tuple[str, ...] = ()
    test: Friedman | None = None
    critical_difference: float = np.nan

    @property
    def differs(self) -> bool:
        """Whether the test says that not all methods are alike."""
        return self.test is not None and self.test.p < LEVEL

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """Methods that no critical difference parts: the largest such groups, of two and more.

        Without a difference by Friedman's test there is no second test: all are one group.
        """
        if self.test is None:
            return []
        return cliques(self.ranks, self.critical_difference if self.differs else np.inf)


def scores(metrics: pd.DataFrame, metric: str, shifted: bool) -> pd.DataFrame:
    """Datasets by methods: the mean over seeds of the selected trial.

    That is the trial that the first criterion of the dataset selects, or else the default one.
    Under shift a score is the mean over shifts, each at its largest severity. A metric of groups
    is that of the first sensitive attribute.
    """
    rows = compared(metrics, metric)
    rows = rows[(rows["shift"] != UNSHIFTED) == shifted]
    strongest = rows.groupby(["dataset", "shift"])["severity"].transform("max")
    result = {}
    for dataset, part in rows[rows["severity"] == strongest].groupby("dataset", sort=False):
        by_shift = part.groupby(["method", "shift"], sort=False)["value"].mean()
        result[str(dataset)] = by_shift.groupby("method", sort=False).mean()
    return pd.DataFrame(result, dtype=np.float64).T


def compared(metrics: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows that methods are compared by: values of one trial and of one attribute a dataset."""
    rows = where(metrics, metric=metric, group="").dropna(subset="value")
    rows = rows.assign(first=rows.groupby("dataset", sort=False)["attribute"].transform("first"))
    parts = [of_shown_trial(part) for _, part in rows.groupby("dataset", sort=False)]
    shown = pd.concat([rows.iloc[:0], *parts])
    return shown[shown["attribute"] == shown["first"]].drop(columns="first")


def complete(table: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table without gaps, and the names of the rows and columns that this takes.

    While a cell is missing, the dataset or the method that lacks the largest share of its cells is
    left out; of equal ones a dataset before a method, and the last one of them.
    """
    gone = []
    while table.isna().to_numpy().any():
        by_dataset, by_method = table.isna().mean(axis=1), table.isna().mean(axis=0)
        if by_dataset.max() >= by_method.max():
            name = by_dataset[by_dataset == by_dataset.max()].index[-1]
            table = table.drop(index=name)
        else:
            name = by_method[by_method == by_method.max()].index[-1]
            table = table.drop(columns=name)
        gone.append(str(name))
    return table, tuple(gone)


def compare(table: pd.DataFrame, better: str) -> Comparison:
    """Rank methods on every dataset and test whether the average ranks differ."""
    had = table.shape
    table, left_out = complete(table)
    datasets = tuple(map(str, table.index))
    if min(table.shape) < FEWEST:
        return Comparison(pd.Series(dtype=np.float64), datasets, had, left_out)
    ranks = ranked(table.to_numpy(), better)
    average = pd.Series(ranks.mean(axis=0), table.columns).sort_values(kind="stable")
    difference = critical_difference(ranks.shape[1], len(ranks))
    return Comparison(average, datasets, had, left_out, friedman(ranks), difference)


def comparison_of(metrics: pd.DataFrame, metric: str, shifted: bool) -> Comparison:
    """Rank the methods of a table by a metric, in the direction that the metric declares."""
    return compare(scores(metrics, metric, shifted), find_metric(metric).better)


def ranked(values: np.ndarray, better: str) -> np.ndarray:
    """Ranks within each row ``[rows, methods]``, 1 the best; ties have their mean rank."""
    signed = -values if better == "higher" else values
    return pd.DataFrame(signed).rank(axis=1).to_numpy()


def friedman(ranks: np.ndarray) -> Friedman:
    r"""Test whether methods have equal average ranks.

    .. math:: F = \frac{(N - 1) \chi^2}{N (k - 1) - \chi^2}

    with :math:`k - 1` and :math:`(k - 1)(N - 1)` degrees of freedom (Iman and Davenport 1980;
    Demsar 2006, 3.2.2). :math:`\chi^2` is divided by the share that ties leave of it.
    """
    n, k = ranks.shape
    spread = ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    within = ((ranks - (k + 1) / 2) ** 2).sum() / n  # k (k^2 - 1) / 12 without ties
    if within == 0:
        return Friedman(0.0, 0.0, 1.0)
    chi_squared = float(n * (k - 1) * spread / within)
    rest = n * (k - 1) - chi_squared
    f = (n - 1) * chi_squared / rest if rest > 1e-9 * n * k else np.inf  # rounding
    return Friedman(chi_squared, float(f), float(special.fdtrc(k - 1, (k - 1) * (n - 1), f)))


def critical_difference(methods: int, datasets: int, level: float = LEVEL) -> float:
    r"""Nemenyi's critical difference of two average ranks.

    .. math:: q_\alpha \sqrt{\frac{k (k + 1)}{6 N}}

    with :math:`q_\alpha` of the studentised range over :math:`\sqrt 2` (Demsar 2006, Table 5a).
    """
    from scipy import stats

    q = stats.studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * datasets)))


def cliques(ranks: pd.Series, difference: float) -> list[tuple[str, ...]]:
    """The longest runs of at least two sorted ranks that differ by less than ``difference``."""
    names, values = [str(name) for name in ranks.index], ranks.to_numpy()
    result: list[tuple[str, ...]] = []
    end = 0
    for start in range(len(values)):
        stop = start + int(np.sum(values[start:] - values[start] < difference))
        if stop > end and stop - start > 1:
            result.append(tuple(names[start:stop]))
        end = max(end, stop)
    return result


def in_words(comparison: Comparison) -> str:
    """What a comparison says, in sentences."""
    datasets, methods = len(comparison.datasets), len(comparison.ranks)
    test = comparison.test
    if test is None:
        return (
            f"Not enough to compare: needs {FEWEST} methods that were all run on {FEWEST} "
            f"datasets; {comparison.had[1]} methods and {comparison.had[0]} datasets have scores."
        )
    sentence = (
        f"{methods} methods on {datasets} datasets. Friedman's chi-squared "
        f"{test.chi_squared:.2f}, Iman and Davenport's F({methods - 1}, "
        f"{(methods - 1) * (datasets - 1)}) = {test.f:.2f}, p = {written(test.p, 2)}. "
    )
    if comparison.differs:
        sentence += (
            f"Average ranks that are {comparison.critical_difference:.2f} or more apart differ "
            f"(Nemenyi, {LEVEL:.0%} level)."
        )
    else:
        sentence += f"No difference between methods at the {LEVEL:.0%} level."
    if comparison.left_out:
        sentence += f" Left out because scores are missing: {', '.join(comparison.left_out)}."
    return sentence
