"""Tables as people write them: truth values, empty groups, names of columns, functions."""

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as oracle
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.cli.audit import audit as command

COMMAND = ["--target", "y", "--prediction", "p", "--attributes", "sex"]


def table(rows: int = 400, seed: int = 0, **columns) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    sex, y = rng.choice(["f", "m"], rows), rng.integers(0, 2, rows)
    score = np.clip(0.3 + 0.3 * y + 0.1 * (sex == "m") + rng.normal(0, 0.2, rows), 0, 1)
    return pd.DataFrame({"sex": sex, "y": y, "p": score.round(4)}).assign(**columns)


def run(folder, frame: pd.DataFrame, *options: str):
    frame.to_csv(folder / "t.csv", index=False)
    arguments = [str(folder / "t.csv"), *COMMAND, "--output", str(folder), "--force", *options]
    return CliRunner().invoke(command, arguments)


def test_truth_values_are_classes_of_0_and_1(tmp_path):
    frame = table()
    decided = frame.assign(p=(frame["p"] >= 0.5).astype(int))
    as_truth = frame.assign(p=frame["p"] >= 0.5)
    expected = rf.audit(decided, y_true="y", y_pred="p", sensitive_features=["sex"]).to_frame()
    audits = [
        rf.audit(as_truth, y_true="y", y_pred="p", sensitive_features=["sex"]).to_frame(),
        rf.audit(as_truth.astype({"p": str}), y_true="y", y_pred="p", sensitive_features="sex"),
    ]
    pd.testing.assert_frame_equal(audits[0], expected)
    pd.testing.assert_frame_equal(audits[1].to_frame(), expected)
    assert run(tmp_path, as_truth).exit_code == 0
    rows = pd.read_csv(tmp_path / "t_audit.csv")
    values = rows.loc[rows["metric"] == "equalized_odds_difference", "value"]
    assert values.item() == pytest.approx(
        rf.metrics.equalized_odds_difference(
            frame["y"], as_truth["p"].astype(int), sensitive_features=frame["sex"]
        )
    )


LOST = {
    "no positives in a group": (
        lambda t: t.assign(y=np.where(t["sex"] == "f", 0, t["y"])), [],
        r"sex: equal opportunity difference, equalized odds difference not defined: f \(no rows of "
        r"class 1, \d+ rows\)",
    ),
    "a group without weight": (
        lambda t: t.assign(w=(t["sex"] == "m").astype(int)), ["--weight", "w"],
        "sex: demographic parity difference.* not defined: fewer than two groups with rows",
    ),
    "few positives": (
        lambda t: t.assign(y=np.where((t["sex"] == "f") & (t.index > 15), 0, t["y"])), [],
        r"sex: any value of the .*equal opportunity difference.* is possible: .*f has \d rows for "
        r"the true positive rate, 8 are needed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOST)
def test_what_is_not_compared_is_said(tmp_path, name):
    change, options, line = LOST[name]
    done = run(tmp_path, change(table()), *options)
    assert done.exit_code == 0
    assert re.search(line, done.output), done.output
    page = unescape((tmp_path / "t_audit.html").read_text())
    assert re.search(line.partition(";")[0], page)


def test_errors_name_the_arguments_of_the_function_and_the_options_of_the_command(tmp_path):
    frame = table(y=np.where(table()["y"], "good", "bad"))
    with pytest.raises(rf.InputError, match=r"declare which is positive \(pos_label\)"):
        rf.audit(frame, y_true="y", y_pred="p", sensitive_features="sex")
    assert "declare which is positive (--positive)" in run(tmp_path, frame).output
    with pytest.raises(rf.InputError, match=r"\.astype\(str\)"):
        rf.audit(frame.assign(sex=pd.cut(frame["p"], 3)), y_true="y", y_pred="p",
                 sensitive_features="sex", pos_label="good")  # fmt: skip
    with pytest.raises(rf.InputError, match="pos_label, the positive one"):
        rf.metrics.selection_rate(["1", "2", "2"], ["1", "2", "1"])


NAMES = ("sex", "Alter (Jahre)", "income>50K", "sex[self-reported]", "<b>", "income_50K", "a:b/c")


def test_names_of_metrics_are_valid_in_mlflow_and_distinct():
    frame = table(**{name: table(seed=k)["sex"] for k, name in enumerate(NAMES)})
    audit = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=list(NAMES))
    names = audit.metrics()
    assert all(re.fullmatch(r"[/\w.\- ]*", name) for name in names)
    gap = audit.to_frame().set_index(["attribute", "metric"])["value"]["sex", "delta_dp"]
    assert names["sex.delta_dp"] == gap
    known = audit.to_frame().query("group == '' and value.notna()")
    assert len(names) == known[["value", "low", "high"]].notna().sum().sum()


def test_functions_are_metrics_with_intervals():
    frame = table(3000)
    y, decided = frame["y"].to_numpy(), (frame["p"] >= 0.5).to_numpy().astype(int)

    def tpr(y_true, y_pred, sample_weight=None):
        return oracle.recall_score(y_true, y_pred, sample_weight=sample_weight)

    audit = rf.audit(
        frame, y_true="y", y_pred="p", sensitive_features="sex",
        metrics=[oracle.f1_score, tpr, "accuracy", rf.metrics.precision],
    )  # fmt: skip
    rows = audit.to_frame().set_index(["metric", "group"])
    assert rows.loc[("f1_score", ""), "value"] == pytest.approx(oracle.f1_score(y, decided))
    for group in "fm":
        of_group = (frame["sex"] == group).to_numpy()
        row = rows.loc[("f1_score_by_group", group)]
        assert row["value"] == pytest.approx(oracle.f1_score(y[of_group], decided[of_group]))
        assert row["low"] < row["value"] < row["high"]
        # the bootstrap has about the binomial error of a rate
        row, n = rows.loc[("tpr_by_group", group)], (of_group & (y == 1)).sum()
        error = np.sqrt(row["value"] * (1 - row["value"]) / n)
        assert 0.5 < (row["high"] - row["low"]) / 2 / (1.96 * error) < 1.6
    f, m = (rows.loc[("tpr_by_group", group), "value"] for group in "fm")
    assert rows.loc[("tpr_difference", ""), "value"] == pytest.approx(abs(f - m))
    assert {"accuracy", "precision"} <= {*rows.index.get_level_values("metric")}
    named = rf.audit(
        frame, y_true="y", y_pred="p", sensitive_features="sex",
        metrics={"right": lambda y_true, y_pred: float(np.mean(y_true == y_pred))},
    )  # fmt: skip
    rows = named.to_frame().set_index(["metric", "group"])
    assert rows.loc[("right", ""), "value"] == pytest.approx(np.mean(y == decided))
    weighted = rf.audit(
        frame.assign(w=2.0), y_true="y", y_pred="p", sensitive_features="sex", sample_weight="w",
        metrics=[tpr],
    ).to_frame()  # fmt: skip
    assert weighted.set_index(["metric", "group"]).loc[("tpr", ""), "value"] == pytest.approx(
        oracle.recall_score(y, decided)
    )


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (5, "metrics: 5, allowed"), ([None], "metrics: None, allowed"),
        ([lambda y_true, y_pred: 0.0], "'<lambda>' is no name"),
        ({"accuracy": lambda y_true, y_pred: 0.0}, "accuracy is a metric already"),
        (["acuracy"], "unknown metric 'acuracy'"),
    ],
)  # fmt: skip
def test_other_metrics_are_one_line(metrics, message):
    with pytest.raises(rf.InputError, match=re.escape(message)) as error:
        rf.audit(table(), y_true="y", y_pred="p", sensitive_features="sex", metrics=metrics)
    assert "\n" not in str(error.value)


def test_a_function_that_fails_in_a_group_says_so():
    def fragile(y_true, y_pred):
        if len(y_true) < 300:
            raise ValueError("too few")
        return 0.5

    rows = rf.audit(
        table(400), y_true="y", y_pred="p", sensitive_features="sex", metrics=[fragile]
    ).to_frame()
    notes = rows.loc[rows["metric"] == "fragile_by_group", "note"]
    assert notes.tolist() == ["ValueError: too few"] * 2


def test_an_estimate_that_fails_without_evidence_says_so(tmp_path):
    done = run(tmp_path, table(120), "--fail-if", "equalized_odds_difference>0.1")
    assert done.exit_code == 1
    assert "the estimate fails, its interval does not exclude values that pass" in done.stderr
