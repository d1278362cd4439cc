"""Thresholds of groups: the golden optima of error-parity 0.3.12, and decisions in a cell."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness import metrics, training
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.metrics.evaluation import DECISION
from robust_fairness.samples import Samples
from tests.training.conftest import make_cell, make_samples

HERE = Path(__file__).parent
ROWS = pd.read_csv(HERE / "rows.csv")
SOLUTIONS = json.loads((HERE / "solutions.json").read_text())
Y, SCORE = ROWS["y"].to_numpy(), ROWS["score"].to_numpy() / 999
GROUP = ROWS["group"].astype(str).to_numpy()


def rule_of(name: str, tolerance: float):
    rule = find("postprocessing", name)
    return rule(rule.Parameters(tolerance=tolerance))


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
    positive = rule_of(name, float(tolerance)).fit(Y, SCORE, GROUP)(SCORE, GROUP)
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


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        ("equalized_odds", 0.7286615143),
        ("true_positive_rate_parity", 0.81172808333),
        ("false_positive_rate_parity", 0.82691695238),
        ("demographic_parity", 0.80707415584),
    ],
)
def test_without_tolerance_it_is_fairlearns_threshold_optimizer(name, accuracy):
    """Of fairlearn 0.15.0, whose grid of 1,000 rates misses the optimum by up to 2e-5."""
    positive = rule_of(name, 0).fit(Y, SCORE, GROUP)(SCORE, GROUP)
    assert accuracy <= expected_accuracy(positive) + 1e-9
    assert expected_accuracy(positive) == pytest.approx(accuracy, abs=3e-5)


def test_a_score_that_says_nothing_gives_a_constant_decision():
    """All points are on the diagonal: the larger class is decided for everyone."""
    positive = rule_of("equalized_odds", 0).fit(Y, np.full(len(Y), 0.3), GROUP)(SCORE, GROUP)
    np.testing.assert_allclose(positive, float(Y.mean() > 0.5), atol=1e-9)


def test_groups_without_validation_rows_are_refused():
    fitted = rule_of("equalized_odds", 0.05).fit(Y, SCORE, GROUP)
    with pytest.raises(InputError, match="group 7 has no validation rows, allowed: 0, 1, 2"):
        fitted(SCORE[:2], np.array(["0", "7"]))


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
        group = samples.attributes["kind"].astype(str).to_numpy()

        def score(prediction):
            logits = prediction.outputs.astype(np.float64)
            return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))

        fit = rule.fit(samples.y[val.rows], score(val), group[val.rows])
        expected = fit(score(before), group[before.rows])
        np.testing.assert_allclose(after.positive, expected, atol=1e-12)
    table = training.evaluate(samples, decided, chosen, cell, {})
    (accuracy,) = table[(table["metric"] == "accuracy") & (table["seed"] == 0)]["value"]
    y = samples.y[decided[0].rows]
    assert accuracy == pytest.approx(expected_accuracy(decided[0].positive, y))
