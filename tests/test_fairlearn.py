"""Against fairlearn and scikit-learn: weighted cases with weights of 0, and fairlearn's own tests.

fairlearn's packages lack its tests. To run them, take ``test/unit/metrics`` of its repository at
0.15 and name the folder that has ``test`` in it: ``FAIRLEARN_SOURCE=folder pytest -m slow``.
"""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from sklearn import metrics as scikit

import robust_fairness as rf
from robust_fairness.core.errors import InputError

SOURCE = os.environ.get("FAIRLEARN_SOURCE", "")
TESTS = ("test_base_metrics", "test_fairness_metrics", "test_generated_metrics",
         "test_selection_rate")  # fmt: skip
LEAST = 87
UNDEFINED = "undefined here, 0 there: without a positive (negative) row there is no such rate"
SCALARS = "one value per row is needed, as in all other functions"
# Tests that do not pass, with the reason, by the beginning of their names.
DIFFERENT = {
    "test_base_metrics.TestSingleValueArrays": UNDEFINED,
    "test_base_metrics.TestCount": "count is not offered: n is given beside every value",
    "test_base_metrics.TestGetLabelsForConfusionMatrix": "fairlearn's internals",
    "test_generated_metrics.test_generated_metrics_smoke[f1_score_group_min]": "F1 is not offered",
    "test_selection_rate.test_selection_rate_empty": "no rows are an error with another text",
    "test_selection_rate.test_selection_rate_single_element[1-1-1]": SCALARS,
    "test_selection_rate.test_selection_rate_single_element[0-0-0]": SCALARS,
    "test_selection_rate.test_selection_rate_single_element[0-1-1]": SCALARS,
    "test_selection_rate.test_selection_rate_single_element[1-0-0]": SCALARS,
    "test_selection_rate.test_selection_rate_single_element[False-False-0]": SCALARS,
    "test_selection_rate.test_selection_rate_single_element[True-True-1]": SCALARS,
}


@pytest.mark.slow
@pytest.mark.skipif(not SOURCE, reason="FAIRLEARN_SOURCE names no folder of fairlearn's sources")
def test_fairlearns_own_tests_pass_but_those_that_are_listed(tmp_path):
    folder, here = Path(SOURCE) / "test" / "unit" / "metrics", Path(__file__).parent
    report = tmp_path / "report.xml"
    paths = [str(folder / f"{name}.py") for name in TESTS]
    options = ["-q", "-p", "fairlearn_adapter", "-p", "no:cacheprovider", f"--rootdir={SOURCE}"]
    command = [sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *paths]
    path = os.pathsep.join(filter(None, [str(here), os.environ.get("PYTHONPATH", "")]))
    subprocess.run(command, cwd=SOURCE, env={**os.environ, "PYTHONPATH": path}, check=False)
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - written by pytest
    failed = {
        f"{case.attrib['classname']}.{case.attrib['name']}".removeprefix("test.unit.metrics."): len(
            case
        )
        > 0
        for case in cases
    }
    listed = {name for name in failed if name.startswith(tuple(DIFFERENT))}
    assert {name for name, wrong in failed.items() if wrong} <= listed
    assert sum(not wrong for wrong in failed.values()) >= LEAST


QUANTITIES = {
    "accuracy": scikit.accuracy_score,
    "balanced_accuracy": scikit.balanced_accuracy_score,
    "selection_rate": fairlearn.selection_rate,
    "true_positive_rate": scikit.recall_score,
    "precision": scikit.precision_score,
}
AGGREGATIONS = {
    "{}_difference": lambda frame: frame.difference(),
    "{}_ratio": lambda frame: frame.ratio(),
    "worst_group_{}": lambda frame: frame.group_min(),
    "mean_group_{}": lambda frame: frame.by_group.mean(),
}


def weighted_case(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of three groups whose weights are 0 at random, often for all rows of a class."""
    rng = np.random.default_rng(seed)
    n = 36
    rows = pd.DataFrame(
        {"y": rng.integers(0, 2, n), "p": rng.integers(0, 2, n), "g": rng.integers(0, 3, n)}
    )
    weight = rng.integers(0, 3, n).astype(float)
    for _ in range(2):
        of_class = (rows["g"] == rng.integers(3)) & (rows["y"] == rng.integers(2))
        weight[of_class] = 0
    return rows, weight


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", QUANTITIES)
def test_weights_of_0_are_no_rows(name):
    """The values of fairlearn and scikit-learn where they are defined, and never NaN elsewhere.

    A mean of no weight is undefined here; theirs is 0, NaN or the value of another group.
    """
    defined = undefined = 0
    for seed in range(60):
        rows, weight = weighted_case(seed)
        arrays = {"y_true": rows["y"], "y_pred": rows["p"]}
        some = weight > 0
        left = {key: values[some].to_numpy() for key, values in arrays.items()}
        frame = fairlearn.MetricFrame(
            metrics=QUANTITIES[name], **left, sensitive_features=rows["g"][some].to_numpy(),
            sample_params={"sample_weight": weight[some]},
        )  # fmt: skip
        theirs = {str(group): value for group, value in frame.by_group.items()}
        ours = getattr(rf.metrics, f"{name}_by_group")(
            **arrays, sensitive_features=rows["g"], sample_weight=weight
        )
        among = {"true_positive_rate": rows["y"] == 1, "precision": rows["p"] == 1}
        counted = rows["g"][some & among.get(name, True)].astype(str)
        for group, value in ours.items():
            assert np.isnan(value) == (group not in set(counted))
            if not np.isnan(value):
                assert value == pytest.approx(theirs[group], abs=1e-12)
        for form, aggregate in AGGREGATIONS.items():
            function = getattr(rf.metrics, form.format(name))
            options = {**arrays, "sensitive_features": rows["g"], "sample_weight": weight}
            if np.isnan([*ours.values()]).any():
                undefined += 1
                with pytest.raises(InputError, match="not defined for these rows"):
                    function(**options)
            elif not (form == "{}_ratio" and not any(ours.values())):
                defined += 1
                assert function(**options) == pytest.approx(aggregate(frame), abs=1e-12)
    assert defined > 40
    assert undefined or name in ("accuracy", "balanced_accuracy", "selection_rate")


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("balanced_accuracy_difference", 1.0),
        ("worst_group_balanced_accuracy", 0.0),
        ("mean_group_balanced_accuracy", 0.5),
        ("balanced_accuracy_worst_gap", 1.0),
    ],
)
@pytest.mark.parametrize("groups", ["bbbbaaaa", "aaaabbbb"])
def test_a_class_without_weight_in_a_group_is_not_averaged_over(metric, value, groups):
    """Whatever the order of the groups; also in an audit's counts."""
    y, p, w = [1, 1, 0, 0] * 2, [0, 0, 0, 0, 1, 1, 0, 0], [1, 1, 0, 0, 1, 1, 1, 1]
    options = {"sensitive_features": list(groups), "sample_weight": w}
    assert getattr(rf.metrics, metric)(y, p, **options) == value
    audit = rf.audit(y_true=y, y_pred=p, **options, metrics=[metric], small=0)
    assert audit.metrics()[f"sensitive_feature_0.{metric}"] == value


@pytest.mark.parametrize(
    "metric",
    [
        "delta_dp", "delta_eo", "delta_eopp", "disparate_impact", "delta_dp_one_vs_rest",
        "delta_eo_one_vs_rest", "accuracy_difference", "worst_group_accuracy",
        "worst_group_balanced_accuracy", "roc_auc_difference", "worst_group_roc_auc",
        "expected_calibration_error_difference", "worst_group_unexplained_variance",
        "accuracy_one_vs_rest_difference", "worst_group_brier_score",
    ],
)  # fmt: skip
def test_a_group_without_weight_leaves_no_gap(metric):
    """Never NaN, 0, or the value of the other group."""
    y, w = [0, 1] * 8, [1.0] * 8 + [0.0] * 8
    p = [0, 1, 1, 1] * 4
    if "roc" in metric or "error" in metric or "brier" in metric:
        p = np.linspace(0.1, 0.9, 16)
    with pytest.raises(InputError, match="no row has weight|no rows of"):
        getattr(rf.metrics, metric)(y, p, sensitive_features=["a"] * 8 + ["b"] * 8, sample_weight=w)
