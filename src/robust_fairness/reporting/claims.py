"""Tables of claims: what a paper says as an ordering or a correlation, and what we found.

All claims of a page are a family of ``inference``; their values vary between refits alone, since
the tables of papers have no counts. An ordering first < second is a mean of differences, paired
over seeds; where seeds have splits that share rows, which the table of splits says, with the
variance of Nadeau and Bengio. A correlation has the variance of a bootstrap. A claim ``holds`` or
``does not hold`` if p after Holm's adjustment is below 5 %, and is ``inconclusive`` otherwise, as
with fewer than ``FEWEST_REFITS`` seeds, which are not tested.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.inference import (
    LEVEL,
    REFITS,
    Component,
    Estimate,
    over_refits,
)
from robust_fairness.inference.verdicts import concluded
from robust_fairness.reporting.results import Results, where

COLUMNS = [
    "claim", "verdict", "dataset", "ordering", "ours", "low", "high", "n", "p", "p (Holm)",
    "p (FDR)", "verdict (FDR)", "detectable", "test", "seeds vary",
]  # fmt: skip
SPLITS, TRAINING_ONLY = "splits and training", "training only"


@dataclass(frozen=True)
class Claim:
    """A statement about a number: that it is below 0, or above it if ``sign`` is 1.

    Attributes:
        claim: what the paper says.
        dataset: the dataset that it is tested on.
        ordering: the number in words.
        values: one per seed, whose mean the number is; or a single estimate.
        datasets: those that the values come from.
        n: number of seeds, or of methods if there are fewer, of an estimate.
        over: what an estimate resamples.
        sign: see above.
    """

    claim: str
    dataset: str
    ordering: str
    values: pd.Series | Estimate
    datasets: tuple[str, ...]
    n: int = 0
    over: str = ""
    sign: int = -1

    def estimated(self, splits: pd.DataFrame) -> dict[str, Any]:
        """Columns value, variance, df, n, test and seeds vary.

        Args:
            splits: ``sizes_of_splits`` by dataset.
        """
        sizes = splits.reindex(self.datasets)
        ratio = float(sizes["ratio"].fillna(0).max())
        estimate, n, test = self.values, self.n, f"bootstrap over {self.over}"
        if isinstance(estimate, pd.Series):
            known = estimate.dropna().to_numpy(np.float64)
            estimate, n = over_refits(known, ratio), len(known)
            test = f"corrected t, test / train = {ratio:.2f}" if ratio else "paired t"
        (part,) = estimate.components.values()
        varied = SPLITS if sizes["splits"].max() > 1 else TRAINING_ONLY
        return {
            "value": estimate.value.item(), "variance": np.asarray(part.variance).item(),
            "df": np.asarray(part.df).item(), "n": n, "test": test,
            "seeds vary": "" if sizes["splits"].isna().all() else varied,
        }  # fmt: skip


def by_seed(rows: pd.DataFrame, /, **place: object) -> pd.Series:
    """Values by seed, the mean of several, of the rows that have these values in their columns."""
    return where(rows, **place).groupby("seed")["value"].mean()


def compared(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, **pairs: Sequence[object]
) -> Claim:
    """The claim that first < second, the values by seed at the two values of each column."""
    both = [where(rows, **place) for place in _places(pairs)]
    datasets = dict.fromkeys(name for item in both for name in item["dataset"].unique())
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
    return Claim(claim, dataset, ordering, first - second, tuple(datasets) or (dataset,))


def table(claims: Sequence[Claim], results: Results) -> pd.DataFrame:
    """All claims of a page with their tests, a row each.

    Returns:
        ``COLUMNS``: ours is the mean difference, or the correlation, with its 95 % interval without
        adjustment; n the number of seeds, or of pairs; ``detectable`` the smallest difference that
        the test, adjusted by Bonferroni for the page, finds in 80 % of cases.
    """
    if not claims:
        return pd.DataFrame(columns=COLUMNS)
    facts = pd.DataFrame([claim.estimated(results.sizes_of_splits) for claim in claims])
    value, variance, df, n = (
        facts.pop(name).to_numpy() for name in ("value", "variance", "df", "n")
    )
    tests = concluded(Estimate(value, {REFITS: Component(variance, df)}), n).rename(
        columns={"value": "ours", "p_holm": "p (Holm)", "p_fdr": "p (FDR)"}
    )
    sign = np.array([claim.sign for claim in claims])
    names = ("claim", "dataset", "ordering")
    result = pd.DataFrame({name: [getattr(claim, name) for claim in claims] for name in names})
    result = pd.concat([result, facts, tests], axis=1)
    for column, p in (("verdict", "p (Holm)"), ("verdict (FDR)", "p (FDR)")):
        significant, as_claimed = result[p] < LEVEL, value * sign > 0
        result[column] = np.select(
            [result["n"] == 0, significant & as_claimed, significant],
            ["not run", "holds", "does not hold"],
            "inconclusive",
        )
    return result[COLUMNS]


def summary(statements: pd.DataFrame, listed: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The verdict on each claim of a paper, from the statements that it consists of.

    A claim is supported if at least half of its statements hold and none is reversed, contradicted
    if at least half are reversed and none holds, and inconclusive otherwise.

    Args:
        statements: ``COLUMNS``.
        listed: claims with ``claim``; ``statements``, values of the column ``claim``; and
            ``cost``, which stands where none of its statements was run.

    Returns:
        Columns claim, verdict, statements, hold, reversed, and detectable: the median of the
        statements that are inconclusive. Or the verdict is the cost.
    """
    run = statements[statements["verdict"] != "not run"]
    return pd.DataFrame([_summarised(run, claim) for claim in listed])


def _summarised(run: pd.DataFrame, claim: Mapping[str, Any]) -> dict[str, Any]:
    rows = run[run["claim"].isin(claim.get("statements", ()))]
    if rows.empty:
        return {"claim": claim["claim"], "verdict": f"not run: {claim['cost']}"}
    hold, turned = ((rows["verdict"] == text).sum() for text in ("holds", "does not hold"))
    verdict = "inconclusive"
    if not turned and 2 * hold >= len(rows):
        verdict = "supported"
    elif not hold and 2 * turned >= len(rows):
        verdict = "contradicted"
    least = rows.loc[rows["verdict"] == "inconclusive", "detectable"].median()
    return {
        "claim": claim["claim"], "verdict": verdict, "statements": len(rows), "hold": hold,
        "reversed": turned, "detectable": least,
    }  # fmt: skip
