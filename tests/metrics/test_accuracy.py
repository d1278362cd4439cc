"""What a constant reaches, against scikit-learn."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import accuracy_score, r2_score

from robust_fairness.metrics.classification import constant_accuracy
from robust_fairness.numbers.groups import Groups

from .helpers import score_of


@pytest.mark.parametrize("seed", range(3))
def test_constant_is_the_most_frequent_training_class(seed):
    """Not the one that is most frequent among the rows that it is scored on."""
    rng = np.random.default_rng(seed)
    train_y, y = rng.choice(3, 50, p=[0.2, 0.6, 0.2]), rng.choice(3, 40, p=[0.7, 0.2, 0.1])
    constant = DummyClassifier(strategy="most_frequent").fit(np.zeros((50, 1)), train_y)
    score = constant_accuracy(y, train_y)
    assert score.value == constant.score(np.zeros((40, 1)), y)
    assert score.n == 40


def test_without_rows_there_is_no_constant():
    """Neither of training nor of these."""
    some, none = np.array([0, 1, 1]), np.array([], dtype=np.int64)
    assert constant_accuracy(none, some).note == constant_accuracy(some, none).note == "no rows"


def unexplained_variance(y, prediction):
    return score_of("unexplained_variance", y_true=y, y_pred=prediction)


def test_unexplained_variance_is_what_r_squared_leaves():
    """In any unit; 1 for the mean, and missing where nothing varies."""
    rng = np.random.default_rng(0)
    y = rng.normal(12, 3, 60).astype(np.float32)
    prediction = (y + rng.normal(size=60)).astype(np.float32)
    score = unexplained_variance(y, prediction)
    assert score.value == pytest.approx(1 - r2_score(y, prediction), rel=1e-5)
    assert unexplained_variance(y * 10, prediction * 10).value == pytest.approx(score.value)
    mean = np.full_like(y, y.mean())
    assert unexplained_variance(y, mean).value == pytest.approx(1)
    constant = unexplained_variance(np.ones(5, np.float32), y[:5])
    assert (constant.value, constant.note) == (None, "the outcome is constant")
    assert unexplained_variance(y[:0], y[:0]).value is None


@pytest.mark.parametrize("groups", [2, 5])
def test_mean_over_groups_weighs_them_alike(groups):
    """Against scikit-learn, with a weight of one over its group's size for every row."""
    rng = np.random.default_rng(groups)
    y, prediction = rng.integers(0, 3, (2, 200))
    group = np.minimum(rng.geometric(0.5, 200) - 1, groups - 1)
    names = tuple("abcde"[:groups])
    groups = Groups.named(group, names)
    score = score_of("mean_group_accuracy", y_true=y, y_pred=prediction, sensitive_features=groups)
    weight = 1 / np.bincount(group)[group]
    assert score.value == pytest.approx(accuracy_score(y, prediction, sample_weight=weight))
    assert score.n == 200
    more = Groups.named(group, (*names, "nobody"))
    absent = score_of("mean_group_accuracy", y_true=y, y_pred=prediction, sensitive_features=more)
    assert (absent.value, absent.note) == (None, "no rows of group nobody")


def test_a_note_names_some_of_many_empty_groups_and_counts_the_others():
    """133,328 names would be megabytes in every row of the table."""
    y, group = np.zeros(3, dtype=np.int64), np.array([0, 1, 1])
    names = tuple(f"group {number}" for number in range(2000))
    groups = Groups.named(group, names)
    note = score_of("mean_group_accuracy", y_true=y, y_pred=y, sensitive_features=groups).note
    assert note.startswith("no rows of group group 2, group 3, ")
    assert note.endswith("group 21 and 1,978 more")
