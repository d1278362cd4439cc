"""Rates from a few labels and all scores: by hand, by the formula of PPI++, and by simulation."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import student_factor, wilson_interval
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import compared
from robust_fairness.numbers.partly import PartlyLabelled, partly_labelled
from tests.auditing.tables import few, people

CLASSES = ("0", "1")


def counts_of(table: pd.DataFrame, score: np.ndarray | None = None, **more: np.ndarray) -> Counts:
    """Counts of a table; ``score`` is what is used of the unlabelled rows."""
    p = table["p"].to_numpy() if score is None else score
    decided = (table["p"] >= 0.5).to_numpy().astype(int)
    known = table["y"].notna().to_numpy()
    y = np.where(known, table["y"], 0).astype(int)
    groups = Groups.named((table["sex"] == "m").to_numpy().astype(int), ["f", "m"])
    shares = np.stack([1 - p, p], 1)
    return partly_labelled(groups, y, decided, CLASSES, known, shares, **more)


def by_hand(
    top: np.ndarray, bottom: np.ndarray, guesses: tuple[np.ndarray, np.ndarray],
    known: np.ndarray, w: np.ndarray, v: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """A prediction-powered ratio of means and its variance, tuned by a search, from rows."""

    def mean(values: np.ndarray, weight: np.ndarray) -> float:
        return float(np.sum(values * weight) / weight.sum())

    def estimate(tuned: float) -> float:
        parts = [
            mean(own, v) + tuned * (mean(guess, w) - mean(guess, v))
            for own, guess in zip((top, bottom), guesses, strict=True)
        ]
        return parts[0] / parts[1]

    def influence(tuned: float, at: float) -> np.ndarray:
        psi, phi = top - at * bottom, guesses[0] - at * guesses[1]
        influence = v / v.sum() * (psi - mean(psi, v))
        less = w / w.sum() * (phi - mean(phi, w)) - v / v.sum() * (phi - mean(phi, v))
        return influence + tuned * less

    value = mean(top, v) / mean(bottom, v)
    for _ in range(2):
        best = minimize_scalar(
            lambda tuned, at=value: (influence(tuned, at) ** 2).sum(), bounds=(0, 1),
            options={"xatol": 1e-10},
        ).x  # fmt: skip
        value = estimate(best)
    scale = mean(bottom, v) + best * (mean(guesses[1], w) - mean(guesses[1], v))
    of_mean = (v * bottom).sum() ** 2 / (v**2 * bottom).sum()  # rows of equal weight
    variance = (influence(best, value) ** 2).sum() / scale**2
    variance *= of_mean / (of_mean - 2) * student_factor(of_mean - 2)
    n, alone = (v * bottom > 0).sum(), mean(top, v) / mean(bottom, v)
    of_alone = (influence(0.0, alone) ** 2).sum() / mean(bottom, v) ** 2 * n / (n - 1)
    of_alone = max(of_alone, alone * (1 - alone) / (of_mean - 1))
    return min((variance, value), (of_alone, alone))[::-1]


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_are_those_of_rows_by_hand(weighted: bool) -> None:
    table = people(4000)
    rng = np.random.default_rng(2)
    w = rng.choice([1.0, 4.0], 4000) if weighted else np.ones(4000)
    chance = np.where(table["p"] > 0.5, 0.2, 0.1) if weighted else np.full(4000, 0.15)
    known = rng.random(4000) < chance
    table["y"] = table["y"].where(known)
    more = {"weight": w, "probability": chance} if weighted else {}
    counts = counts_of(table, **more)
    y, decision = counts.grid()
    p, decided = table["p"].to_numpy(), (table["p"] >= 0.5).to_numpy().astype(float)
    labels = table["y"].fillna(0).to_numpy()
    right, chance_right = labels == decided, np.where(decided == 1, p, 1 - p)
    rates = {
        "accuracy": ((y == decision), None, right, np.ones(4000), chance_right, np.ones(4000)),
        "true positive rate": (decision == 1, y == 1, labels * decided, labels, p * decided, p),
        "false positive rate": (
            decision == 1, y == 0, (1 - labels) * decided, 1 - labels, (1 - p) * decided, 1 - p,
        ),
        "precision": (y == 1, decision == 1, labels * decided, decided, p * decided, decided),
    }  # fmt: skip
    for name, (values, among, top, bottom, *guesses) in rates.items():
        means = counts.means(np.asarray(values, float), among)
        for group, code in (("f", 0), ("m", 1)):
            of = (table["sex"] == group).to_numpy()
            v = np.where(known, w / chance, 0.0) * of
            value, variance = by_hand(top, bottom, tuple(guesses), known, w * of, v)
            assert means.value[code] == pytest.approx(value, abs=1e-6), name
            assert means.variance[code] == pytest.approx(variance, rel=1e-4), name
            assert means.n[code] == (known & of & (bottom > 0)).sum()


def test_a_mean_is_that_of_the_formula_with_the_tuned_weight() -> None:
    """The weight is the least-squares coefficient (Angelopoulos, Duchi and Zrnic 2023)."""
    table = few(people(3000), 300).assign(sex="f")
    counts = counts_of(table)
    made = counts.means((counts.grid()[0] == 1) * 1.0)
    known, score = table["y"].notna().to_numpy(), table["p"].to_numpy()
    y, n = table["y"].to_numpy()[known], 300
    tuned = np.cov(y, score[known])[0, 1] / np.var(score, ddof=1)
    rest = y - tuned * score[known]
    value = y.mean() + tuned * (score.mean() - score[known].mean())
    variance = np.var(rest) / n + (
        tuned**2 * np.var(score) + 2 * tuned * np.cov(rest, score[known])[0, 1]
    ) / len(score)  # fmt: skip
    assert made.value[0] == pytest.approx(value, abs=0.003)
    assert made.variance[0] == pytest.approx(variance, rel=0.1)


def test_scores_that_are_the_labels_count_as_labels_and_constant_ones_for_nothing() -> None:
    table = people(5000)
    full, hidden = counts_of(table), few(table, 200)
    y, decision = full.grid()
    perfect = counts_of(hidden, table["y"].to_numpy())
    worthless = counts_of(hidden, np.full(5000, 0.3))
    alone = counts_of(hidden[hidden["y"].notna()])
    for values, among in (((decision == 1) * 1.0, y == 1), ((y == decision) * 1.0, None)):
        true, best, none = (c.means(values, among) for c in (full, perfect, worthless))
        np.testing.assert_allclose(best.value, true.value, atol=1e-3)
        assert (best.effective > 10 * alone.means(values, among).n).all()
        if among is None:  # a constant score of a decision says nothing of it being right
            expected = Counts.means(alone, values, among)
            np.testing.assert_allclose(none.effective, expected.effective, rtol=0.1)
    selected = perfect.means(decision == 1.0)  # needs no labels
    np.testing.assert_array_equal(selected.n, [(table["sex"] == name).sum() for name in "fm"])
    fewest = counts_of(few(table, 7)).means((y == decision) * 1.0)
    assert not (fewest.effective >= 8).any()


def test_counts_of_blocks_add_and_groups_join() -> None:
    table = few(people(2000), 300)
    whole, parts = counts_of(table), [counts_of(table[:700]), counts_of(table[700:])]
    y, decision = whole.grid()
    question = (decision == 1.0, y == 1)
    everyone = counts_of(table.assign(sex="f")).means(*question).value[0]
    for made in (parts[0] + parts[1], whole.take(np.array([True, True]))):
        assert isinstance(made, PartlyLabelled)
        for first, second in zip(made.means(*question)[:4], whole.means(*question), strict=False):
            np.testing.assert_allclose(first, second, rtol=1e-9)
    for made in (whole.everyone, whole.merged(np.array([0, 0]), ("all",))):
        assert made.means(*question).value[0] == pytest.approx(everyone)
    np.testing.assert_allclose(whole.shares().value, [0.3, 0.7], atol=0.03)
    of_group = whole.take(np.array([False, True])).means(*question)
    assert of_group.value[0] == whole.means(*question).value[1]
    deviations = whole.means(*question).deviations
    assert deviations is not None
    np.testing.assert_allclose(
        deviations.T @ deviations, np.diag(whole.means(*question).variance), atol=1e-15
    )


def covered(kind: str, tables: int) -> Iterator[tuple[bool, ...]]:
    """Whether intervals of accuracy, a gap and a sum of gaps contain the values of all labels."""
    names = "equal_opportunity_difference", "delta_eo"
    metrics = [find_metric(name) for name in names]
    for seed in range(tables):
        table = people(3000, seed)
        scores = {"calibrated": table["p"], "wrong": 1 - table["p"], "noise": table["p"].sample(
            frac=1, random_state=seed)}  # fmt: skip
        score = scores[kind].to_numpy()
        full, some = counts_of(table), counts_of(few(table, 150, seed), score)
        y, decision = full.grid()
        true, means = (c.everyone.means((y == decision) * 1.0) for c in (full, some))
        low, high = wilson_interval(means.value, means.effective)
        yield (bool(low[0] <= true.value[0] <= high[0]), *(
            bool(ends[0][0] <= gap.gap.of(gap.rates.mean)[0] <= ends[1][0])
            for metric in metrics
            for gap, made in [(compared(metric, c) for c in (full, some))]
            if gap and made
            for ends in [made.ends()]
        ))  # fmt: skip


@pytest.mark.parametrize("kind", ["calibrated", "wrong", "noise"])
def test_intervals_cover_whatever_the_scores_are_worth(kind: str) -> None:
    shares = np.mean(list(covered(kind, 100)), axis=0)
    assert shares.shape == (3,) and (shares >= 0.89).all(), shares
