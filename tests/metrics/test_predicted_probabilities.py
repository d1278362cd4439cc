"""Distributions of predicted probabilities, against numpy's histogram and by properties."""

import numpy as np
import pytest

from robust_fairness.metrics import evaluate
from robust_fairness.metrics.evaluation import probability_of_second
from robust_fairness.metrics.predicted_probabilities import (
    BINS,
    probability_shares_by_group,
    probability_shares_by_subgroup,
)
from robust_fairness.numbers.groups import Groups

from .test_fairness import make as make_samples

CLASSES = ("no", "yes")


def make(n=300, groups=3, seed=0) -> tuple[np.ndarray, dict]:
    """Logits; and probabilities and groups, of which the last one has no row."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(scale=2, size=(n, 2)).astype(np.float32)
    group = rng.integers(0, groups - 1, n)
    return outputs, {
        "y_score": probability_of_second(outputs),
        "sensitive_features": Groups.named(group, tuple(f"g{k}" for k in range(groups))),
    }


def histogram(outputs: np.ndarray) -> np.ndarray:
    """Shares of ten equal bins of the second of two softmax probabilities."""
    exponents = np.exp(outputs.astype(np.float64))
    probability = exponents[:, 1] / exponents.sum(1)
    return np.histogram(probability, bins=10, range=(0, 1))[0] / len(outputs)


def test_shares_of_a_group_are_its_histogram():
    """With the number of its rows; a group without rows has no share."""
    outputs, rows = make()
    shares = probability_shares_by_group(**rows)
    assert list(BINS)[0::9] == ["0.0 to 0.1", "0.9 to 1.0"]
    for number in (0, 1):
        inside = rows["sensitive_features"].index == number
        scores = [shares[f"g{number}, {name}"] for name in BINS]
        assert [score.value for score in scores] == pytest.approx(histogram(outputs[inside]))
        assert {score.n for score in scores} == {inside.sum()}
    assert shares["g2, 0.3 to 0.4"].value is None
    assert shares["g2, 0.3 to 0.4"].note == "no rows"
    assert len(shares) == 30


def test_shares_of_a_group_and_class_are_its_histogram():
    """Of both classes."""
    outputs, rows = make()
    y = np.random.default_rng(1).integers(0, 2, 300)
    scores = probability_shares_by_subgroup(y_true=y, **rows, classes=CLASSES)
    for number in (0, 1):
        for label, name in enumerate(CLASSES):
            inside = (rows["sensitive_features"].index == number) & (y == label)
            shares = [scores[f"g{number} & {name}, {interval}"].value for interval in BINS]
            assert shares == pytest.approx(histogram(outputs[inside]))
            assert sum(shares) == pytest.approx(1)


def test_certain_predictions_lie_in_the_outer_bins():
    """However large the logits are: no overflow, and 1 has a bin."""
    outputs = np.array([[1e30, -1e30], [0, 0], [-1e30, 1e30], [-800, 800]], dtype=np.float32)
    everyone = Groups.named(np.zeros(4, np.int64), ("all",))
    scores = probability_shares_by_group(
        probability_of_second(outputs), sensitive_features=everyone
    )
    shares = {number: score.value for number, score in enumerate(scores.values()) if score.value}
    assert shares == {0: 0.25, 5: 0.25, 9: 0.5}


def test_more_classes_are_not_applicable():
    """There is no one probability."""
    y, group = np.arange(6) % 3, np.arange(6) % 2
    samples = make_samples(y, group, classes=("a", "b", "c"))
    names = ["probability_shares_by_group", "probability_shares_by_subgroup", "roc_auc"]
    for row in evaluate(names, samples, np.eye(3)[y]):
        assert row["note"] == "not applicable: 3 classes, defined for two"
