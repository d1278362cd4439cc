"""Tables of claims: what a paper says as an ordering or a correlation, and what we found.

All claims of a page are tested together. An ordering first < second is tested by Student's t of the
differences, paired over seeds. Where seeds have splits that share rows, which the table of splits
says, the test is the corrected resampled t-test (``statistics.paired_tests``). P-values are
adjusted for all claims of the page: by Holm, from which the verdict follows, and by Benjamini and
Hochberg. A claim ``holds`` or ``does not hold`` if the adjusted p-value is below 5 %, and is
``inconclusive`` otherwise.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.inference.adjust import false_discovery_rate
from robust_fairness.reporting.results import Results, where
from robust_fairness.reporting.statistics import (
    LEVEL,
    SAME,
    Bootstrapped,
    adjusted,
    detectable,
    mean_tests,
)

COLUMNS = [
    "claim", "verdict", "dataset", "ordering", "ours", "low", "high", "n", "p", "p (Holm)",
    "p (FDR)", "verdict (FDR)", "detectable", "test", "seeds vary",
]  # fmt: skip
SPLITS, TRAINING_ONLY = "splits and training", "training only"


@dataclass(frozen=True)
class Claim(ABC):
    """A statement about a number: that it is below 0, or above it if ``sign`` is 1."""

    claim: str
    dataset: str
    ordering: str

    sign = -1

    @abstractmethod
    def tested(self, splits: pd.DataFrame) -> dict[str, Any]:
        """Columns ours, low, high, n, error, seeds vary, test and p.

        Args:
            splits: ``sizes_of_splits`` by dataset.
        """


@dataclass(frozen=True)
class Ordering(Claim):
    """The claim that first < second.

    Attributes:
        differences: first minus second, a value per seed that both have.
        datasets: those that the values come from.
    """

    differences: pd.Series
    datasets: tuple[str, ...]

    def tested(self, splits: pd.DataFrame) -> dict[str, Any]:
        values = self.differences.dropna().to_numpy()
        n = len(values)
        own = splits.reindex(self.datasets)
        ratio = float(own["ratio"].fillna(0).max())
        found = {"ours": float(values.mean()) if n else np.nan, "n": n, **_varied(own["splits"])}
        found["test"] = f"corrected t, test / train = {ratio:.2f}" if ratio else "paired t"
        if n < 2:  # noqa: PLR2004 - no deviation
            return found | dict.fromkeys(("low", "high", "error", "p"), np.nan)
        tests = mean_tests(found["ours"], values.std(ddof=1), n, ratio)
        tested = {name: float(value) for name, value in tests.items()}
        known = tested["error"] > SAME  # the same for every seed: its variance is not known
        return found | tested | ({} if known else {"error": np.nan, "p": np.nan})


@dataclass(frozen=True)
class Correlation(Claim):
    """The claim that a rank correlation is above 0."""

    found: Bootstrapped
    over: str

    sign = 1

    def tested(self, splits: pd.DataFrame) -> dict[str, Any]:
        interval = self.found.interval
        return {
            "ours": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n,
            "error": np.nan, "p": self.found.p, "test": f"bootstrap over {self.over}",
            **_varied(splits.reindex([self.dataset])["splits"]),
        }  # fmt: skip


def _varied(splits: pd.Series) -> dict[str, str]:
    """What differs between seeds of datasets with these numbers of splits."""
    if splits.isna().all():
        return {"seeds vary": ""}
    return {"seeds vary": SPLITS if splits.max() > 1 else TRAINING_ONLY}


def by_seed(rows: pd.DataFrame, /, **place: object) -> pd.Series:
    """Values by seed, the mean of several, of the rows that have these values in their columns."""
    return where(rows, **place).groupby("seed")["value"].mean()


def compared(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, **pairs: Sequence[object]
) -> Claim:
    """The claim that first < second, the values by seed at the two values of each column."""
    both = [where(rows, **place) for place in _places(pairs)]
    datasets = dict.fromkeys(name for one in both for name in one["dataset"].unique())
    first, second = map(by_seed, both)
    return difference(claim, dataset, ordering, first, second, tuple(datasets))


def where_run(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, **pairs: Sequence[object]
) -> Iterator[Claim]:
    """``compared`` if there are rows at both values, else nothing."""
    if all(len(where(rows, **place)) for place in _places(pairs)):
        yield compared(rows, claim, dataset, ordering, **pairs)


def _places(pairs: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(pairs, values, strict=True)) for values in zip(*pairs.values(), strict=True)]


def difference(
    claim: str,
    dataset: str,
    ordering: str,
    first: pd.Series,
    second: pd.Series,
    datasets: Sequence[str] = (),
) -> Claim:
    """The claim that first < second, from values by seed of these datasets (or of ``dataset``)."""
    return Ordering(claim, dataset, ordering, first - second, tuple(datasets) or (dataset,))


def table(claims: Sequence[Claim], results: Results) -> pd.DataFrame:
    """All claims of a page with their tests, a row each.

    Returns:
        ``COLUMNS``: ours is the mean difference, or the correlation, with its 95 % interval without
        adjustment; n the number of seeds, or of pairs; ``detectable`` the smallest difference that
        the test, adjusted by Bonferroni for the page, finds in 80 % of cases.
    """
    if not claims:
        return pd.DataFrame(columns=COLUMNS)
    splits = results.sizes_of_splits
    texts = [
        {"claim": one.claim, "dataset": one.dataset, "ordering": one.ordering, "sign": one.sign}
        for one in claims
    ]
    tests = pd.DataFrame([one.tested(splits) for one in claims])
    found = pd.concat([pd.DataFrame(texts), tests], axis=1)
    family = max(1, int(found["p"].count()))
    found["p (Holm)"] = adjusted(found["p"])
    found["p (FDR)"] = adjusted(found["p"], false_discovery_rate)
    found["detectable"] = detectable(found["error"], found["n"], level=LEVEL / family)
    for column, p in (("verdict", "p (Holm)"), ("verdict (FDR)", "p (FDR)")):
        found[column] = _verdicts(found, p)
    return found[COLUMNS]


def _verdicts(found: pd.DataFrame, p: str) -> np.ndarray:
    """What the p-values of a column say of the claims."""
    significant, as_claimed = found[p] < LEVEL, found["ours"] * found["sign"] > 0
    return np.select(
        [found["n"] == 0, significant & as_claimed, significant],
        ["not run", "holds", "does not hold"],
        "inconclusive",
    )
