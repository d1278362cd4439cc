"""The registered FairCOCCO metrics: what they are called with, and what they refuse."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench.maths import faircocco
from robust_fairness.bench.maths.cross_covariance import pivots
from robust_fairness.bench.maths.faircocco import (
    _REMEMBERED,
    MOST_REMEMBERED,
    rows_of,
    variables_of,
)
from robust_fairness.bench.metrics.faircocco import (
    faircocco_cal,
    faircocco_dp,
    faircocco_eo,
    faircocco_eo_p_value,
    hsic_dp_p_value,
    hsic_eo_p_value,
)
from robust_fairness.bench.training.evaluation import metrics_of
from robust_fairness.core.draws import subset
from robust_fairness.metrics import evaluate, find_metric
from tests.maths.test_cross_covariance import exact_score
from tests.training.conftest import make_samples

CLASSES = ("no", "yes")


def make(n=200, seed=0):
    """Logits that follow a group, given the class; columns of the group and of the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    group = (rng.random(n) < 0.3 + 0.3 * y).astype(int)
    logit = y + group + rng.normal(size=n)
    return {
        "outputs": np.column_stack([np.zeros(n), logit]),
        "classes": CLASSES,
        "sensitive_columns": np.eye(2)[group],
        "conditioning_columns": np.eye(2)[y],
    }


@pytest.mark.parametrize(
    ("notion", "function"), [("dp", faircocco_dp), ("eo", faircocco_eo), ("cal", faircocco_cal)]
)
def test_score_is_the_exact_one_of_probabilities(notion, function):
    """The logits of two classes are one probability."""
    rows = make()
    probability = 1 / (1 + np.exp(-rows["outputs"][:, 1:]))
    columns = (probability, rows["sensitive_columns"], rows["conditioning_columns"])
    variables = variables_of(notion, *(torch.from_numpy(array) for array in columns))
    assert function(**rows).value == pytest.approx(exact_score(variables).item(), rel=1e-3)
    assert function(**rows).n == 200


def test_pivots_of_equal_values_are_found_once(monkeypatch):
    """Of prediction, attribute, outcome and the two extended variables, for all four metrics."""
    computed = []
    monkeypatch.setattr(faircocco, "pivots", lambda v: computed.append(v) or pivots(v))
    _REMEMBERED.clear()
    rows = make(seed=5)
    metrics = (faircocco_dp, faircocco_eo, faircocco_cal, faircocco_eo_p_value)
    once = [metric(**rows) for metric in metrics]
    assert len(computed) == 5
    assert [metric(**rows) for metric in metrics] == once
    assert len(computed) == 5
    for seed in range(MOST_REMEMBERED):
        faircocco_dp(**make(20, seed))
    assert len(_REMEMBERED) == MOST_REMEMBERED
    assert [metric(**rows) for metric in metrics] == once
    assert len(computed) > 5 + MOST_REMEMBERED


def test_more_rows_than_asked_for_are_cut_to_a_fixed_subset():
    """The same rows each time, no row twice."""
    rows = make(300)
    cut = subset(300, 100)
    some = {k: v if k == "classes" else v[cut] for k, v in rows.items()}
    assert faircocco_eo(**rows, rows=100.0) == faircocco_eo(**some)
    assert len(set(cut)) == 100
    assert (subset(300, 100) == cut).all()
    assert (subset(50, 100) == np.arange(50)).all()


@pytest.mark.parametrize(
    ("name", "change", "note"),
    [
        ("sensitive_columns", np.ones_like, "the attribute is constant"),
        ("outputs", np.zeros_like, "the prediction is constant"),
        ("outputs", lambda v: v * np.nan, "a value of the prediction is not finite"),
        ("conditioning_columns", lambda v: v + np.inf, "a value of the outcome is not finite"),
    ],
)
def test_what_has_no_score_says_why(name, change, note):
    """A missing value with its reason, never NaN."""
    rows = make()
    rows[name] = change(rows[name])
    for function in (faircocco_eo, faircocco_eo_p_value):
        score = function(**rows)
        assert score.value is None
        assert score.note == note


def test_three_rows_are_too_few():
    """And so are three rows asked for."""
    assert faircocco_dp(**make(3)).note == "3 rows, defined for 4 and more"
    assert faircocco_dp(**make(30), rows=3.0).value is None


def test_a_constant_outcome_conditions_on_nothing_but_cannot_be_calibrated():
    """Equalised odds within one class is demographic parity there."""
    rows = make()
    rows["conditioning_columns"] = np.ones_like(rows["conditioning_columns"])
    assert faircocco_eo(**rows).value == pytest.approx(faircocco_dp(**rows).value, rel=0.2)
    assert faircocco_cal(**rows).note == "the outcome is constant"


def test_every_attribute_and_the_sensitive_ones_together_are_scored():
    """Categories and numbers; rows with a missing value are left out."""
    samples = make_samples(rows=120)
    frame = samples.attributes.assign(
        age=np.random.default_rng(0).normal(size=120), only=pd.Categorical(["x"] * 120)
    )
    frame.loc[:9, "age"] = np.nan
    samples = dataclasses.replace(samples, attributes=frame, sensitive=("kind", "age"))
    outputs = np.random.default_rng(1).normal(size=(120, 2))
    scores = {row["attribute"]: row for row in evaluate(["faircocco_dp"], samples, outputs)}
    assert set(scores) == {"kind", "age", "only", "kind & age"}
    assert scores["kind & age"]["n"] == scores["age"]["n"] == 110
    assert scores["kind"]["n"] == 120
    assert scores["only"]["note"] == "the attribute is constant"


def test_the_attribute_in_the_place_of_the_outcome_is_conditioned_on():
    """It is no attribute to be scored then."""
    samples = make_samples(rows=120)
    dose = np.random.default_rng(0).normal(size=120)
    frame = samples.attributes.assign(dose=dose)
    samples = dataclasses.replace(samples, attributes=frame, conditioning="dose")
    logits = dose[:, None] * [0, 2] + np.random.default_rng(1).normal(size=(120, 2))
    (row,) = evaluate(["faircocco_eo"], samples, logits)
    columns = np.eye(2)[samples.attributes["kind"].cat.codes]
    expected = faircocco_eo(logits, ("a", "b"), columns, dose[:, None])
    assert row["attribute"] == "kind"
    assert row["value"] == expected.value


def test_p_values_are_computed_on_the_unshifted_set_only():
    """A metric may say so."""
    names = ["accuracy", "faircocco_eo_p_value(permutations=99)"]
    assert metrics_of(names, "") == names
    assert metrics_of(names, "noise_3") == ["accuracy"]
    assert find_metric(names[1]).unshifted_only


def test_p_value_is_small_for_a_prediction_that_follows_the_group():
    """And not for one that follows the class only."""
    rows = make()
    assert faircocco_eo_p_value(**rows, permutations=99.0).value == 0.01
    rng = np.random.default_rng(1)
    logit = rows["conditioning_columns"][:, 1] + rng.normal(size=200)
    rows["outputs"] = np.column_stack([np.zeros(200), logit])
    assert faircocco_eo_p_value(**rows, permutations=99.0).value > 0.05


def test_rows_are_exchanged_within_classes_however_few_there_are():
    """Ten classes among thirty rows are still the strata: a row alone in its class stays."""
    rng = np.random.default_rng(0)
    y = np.arange(10).repeat(3)
    rows = {
        "outputs": rng.normal(size=(30, 2)),
        "classes": CLASSES,
        "sensitive_columns": rng.normal(size=(30, 1)),
        "conditioning_columns": np.eye(10)[y],
    }
    assert (rows_of(*rows.values(), 99).strata("eo") == y).all()
    rows["conditioning_columns"] = np.eye(30)
    assert faircocco_eo_p_value(**rows, permutations=19.0).value == 1


def test_hsic_finds_what_follows_the_group_and_needs_classes_to_condition_on():
    """Under equalised odds; demographic parity has no condition."""
    rows = make()
    assert hsic_eo_p_value(**rows, permutations=99.0).value == 0.01
    assert hsic_dp_p_value(**rows, permutations=99.0).value == 0.01
    rng = np.random.default_rng(1)
    logit = rows["conditioning_columns"][:, 1] + rng.normal(size=200)
    rows["outputs"] = np.column_stack([np.zeros(200), logit])
    assert hsic_eo_p_value(**rows, permutations=99.0).value > 0.05
    rows["conditioning_columns"] = rng.normal(size=(200, 1))
    score = hsic_eo_p_value(**rows)
    assert (score.value, score.note) == (None, "the outcome is a number, defined for classes")
    assert hsic_dp_p_value(**rows, permutations=99.0).value is not None
