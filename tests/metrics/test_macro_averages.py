"""Macro averages against scikit-learn, overall and within groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score

from robust_fairness.metrics import Score

from .helpers import score_of, scores_of_groups

GROUPS = ("a", "b", "c")
OF_SKLEARN = {
    precision_score: ("macro_precision", "macro_precision_present"),
    recall_score: ("macro_recall", "balanced_accuracy"),
}


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 7))
def test_averages_are_scikit_learns(seed, rows, classes):
    """By default over labels of rows and predictions, or over those of the rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows) * 3
    prediction = np.where(rng.random(rows) < 0.5, y, rng.integers(0, 3 * classes, rows))
    group = rng.integers(0, len(GROUPS), rows)
    for theirs, names in OF_SKLEARN.items():
        for name, labels in zip(names, (None, np.unique), strict=True):
            of = {"y_true": y, "y_pred": prediction}
            of_groups = scores_of_groups(f"{name}_by_group", group, GROUPS, **of)
            whole = score_of(name, **of)
            for score, mine in (
                (whole, np.full(rows, True)),
                *((of_groups[key], group == number) for number, key in enumerate(GROUPS)),
            ):
                if not mine.any():
                    assert score == Score(None, 0, "no rows")
                    continue
                expected = theirs(
                    y[mine],
                    prediction[mine],
                    labels=labels and labels(y[mine]),
                    average="macro",
                    zero_division=0,
                )
                assert (score.value, score.n) == (pytest.approx(expected), mine.sum())


def test_a_group_of_one_class_pays_for_every_class_it_is_taken_for():
    """As the published gaps of the balanced control: six of ten right, two further labels."""
    y = np.zeros(10, int)
    prediction = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2, 2])
    value = {
        name: score_of(name, y_true=y, y_pred=prediction).value
        for name in ("macro_precision", "macro_recall", "balanced_accuracy", "accuracy")
    }
    assert value["macro_precision"] == pytest.approx(1 / 3)
    assert value["macro_recall"] == pytest.approx(0.6 / 3)
    assert value["balanced_accuracy"] == value["accuracy"] == pytest.approx(0.6)


def test_no_rows():
    empty = np.empty(0, np.int64)
    for name in ("macro_precision", "macro_recall", "macro_precision_present"):
        assert score_of(name, y_true=empty, y_pred=empty) == Score(None, 0, "no rows")
