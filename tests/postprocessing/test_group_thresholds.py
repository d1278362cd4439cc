"""Thresholds of groups: the golden optima of error-parity 0.3.12, and decisions in a cell."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness import metrics
from robust_fairness.bench import training
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.evaluation import DECISION
from robust_fairness.numbers.groups import Groups, groups_of
from tests.training.conftest import make_cell, make_samples

HERE = Path(__file__).parent
ROWS = pd.read_csv(HERE / "rows.csv")
SOLUTIONS = json.loads((HERE / "solutions.json").read_text())
Y, SCORE = ROWS["y"].to_numpy(), ROWS["score"].to_numpy() / 999
GROUP = ROWS["group"].to_numpy()
GROUPS = Groups.named(GROUP, "012")


def rule_of(name: str, tolerance: float, **options):
    rule = find("postprocessing", name)
    return rule(rule.Parameters(tolerance=tolerance, **options))


def group_rates(positive: np.ndarray, label: int) -> np.ndarray:
    """Share of class 1 among the rows of a class, by group."""
    by_group = pd.Series(positive[label == Y]).groupby(GROUP[label == Y])
    return by_group.mean().to_numpy()


def expected_accuracy(positive: np.ndarray, y: np.ndarray = Y) -> float:
    """Mean over rows of the probability that the decision is right."""
    return np.where(y == 1, positive, 1 - positive).mean()


@pytest.mark.parametrize("name", SOLUTIONS)
@pytest.mark.parametrize("tolerance", ["0", "0.02", "0.05", "0.1", "1"])
def test_the_optimum_is_the_golden_one(name, tolerance):
    """Expected accuracy and gap of the decisions on the rows that they are fitted on."""
    golden = SOLUTIONS[name][tolerance]
    positive = rule_of(name, float(tolerance)).fit(Y, SCORE, GROUPS)(SCORE, GROUPS)
    assert expected_accuracy(positive) == pytest.approx(golden["accuracy"], abs=1e-6)
    rates_of = {"group_fpr": group_rates(positive, 0), "group_tpr": group_rates(positive, 1)}
    for rate, values in rates_of.items():
        if rate in golden:
            np.testing.assert_allclose(values, golden[rate], atol=1e-5)
    selected = pd.Series(positive).groupby(GROUP).mean().to_numpy()
    bounded = {
        "equalized_odds": tuple(rates_of.values()),
        "true_positive_rate_parity": (rates_of["group_tpr"],),
        "false_positive_rate_parity": (rates_of["group_fpr"],),
        "demographic_parity": (selected,),
    }[name]
    assert max(np.ptp(rates) for rates in bounded) <= float(tolerance) + 1e-6


def test_a_score_that_says_nothing_gives_a_constant_decision():
    """All points are on the diagonal: the larger class is decided for everyone."""
    positive = rule_of("equalized_odds", 0).fit(Y, np.full(len(Y), 0.3), GROUPS)(SCORE, GROUPS)
    np.testing.assert_allclose(positive, float(Y.mean() > 0.5), atol=1e-9)


def test_groups_are_known_by_their_values():
    """Codes of other rows may differ, joined names may be equal; other groups are refused."""
    fitted = rule_of("equalized_odds", 0.05).fit(Y, SCORE, GROUPS)
    positive = fitted(SCORE, GROUPS)
    turned = Groups.named(2 - GROUP, "210")
    np.testing.assert_array_equal(fitted(SCORE, turned), positive)
    pairs = (("a & b", "c"), ("a", "b & c"), ("x", "y"))
    twin = rule_of("equalized_odds", 0.05).fit(Y, SCORE, Groups(GROUP, pairs))
    np.testing.assert_array_equal(twin(SCORE, Groups(GROUP, pairs)), positive)
    with pytest.raises(InputError, match="group 7 has no validation rows, allowed: 0, 1, 2"):
        fitted(SCORE[:2], Groups.named(np.array([0, 1]), "07"))
    with pytest.raises(InputError, match="rows without a group have no validation rows"):
        fitted(SCORE[:2], Groups.named(np.array([0, -1]), "0"))


RULES = ["demographic_parity", "equalized_odds", "true_positive_rate_parity",
         "false_positive_rate_parity"]  # fmt: skip


@pytest.mark.parametrize("common", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_a_weight_is_a_number_of_equal_rows(name, common):
    weight = np.random.default_rng(0).integers(0, 4, len(Y))
    rule = rule_of(name, 0.02, common=common)
    weighted = rule.fit(Y, SCORE, GROUPS, weight.astype(float))(SCORE, GROUPS)
    rows = np.repeat(np.arange(len(Y)), weight)
    repeated = rule.fit(Y[rows], SCORE[rows], GROUPS.take(rows))(SCORE, GROUPS)
    right = [np.where(Y == 1, positive, 1 - positive) for positive in (weighted, repeated)]
    assert weight @ right[0] == pytest.approx(weight @ right[1], rel=1e-6)


def mixtures(y: np.ndarray, score: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Right decisions and selected shares by group of every threshold, ``[threshold, ...]``."""
    decided = score[None] >= np.append(np.inf, np.unique(score))[:, None]
    right = (decided == y).sum(1)
    return np.stack([right, *(decided[:, rows].mean(1) for rows in groups)], axis=1)


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.3])
def test_small_tables_against_all_mixtures_of_two_thresholds(tolerance):
    """Demographic parity of two groups: the optimum of a line or a plane needs no third one."""
    shares = np.linspace(0, 1, 401)[:, None, None]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y, group = rng.integers(0, 2, 24), np.repeat([0, 1], 12)
        y[[0, 1, 12, 13]] = [0, 1, 0, 1]
        score = (0.3 * y + 0.4 * group + rng.random(24)).round(1)
        rule = {common: rule_of("demographic_parity", tolerance, common=common)
                for common in (False, True)}  # fmt: skip
        groups = Groups.named(group, "ab")
        right = {
            common: 24 * expected_accuracy(fit.fit(y, score, groups)(score, groups), y)
            for common, fit in rule.items()
        }
        points = mixtures(y, score, [group == 0, group == 1])
        pairs = shares[..., None] * points[:, None] + (1 - shares[..., None]) * points[None]
        kept = np.abs(pairs[..., 1] - pairs[..., 2]) <= tolerance + 1e-12
        best = pairs[..., 0][kept].max()
        assert best - 1e-9 <= right[True] <= best + 0.1  # the grid of shares misses a little
        best_at = []  # most right decisions of a group at each selected share
        for rows in (group == 0, group == 1):
            alone = mixtures(y[rows], score[rows], [np.ones(12, bool)])
            both = shares[..., None] * alone[:, None] + (1 - shares[..., None]) * alone[None]
            at = np.full(241, -np.inf)
            np.maximum.at(at, (both[..., 1].round(9) * 240).round().astype(int), both[..., 0])
            best_at.append(at)
        near = np.abs(np.subtract.outer(np.arange(241), np.arange(241))) <= tolerance * 240 + 1e-9
        best = np.add.outer(*best_at)[near].max()
        assert right[False] == pytest.approx(best, abs=0.1)
        assert right[False] >= right[True] - 1e-9


@pytest.mark.parametrize("name", RULES)
def test_a_common_mixture_needs_no_groups_and_keeps_the_tolerance(name):
    rule = rule_of(name, 0.03, common=True).fit(Y, SCORE, GROUPS)
    nobody = Groups(np.full(len(Y), -1), ())
    positive = rule(SCORE, nobody)
    order = np.argsort(SCORE)
    assert (np.diff(positive[order]) >= 0).all()  # a function of the score alone
    rates = {
        "demographic_parity": [pd.Series(positive).groupby(GROUP).mean()],
        "equalized_odds": [group_rates(positive, 0), group_rates(positive, 1)],
        "true_positive_rate_parity": [group_rates(positive, 1)],
        "false_positive_rate_parity": [group_rates(positive, 0)],
    }[name]
    assert max(np.ptp(rate) for rate in rates) <= 0.03 + 1e-6
    alone = rule_of(name, 0.03).fit(Y, SCORE, GROUPS)(SCORE, GROUPS)
    constant = max(Y.mean(), 1 - Y.mean())
    assert constant - 1e-9 <= expected_accuracy(positive) <= expected_accuracy(alone) + 1e-9


def random_decisions(rows: int = 400) -> tuple[Samples, np.ndarray]:
    rng = np.random.default_rng(3)
    return make_samples(rows), rng.random(rows)


def test_random_decisions_are_scored_by_their_expectation():
    """The mean over 2,000 draws is within four of its standard errors."""
    samples, positive = random_decisions()
    linear = [
        "accuracy", "accuracy_by_group", "selection_rate", "true_positive_rate_by_group",
        "false_positive_rate_by_group", "balanced_accuracy",
    ]  # fmt: skip
    nothing = np.zeros((len(samples), 2), dtype=np.float32)
    rows = metrics.evaluate(linear, samples, nothing, {DECISION: positive})
    draws = np.random.default_rng(0).random((2000, len(samples))) < positive
    for row in rows:
        chosen = slice(None)
        if row["group"]:
            chosen = (samples.attributes["kind"] == row["group"]).to_numpy()
        y, drawn = samples.y[chosen], draws[:, chosen]
        per_draw = {
            "accuracy": (drawn == y).mean(1),
            "selection_rate": drawn.mean(1),
            "true_positive_rate": drawn[:, y == 1].mean(1),
            "false_positive_rate": drawn[:, y == 0].mean(1),
            "balanced_accuracy": (drawn[:, y == 1].mean(1) + 1 - drawn[:, y == 0].mean(1)) / 2,
        }[row["metric"].replace("_by_group", "")]
        error = per_draw.std() / np.sqrt(len(per_draw))
        assert row["value"] == pytest.approx(per_draw.mean(), abs=4 * error)
    assert rows[0]["n"] == len(samples)


def test_certain_decisions_have_the_scores_of_classes():
    """Every metric that applies to both; those of scores say why they do not."""
    samples, positive = random_decisions()
    certain = (positive > 0.5).astype(np.float64)
    outputs = np.stack([1 - certain, certain], axis=1).astype(np.float32)
    chosen = [
        "accuracy", "worst_group_accuracy", "demographic_parity_difference", "delta_dp",
        "equalized_odds_difference", "equal_opportunity_difference", "delta_eo", "delta_eopp",
        "disparate_impact", "worst_subgroup_accuracy",
    ]  # fmt: skip
    plain = pd.DataFrame(metrics.evaluate(chosen, samples, outputs))
    decided = pd.DataFrame(metrics.evaluate(chosen, samples, outputs, {DECISION: certain}))
    np.testing.assert_allclose(decided["value"], plain["value"], rtol=1e-12)
    assert decided["n"].tolist() == plain["n"].tolist()
    (row,) = metrics.evaluate(["roc_auc"], samples, outputs, {DECISION: certain})
    assert row["note"] == "not applicable: a metric of scores, predictions are decisions"


@pytest.mark.parametrize("name", names("postprocessing"))
def test_a_cell_is_post_processed(name):
    """The rule of the validation rows of each split decides on its test rows."""
    samples = make_samples(600)
    named = {"name": name, "tolerance": 0.02}
    fields = {"metrics": ("accuracy", "delta_er"), "postprocessing": named}
    cell = make_cell(seeds=(0, 1), fields=fields)
    both = [cell.model_copy(update={"postprocessing": None}), cell]
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    plain, decided = (training.predict(samples, fitted, chosen, settings, {}) for settings in both)
    rule = rule_of(name, 0.02)
    for before, after, val in zip(plain, decided, validation, strict=True):
        groups = groups_of(samples.attributes, ["kind"])

        def score(prediction):
            logits = prediction.outputs.astype(np.float64)
            return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))

        fit = rule.fit(samples.y[val.rows], score(val), groups.take(val.rows))
        expected = fit(score(before), groups.take(before.rows))
        np.testing.assert_allclose(after.positive, expected, atol=1e-12)
    table = training.evaluate(samples, decided, chosen, cell, {})
    (accuracy,) = table[(table["metric"] == "accuracy") & (table["seed"] == 0)]["value"]
    y = samples.y[decided[0].rows]
    assert accuracy == pytest.approx(expected_accuracy(decided[0].positive, y))
