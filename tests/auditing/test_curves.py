"""Threshold curves and calibration against the metrics and pandas."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve

import robust_fairness as rf
from robust_fairness import metrics
from robust_fairness.auditing.audit import audited
from robust_fairness.auditing.command import files_of
from robust_fairness.auditing.curves import CALIBRATION, KEPT, STEPS, THRESHOLDS, curves
from robust_fairness.auditing.door import check
from robust_fairness.auditing.predictions import Options
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.numbers.groups import Groups

GAPS = {
    "selected": metrics.demographic_parity_difference,
    "true_positive": metrics.equal_opportunity_difference,
    "gap": metrics.equalized_odds_difference,
}


@pytest.mark.parametrize(("digits", "weighted"), [(2, False), (2, True), (6, False)])
def test_a_curve_has_the_metrics_at_every_threshold(digits: int, weighted: bool) -> None:
    """Three groups with ties between scores and thresholds, one row without a group."""
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
    weight = rng.random(600) + 0.5 if weighted else None
    score = np.round(np.clip(0.3 * y + rng.normal(0.1 * group, 0.3, 600), 0, 1), digits)
    index = np.where(np.arange(600) == 5, -1, group)
    drawn = curves(y, score, {"abc": Groups.named(index, ("a", "b", "c"))}, weight)["abc"]
    if digits == 2:
        np.testing.assert_array_equal(drawn.threshold[:-1], np.unique(score))
    assert len(drawn.threshold) <= STEPS + 1
    assert drawn.threshold[0] == score.min() and drawn.threshold[-1] > score.max()
    known = index >= 0
    for place in range(0, len(drawn.threshold), 20):
        predicted = (score >= drawn.threshold[place]).astype(int)
        accuracy = np.average(predicted == y, weights=weight)
        assert drawn.accuracy[place] == pytest.approx(accuracy)
        arrays = {"sensitive_features": group[known]}
        if weight is not None:
            arrays["sample_weight"] = weight[known]
        for name, measure in GAPS.items():
            expected = measure(y[known], predicted[known], **arrays)
            assert getattr(drawn, name)[place] == pytest.approx(expected, abs=1e-12)
    assert drawn.gap[-1] == 0  # nobody is selected
    allowed = drawn.accuracy >= KEPT * drawn.accuracy.max()
    assert drawn.gap[drawn.fairest] == drawn.gap[allowed].min()


def test_a_group_without_a_class_has_no_curve() -> None:
    y = np.array([0, 1, 1, 1])
    groups = Groups.named(np.array([0, 0, 1, 1]), ("a", "b"))
    assert not curves(y, np.linspace(0, 1, 4), {"sex": groups})


LATE = {"y_true": "late", "y_pred": "p_w", "sensitive_features": ["sex"]}


def table(rows: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), rows)
    y = np.array([rng.choice(3, p=probabilities) for probabilities in p])
    return pd.DataFrame(
        {"y": np.array(list("uvw"))[y], "p_u": p[:, 0], "p_v": p[:, 1], "p_w": p[:, 2],
         "late": (y == 2).astype(int), "sex": rng.choice(["f", "m"], rows),
         "w": rng.integers(1, 3, rows)}
    )  # fmt: skip


def test_calibration_is_that_of_scikit_learn_with_wilsons_interval() -> None:
    rows = table()
    binary = rf.audit(rows, **LATE).calibration()
    several = rf.audit(
        rows, **LATE | {"y_true": "y", "y_pred": ["p_u", "p_v", "p_w"]}
    ).calibration()
    assert list(binary) == list(several) == list(CALIBRATION)
    assert set(binary["label"]) == {"1"} and set(several["label"]) == {"u", "v", "w"}
    pd.testing.assert_frame_equal(
        binary.drop(columns="label"),
        several[several["label"] == "w"].drop(columns="label").reset_index(drop=True),
    )
    for group in ("", "f", "m"):
        of_group = rows if not group else rows[rows["sex"] == group]
        observed, predicted = calibration_curve(of_group["late"], of_group["p_w"], n_bins=10)
        bins = binary[binary["group"] == group]
        np.testing.assert_allclose(bins["observed"], observed)
        np.testing.assert_allclose(bins["predicted"], predicted)
        low, high = wilson_interval(bins["observed"].to_numpy(), bins["n"].to_numpy())
        np.testing.assert_allclose(bins["low"], low, atol=1e-12)
        np.testing.assert_allclose(bins["high"], high, atol=1e-12)


def test_weights_of_calibration_are_repeated_rows_and_small_bins_are_hidden() -> None:
    rows = table()
    weighted = rf.audit(rows, **LATE, sample_weight="w").calibration()
    repeated = rf.audit(rows.loc[rows.index.repeat(rows["w"])], **LATE).calibration()
    for column in ("predicted", "observed"):
        np.testing.assert_allclose(weighted[column], repeated[column])
    assert rf.audit(rows, **LATE, suppress=40).calibration()["n"].min() >= 40


def test_tables_over_thresholds_have_every_attribute_and_need_scores() -> None:
    rows = table()
    thresholds = rf.audit(
        rows, y_true="late", y_pred="p_w", sensitive_features=["sex"]
    ).thresholds()
    assert list(thresholds) == list(THRESHOLDS) and set(thresholds["attribute"]) == {"sex"}
    classes = rows.assign(said=(rows["p_w"] > 0.5).astype(int))
    decided = rf.audit(classes, **LATE | {"y_pred": "said"})
    with pytest.raises(InputError, match="thresholds: need labels and scores"):
        decided.thresholds()
    with pytest.raises(InputError, match="calibration: needs probabilities"):
        decided.calibration()


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (Options("late", "p_w", ["sex"]), {"calibration", "thresholds"}),
        (Options("late", "p_w", ["sex"], prediction_is="score", threshold=0.4), {"thresholds"}),
        (Options("y", ["p_u", "p_v", "p_w"], ["sex"]), {"calibration"}),
    ],
)
def test_curves_are_those_that_the_predictions_have(options: Options, written: set[str]) -> None:
    rows = table()
    options = replace(options, metrics=("accuracy",))
    done = audited(check(rows, options), options, "rows")
    files = files_of(done, "rows", ["curves"])
    assert {
        name for name in ("calibration", "thresholds") if f"rows_{name}.csv" in files
    } == written


def test_calibration_in_the_large_has_a_gap_with_an_interval() -> None:
    rows = table().assign(p_w=lambda frame: 0.6 * frame["p_w"] + 0.2 * (frame["sex"] == "f"))
    values = rf.audit(
        rows, **LATE,
        metrics=["mean_calibration_error_by_group", "mean_calibration_error_difference"],
    ).to_frame().set_index(["metric", "group"])  # fmt: skip
    error = (rows["p_w"] - rows["late"]).groupby(rows["sex"])
    for group, mean in error.mean().items():
        row = values.loc["mean_calibration_error_by_group", group]
        assert row["value"] == pytest.approx(mean) and row["low"] < mean < row["high"]
    assert values.loc[("mean_calibration_error_by_group", "m"), "low"] < 0  # signed
    gap = values.loc[("mean_calibration_error_difference", "")]
    assert gap["value"] == pytest.approx(np.ptp(error.mean()))
    assert 0.1 < gap["low"] < gap["value"] < gap["high"] < 0.35
