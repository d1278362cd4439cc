"""Distributions of predicted probabilities, against numpy's histogram and by properties."""

import numpy as np
import pytest

from robust_fairness.metrics.predicted_probabilities import (
    bin_names,
    bins_of,
    probability_shares_by_group,
    probability_shares_by_subgroup,
)

CLASSES = ("no", "yes")


def make(n=300, groups=3, seed=0) -> dict:
    """Logits, classes and groups, of which the last one has no row."""
    rng = np.random.default_rng(seed)
    return {
        "outputs": rng.normal(scale=2, size=(n, 2)).astype(np.float32),
        "group": rng.integers(0, groups - 1, n),
        "groups": tuple(f"g{k}" for k in range(groups)),
        "classes": CLASSES,
    }


def histogram(outputs: np.ndarray) -> np.ndarray:
    """Shares of ten equal bins of the second of two softmax probabilities."""
    exponents = np.exp(outputs.astype(np.float64))
    probability = exponents[:, 1] / exponents.sum(1)
    return np.histogram(probability, bins=10, range=(0, 1))[0] / len(outputs)


def test_shares_of_a_group_are_its_histogram():
    """With the number of its rows; a group without rows has no share."""
    rows = make()
    found = probability_shares_by_group(**rows)
    assert list(bin_names())[0::9] == ["0.0 to 0.1", "0.9 to 1.0"]
    for number in (0, 1):
        inside = rows["group"] == number
        scores = [found[f"g{number}, {name}"] for name in bin_names()]
        assert [one.value for one in scores] == pytest.approx(histogram(rows["outputs"][inside]))
        assert {one.n for one in scores} == {inside.sum()}
    assert found["g2, 0.3 to 0.4"].value is None
    assert found["g2, 0.3 to 0.4"].note == "no rows"
    assert len(found) == 30


def test_shares_of_a_group_and_class_are_its_histogram():
    """Of both classes."""
    rows = make()
    y = np.random.default_rng(1).integers(0, 2, 300)
    found = probability_shares_by_subgroup(y=y, **rows)
    for number in (0, 1):
        for label, name in enumerate(CLASSES):
            inside = (rows["group"] == number) & (y == label)
            shares = [found[f"g{number} & {name}, {interval}"].value for interval in bin_names()]
            assert shares == pytest.approx(histogram(rows["outputs"][inside]))
            assert sum(shares) == pytest.approx(1)


def test_certain_predictions_lie_in_the_outer_bins():
    """However large the logits are: no overflow, and 1 has a bin."""
    outputs = np.array([[1e30, -1e30], [0, 0], [-1e30, 1e30], [-800, 800]], dtype=np.float32)
    assert bins_of(outputs).tolist() == [0, 5, 9, 9]


def test_more_classes_are_refused():
    """There is no one probability."""
    rows = make() | {"classes": ("a", "b", "c")}
    assert "defined for two" in probability_shares_by_group(**rows).note
    assert "defined for two" in probability_shares_by_subgroup(y=rows["group"], **rows).note
