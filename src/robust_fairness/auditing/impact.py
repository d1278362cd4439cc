"""Selection rates and impact ratios by category and intersection.

The table has the form that New York City's Local Law 144 of 2021 asks of bias audits (rules of the
Department of Consumer and Worker Protection, 6 RCNY 5-300 and 5-301): for every category of sex, of
race and ethnicity, and of their intersections the number of people, the selection rate or, of
scores, the share above the median of all, and that rate over the highest one. The number of people
whose category is unknown is stated, and a category of less than 2 % of the data may be left out of
the ratios; its number and rate are still shown.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.intervals import ratio, wilson
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.escaping import for_markdown
from robust_fairness.inference.counts import TWO, Counts
from robust_fairness.samples import Groups

IMPACT = {
    "attribute": "str", "category": "str", "rate_of": "str", "n": "int64", "rate": "float64",
    "low": "float64", "high": "float64", "impact_ratio": "float64", "ratio_low": "float64",
    "ratio_high": "float64", "note": "str",
}  # fmt: skip
SELECTED, ABOVE = "selection rate", "scoring rate"  # the latter: share above the median score
LEAST_SHARE = 0.02
UNKNOWN = ""  # category of rows without one
LIMITS = (
    "The four-fifths rule of the US Uniform Guidelines (29 CFR 1607.4 D) compares such ratios "
    "with 0.8. It is a rule of thumb: the ratio of a small category falls below 0.8 by chance, "
    "that of a large one may be above it and still be significant, and the rule considers neither "
    "errors nor whether the selection fits its purpose. The highest rate is chosen from the data, "
    "which lowers all other ratios. No legal conclusion follows from this table."
)


def impact_ratios(
    predictions: Predictions, suppress: int = 0, least_share: float = LEAST_SHARE
) -> pd.DataFrame:
    """Rates and impact ratios by category of every attribute and of all of them together.

    Args:
        predictions: of two classes; scores or probabilities also have the share above their median.
        suppress: categories with fewer rows are left out.
        least_share: share of the rows with a known category below which one has no ratio.

    Returns:
        One row per category, with the columns ``IMPACT``; 95 % intervals of Wilson, and of Donner
        and Zou for ratios.

    Raises:
        InputError: the predictions are numbers or of more than two classes.
    """
    if len(predictions.samples.classes) != TWO:
        raise InputError("impact ratios: need predictions of two classes, or scores")
    by_kind = {SELECTED: predictions.prediction}
    if len(predictions.score) and predictions.score.ndim == 1:
        by_kind[ABOVE] = (predictions.score > _median(predictions)).astype(np.int64)
    rows = [
        row
        for kind, reached in by_kind.items()
        for attribute, groups in predictions.groups(intersections=True).items()
        for row in _rows(attribute, kind, groups, reached, predictions, least_share)
        if row["n"] >= suppress
    ]
    return tables.table(IMPACT, rows)


def _median(predictions: Predictions) -> float:
    """The median of all scores, of weighted rows where they have weights."""
    if predictions.weight is None:
        return float(np.median(predictions.score))
    order = np.argsort(predictions.score, kind="stable")
    total = np.cumsum(predictions.weight[order])
    return float(predictions.score[order][np.searchsorted(total, total[-1] / TWO)])


def _rows(
    attribute: str,
    kind: str,
    groups: Groups,
    reached: np.ndarray,
    predictions: Predictions,
    least_share: float,
) -> Iterator[dict[str, Any]]:
    nothing = np.zeros(len(reached), np.int64)
    weight, replicates, units = predictions.weight, predictions.replicates, predictions.units
    cells = Counts.of(groups, nothing, reached, ("", ""), weight, replicates, None, units)
    means, shares = cells.means(cells.grid()[1] == 1), cells.shares().value
    _, low, high = wilson(means.value, means.effective)
    compared = (shares >= least_share) & (means.n > 0)
    highest = int(np.where(compared, means.value, -1).argmax())
    for place, name in enumerate(groups.names):
        row = {
            "attribute": attribute, "category": name, "rate_of": kind, "n": int(means.n[place]),
            "rate": means.value[place], "low": low[place], "high": high[place],
        }  # fmt: skip
        if not compared[place]:
            row["note"] = f"less than {least_share:.0%} of the rows, left out of the ratios"
        elif not means.value[highest]:
            row["note"] = "the rate is 0 in every category"
        elif place == highest:
            row |= {"impact_ratio": 1.0, "note": "highest rate"}
        else:
            pair, both = [place, highest], means.effective[[place, highest]]
            bound = ratio(means.value[pair] * both, both)
            row |= {
                "impact_ratio": means.value[place] / means.value[highest],
                "ratio_low": bound.low, "ratio_high": bound.high,
            }  # fmt: skip
        yield row
    unknown = int(cells.n[-1].sum())
    yield {
        "attribute": attribute, "category": UNKNOWN, "rate_of": kind, "n": unknown,
        "note": "no known category, not in the calculations",
    }  # fmt: skip


def impact_page(rows: pd.DataFrame, name: str) -> str:
    """The table in Markdown, by attribute, with its limits."""
    parts = [f"## Impact ratios of {for_markdown(name)}", "", LIMITS, ""]
    if (rows["rate_of"] == ABOVE).any():
        parts += ["The scoring rate is the share of people whose score is above the median.", ""]
    for (kind, attribute), of_attribute in rows.groupby(["rate_of", "attribute"], sort=False):
        known = of_attribute[of_attribute["category"] != UNKNOWN]
        shown = pd.DataFrame(
            {
                attribute: known["category"], "people": known["n"],
                kind: _between(known, "rate", "low", "high"),
                "impact ratio": _between(known, "impact_ratio", "ratio_low", "ratio_high"),
                "note": known["note"],
            }
        )  # fmt: skip
        unknown = int(of_attribute.loc[of_attribute["category"] == UNKNOWN, "n"].sum())
        parts += [
            f"### {for_markdown(str(attribute))}: {kind}", "", tables.markdown(shown), "",
            f"{unknown:,} people have no known category and are not in the calculations.", "",
        ]  # fmt: skip
    return "\n".join(parts)


def _between(rows: pd.DataFrame, value: str, low: str, high: str) -> list[str]:
    """Values with their intervals as text, blank where they are missing."""
    return [
        ""
        if np.isnan(middle)
        else f"{middle:.3f}" + ("" if np.isnan(a) else f" ({a:.3f} to {b:.3f})")
        for middle, a, b in zip(rows[value], rows[low], rows[high], strict=True)
    ]
