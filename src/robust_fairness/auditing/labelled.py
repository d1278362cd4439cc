r"""Whether labelled rows may be a random part of all rows: a test of what is known of both.

With weights v, 1 over the probability of a row to be labelled, scaled to add up to the number of
rows, the sum over labelled rows of v d, for deviations d from the mean of all rows, has the mean 0
and, for independent choices, a covariance of which :math:`\sum v (v - 1) \, d d^T` over labelled
rows is an estimate (Horvitz and Thompson 1952; choices within strata vary less), and another one
takes :math:`d d^T` as its mean over all rows, which is exact for equal weights. The squares are
compared with chi-squared, and the larger p-value counts, for the score and its ranks, the decision,
and the groups of every attribute (Holm 1979 over these).

Whether labels depend on the true value itself, among rows of the same score, decision and group, no
test can see.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.auditing.predictions import Predictions
from robust_fairness.core.numbers import number, p_value
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.verdicts import holm

FEWEST = 5  # expected labels of a group that is compared alone
NO_PART = "the labelled rows are no random part of the table"
UNSEEN = (
    "no test can see whether rows of a score, decision and group were chosen by their true value"
)


def label_selection(predictions: Predictions) -> list[str]:
    """What shows that the labelled rows are no random part, a text each; none if nothing does.

    Args:
        predictions: of which some rows have labels.

    >>> from robust_fairness.auditing.door import check
    >>> from robust_fairness.auditing.predictions import Options
    >>> labels = [0, 1] * 50 + [None] * 100
    >>> table = pd.DataFrame({"sex": ["f", "m"] * 100, "y": labels, "p": [0] * 90 + [1] * 110})
    >>> label_selection(check(table, Options("y", "p", ["sex"], labels="some")))
    ['decision 1: 0.100 of labelled, 0.550 of all rows (p < 1e-16)']
    """
    known = predictions.known
    if known is None or known.all() or not known.any():
        return []
    chance, rows = predictions.label_probability, len(known)
    weight = np.ones(known.sum()) if chance is None else 1 / chance[known]
    weight = weight * rows / weight.sum()
    of_rows = weight * np.maximum(weight - 1, 0)
    tested = []
    for values, words in _compared(predictions):
        away = values - values.mean(0)
        total = weight @ away[known]
        covariance = of_rows.sum() / rows * away.T @ away
        if not covariance.any():
            continue
        p = _p_value(total, covariance)
        if chance is not None:
            p = max(p, _p_value(total, (away[known].T * of_rows) @ away[known]))
        errors = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        shown = np.abs(total / errors)[: len(words)].argmax()
        means = number(weight @ values[known, shown] / rows), number(values[:, shown].mean())
        tested.append((p, f"{words[shown]}: {means[0]} of labelled, {means[1]} of all rows"))
    adjusted = holm([p for p, _ in tested])
    return [
        f"{text} ({p_value(p)})"
        for (_, text), p in zip(tested, adjusted.tolist(), strict=True)
        if p < LEVEL
    ]


def _p_value(total: np.ndarray, covariance: np.ndarray) -> float:
    """That sums of this covariance have the mean 0."""
    rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
    square = total @ np.linalg.pinv(covariance, hermitian=True) @ total
    return float(special.chdtrc(rank, square))


def _compared(predictions: Predictions) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Values of all rows that are compared together ``[n, values]``, and words of the first."""
    score, known = predictions.score, predictions.known
    assert known is not None
    if len(score):
        last = score.reshape(len(score), -1)[:, -1]
        ranks = pd.Series(last).rank().to_numpy() / len(score)
        yield np.column_stack([last, ranks, ranks**2]), ["mean score"]
    decided = predictions.samples.classes[1:]
    codes = predictions.prediction[:, None] == np.arange(1, len(decided) + 1)
    yield codes.astype(np.float64), [f"decision {name}" for name in decided]
    for attribute in predictions.categorical:
        groups = predictions.groups[attribute]
        index = np.where(groups.index >= 0, groups.index, len(groups.values))
        expected = np.bincount(index, minlength=len(groups.values) + 1) * known.mean()
        kept = np.flatnonzero(expected >= FEWEST)
        names = [*groups.names, "no value"]
        words = [f"{attribute} {names[place]}" for place in kept]
        yield (index[:, None] == kept).astype(np.float64), words
