"""A frame and its CSV file have the same audit; scores at the threshold and marks of missing."""

import html
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.auditing.command import TableFile, audit_file
from robust_fairness.auditing.door import check
from robust_fairness.auditing.predictions import Options
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError


def table(**columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = {"sex": rng.choice(["f", "m"], 400), "y": rng.integers(0, 2, 400)}
    return pd.DataFrame({**rows, "p": rng.random(400), **columns})


@pytest.mark.parametrize("kind", ["float16", "float32", "Float32", "float64"])
@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.9, 0.35])
def test_scores_at_the_threshold_are_positive_in_a_frame_as_in_its_file(
    tmp_path: Path, kind: str, threshold: float
) -> None:
    shares = np.random.default_rng(1).integers(0, 21, 400) / 20
    frame = table(p=pd.Series(shares).astype(kind), z=pd.Series(shares / 2).astype(kind))
    options = Options("y", "p", ["sex", "z"], threshold=threshold, bins={"z": (0.1, 0.35)})
    assert (check(frame, options).prediction == (shares >= threshold)).all()
    frame.to_csv(tmp_path / "t.csv", index=False)
    file = audit_file(TableFile(tmp_path / "t.csv"), options).to_frame()
    ours = rf.audit(
        frame, y_true="y", y_pred="p", sensitive_features=["sex", "z"], threshold=threshold,
        bins={"z": (0.1, 0.35)},
    ).to_frame()  # fmt: skip
    pd.testing.assert_frame_equal(file.drop(columns="dataset"), ours.drop(columns="dataset"))


@pytest.mark.parametrize(
    ("score", "refused"),
    [
        (1.000000001, None), (1 + 2**-52, None), (-1e-9, None), (np.float32(1) + 2e-7, None),
        (1.2, r"row 4: 1\.2, .*prediction_is='score'"), (1.00001, r"row 4: 1\.00001, "),
        (-0.1, r"row 4: -0\.1, "), (70.0, "threshold"),
    ],
)  # fmt: skip
def test_scores_outside_of_0_and_1(tmp_path: Path, score: float, refused: str | None) -> None:
    frame = table()
    frame.loc[3, "p"] = score
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target=y", "--prediction=p", "--attributes=sex", f"--output={tmp_path}"]
    done = CliRunner().invoke(cli, ["audit", str(tmp_path / "t.csv"), *words])
    if refused is None:
        assert done.exit_code == 0, done.output
        assert check(frame, Options("y", "p", ["sex"])).score[3] == np.clip(score, 0, 1)
        return
    assert done.exit_code == 2
    with pytest.raises(InputError, match=refused):
        audit_file(TableFile(tmp_path / "t.csv"), Options("y", "p", ["sex"]))
    assert ("50" in done.output) == (score == 70.0)


def test_texts_that_may_mean_missing_are_named(tmp_path: Path) -> None:
    race = np.resize(np.array(["a", "b", "NA"]), 400)
    frame = table(race=race, p=np.resize([0, 1], 400))
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    words = ["audit", str(path), "--target=y", "--prediction=p", "--attributes=sex,race", "--force"]
    words.append(f"--output={tmp_path}")
    rows = (race == "NA").sum()
    hint = f"hint: race: 'NA' is a group of {rows} rows; if it means a missing value: --missing NA"
    said = CliRunner().invoke(cli, words).output
    assert hint in said.splitlines()
    assert hint.removeprefix("hint: ") in html.unescape((tmp_path / "t_audit.html").read_text())
    audit = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["race"])
    assert hint[6:].replace("--missing NA", "missing='NA'") in audit.remarks
    of_table = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["race"], missing=["NA"])
    assert of_table.hints == () and "NA" not in of_table.by_group.index
    cleaned = frame.assign(race=frame["race"].replace("NA", None))
    assert rf.audit(cleaned, y_true="y", y_pred="p", sensitive_features=["race"]).hints == ()
    declared = CliRunner().invoke(cli, [*words, "--missing", "NA"])
    assert declared.exit_code == 0 and "hint" not in declared.output
    classes = frame.assign(y=race, p=race)
    audit = rf.audit(classes, y_true="y", y_pred="p", sensitive_features=["sex"])
    assert audit.hints == ("target: 'NA' is a class; if it means a missing value: missing='NA'",)
    frame.assign(p=frame["p"].astype(object).mask(frame.index == 5, "NA")).to_csv(path, index=False)
    said = CliRunner().invoke(cli, [*words, "--prediction-is=probability"]).output
    assert (
        "row 6: 'NA', allowed: a finite number; if it means missing, declare it (missing)" in said
    )


def test_spellings_in_a_table_are_groups_of_their_own_and_named() -> None:
    frame = table(code=np.resize(["1", "01", "2"], 400), p=np.resize([0, 1], 400))
    audit = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["code"])
    assert {*audit.by_group.index} == {"1", "01", "2"}
    assert audit.hints == (
        "code: '1' (134 rows), '01' (133 rows) are groups of their own; if they are one, write "
        "one name",
    )


@pytest.mark.parametrize(
    ("classes", "positive"),
    [
        (["1", "2"], None), (["2", "10"], None), (["0", "2"], None), (["1", "1.5"], None),
        (["0", "1"], "1"), (["-1", "1"], "1"), (["no", "yes"], "yes"), (["1", "x"], "x"),
        ([0, 1], 1), ([False, True], True),
    ],
)  # fmt: skip
def test_classes_that_are_numbers_as_text_need_their_positive_one(classes, positive) -> None:
    rng = np.random.default_rng(0)
    y, p = (np.array(classes)[rng.integers(0, 2, 50)] for _ in range(2))
    if positive is None:
        with pytest.raises(InputError, match="or pos_label, the positive one"):
            rf.metrics.precision(y, p)
        positive = classes[1]
        assert rf.metrics.precision(y, p, pos_label=positive) == np.mean(
            y[p == positive] == positive
        )
        return
    assert rf.metrics.precision(y, p) == np.mean(y[p == positive] == positive)
