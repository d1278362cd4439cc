"""Estimates without labels: NannyML's numbers, simulations, and the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robust_fairness as rf
from robust_fairness.auditing import estimates
from robust_fairness.auditing.command import TableFile, audit_file
from robust_fairness.auditing.estimates import ScoredRows, calibrated, values
from robust_fairness.auditing.metric_names import CONVENTIONAL, SELECTIONS
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.verdict import answers, console
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.groups import Groups

DATA = Path(__file__).parent / "data"
GOLDEN = json.loads((DATA / "cbpe.json").read_text())
ROWS = pd.read_csv(DATA / "cbpe.csv").assign(p=lambda table: table["p_thousandths"] / 1000)


def of(frame: pd.DataFrame) -> ScoredRows:
    codes, names = pd.factorize(frame["group"], sort=True)
    p = frame["p"].to_numpy()
    return ScoredRows(p, p >= 0.5, {"group": Groups.named(codes, tuple(map(str, names)))})


@pytest.mark.parametrize("kind", ["miscalibrated", "calibrated_scores"])
def test_estimates_are_those_of_nannyml(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden numbers of NannyML 0.13.1; its rates of groups have one calibrator."""
    part = ROWS[ROWS["part"] == "reference"]
    y = part["y_miscalibrated" if kind == "miscalibrated" else "y_calibrated"].to_numpy(np.int64)
    reference = replace(of(part), y=y)
    calibrate = estimates.needs_calibration(y, reference.score)
    assert calibrate == GOLDEN[kind]["needs_calibration"]
    monkeypatch.setattr(estimates, "LEAST_LABELS", len(ROWS))
    monkeypatch.setattr(estimates, "group_weights", lambda now, then, name: 1.0)
    for number, expected in enumerate(GOLDEN[kind]["chunks"]):
        chunk = of(ROWS[ROWS["part"] == f"chunk_{number}"])
        scores = values(chunk, reference, calibrate, [*map(find_metric, CONVENTIONAL)])
        estimated = {key: score.value for key, score in scores.items()}
        overall = {
            "accuracy": estimated["", "", "accuracy"],
            "recall": estimated["", "", "true_positive_rate"],
            "specificity": 1 - estimated["", "", "false_positive_rate"],
            "precision": estimated["", "", "precision"],
        }
        assert overall == pytest.approx({name: expected[name] for name in overall}, abs=1e-9)
        for code in ("0", "1"):
            rates = expected["by_group_common_calibrator"][f"group={code}"]
            names = {"tpr": "true_positive_rate", "fpr": "false_positive_rate"}
            for name in ("selection_rate", *names):
                rate = names.get(name, name)
                estimate = estimated["group", code, f"{rate}_by_group"]
                assert estimate == pytest.approx(rates[name], abs=1e-9)


def simulated(rows: int, seed: int, share: float, flipped: bool = False) -> pd.DataFrame:
    """Scores whose log odds are off by .4 in one group and by -.8 in the other."""
    rng = np.random.default_rng(seed)
    group = (rng.random(rows) < share).astype(int)
    logit = 1.5 * rng.standard_normal(rows)
    chance = 1 / (1 + np.exp(-logit - np.where(group, 0.4, -0.8)))
    y = (rng.random(rows) < (1 - chance if flipped else chance)).astype(int)
    p = 1 / (1 + np.exp(-logit))
    return pd.DataFrame({"y": y, "p": p, "group": np.where(group, "a", "b")})


def true_gap(frame: pd.DataFrame) -> float:
    positive = frame[frame["y"] == 1]
    return float(np.ptp((positive["p"] >= 0.5).groupby(positive["group"]).mean()))


def test_a_calibrator_per_group_finds_the_gap_that_a_common_one_hides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    then, now = simulated(40_000, 0, 0.5), simulated(40_000, 1, 0.5)
    reference = replace(of(then), y=then["y"].to_numpy())
    key = ("group", "", "equal_opportunity_difference")
    truth = true_gap(now)
    assert truth > 0.07
    gap = [find_metric(key[2])]
    assert values(of(now), reference, True, gap)[key].value == pytest.approx(truth, abs=0.02)
    monkeypatch.setattr(estimates, "LEAST_LABELS", len(then))
    assert (values(of(now), reference, True, gap)[key].value or 0.0) < 0.02


def test_equal_weights_change_nothing_and_weights_follow_the_mix() -> None:
    frame = simulated(2000, 0, 0.5)
    y, p = frame["y"].to_numpy(), frame["p"].to_numpy()
    np.testing.assert_array_equal(calibrated(y, p, p), calibrated(y, p, p, np.ones(len(y))))
    some, names = np.zeros(5), ("a", "b")
    then = ScoredRows(some, some > 0, {"group": Groups.named(np.array([0, 0, 0, 1, -1]), names)})
    now = ScoredRows(some[:2], some[:2] > 0, {"group": Groups.named(np.array([0, 1]), names)})
    weights = estimates.group_weights(now, then, "group")
    assert weights == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2, 1])


def test_a_weight_is_so_many_rows_for_estimates() -> None:
    then, now = simulated(1200, 0, 0.5), simulated(500, 1, 0.3)
    metrics = [*map(find_metric, CONVENTIONAL)]
    weights = [np.random.default_rng(2).integers(1, 4, len(frame)) for frame in (then, now)]
    rows = [
        replace(of(frame), weight=w * 1.0) for frame, w in zip((then, now), weights, strict=True)
    ]
    weighted = values(rows[1], replace(rows[0], y=then["y"].to_numpy()), True, metrics)
    many = [frame.loc[frame.index.repeat(w)] for frame, w in zip((then, now), weights, strict=True)]
    repeated = values(of(many[1]), replace(of(many[0]), y=many[0]["y"].to_numpy()), True, metrics)
    assert len(weighted) == len(repeated) > 20
    for key, score in repeated.items():
        assert weighted[key].value == pytest.approx(score.value, abs=1e-9), key


def test_without_labels_the_parity_gap_that_grew_leads(tmp_path: Path) -> None:
    """Selections need no label: their gap is tested, and no answer says that nothing is known."""
    then = simulated(2000, 0, 0.5)
    now = simulated(1500, 1, 0.5).assign(p=lambda rows: rows["p"] * (rows["group"] != "a"))
    for name, table in (("then", then), ("now", now.drop(columns="y"))):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    audit = audit_file(
        TableFile(tmp_path / "now.csv"), Options("y", "p", ["group"], labels="none"),
        reference=tmp_path / "then.csv",
    )  # fmt: skip
    rates = [
        table.groupby("group")["p"].apply(lambda p: (p >= 0.5).mean()) for table in (then, now)
    ]
    grown = np.ptp(rates[1]) - np.ptp(rates[0])
    assert answers(audit)[0] == f"No: the gap by group grew in the later period, by {grown:.2f}"


def test_a_change_of_y_given_x_moves_no_estimate_and_the_page_says_so(tmp_path: Path) -> None:
    simulated(2000, 0, 0.5).to_csv(tmp_path / "then.csv", index=False)
    now = simulated(1500, 1, 0.5)
    flipped = simulated(1500, 1, 0.5, flipped=True)
    np.testing.assert_array_equal(now["p"], flipped["p"])
    now.drop(columns="y").to_csv(tmp_path / "now.csv", index=False)
    options = Options("y", "p", ["group"])
    audit = audit_file(
        TableFile(tmp_path / "now.csv"), replace(options, labels="none"),
        reference=tmp_path / "then.csv", gates=["equalized_odds_difference>0.9"],
    )  # fmt: skip
    row = audit.rows[audit.rows["metric"] == "accuracy"].iloc[0]
    right = [((labelled["p"] >= 0.5) == labelled["y"]).mean() for labelled in (now, flipped)]
    assert row["low"] < right[0] < row["high"] and not row["low"] < right[1] < row["high"]
    assert row["high"] - row["low"] < 0.12
    assert audit.changed is not None and not audit.failed
    assert "such a change cannot be seen, and intervals leave it out" in audit.to_html()
    assert next(console(audit))[0].startswith("warning: Estimated without labels")
    needed = r"needs a column \(--target\); without labels: leave out y_true"
    with pytest.raises(InputError, match=needed):
        audit_file(TableFile(tmp_path / "now.csv"), replace(options, y_true=None))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_true": "group", "y_pred": ["p_a", "p_b", "p_c"]}, "kind probability for 3 classes"),
        ({"y_pred": "y2"}, "kind class for 2 classes; allowed: probabilities or scores"),
        ({"unit": "row"}, "take neither units nor replicate weights"),
        ({"membership": {"g": ["p_a", "p_b", "p_c"]}}, "nor membership"),
    ],
)
def test_estimates_refuse_what_they_would_ignore(
    tmp_path: Path, options: dict, message: str
) -> None:
    frame = simulated(300, 0, 0.5).assign(y2=lambda table: table["y"], row=range(300))
    frame["group"] = frame["group"].where(frame.index % 3 > 0, "c")
    frame["sex"] = frame["y"].where(frame.index % 2 > 0, 1 - frame["y"])
    frame[["p_a", "p_b", "p_c"]] = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    frame.to_csv(tmp_path / "then.csv", index=False)
    columns = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], "labels": "none"}
    chosen = Options(**columns | options)
    with pytest.raises(InputError, match=message):
        audit_file(TableFile(tmp_path / "then.csv"), chosen, reference=tmp_path / "then.csv")


def test_without_labels_and_reference_only_selections_are_scored(tmp_path: Path) -> None:
    frame = simulated(500, 0, 0.5)
    frame.drop(columns="y").to_csv(tmp_path / "now.csv", index=False)
    options = Options("y", "p", ["group"], labels="none")
    unlabelled = audit_file(TableFile(tmp_path / "now.csv"), options)
    labelled = rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["group"]).to_frame()
    both = unlabelled.rows.merge(labelled, on=["attribute", "group", "metric"], suffixes=("", "_y"))
    assert len(both) == len(unlabelled.rows)
    assert set(unlabelled.rows["metric"]) == {*SELECTIONS, "group_share", "missing_attribute"}
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(both[column], both[f"{column}_y"])
    page = unlabelled.to_html()
    assert "Accuracy and the equalized odds" not in page and not unlabelled.warning
    assert "rows, no labels, prediction p\n" in page
    with pytest.raises(InputError, match=r"metric accuracy needs a target; allowed without one"):
        audit_file(TableFile(tmp_path / "now.csv"), options, gates=["accuracy<0.5"])
    with pytest.raises(InputError, match="one column of classes, probabilities or scores"):
        rf.audit(frame, y_pred="p", sensitive_features=["group"], continuous=True)
