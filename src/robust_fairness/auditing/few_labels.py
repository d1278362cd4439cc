"""A few labels among many rows: what the scores of the others add, and which rows to label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from robust_fairness.auditing.labelled import NO_PART, UNSEEN
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.scores import scored
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted
from robust_fairness.numbers.counts import TWO
from robust_fairness.numbers.groups import groups_of
from robust_fairness.numbers.rates import contrast

COMPARED = ("equalized_odds_difference", "equal_opportunity_difference")
COMPARED_OF_CLASSES = ("accuracy_difference",)  # of more than two classes
NO_HELP = 0.98  # standard error over that of labelled rows alone from which on it is said
LEAST_SPREAD = 0.05  # of p (1 - p), so that rows with sure scores are chosen, too
DRAWS = 20  # of the labels of a plan
KEYS = ["attribute", "metric"]


@dataclass(frozen=True)
class Plan:
    """Rows to label.

    Attributes:
        rows: a line per row to label: its number in the table from 1 (``row``), its groups, its
            ``score`` and the ``label_probability`` with which it was chosen.
        expected: standard errors to expect, by ``attribute`` and ``metric``, of the difference of
            two groups that varies most: ``error`` if the scores are calibrated, ``alone`` from the
            labelled rows without scores; and ``known``, the share of draws that have an interval.
    """

    rows: pd.DataFrame
    expected: pd.DataFrame

    def __str__(self) -> str:
        return (
            f"plan: {counted({'rows': len(self.rows)})} to label; standard errors to expect with "
            f"calibrated scores (without scores): {', '.join(_texts(self.expected))}"
        )


def planned(
    predictions: Predictions, options: Options, rows: int, draws: int = DRAWS, seed: int = 0
) -> Plan:
    r"""Rows to label, so that intervals are narrow.

    The probability of a row is proportional to its weight times :math:`\sqrt{p (1 - p)}`, at equal
    numbers of rows for the groups of an attribute (mean over the attributes). Rows are drawn in the
    order of groups and scores: a draw that is stratified by both. The intervals are medians over
    labels that are drawn from the scores.

    Args:
        predictions: probabilities of two classes, without labels.
        options: what is scored.
        rows: number of rows to label.
        draws: of labels, for the errors to expect; 0: none are.
        seed: of all draws.

    Raises:
        InputError: the predictions are no probabilities or have labels, or there are fewer rows.
    """
    n = len(predictions.prediction)
    if options.y_true is not None or predictions.kind != "probability":
        raise InputError("plan: needs probabilities of two classes without labels")
    if not 0 < rows < n:
        raise InputError(f"plan: {rows} rows, allowed: 1 to {n - 1}, fewer than the table has")
    score = predictions.score
    size = np.sqrt(np.maximum(score * (1 - score), LEAST_SPREAD))
    size = size if predictions.weight is None else size * predictions.weight
    by_attribute = [groups.index for groups in predictions.groups.values()]
    probability = _probabilities(size, by_attribute or [np.zeros(n, np.int64)], rows)
    columns = predictions.categorical
    attributes = predictions.samples.attributes
    order = np.lexsort((score, groups_of(attributes, columns).codes if columns else np.zeros(n)))
    generator = np.random.default_rng(seed)
    chosen = np.sort(order[_drawn(probability[order], rows, generator)])
    table = attributes[columns].iloc[chosen].assign(
        score=score[chosen], label_probability=probability[chosen]
    )  # fmt: skip
    table.insert(0, "row", chosen + 1)
    known = np.zeros(n, bool)
    known[chosen] = True
    labelled = replace(predictions, known=known, label_probability=probability)
    expected = _expected(labelled, options, draws, generator)
    return Plan(table.reset_index(drop=True), expected)


def _drawn(probability: np.ndarray, rows: int, generator: np.random.Generator) -> np.ndarray:
    """So many places, drawn systematically with these probabilities (Madow 1949)."""
    ends = np.cumsum(probability)
    places = (generator.random() + np.arange(rows)) * ends[-1] / rows
    return np.searchsorted(ends, places, side="right")


def _expected(
    predictions: Predictions, options: Options, draws: int, generator: np.random.Generator
) -> pd.DataFrame:
    """Median errors over labels of the known rows that are drawn from the scores, see ``Plan``."""
    assert predictions.known is not None
    drawn = [pd.DataFrame(columns=[*KEYS, "error", "alone"])]
    for _ in range(draws):
        y = (generator.random(len(predictions.score)) < predictions.score).astype(np.int64)
        y = np.where(predictions.known, y, predictions.prediction)
        samples = replace(predictions.samples, y=y)
        drawn.append(_errors(replace(predictions, samples=samples), options))
    by_gap = pd.concat(drawn[-draws:]).groupby(KEYS, sort=False)
    known = by_gap["error"].count() / max(draws, 1)
    return by_gap.median().assign(known=known).reset_index()


def _probabilities(size: np.ndarray, by_attribute: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Probabilities, at most 1, whose sum is a number of rows, proportional to sizes in groups."""
    share = np.zeros(len(size))
    for index in by_attribute:
        code = index - index.min()
        sums = np.bincount(code, size)
        share += size / sums[code] / np.count_nonzero(sums)
    probability = share * rows / share.sum()
    while (probability > 1).any():
        certain = probability >= 1
        rest = (rows - certain.sum()) / share[~certain].sum()
        probability = np.where(certain, 1.0, share * rest)
    return np.asarray(probability)


def of_labels(predictions: Predictions, options: Options, selection: Sequence[str]) -> str:
    """What is assumed of the labelled rows, and what the scores of the others add.

    ``selection`` is what ``label_selection`` finds, which is said first.
    """
    assert predictions.known is not None
    chosen = "drawn at random"
    if options.label_probability is not None:
        chosen = f"drawn with the probabilities of {options.label_probability}"
    errors = _errors(predictions, options).dropna()
    text = (
        f"{predictions.known.sum():,} of {len(predictions.known):,} rows have a label, taken to be "
        f"{chosen}"
    )
    helped = errors["error"] < NO_HELP * errors["alone"]
    for words, rows in (
        ("the scores of the others make standard errors smaller (than without)", errors[helped]),
        ("the scores do not help", errors[~helped]),
    ):
        if len(rows):
            text += f"; {words}: {', '.join(_texts(rows))}"
    text += f"; {UNSEEN}"
    return f"{NO_PART}: {'; '.join(selection)}; {text}" if selection else text


def _errors(predictions: Predictions, options: Options) -> pd.DataFrame:
    """Standard errors of gaps, with scores and of the labelled rows alone; NaN if not known."""
    two = len(predictions.samples.classes) == TWO
    chosen = replace(
        options, metrics=COMPARED if two else COMPARED_OF_CLASSES, labels="some", suppress=0,
        y_true=options.y_true or "", control_features=(), functions={},
    )  # fmt: skip

    def of(some: Predictions, name: str) -> pd.DataFrame:
        rows = [
            (*key, contrast(gap.rates.corrected(), None, gap.gap.functions, None).error.max())
            for key, gap in scored(some, chosen).compared.items()
        ]
        return pd.DataFrame(rows, columns=[*KEYS, name])

    return of(predictions, "error").merge(of(_alone(predictions), "alone"), on=KEYS)


def _alone(predictions: Predictions) -> Predictions:
    """The labelled rows, weighted by their weight over their probability to be labelled."""
    assert predictions.known is not None
    there = np.flatnonzero(predictions.known)
    some = replace(predictions.take(there), known=None, label_probability=None, labelled=True)
    if predictions.label_probability is None:
        return some
    weight = np.ones(len(there)) if some.weight is None else some.weight
    weight = weight / predictions.label_probability[there]
    return replace(some, samples=replace(some.samples, sample_weight=weight))


def _texts(errors: pd.DataFrame) -> Iterator[str]:
    """A gap, its standard error and that without scores."""
    for row in errors.to_dict("records"):
        gap = row["metric"].replace("_", " ")
        text = f"{gap} by {row['attribute']} {row['error']:.3f} ({row['alone']:.3f})"
        unknown = 1 - row.get("known", 1)
        yield f"{text}, no interval in {unknown:.0%} of draws" if unknown else text
