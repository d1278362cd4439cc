"""Quantities, aggregations and measures against values of fairlearn 0.15 and scikit-learn 1.9."""

import json
from pathlib import Path

import fairlearn.metrics as oracle
import numpy as np
import pytest

from robust_fairness.metrics import fairness, find_metric
from robust_fairness.metrics.classification import accuracy
from robust_fairness.numbers.groups import Groups, as_groups

GOLDEN = json.loads(Path(__file__).with_name("fairlearn_golden.json").read_text())
SCORES = {
    "roc_auc": "roc_auc",
    "brier_score": "brier",
    "log_loss": "log_loss",
    "expected_calibration_error": "ece_equal_width_10",
    "expected_calibration_error(bins=15)": "ece_equal_width_15",
}
MEASURES = [
    f"{notion}_{how}"
    for notion in ("demographic_parity", "equalized_odds", "equal_opportunity")
    for how in ("difference", "ratio")
]


@pytest.fixture(scope="module")
def arrays() -> dict:
    """300 rows of three groups."""
    inputs = {name: np.array(values) for name, values in GOLDEN["inputs"].items()}
    score = inputs["p_thousandths"] / 1000
    return {
        "y_true": inputs["y"],
        "y_score": score,
        "y_pred": (score >= 0.5).astype(int),
        "sensitive_features": Groups.named(inputs["group"], ("a", "b", "c")),
        "classes": ("no", "yes"),
    }


def values(name: str, arrays: dict) -> list[float | None]:
    return [score.value for score in find_metric(name).scores(arrays).values()]


@pytest.mark.parametrize("name", GOLDEN["label_metrics"])
def test_rates_are_those_of_scikit_learn_by_fairlearns_frame(name, arrays):
    golden = GOLDEN["label_metrics"][name]
    assert values(name, arrays) == pytest.approx([golden["overall"]], abs=1e-9)
    assert values(f"{name}_by_group", arrays) == pytest.approx(golden["by_group"], abs=1e-9)
    for how in ("difference", "ratio"):
        expected = [golden[f"{how}_between_groups"]]
        assert values(f"{name}_{how}", arrays) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_metrics_of_probabilities_overall_and_by_group(name, arrays):
    golden = GOLDEN["score_metrics"][SCORES[name]]
    plain, bracket, options = name.partition("(")
    assert values(name, arrays) == pytest.approx([golden["overall"]], abs=1e-9)
    by_groups = values(f"{plain}_by_group{bracket}{options}", arrays)
    assert by_groups == pytest.approx(golden["by_group"], abs=1e-9)


@pytest.mark.parametrize("name", MEASURES)
def test_measures_of_three_groups_are_fairlearns(name, arrays):
    expected = [GOLDEN["fairness"][f"{name}|between_groups"]]
    assert values(name, arrays) == pytest.approx(expected, abs=1e-9)


def test_worst_group_and_worst_subgroup_are_two_measures(arrays):
    golden = GOLDEN["worst_group_accuracy"]
    worst = values("worst_group_accuracy", arrays), values("worst_subgroup_accuracy", arrays)
    assert worst[0] == pytest.approx([golden["over_groups"]])
    assert worst[1] == pytest.approx([golden["over_group_x_class"]])


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_measures_of_any_number_of_groups_equal_fairlearn(groups):
    """Where every group has rows of both classes; with weights, too."""
    rng = np.random.default_rng(groups)
    group = np.concatenate([np.arange(groups).repeat(2), rng.integers(0, groups, 60)])
    y = np.concatenate([np.tile([0, 1], groups), rng.integers(0, 2, 60)])
    p = rng.integers(0, 2, len(y))
    for weight in (None, rng.random(len(y)) + 0.1):
        of = {"sensitive_features": group, "sample_weight": weight}
        for name in MEASURES[:4]:
            value = getattr(fairness, name)(y, p, **of).value
            expected = getattr(oracle, name)(y, p, **of)
            assert value is None if np.isnan(expected) else value == pytest.approx(expected)
        frame = oracle.MetricFrame(
            metrics=accuracy,
            y_true=y,
            y_pred=p,
            sensitive_features=group,
            sample_params=None if weight is None else {"sample_weight": weight},
        )
        arrays = {"y_true": y, "y_pred": p, "sensitive_features": as_groups(group)}
        arrays |= {} if weight is None else {"sample_weight": weight}
        value = find_metric("accuracy_difference").scores(arrays)[""].value
        assert value == pytest.approx(frame.difference())
