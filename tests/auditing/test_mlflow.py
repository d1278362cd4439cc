"""The evaluator of MLflow, and what regression is audited by."""

import json
import tomllib
from importlib import import_module
from pathlib import Path

import fairlearn.metrics as oracle
import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry
from mlflow.models.evaluation.validation import ModelValidationFailedException
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.verdict import console
from robust_fairness.core.errors import InputError
from robust_fairness.runs.evaluator import Evaluator

# MLflow's evaluation calls pandas in ways that its next version drops, and hooks into imports.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{warning}")
    for warning in ("pandas.errors.Pandas4Warning", "DeprecationWarning", "ImportWarning")
]
ROOT = Path(__file__).parents[2]
NAME = "robust_fairness"
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"x": RNG.normal(size=300), "sex": RNG.choice(["f", "m"], 300), "y": RNG.integers(0, 2, 300)}
).assign(p=lambda rows: (rows["x"] > 0).astype(int), pay=lambda rows: 3 * rows["x"] + rows["y"])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A run of MLflow in a folder, with the evaluator as its entry point registers it."""
    monkeypatch.setitem(_model_evaluation_registry._registry, NAME, Evaluator)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.create_experiment("audits", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("audits")
    with mlflow.start_run() as started:
        yield started
    mlflow.set_tracking_uri(before)


def test_the_entry_point_is_the_evaluator() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["mlflow.model_evaluator"][NAME].partition(":")
    assert getattr(import_module(module), name) is Evaluator


@pytest.mark.parametrize("with_model", [False, True])
def test_predictions_and_models_are_evaluated(run, with_model: bool) -> None:
    config = {"sensitive_features": ["sex"], "fail_if": "accuracy<0.01"}
    given = {"data": TABLE[["x", "sex", "y", "p"]], "predictions": "p"}
    if with_model:
        given = {
            "data": TABLE[["x", "sex", "y"]],
            "model": lambda rows: (rows["x"] > 0).astype(int).to_numpy(),
        }
    result = mlflow.models.evaluate(
        **given, targets="y", model_type="classifier", evaluators=NAME, evaluator_config=config
    )
    expected = rf.audit(TABLE, y_true="y", y_pred="p", sensitive_features="sex")
    assert result.metrics == pytest.approx(expected.metrics())
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged == pytest.approx(expected.metrics())
    row = expected.to_frame().query("metric == 'accuracy'").iloc[0]
    assert [logged[f"accuracy{end}"] for end in ("", ".low", ".high")] == pytest.approx(
        [row["value"], row["low"], row["high"]]
    )
    page = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/{NAME}/audit.html")
    assert "Audit of" in page and "PASS" in page
    assert sorted(result.artifacts) == [f"{NAME}/audit.csv", f"{NAME}/audit.html"]


PARITY = "demographic_parity_difference"


@pytest.mark.parametrize(
    ("attributes", "gate", "reason"),
    [
        (["sex"], "accuracy<0.99", "accuracy<0.99: accuracy is 0.51"),
        (["code", "sex"], f"{PARITY}>0.9", "code is taken for a number and has no groups"),
    ],
)
def test_a_gate_that_fails_fails_the_evaluation_and_all_is_logged(
    run, attributes, gate, reason
) -> None:
    table, config = TABLE.assign(code=np.arange(300) % 15), {"sensitive_features": attributes}
    with pytest.raises(ModelValidationFailedException, match=reason) as error:
        mlflow.models.evaluate(
            data=table[[*attributes, "y", "p"]], predictions="p", targets="y",
            model_type="classifier", evaluators=NAME, evaluator_config=config | {"fail_if": gate},
        )  # fmt: skip
    assert "\n" not in str(error.value)
    page = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/{NAME}/audit.html")
    assert "FAIL" in page
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged["accuracy"] == np.mean(table["p"] == table["y"])


def test_names_of_any_attribute_are_logged_and_people_without_a_group_are_not_all(run) -> None:
    """Names that MLflow refuses as paths, or of more than 250 characters; "" is missing."""
    some = TABLE["sex"].where(np.arange(len(TABLE)) >= 7, "")  # noqa: PLR2004
    attributes = {"..": some, "../../x": some, "long" * 80: some, "long" * 81: some, ".": some}
    data = pd.DataFrame({**attributes, "y": TABLE["y"], "p": TABLE["p"]})
    result = mlflow.models.evaluate(
        data=data, predictions="p", targets="y", model_type="classifier", evaluators=NAME,
        evaluator_config={"sensitive_features": [*attributes]},
    )  # fmt: skip
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged == pytest.approx(result.metrics)
    selected = TABLE["p"].groupby(TABLE["sex"].where(some != "")).mean()
    gaps = [value for name, value in logged.items() if name.endswith(PARITY)]
    assert gaps == pytest.approx([selected.max() - selected.min()] * len(attributes))
    assert not [name for name in logged if "by_group" in name]


def test_regression_and_what_is_refused(run) -> None:
    data = TABLE[["x", "pay", "sex"]].assign(guess=TABLE["x"])
    given = {"data": data, "targets": "pay", "predictions": "guess", "evaluators": NAME}
    result = mlflow.models.evaluate(
        **given, model_type="regressor", evaluator_config={"sensitive_features": ["sex"]}
    )
    assert "sex.mean_prediction_difference.high" in result.metrics
    with pytest.raises(MlflowException, match="configs are set correctly"):
        mlflow.models.evaluate(**given, model_type="regressor", evaluator_config={})
    with pytest.raises(InputError, match="unknown column 'gender'.*sex"):
        mlflow.models.evaluate(
            **given, model_type="regressor", evaluator_config={"sensitive_features": ["gender"]}
        )
    json.dumps(result.metrics)


def test_means_of_predictions_and_errors_are_compared_in_their_unit() -> None:
    """Values are fairlearn's; the interval of two groups is Welch's but for its degrees."""
    table = TABLE.assign(guess=TABLE["x"] + (TABLE["sex"] == "f"))
    done = rf.audit(table, y_true="pay", y_pred="guess", sensitive_features="sex", continuous=True)
    rows = done.to_frame().set_index(["attribute", "group", "metric"])
    by_group = {name: part["guess"].to_numpy() for name, part in table.groupby("sex")}
    theirs = oracle.MetricFrame(
        metrics=oracle.mean_prediction, y_true=table["pay"], y_pred=table["guess"],
        sensitive_features=table["sex"],
    )  # fmt: skip
    row = rows.loc["sex", "", "mean_prediction_difference"]
    assert row["value"] == pytest.approx(theirs.difference())
    welch = stats.ttest_ind(by_group["f"], by_group["m"], equal_var=False).confidence_interval()
    assert row["high"] == pytest.approx(welch.high, rel=0.01)
    assert row["low"] == pytest.approx(welch.low, rel=0.01)
    error = (table["guess"] - table["pay"]).abs().groupby(table["sex"]).mean()
    absolute = rows.loc["sex", "", "mean_absolute_error_difference"]
    assert absolute["value"] == pytest.approx(error.max() - error.min())
    (line,) = [text for text, _ in console(done) if text.startswith("sex: difference of mean")]
    assert "difference of mean absolute errors" in line and "mean predictions" in line
