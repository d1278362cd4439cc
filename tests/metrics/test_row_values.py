"""Values, groups, weights and variances that follow from row values."""

import numpy as np
import pytest
import sklearn.metrics as oracle
from scipy import stats

from robust_fairness.metrics import RowValues, find_metric
from robust_fairness.metrics.classification import roc_auc, true_positive_rate
from robust_fairness.numbers.counts import Rows
from robust_fairness.numbers.groups import Groups

from .helpers import score_of

RATES = (
    "accuracy", "selection_rate", "true_positive_rate", "false_negative_rate",
    "true_negative_rate", "false_positive_rate", "precision",
)  # fmt: skip


def draw(seed=0, n=301):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    score = np.round(np.clip(rng.normal(0.4 + 0.2 * y, 0.2), 0, 1), 2)
    group = rng.integers(0, 3, n)
    return {"y_true": y, "y_pred": (score > 0.5).astype(int), "y_score": score}, group, rng


MEANS = ("brier_score", "log_loss", "mean_squared_error", "mean_absolute_error", *RATES)


@pytest.mark.parametrize("name", MEANS)
def test_variance_is_that_of_the_mean_of_its_rows(name):
    arrays, group, _ = draw(1)
    quantity = find_metric(name).definition
    rows = quantity.rows(*(arrays[need] for need in quantity.needs))
    assert isinstance(rows, RowValues)
    among = np.full(len(group), True) if rows.among is None else rows.among
    names = ("a", "b", "c", "nobody")
    scores = Rows(arrays, Groups.named(group, names)).values(quantity).scores(names)
    for number, group_name in enumerate(names):
        of_group = np.asarray(rows.values, float)[among & (group == number)]
        score = scores[group_name]
        assert score.n == len(of_group)
        if len(of_group):
            assert score.value == pytest.approx(of_group.mean(), rel=1e-14)
            assert score.variance == pytest.approx(stats.sem(of_group) ** 2)
    assert (scores["nobody"].value, scores["nobody"].note) == (None, "no rows")


def test_log_loss_and_its_clipping_are_scikit_learns():
    for dtype in (np.float64, np.float32):
        y, score = np.array([0, 1, 1, 0]), np.array([0, 0, 0.3, 0.9], dtype)
        value = score_of("log_loss", y_true=y, y_score=score).value
        assert value == pytest.approx(oracle.log_loss(y, score), rel=1e-6)


@pytest.mark.parametrize("noise", [0, 0.5])
def test_variance_of_the_area_is_delongs(noise):
    """From the matrix of all pairs, as DeLong, DeLong and Clarke-Pearson (1988) define it.

    Near 1 it is that of a share of twice as many rows as the smaller class has.
    """
    arrays, _, rng = draw(3)
    y, score = arrays["y_true"], arrays["y_score"] + noise * rng.normal(size=len(arrays["y_true"]))
    positive, negative = score[y == 1][:, None], score[y == 0][None]
    kernel = (positive > negative) + 0.5 * (positive == negative)
    expected = (
        kernel.mean(1).var(ddof=1) / len(kernel) + kernel.mean(0).var(ddof=1) / kernel.shape[1]
    )
    area, least = kernel.mean(), kernel.mean() * (1 - kernel.mean()) / (2 * min(kernel.shape) - 1)
    assert (area > 0.98) == (least > expected)
    assert roc_auc(y, score).variance == pytest.approx(max(least, expected))


def test_a_difference_of_groups_knows_its_variance():
    arrays, group, _ = draw(4)
    arrays["sensitive_features"] = Groups.named(group, ("a", "b", "c"))
    by_group = find_metric("true_positive_rate_by_group").scores(arrays)
    gap = find_metric("true_positive_rate_difference").scores(arrays)[""]
    high, low = gap.note.split(" less ")
    assert gap.variance == pytest.approx(by_group[high].variance + by_group[low].variance)
    odds = find_metric("equalized_odds_difference").scores(arrays)[""]
    assert odds.variance is not None


def test_the_function_has_the_signature_of_scikit_learn():
    from inspect import signature

    assert list(signature(true_positive_rate).parameters) == ["y_true", "y_pred", "sample_weight"]
    assert "recall" in true_positive_rate.__doc__
