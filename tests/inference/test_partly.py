"""Rates from a few labels and all scores: against the formula of PPI++, and by simulation."""

import numpy as np
import pytest

from robust_fairness.inference.counts import Counts
from robust_fairness.inference.partly import SomeLabels, partly_labelled
from robust_fairness.samples import Groups

CLASSES = ("0", "1")
TABLES = 300


def rows(rng: np.random.Generator, quality: str, n: int = 3000, labels: int = 300) -> SomeLabels:
    x = rng.normal(size=n)
    share = 1 / (1 + np.exp(0.5 - 2 * x))
    y = (rng.random(n) < share).astype(np.int64)
    decision = (x + 0.5 * rng.normal(size=n) > 0).astype(np.int64)
    score = {"good": share, "noise": rng.random(n), "wrong": 1 - share}[quality]
    labelled = np.zeros(n, bool)
    labelled[rng.choice(n, labels, replace=False)] = True
    return SomeLabels(y, decision, score, labelled, np.ones(n), np.ones(n))


def counted(some: SomeLabels) -> Counts:
    return partly_labelled(Groups.named(np.zeros(len(some.y), int), ["all"]), some, CLASSES)


def test_all_labels_are_the_plain_counts_and_no_label_is_needed_for_decisions() -> None:
    rng = np.random.default_rng(0)
    some = rows(rng, "good", labels=3000)
    counts = counted(some)
    y, decision = counts.grid()
    groups = Groups.named(np.zeros(3000, int), ["all"])
    plain = Counts.of(groups, some.y, some.decision, CLASSES)
    for values, among in ((y == decision, None), (decision == 1, y == 1), (decision == 1, None)):
        ours, theirs = counts.means(values, among), plain.means(values, among)
        np.testing.assert_allclose(ours.value, theirs.value, atol=1e-12)
        np.testing.assert_allclose(ours.variance, theirs.variance, rtol=2e-3)
    few = counted(rows(rng, "good"))
    assert few.means(decision == 1).n[0] == 3000


def test_a_mean_is_that_of_the_formula_with_the_tuned_weight() -> None:
    """The weight is the least-squares coefficient (Angelopoulos, Duchi and Zrnic 2023)."""
    some = rows(np.random.default_rng(1), "good")
    made = counted(some).means(counted(some).grid()[0] == 1)
    y, score, labelled = some.y[some.labelled], some.score, some.labelled
    n, total = labelled.sum(), len(score)
    tuned = np.cov(y, score[labelled])[0, 1] / np.var(score, ddof=1)
    value = y.mean() + tuned * (score.mean() - score[labelled].mean())
    variance = np.var(y - tuned * score[labelled]) / n + (
        tuned**2 * np.var(score) + 2 * tuned * np.cov(y - tuned * score[labelled],
                                                      score[labelled])[0, 1]
    ) / total  # fmt: skip
    assert made.value[0] == pytest.approx(value, abs=0.003)
    assert made.variance[0] == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("quality", ["good", "noise", "wrong"])
@pytest.mark.parametrize("known", [False, True])
def test_rates_are_covered_and_scores_do_not_harm(quality: str, known: bool) -> None:
    """Also where rows are labelled with known probabilities that depend on the score."""
    rng = np.random.default_rng(2)
    large = rows(rng, "good", 400_000)
    true = large.decision[large.y == 1].mean()
    covered, widths = 0, np.zeros(2)
    for _ in range(TABLES):
        some = rows(rng, quality)
        if known:
            probability = np.where(some.score > 0.5, 0.2, 0.06)
            labelled = rng.random(len(some.y)) < probability
            some = SomeLabels(some.y, some.decision, some.score, labelled, probability, some.weight)
        counts = counted(some)
        y, decision = counts.grid()
        made = counts.means(decision == 1, y == 1)
        alone = counted(SomeLabels(**{**vars(some), "score": np.zeros(len(some.y))}))
        error = np.sqrt([made.variance[0], alone.means(decision == 1, y == 1).variance[0]])
        widths += error
        covered += abs(made.value[0] - true) < 1.96 * error[0]
    assert covered / TABLES > 0.915
    assert widths[0] < 1.01 * widths[1]
    if quality == "good":
        assert widths[0] < 0.9 * widths[1]
