"""Metrics as functions of rows, and of an audit's counts, against fairlearn and scikit-learn."""

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as scikit
from scipy.stats import binned_statistic

import robust_fairness as rf
from robust_fairness.metrics import find_metric
from tests.auditing.tables import audit


def calibration_error(y, score, sample_weight=None):
    """By scipy: weighted distances of means in ten bins."""
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
    sums = binned_statistic(score, weight * (y - score), "sum", 10, (0, 1)).statistic
    return np.abs(sums).sum() / weight.sum()


DECISIONS = {
    "accuracy": scikit.accuracy_score, "balanced_accuracy": scikit.balanced_accuracy_score,
    "precision": scikit.precision_score, "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": fairlearn.true_positive_rate,
    "true_negative_rate": fairlearn.true_negative_rate,
    "false_positive_rate": fairlearn.false_positive_rate,
    "false_negative_rate": fairlearn.false_negative_rate,
}  # fmt: skip
SCORES = {
    "roc_auc": scikit.roc_auc_score, "brier_score": scikit.brier_score_loss,
    "log_loss": scikit.log_loss, "expected_calibration_error": calibration_error,
}  # fmt: skip
NUMBERS = {
    "mean_squared_error": scikit.mean_squared_error,
    "mean_absolute_error": scikit.mean_absolute_error,
}
# Columns of labels and predictions, and the quantities of them.
KINDS = {
    "decisions": ("y", "said", DECISIONS), "scores": ("y", "p", SCORES),
    "numbers": ("z", "p", NUMBERS),
}  # fmt: skip
FORMS = {
    "{}": lambda frame: frame.overall, "{}_difference": lambda frame: frame.difference(),
    "{}_ratio": lambda frame: frame.ratio(), "mean_group_{}": lambda frame: frame.by_group.mean(),
    "{}_by_group": lambda frame: {str(group): one for group, one in frame.by_group.items()},
}  # fmt: skip
MEASURES = {
    f"{notion}_{how}": getattr(fairlearn, f"{notion}_{how}")
    for notion in ("demographic_parity", "equal_opportunity", "equalized_odds")
    for how in ("difference", "ratio")
}
OF_TWO = {
    "disparate_impact": fairlearn.demographic_parity_ratio,
    "delta_dp": fairlearn.demographic_parity_difference,
    "delta_eo": lambda *arrays, **options: (
        2 * fairlearn.equalized_odds_difference(*arrays, agg="mean", **options)
    ),
    "delta_eopp": fairlearn.true_negative_rate_difference,
}


def drawn(groups: int) -> pd.DataFrame:
    rng = np.random.default_rng(groups)
    rows = 80 * groups
    group, y = np.arange(rows) % groups, rng.integers(0, 2, rows)
    p = 0.5 + 0.25 * (y - 0.5) + 0.1 * group + 0.15 * rng.standard_normal(rows)
    p = p.clip(0.01, 0.98).round(2) + 0.005  # with ties, none of them at the edge of a bin
    return pd.DataFrame(
        {"y": y, "p": p, "said": (p >= 0.6).astype(int), "z": y + rng.random(rows),
         "g": np.array(list("abcde"))[group], "w": rng.random(rows) + 0.1}
    )  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_fairlearn_and_scikit_learn(kind, groups, weighted):
    table, (y, prediction, quantities) = drawn(groups), KINDS[kind]
    weight = {"sample_weight": table["w"]} if weighted else {}
    arrays, by = (table[y], table[prediction]), {"sensitive_features": table["g"]}
    expected = {}
    for quantity, function in quantities.items():
        frame = fairlearn.MetricFrame(
            metrics=function, y_true=arrays[0], y_pred=arrays[1], **by, sample_params=weight
        )
        expected |= {form.format(quantity): of(frame) for form, of in FORMS.items()}
        worst = f"worst_group_{quantity}"
        higher = find_metric(worst).better == "higher"
        expected[worst] = frame.group_min() if higher else frame.group_max()
    if kind == "decisions":
        measures = MEASURES | (OF_TWO if groups == 2 else {})
        expected |= {name: of(*arrays, **by, **weight) for name, of in measures.items()}
    rows = audit(
        table, y, prediction, ["g"], metrics=[*expected], continuous=kind == "numbers",
        sample_weight="w" if weighted else None,
    ).set_index(["metric", "group"])["value"]  # fmt: skip
    for name, value in expected.items():
        options = by if "sensitive_features" in find_metric(name).needs else {}
        ours = getattr(rf.metrics, name)(*arrays, **options, **weight)
        assert ours == pytest.approx(value, abs=1e-12), name
        of_audit = rows.loc[name]
        whole = of_audit.to_dict() if isinstance(value, dict) else of_audit[""]
        assert whole == pytest.approx(value, abs=1e-12), name


def test_worst_group_and_worst_subgroup_are_two_measures():
    table = drawn(3)
    right = table["y"] == table["said"]
    for name, by in {"worst_group_accuracy": ["g"], "worst_subgroup_accuracy": ["g", "y"]}.items():
        value = getattr(rf.metrics, name)(table["y"], table["said"], sensitive_features=table["g"])
        assert value == pytest.approx(right.groupby([table[key] for key in by]).mean().min())
