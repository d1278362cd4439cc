"""Comparison of two periods: intervals by simulation, the mix of groups, gates and bad input."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.auditing.changes import MIX, change_of, changes, due_to_mix
from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.gates import as_values, parse
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.verdict import answers, console
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers import intervals
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import wilson_interval
from tests.auditing.tables import audit, failures


def period(rows: int, seed: int, gap: float, west: float = 0.2) -> pd.DataFrame:
    """Predictions that miss positives of group m with a probability."""
    rng = np.random.default_rng(seed)
    sex, y = rng.choice(["f", "m"], rows), rng.integers(0, 2, rows)
    right = rng.random(rows) >= 0.2 + gap * ((sex == "m") & (y == 1))
    return pd.DataFrame(
        {
            "y": y,
            "said": np.where(right, y, 1 - y),
            "sex": sex,
            "region": rng.choice(["east", "west"], rows, p=[1 - west, west]),
        }
    )


OPTIONS = Options("y", "said", ["sex", "region"])
NOW, THEN = period(2000, 0, 0.3, 0.5), period(3000, 1, 0.0)


@pytest.fixture(scope="module")
def changed() -> pd.DataFrame:
    """The changes between the two periods."""
    options = {"metrics": ["conventional"]}
    return changes(
        *(audit(period, "y", "said", ["sex", "region"], **options) for period in (NOW, THEN))
    )


def of(changed: pd.DataFrame, metric: str, attribute: str = "", group: str = "") -> pd.Series:
    (row,) = changed[
        (changed["metric"] == metric)
        & (changed["attribute"] == attribute)
        & (changed["group"] == group)
    ].to_dict("records")
    return pd.Series(row)


def test_a_planted_change_is_found_and_the_share_of_a_group_drifts(changed: pd.DataFrame) -> None:
    odds = of(changed, "equalized_odds_difference", "sex")
    assert odds["change"] == pytest.approx(odds["now"] - odds["then"])
    assert 0.15 < odds["low"] < 0.3 < odds["high"] < 0.45
    assert of(changed, "true_positive_rate_by_group", "sex", "m")["high"] < -0.2
    assert of(changed, "group_share", "region", "west")["low"] > 0.25
    still = of(changed, "equalized_odds_difference", "region")
    assert still["low"] < 0 < still["high"]


def test_the_change_of_a_rate_has_newcombes_interval() -> None:
    """Table II of Newcombe (1998), method 10: 56/70 - 48/80."""
    hits, rows = np.array([56, 48]), np.array([70, 80])
    share = hits / rows
    now, then = zip(share, *wilson_interval(share, rows), strict=True)
    assert intervals.difference_of(now, then) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(("now", "then"), [(0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.25, 0.1)])
@pytest.mark.parametrize("rows", [(40, 40, 400, 400), (500, 100, 800, 800), (200, 200, 200, 20)])
def test_intervals_of_changes_of_gaps_cover_the_truth(
    now: float, then: float, rows: tuple[int, ...]
) -> None:
    """Gaps of two groups, absolute values, now and then; also where none is there."""
    rng = np.random.default_rng([int(100 * now), int(100 * then), rows[0]])
    both, gap_of_rates = [], find_metric("demographic_parity_difference").gap
    for gap, sizes in ((now, rows[:2]), (then, rows[2:])):
        hits = rng.binomial(sizes, [0.7, 0.7 - gap], (500, 2))
        counts = np.stack([sizes - hits, hits], -1)[:, :, None] * [[1], [0]]
        bounds = intervals.bounds_of_gap(gap_of_rates, Counts.of_rows(counts))
        both.append((np.ptp(hits / sizes, axis=1), *bounds))
    low, high = change_of(*both)
    covered = (low <= now - then) & (now - then <= high)
    assert covered.mean() > 0.92  # three standard errors below 0.95


def test_the_part_due_to_the_mix_is_that_of_other_shares(changed: pd.DataFrame) -> None:
    """By pandas: accuracies of now, with the shares of now less with the shares of then."""
    then, now = (
        period.assign(right=period["y"] == period["said"]).groupby("region")["right"]
        for period in (THEN, NOW)
    )
    shares = [groups.size() / groups.size().sum() for groups in (then, now)]
    expected = ((shares[1] - shares[0]) * now.mean()).sum()
    assert of(changed, MIX, "region")["change"] == pytest.approx(expected, abs=1e-12)
    # half the rows move to a group that is right 40 points more often; a third group is new
    shares, means = np.array([0.5, 0.4, 0.1]), np.array([0.9, 0.5, 0.7])
    before, known = np.array([0.1, 0.9, np.nan]), np.array([0.9, 0.5, np.nan])
    assert due_to_mix(shares, before, means, known) == pytest.approx(0.4 * 0.9 - 0.5 * 0.5 + 0.07)


def test_gates_on_changes_and_their_rules(changed: pd.DataFrame) -> None:
    values = as_values(changed)
    gate = parse(" change( equalized_odds_difference [sex] ) > 0.05 ")
    assert gate.change and gate.attribute == "sex" and len(failures(gate.text, values)) == 1
    row = of(changed, "equalized_odds_difference", "sex")
    inside = parse(f"change(equalized_odds_difference[sex])>{(row['low'] + row['change']) / 2}")
    over = parse(f"change(equalized_odds_difference[sex])>{(row['high'] + row['change']) / 2}")
    verdicts = {
        rule: [next(parsed.judgements(values, rule)).verdict for parsed in (gate, inside, over)]
        for rule in ("estimate", "evidence", "doubt")
    }
    assert verdicts == {
        "estimate": ["FAIL", "FAIL", "INCONCLUSIVE"],
        "evidence": ["FAIL", "INCONCLUSIVE", "INCONCLUSIVE"],
        "doubt": ["FAIL", "FAIL", "FAIL"],
    }


def test_groups_of_one_period_and_hidden_groups_are_told() -> None:
    then = THEN.assign(region=np.where(np.arange(len(THEN)) < 9, "north", THEN["region"]))
    options = {"metrics": ["conventional"], "suppress": 0}
    rows = [audit(table, "y", "said", ["region"], **options) for table in (NOW, then)]
    told = changes(*rows)
    assert of(told, "group_share", "region", "north")["note"] == "only in the earlier period"
    note = "north only in the earlier period"
    assert of(told, "equalized_odds_difference", "region")["note"] == note
    metrics = ["conventional", "disparate_impact_by_group"]
    hidden = audit(then, "y", "said", ["region"], metrics=metrics, suppress=10)
    assert set(hidden["group"]) == {"", "east", "west"}
    assert not hidden["note"].str.contains("north").any()
    pd.testing.assert_series_equal(
        hidden[hidden["group"] == ""]["value"].reset_index(drop=True),
        rows[1][rows[1]["group"] == ""]["value"].reset_index(drop=True),
    )


def test_periods_of_a_table_are_as_two_tables(tmp_path: Path) -> None:
    days = [
        pd.Series(pd.date_range("2025-01-01", periods=59)),
        pd.Series(pd.date_range("2025-03-02", periods=20)),
    ]
    log = pd.concat(
        [
            rows.assign(day=dates.sample(len(rows), replace=True, random_state=0).to_numpy())
            for rows, dates in zip((THEN, NOW), days, strict=True)
        ]
    ).sample(frac=1, random_state=0)
    log.assign(day=log["day"].dt.strftime("%Y-%m-%d")).to_csv(tmp_path / "log.csv", index=False)
    log.to_parquet(tmp_path / "log.parquet")
    for rows, name in ((NOW, "now"), (THEN, "then")):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    expected = audit_file(
        TableFile(tmp_path / "now.csv"), OPTIONS, reference=tmp_path / "then.csv"
    ).changed
    for name in ("log.csv", "log.parquet"):
        split = audit_file(TableFile(tmp_path / name), OPTIONS, monitored=Monitored("day"))
        pd.testing.assert_frame_equal(split.changed, expected)
        assert "Audit of 2025-03 against 2025-01 to 2025-02" in split.to_html()
        said = [line for line, _ in console(split)]
        answer, *others = [f"{line}." for line in answers(split)]
        assert answer.startswith("No: the gap by sex grew, most likely in 2025-03")
        assert said[: len(others) + 2] == [answer, *others, "2025-03 against 2025-01 to 2025-02"]


@pytest.mark.parametrize(
    ("then", "message"),
    [
        (THEN.drop(columns="sex"), r"then.csv: unknown column 'sex'"),
        (THEN.assign(y=THEN["y"].replace(0, -1)), r"now.csv has classes 0, 1, then.csv has -1, 1"),
        (THEN.assign(said=0.5 + THEN["said"] / 3), r"predictions of kind class.*probability"),
        (
            THEN.assign(sex=np.arange(len(THEN))),
            r"now.csv has sex as category, then.csv has number",
        ),
        (THEN.assign(y=None), r"then.csv, column y, row 1: no target"),
    ],
)
def test_periods_that_do_not_match_are_one_line(
    then: pd.DataFrame, message: str, tmp_path: Path
) -> None:
    for rows, name in ((NOW, "now"), (then, "then")):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    with pytest.raises(InputError, match=message) as error:
        audit_file(TableFile(tmp_path / "now.csv"), OPTIONS, reference=tmp_path / "then.csv")
    assert "\n" not in str(error.value)


def test_a_constant_predictor_is_the_first_line_of_console_and_page(tmp_path: Path) -> None:
    NOW.assign(said=1).to_csv(tmp_path / "now.csv", index=False)
    words = [str(tmp_path / "now.csv"), "--target=y", "--prediction=said", "--attributes=sex"]
    done = CliRunner().invoke(
        cli, ["audit", *words, f"--output={tmp_path}", "--fail-if=equalized_odds_difference>0.05"]
    )
    assert done.exit_code == 0 and len(done.output.splitlines()) <= 10
    assert done.output.startswith("warning: 100.0% of the rows are predicted as class 1")
    page = (tmp_path / "now_audit.html").read_text()
    assert page.index("Trivial predictor") < page.index('<p class="verdict')


def test_tables_are_read_as_people_write_them(tmp_path: Path) -> None:
    """Separators, percentages, upper case and decimals: the same rows of an audit."""
    plain = NOW[["y", "said", "sex"]]
    options = Options("y", "said", ["sex"])
    words, upper = plain["y"].map({0: "NO", 1: "yes"}), plain["said"].map({0: "no", 1: "YES"})
    forms = {
        "a.csv": (plain, ","),
        "b.csv": (plain, ";"),
        "c.tsv": (plain, "\t"),
        "d.csv": (plain.assign(y=plain["y"].astype(float)), ","),
        "e.csv": (plain.assign(y=words, said=upper), ","),
        "f.csv": (plain.assign(said=plain["said"].map({0: "12.5%", 1: "87.5 %"})), ","),
    }
    audits = []
    for name, (table, separator) in forms.items():
        table.to_csv(tmp_path / name, index=False, sep=separator, quoting=csv.QUOTE_NONNUMERIC)
        audits.append(audit_file(TableFile(tmp_path / name), options).rows.drop(columns="dataset"))
    for rows in audits[1:]:
        pd.testing.assert_frame_equal(rows, audits[0])


def test_json_has_every_value_and_the_card_every_group(tmp_path: Path) -> None:
    for rows, name in ((NOW, "now"), (THEN, "then")):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    words = [str(tmp_path / "now.csv"), f"--reference={tmp_path / 'then.csv'}", "--format=json"]
    words += ["--target=y", "--prediction=said", "--attributes=sex,region", "--model-card"]
    gate = "--fail-if=change(equalized_odds_difference[sex])>0.05"
    done = CliRunner().invoke(cli, ["audit", *words, gate, f"--output={tmp_path}"])
    told = json.loads(done.stdout)
    assert done.exit_code == 1 and told["verdict"] == "FAIL" and len(told["gates"]) == 1
    changed = pd.read_csv(tmp_path / "now_changes.csv")
    assert [change["metric"] for change in told["changes"]] == changed["metric"].tolist()
    card = (tmp_path / "now_model_card.md").read_text()
    for group in ("| sex | m |", "| region | west |", "equalized_odds_difference"):
        assert group in card


def test_the_answer_is_not_yes_while_a_gap_grew_that_is_shown() -> None:
    """Equal error rates, and base rates that move apart: parity grows, equalized odds hold."""
    rng = np.random.default_rng(0)

    def table(gap: float) -> pd.DataFrame:
        male = rng.random(20_000) < 0.5
        y = rng.random(20_000) < 0.5 + np.where(male, gap, -gap) / 2
        p = np.where(rng.random(20_000) < 0.1, ~y, y)
        sex = np.where(male, "m", "f")
        return pd.DataFrame({"sex": sex, "y": y.astype(int), "p": p.astype(int)})

    then, now = table(0.0), table(0.42)
    made = rf.audit(now, y_true="y", y_pred="p", sensitive_features="sex", reference=then)
    parity, odds = answers(made)
    grown = np.ptp(now.groupby("sex")["p"].mean()) - np.ptp(then.groupby("sex")["p"].mean())
    said = f"No: the gap by sex grew in the later period, by {grown:.2f}"
    assert parity == f"{said} (demographic parity difference)"
    assert odds.startswith("Yes: the gap by sex held")
    assert odds.endswith(" (equalized odds difference)")
