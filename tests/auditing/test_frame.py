"""The vocabulary of ``MetricFrame``: the numbers of fairlearn, with intervals."""

import re
from pathlib import Path
from typing import Any

import fairlearn.metrics as oracle
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    mean_absolute_error,
    roc_auc_score,
)

import robust_fairness as rf
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.estimate import wilson_interval

PAGE = Path(__file__).parents[2] / "docs" / "from_fairlearn.md"
RATES = {
    "accuracy": accuracy_score, "selection_rate": oracle.selection_rate,
    "true_positive_rate": oracle.true_positive_rate,
    "false_positive_rate": oracle.false_positive_rate,
}  # fmt: skip


def drawn(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"y": rng.integers(0, 2, rows), "p": rng.integers(0, 2, rows),
         "w": rng.uniform(1, 5, rows), "sex": rng.choice(["f", "m"], rows),
         "race": rng.choice(["a", "b", "c"], rows), "stratum": rng.choice(["x", "z"], rows)}
    )  # fmt: skip


@pytest.mark.parametrize("control", [None, "stratum"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("features", [["sex"], ["sex", "race"]])
def test_values_are_those_of_fairlearn(
    control: str | None, weight: str | None, features: list[str]
) -> None:
    table = drawn()
    params: dict[str, Any] = {}
    if weight:
        params = {"sample_params": {name: {"sample_weight": table[weight]} for name in RATES}}
    theirs = oracle.MetricFrame(
        metrics=RATES, y_true=table["y"], y_pred=table["p"], sensitive_features=table[features],
        control_features=None if control is None else table[control], **params,
    )  # fmt: skip
    ours = rf.audit(
        table, y_true="y", y_pred="p", sensitive_features=features, sample_weight=weight,
        control_features=[control] if control else [], metrics=[*RATES],
    )  # fmt: skip
    assert ours.control_levels == (theirs.control_levels or [])
    assert ours.sensitive_levels == theirs.sensitive_levels
    values = ours.by_group.xs("value", axis=1, level=1)
    pd.testing.assert_frame_equal(values, theirs.by_group, check_dtype=False)
    pairs = [(ours.overall, theirs.overall)]
    for method in ("between_groups", "to_overall"):
        pairs += [
            (ours.difference(method), theirs.difference(method=method)),
            (ours.ratio(method), theirs.ratio(method=method)),
        ]
    for mine, other in pairs:
        column = mine["value"].unstack("metric")[[*RATES]] if control else mine["value"]
        np.testing.assert_allclose(column.to_numpy(), np.asarray(other, float))


def test_intervals_of_groups_are_wilsons_and_of_two_groups_proportional() -> None:
    """Of two groups the difference to all is that of the groups times the larger other share."""
    table = drawn()
    done = rf.audit(table, y_true="y", y_pred="p", sensitive_features="sex", metrics="accuracy")
    row = done.by_group["accuracy"].loc["f"]
    low, high = wilson_interval(np.array([row["value"]]), np.array([row["n"]]))
    np.testing.assert_allclose([row["low"], row["high"]], [low[0], high[0]])
    between, overall = (
        done.difference(method).iloc[0] for method in ("between_groups", "to_overall")
    )
    share = (table["sex"] == "f").mean()
    assert overall["high"] == pytest.approx(max(share, 1 - share) * between["high"])
    assert overall["low"] <= overall["value"] <= overall["high"]


def test_functions_and_numbers() -> None:
    table = drawn()
    done = rf.audit(
        table, y_true="y", y_pred="p", sensitive_features="race", metrics={"f1": f1_score}
    )
    theirs = oracle.MetricFrame(
        metrics=f1_score, y_true=table["y"], y_pred=table["p"], sensitive_features=table["race"]
    )
    row = done.difference().loc["f1"]
    assert row["value"] == pytest.approx(theirs.difference()) and row["low"] < row["high"]
    assert done.ratio("to_overall").loc["f1", "value"] == pytest.approx(
        theirs.ratio(method="to_overall")
    )
    table["y"] = table["w"] ** 2
    numbers = rf.audit(
        table, y_true="y", y_pred="w", sensitive_features="race", continuous=True,
        control_features="stratum", metrics=["mean_absolute_error"],
    )  # fmt: skip
    other = oracle.MetricFrame(
        metrics=mean_absolute_error, y_true=table["y"], y_pred=table["w"],
        sensitive_features=table["race"], control_features=table["stratum"],
    )  # fmt: skip
    np.testing.assert_allclose(numbers.difference()["value"], other.difference())
    assert np.isfinite(numbers.difference()[["low", "high"]].to_numpy()).all()


def test_functions_of_scores_get_scores_and_no_interval_depends_on_other_metrics() -> None:
    rng = np.random.default_rng(1)
    y, sex = rng.integers(0, 2, 400), rng.choice(["f", "m"], 400)
    p = np.clip(0.3 * y + 0.35 + rng.normal(0, 0.2, 400), 0.01, 0.99)
    of = {"y_true": y, "y_pred": p, "sensitive_features": sex}
    scores = {"area": roc_auc_score, "brier": brier_score_loss, "surprise": log_loss}
    done = rf.audit(**of, metrics={**scores, "f1": f1_score}).overall["value"]
    for name, function in scores.items():
        assert done[name] == pytest.approx(function(y, p))
    assert done["f1"] == pytest.approx(f1_score(y, p >= 0.5))
    gap, with_others = (
        rf.audit(**of, metrics=names).rows.set_index("metric").loc["roc_auc_difference"]
        for names in (["roc_auc_difference"], ["roc_auc_by_group", "roc_auc_difference"])
    )
    ends = ["value", "low", "high"]
    assert gap[ends].tolist() == with_others[ends].tolist()
    assert gap["low"] <= gap["value"] <= gap["high"] < 1


def test_mistakes_are_named() -> None:
    done = rf.audit(drawn(), y_true="y", y_pred="p", sensitive_features="sex", metrics="delta_eo")
    with pytest.raises(InputError, match="none of these has values by group"):
        done.overall  # noqa: B018
    with pytest.raises(InputError, match="method: 'most', allowed: between_groups or to_overall"):
        done.difference("most")


def test_the_page_runs_and_prints_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    exec(compile(code, PAGE.name, "exec"), {})
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    printed = capsys.readouterr().out
    assert [line.split() for line in printed.splitlines() if line.strip()] == [
        line.split() for line in shown.splitlines()
    ]


def test_groups_that_are_not_shown_are_part_of_gaps():
    """As in the audit's own rows: value and interval are of the same groups."""
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], [290, 290, 20])
    y = rng.integers(0, 2, 600)
    right = np.where(group == "c", False, rng.random(600) < 0.8)  # noqa: PLR2004
    audit = rf.audit(
        pd.DataFrame({"y": y, "p": np.where(right, y, 1 - y), "g": group}),
        y_true="y", y_pred="p", sensitive_features=["g"], metrics=["accuracy"], suppress=50,
    )  # fmt: skip
    assert set(audit.by_group.index) == {"a", "b"}
    shares = pd.Series(right).groupby(group).mean()
    difference = audit.difference().loc["accuracy"]
    assert difference["value"] == pytest.approx(shares.max() - shares.min())
    assert difference["low"] < difference["value"] < difference["high"]
    assert audit.ratio().loc["accuracy", "value"] == pytest.approx(shares.min() / shares.max())
