"""Counts against the rows that they are counts of."""

import numpy as np
import pandas as pd
import pytest

from robust_fairness.metrics import count, find_metric
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import covariance_of_copies
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.rates import rates_of
from tests.metrics.helpers import samples_of

RATES = (
    "accuracy", "selection_rate", "true_positive_rate", "false_positive_rate",
    "false_negative_rate", "true_negative_rate", "precision",
)  # fmt: skip


def draw(seed: int, n: int = 300) -> tuple[np.ndarray, ...]:
    """Group, with missing ones, class, decision before and after a shift."""
    rng = np.random.default_rng(seed)
    group, y = rng.integers(-1, 3, n), rng.integers(0, 2, n)
    before = np.where(rng.random(n) < 0.7, y, 1 - y)
    return group, y, before, np.where(rng.random(n) < 0.1, 1 - before, before)


def counts_of(rows: np.ndarray) -> Counts:
    group, y, _, decision = draw(0)
    groups = Groups.named(group[rows], ["a", "b", "c"])
    return Counts.of(groups, y[rows], decision[rows], ("no", "yes"))


@pytest.mark.parametrize("name", RATES)
def test_means_are_those_of_pandas_and_blocks_add(name: str) -> None:
    group, y, _, decision = draw(0)
    quantity = find_metric(name).definition
    halves = [counts_of(part) for part in np.split(np.arange(300), [137])]
    whole = counts_of(np.arange(300))
    means = whole.values(quantity)
    together = halves[0] + halves[1]
    for made in (together, Counts.of_rows(np.stack([half.n[:-1] for half in halves])).sum()):
        assert (made.n[:-1] == whole.n[:-1]).all()
    rows = quantity.rows(y, decision)
    table = pd.DataFrame({"group": group, "value": np.asarray(rows.values, float)})
    kept = table if rows.among is None else table[rows.among]
    by_group = kept[kept["group"] >= 0].groupby("group")["value"]
    np.testing.assert_allclose(means.value, by_group.mean())
    np.testing.assert_allclose(means.variance, by_group.var() / by_group.size())
    assert means.n.tolist() == by_group.size().tolist()
    everyone = whole.everyone.values(quantity)
    assert everyone.value[0] == pytest.approx(kept["value"].mean())


def test_stacked_counts_have_the_means_of_each() -> None:
    parts = np.split(np.arange(300), 3)
    stacked = Counts.of_rows(np.stack([counts_of(part).n[:-1] for part in parts]))
    quantity = find_metric("true_positive_rate").definition
    means = stacked.values(quantity)
    rates = rates_of([means], np.array([True, False, True]))
    assert rates.value.shape == (3, 2, 1)
    for number, part in enumerate(parts):
        alone = counts_of(part)
        np.testing.assert_allclose(means.value[number], alone.values(quantity).value)


@pytest.mark.parametrize("name", ["accuracy", "true_positive_rate", "precision"])
def test_shifted_copies_have_the_covariance_of_a_jackknife(name: str) -> None:
    """From the table of counts of a run, overall and by group."""
    group, y, before, after = draw(1)
    samples = samples_of(
        y, ("no", "yes"), ("sex",), sex=pd.Categorical.from_codes(group, ["a", "b", "c"])
    )
    rows = count(samples, np.eye(2)[after], before=np.eye(2)[before])
    quantity = find_metric(name).definition
    grid = Counts.of_rows(np.zeros((1, 2, 2), int))
    for attribute, shown, code in (("", "", None), ("sex", "a", 0), ("sex", "c", 2)):
        part = rows[(rows["attribute"] == attribute) & (rows["group"] == shown)]
        joint = np.zeros((1, 2, 2, 2))
        joint[0, part["label"], part["before"], part["decision"]] = part["n"]
        kept = np.arange(300) if code is None else np.flatnonzero(group == code)
        assert joint.sum() == len(kept)
        left = [
            [
                float(quantity.function(np.delete(y[kept], k), np.delete(side[kept], k)))
                for k in range(len(kept))
            ]
            for side in (before, after)
        ]
        expected = np.cov(*left)[0, 1] * (len(kept) - 1) ** 2 / len(kept)
        found_covariance = covariance_of_copies(joint, *grid.row_values(quantity))
        assert found_covariance[0] == pytest.approx(expected, rel=0.03)
