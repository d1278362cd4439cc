"""A few labels among many rows: as users ask for it."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.door import check
from robust_fairness.auditing.labelled import label_selection
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.verdict import answers
from robust_fairness.cli.audit import audit as command
from robust_fairness.core.errors import InputError
from tests.auditing.tables import few, people

COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"]}
SOME = {**COLUMNS, "labels": "some"}


def test_an_audit_with_all_labels_is_the_same_and_few_say_what_scores_add() -> None:
    table = people(6000)
    full = rf.audit(table, **COLUMNS)
    every = rf.audit(table, **SOME).to_frame()
    expected = full.rows[full.rows["metric"].isin(set(every["metric"]))]
    pd.testing.assert_frame_equal(every, expected.reset_index(drop=True))
    made = rf.audit(few(table, 300), **SOME, reference=table)
    keys = ["attribute", "group", "metric"]
    both = made.rows.merge(full.rows, on=keys, suffixes=("", "_full")).dropna(
        subset=["low", "value_full"]
    )
    inside = (both["low"] <= both["value_full"]) & (both["value_full"] <= both["high"])
    assert len(both) > 25 and inside.mean() > 0.9
    selected = both[both["metric"].isin(["demographic_parity_difference", "selection_rate"])]
    np.testing.assert_allclose(selected["low"], selected["low_full"])
    accuracy = made.rows.query("metric == 'accuracy'").iloc[0]
    assert accuracy["n"] == 300 and made.rows["lowest"].isna().all()
    assert "300 of 6,000 rows have a label, taken to be drawn at random" in made.assumption
    errors = r"equal opportunity difference by sex ([.\d]+) \(([.\d]+)\)"
    gaps = made.rows.set_index("metric")["n"]
    assert gaps["equalized_odds_difference"] == 300 < gaps["demographic_parity_difference"]
    assert "make standard errors smaller (than without)" in made.assumption
    good = re.search(errors, made.assumption)
    changed = made.changes().query("metric == 'equal_opportunity_difference'").iloc[0]
    assert changed["low"] < 0 < changed["high"] and changed["state"] == "inconclusive"
    assert "Few labels." in made.to_html()
    assert made.difference("to_overall")["low"].isna().all()
    assert made.difference()["low"].notna().any()
    wrong = few(table.assign(y=1 - table["y"]), 300)
    bad = re.search(errors, rf.audit(wrong, **SOME).assumption)  # the rate of all decisions helps
    shares = [float(text[1]) / float(text[2]) for text in (good, bad) if text]
    assert shares[0] < 0.9 * shares[1] < 0.9


def test_a_group_with_seven_labels_has_no_interval() -> None:
    """Neither where all of them are alike: every value is possible."""
    table = people(600)
    places = np.flatnonzero(table["sex"] == "f")[:7]
    others = np.flatnonzero(table["sex"] == "m")[:60]
    table["y"] = table["y"].where(table.index.isin([*places, *others]))
    table.loc[places, "y"] = (table.loc[places, "p"] >= 0.5).astype(float)
    rows = rf.audit(table, **SOME).rows.set_index(["metric", "group"])
    few_rows, enough = (rows.loc[("accuracy_by_group", group)] for group in "fm")
    assert (few_rows["value"], few_rows["low"], few_rows["high"]) == (1, 0, 1)
    assert 0 < enough["low"] < enough["high"] < 1 and few_rows["n"] == 7


def test_known_probabilities_correct_a_choice_of_rows() -> None:
    table = people(20_000)
    chance = np.where(table["y"] == 1, 0.3, 0.03)  # positives are labelled ten times as often
    known = np.random.default_rng(0).random(len(table)) < chance
    chosen = table.assign(y=table["y"].where(known), chance=chance)
    options = {**SOME, "metrics": ["accuracy", "precision"]}
    weighted = rf.audit(chosen, **options, label_probability="chance").rows
    plain = rf.audit(chosen, **options).rows
    full = rf.audit(table, **COLUMNS, metrics=["accuracy", "precision"]).rows
    for metric in options["metrics"]:
        true, right, wrong = (
            rows[rows["metric"] == metric].iloc[0] for rows in (full, weighted, plain)
        )
        assert right["low"] < true["value"] < right["high"], metric
        if metric == "precision":
            assert not wrong["low"] < true["value"] < wrong["high"]


def test_a_plan_is_stratified_and_keeps_its_word() -> None:
    table = people(20_000)
    audit = rf.audit(table, y_pred="p", sensitive_features=["sex"])
    plan = audit.plan(400)
    pd.testing.assert_frame_equal(plan.rows, audit.plan(400).rows)
    assert len(plan.rows) == plan.rows["row"].nunique() == 400
    assert plan.rows["sex"].value_counts().to_dict() == {"f": 200, "m": 200}
    places = plan.rows["row"].to_numpy() - 1
    np.testing.assert_array_equal(plan.rows["score"], table["p"].to_numpy()[places])
    assert 1 / plan.rows["label_probability"].mean() > 1
    assert (1 / plan.rows["label_probability"]).sum() == pytest.approx(20_000, rel=0.02)
    for bins in np.array_split(np.sort(table["p"][table["sex"] == "f"]), 5):
        assert 20 < plan.rows[plan.rows["sex"] == "f"]["score"].between(*bins[[0, -1]]).sum() < 60
    labelled = table.assign(y=np.nan, chance=np.nan)
    labelled.loc[places, "y"] = table["y"].to_numpy()[places]
    labelled.loc[places, "chance"] = plan.rows["label_probability"].to_numpy()
    made = rf.audit(labelled, **SOME, label_probability="chance", reference=table).rows
    for row in plan.expected.to_dict("records"):
        planned = made[made["metric"] == row["metric"]].iloc[0]
        assert planned["high"] - planned["value"] == pytest.approx(1.96 * row["error"], rel=0.35)
        assert row["error"] < row["alone"] and row["known"] == 1
    assert (audit.plan(12).expected["known"] < 1).all()
    assert re.search(r"no interval in \d+% of draws", str(audit.plan(12)))
    tight = rf.audit(people(60), y_pred="p", sensitive_features=["sex"]).plan(50).rows
    assert len(tight) == 50 and tight["label_probability"].max() == 1
    with pytest.raises(InputError, match="plan: needs probabilities of two classes without labels"):
        rf.audit(table, **COLUMNS).plan(10)


def test_the_command_labels_some_and_plans(tmp_path: Path) -> None:
    table = people(5000)
    table.to_csv(tmp_path / "then.csv", index=False)
    few(table, 300).assign(month=np.repeat(["2024-01", "2024-02"], 2500)).to_csv(
        tmp_path / "now.csv", index=False
    )
    words = [str(tmp_path / "now.csv"), "--prediction=p", "--attributes=sex", "--force",
             f"--output={tmp_path}"]  # fmt: skip
    some = [*words, "--target=y", "--labels=some"]
    run = CliRunner().invoke(
        command, [*some, f"--reference={tmp_path / 'then.csv'}", "--format=json",
                  "--fail-if=equal_opportunity_difference>0.5"],
    )  # fmt: skip
    assert run.exit_code == 0, run.output
    assert json.loads(run.output)["assumption"].startswith("300 of 5,000 rows have a label")
    periods = CliRunner().invoke(command, [*some, "--period=month", "--fail-if=accuracy<0.9"])
    assert periods.exit_code == 1 and "2024-02 against 2024-01" in periods.output
    planned = CliRunner().invoke(command, [*words, "--labels=none", "--plan=120"])
    assert "plan: 120 rows to label; standard errors to expect" in planned.output
    assert len(pd.read_csv(tmp_path / "now_plan.csv")) == 120


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_true": None}, r"labels some: needs a target \(y_true\)"),
        ({"unit": "row"}, "labels some: not with unit"),
        ({"control_features": ["row"]}, "labels some: not with control_features"),
        ({"metrics": "roc_auc"}, "metric roc_auc needs a label of every row; allowed with some"),
        ({"metrics": [lambda y_true, y_pred: 0.0]}, "not with metrics as functions"),
        ({"label_probability": "row"}, "column row, row 1: 7, allowed: probabilities above 0"),
        ({"label_probability": "none"}, "unknown column 'none'"),
        ({"labels": "all", "label_probability": "p"}, "label probability: only with labels='some'"),
        ({"labels": "all"}, "drop_unlabelled=True leaves them out, labels='some' uses their"),
        ({"y_true": "many", "y_pred": "guess"}, "labels some: 11 classes, allowed: at most 10"),
        ({"labels": "few"}, "labels: 'few', allowed: all, some, none"),
        ({"y_true": "unknown"}, "column unknown: no row has a label; without: leave out y_true"),
    ],
)
def test_bad_input_is_refused_in_one_line(options: dict, message: str) -> None:
    table = people(200).assign(row=7, unknown=np.nan)
    table.loc[50:, "y"] = np.nan
    table["guess"] = [f"c{row % 11}" for row in range(200)]
    table["many"] = table["guess"].where(table.index < 50)
    with pytest.raises(InputError, match=message) as error:
        rf.audit(table, **{**SOME, **options})
    assert "\n" not in str(error.value)


def early(rows: int, seed: int = 7) -> pd.DataFrame:
    """Labels that arrive early for defaults: of a tenth of the repaid loans, and most others."""
    rng = np.random.default_rng(seed)
    sex, x = rng.choice(["f", "m"], rows), rng.normal(size=rows)
    y = rng.random(rows) < 1 / (1 + np.exp(-(1.3 * x - 0.3)))
    score = 1 / (1 + np.exp(-(1.3 * x - 0.3 - 0.9 * (sex == "f") + rng.normal(0, 0.4, rows))))
    known = rng.random(rows) < np.where(y, 0.1, 0.7)
    labels = np.where(known, y, np.nan)
    return pd.DataFrame({"sex": sex, "p": score.round(4), "y": labels, "truth": y.astype(int)})


def test_labels_that_are_no_random_part_decide_nothing() -> None:
    table = early(20_000)
    gates = ["equalized_odds_difference>0.9", "accuracy<0.1", "demographic_parity_difference>0.01"]
    audit = rf.audit(table.drop(columns="truth"), **SOME).judged(gates)
    accuracy = audit.rows.query("metric == 'accuracy'").iloc[0]
    true = ((table["p"] >= 0.5) == table["truth"]).mean()
    assert not accuracy["low"] < true < accuracy["high"]  # which no interval can know
    labelled = table["p"][table["y"].notna()].mean()
    said = next(text for text in audit.label_selection if text.startswith("mean score"))
    assert f"{labelled:.3f} of labelled, {table['p'].mean():.3f} of all rows (p < 1e-16)" in said
    verdicts = {each.gate.metric: each.verdict for each in audit.judgements}
    assert verdicts == {
        "equalized_odds_difference": "INCONCLUSIVE", "accuracy": "INCONCLUSIVE",
        "demographic_parity_difference": "FAIL",  # of all rows
    }  # fmt: skip
    (answer,) = answers(audit)
    assert answer.startswith("Unknown: the labelled rows are no random part of the table: ")
    assert audit.assumption.startswith("the labelled rows are no random part of the table: mean")
    assert "no test can see" in rf.audit(few(people(2000), 300), **SOME).assumption


def test_labels_of_some_months_are_no_random_part() -> None:
    rng, table = np.random.default_rng(0), people(3000)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 180, 3000), unit="D")
    may = days >= pd.Timestamp("2024-05-01")
    dated = {**SOME, "sensitive_features": ["sex", "when"], "bins": {"when": "month"}}
    doubts = []
    for chance in (0.2, np.where(may, 0.5, 0.05)):
        known = rng.random(3000) < chance
        labelled = table.assign(y=table["y"].where(known), when=days.strftime("%Y-%m-%d"))
        doubts.append(rf.audit(labelled, **dated).label_selection)
    random, late = doubts
    assert not random and len(late) == 1
    shares = {month: ((days[known].month == month).mean(), (days.month == month).mean())
              for month in (5, 6)}  # fmt: skip
    month, (of_labelled, of_all) = max(shares.items(), key=lambda item: item[1][0] / item[1][1])
    said = f"when 2024-{month:02d}: {of_labelled:.3f} of labelled, {of_all:.3f} of all rows"
    assert late[0].startswith(said)


def labels_tested(draws: int, rows: int, labels: int, chosen: str) -> float:
    """How often labels of a random part, or of one that depends on a column, are doubted."""
    doubted = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        table = people(rows, seed)
        chance = {
            "at random": np.ones(rows),
            "with known probabilities": rng.choice([1.0, 4.0], rows) * (1 + (table["sex"] == "f")),
            "by score": 0.2 + table["p"], "by group": np.where(table["sex"] == "f", 0.4, 1.0),
            "by class": np.where(table["y"] == 1, 0.2, 1.0),
        }[chosen]  # fmt: skip
        chance = np.asarray(chance * labels / chance.sum())
        table = table.assign(chance=chance, y=table["y"].where(rng.random(rows) < chance))
        options = Options("y", "p", ["sex"], labels="some",
                          label_probability="chance" if "known" in chosen else None)  # fmt: skip
        doubted += bool(label_selection(check(table, options)))
    return doubted / draws


@pytest.mark.parametrize(
    ("draws", "rows", "labels"),
    [(60, 1000, 100), *(pytest.param(1000, *of, marks=pytest.mark.slow)
                        for of in ((1000, 100), (5000, 300), (5000, 1000)))],
)  # fmt: skip
def test_random_labels_are_seldom_doubted_and_others_often(draws, rows, labels) -> None:
    for chosen in ("at random", "with known probabilities"):
        assert (
            labels_tested(draws, rows, labels, chosen) <= stats.binom.ppf(0.99, draws, 0.05) / draws
        )
    for chosen in ("by score", "by group", "by class"):
        assert labels_tested(draws, rows, labels, chosen) >= 0.5, chosen
