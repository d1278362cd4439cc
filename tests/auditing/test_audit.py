"""Audits of given predictions: against fairlearn, by hand, by simulation, and as a command."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from robust_fairness.auditing.definitions import definition
from robust_fairness.auditing.door import check
from robust_fairness.auditing.gates import parse
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.scores import AUDIT
from robust_fairness.auditing.verdict import gaps
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import estimate
from robust_fairness.metrics import Score, evaluate, find_metric
from robust_fairness.numbers import intervals
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.numbers.groups import Groups, groups_of
from robust_fairness.numbers.verdicts import holm
from tests.auditing.tables import audit, failures

ROOT = Path(__file__).parents[2]
PROBABILITY = 0.6
OF_PROBABILITIES = "faircocco|.*probability_shares"


def table(rows: int = 300, seed: int = 0) -> pd.DataFrame:
    """Predictions that lean on a sex and not on a region."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    y = rng.integers(0, 2, rows)
    score = 0.5 + 0.25 * (y - 0.5) + 0.15 * (sex == "m") + 0.15 * rng.standard_normal(rows)
    return pd.DataFrame(
        {
            "y": y,
            "p": score.clip(0, 1),
            "sex": sex,
            "region": rng.choice(["north", "south", "west"], rows),
            "age": rng.uniform(18, 80, rows),
        }
    )


def value(rows: pd.DataFrame, metric: str, attribute: str = "", group: str = "") -> pd.Series:
    """The one row of a metric."""
    (record,) = rows[
        (rows["metric"] == metric) & (rows["attribute"] == attribute) & (rows["group"] == group)
    ].to_dict("records")
    return pd.Series(record)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """An audit of probabilities."""
    return audit(table(), "y", "p", ["sex", "region", "age"], threshold=PROBABILITY)


def test_shares_have_wilsons_interval_of_scipy(rows: pd.DataFrame) -> None:
    shares = rows[rows["interval"] == "Wilson"]
    assert {"accuracy", "accuracy_by_group", "group_share"} <= set(shares["metric"])
    for row in shares.to_dict("records"):
        n = row["n"] if row["metric"] != "group_share" else 300
        exact = stats.binomtest(round(row["value"] * n), n).proportion_ci(method="wilson")
        assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high))


def test_a_table_by_hand() -> None:
    """Four women of whom one, four men of whom three are accepted; one without sex."""
    frame = pd.DataFrame(
        {
            "truth": ["yes", "no", "no", "yes", "yes", "no", "no", "yes", "yes"],
            "said": ["yes", "no", "no", "no", "yes", "yes", "no", "yes", "yes"],
            "sex": ["f", "f", "f", "f", "m", "m", "m", "m", None],
        }
    )
    audited = audit(frame, "truth", "said", ["sex"], pos_label="yes", small=5)
    assert list(audited.columns) == list(AUDIT)
    assert value(audited, "accuracy")["value"] == pytest.approx(7 / 9)
    assert value(audited, "delta_dp", "sex")["value"] == pytest.approx(0.5)
    # true negative rates 1 and 1/2, true positive rates 1/2 and 1
    assert value(audited, "delta_eo", "sex")["value"] == pytest.approx(1)
    assert value(audited, "disparate_impact", "sex")["value"] == pytest.approx(1 / 3)
    lacking = value(audited, "missing_attribute", "sex")
    assert lacking["value"] == pytest.approx(1 / 9)
    assert lacking["note"] == "1 row without a value in no group"
    assert value(audited, "accuracy_by_group", "sex", "f")["small"]
    assert value(audited, "delta_dp", "sex")["note"] == (
        "m less f; f has 4 rows for the selection rate, 8 are needed; m has 4 rows for the "
        "selection rate, 8 are needed; small group: f has 4 rows"
    )
    assert value(audited, "delta_eo", "sex")["note"] == (
        "f has 2 rows for the true positive rate, 8 are needed; m has 2 rows for the true positive "
        "rate, 8 are needed; small group: f, class no has 2 rows"
    )
    plenty = audit(frame, "truth", "said", ["sex"], pos_label="yes", small=2)
    small = plenty[plenty["small"]]
    assert small[["metric", "group", "n"]].to_numpy().tolist() == [["precision_by_group", "f", 1]]


def bounds_of(counts: np.ndarray, names: tuple[str, ...]) -> dict[str, Score]:
    """Intervals of metrics of counts by group, class and prediction."""
    made = {name: intervals.estimated(find_metric(name), counts_from(counts)) for name in names}
    return {name: scores[""] for name, (scores, _) in made.items() if scores[""].interval}


def counts_from(counts: np.ndarray) -> Counts:
    groups, classes, _ = counts.shape
    n = np.concatenate([counts, np.zeros((1, classes, classes), np.int64)])
    names = tuple(map(str, range(groups)))
    return Counts(names, tuple(map(str, range(classes))), n, n.astype(float), n.astype(float))


GAPS = (
    "demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference",
    "delta_dp", "delta_eopp", "delta_eo", "demographic_parity_ratio", "disparate_impact",
    "equal_opportunity_ratio", *intervals.ONE_VS_REST, "worst_group_accuracy",
)  # fmt: skip


@pytest.mark.parametrize(("groups", "classes", "count"), [(2, 2, 12), (4, 2, 6), (4, 3, 3)])
def test_cells_have_the_metrics_of_rows_and_intervals_contain_them(
    groups: int, classes: int, count: int
) -> None:
    rng = np.random.default_rng(groups)
    for most in (4, 20, 300):
        counts = rng.integers(1, most, (groups, classes, classes))
        place = np.repeat(np.arange(counts.size), counts.ravel())
        group, y, prediction = np.unravel_index(place, counts.shape)
        arrays = {
            "y_true": y, "y_pred": prediction, "classes": tuple(map(str, range(classes))),
            "sensitive_features": Groups.named(group, tuple(map(str, range(groups)))),
        }  # fmt: skip
        cells = counts_from(counts)
        names = tuple(
            name
            for name in GAPS
            if (classes == 2 or not find_metric(name).definition.binary)
            and find_metric(name).of(cells)[""].value is not None
        )
        bounds = bounds_of(counts, names)
        assert len(bounds) == count
        for name, bound in bounds.items():
            value = find_metric(name).scores(arrays)[""].value
            assert find_metric(name).of(counts_from(counts))[""].value == pytest.approx(value)
            assert 0 <= bound.low <= value + 1e-12 and value - 1e-12 <= bound.high, name
            assert bound.low < bound.high, name
            compared = intervals.compared(find_metric(name), counts_from(counts))
            if compared is not None:
                gap = compared.gap.of(compared.rates.mean)[0]
                assert (1 - gap if compared.turned else gap) == pytest.approx(value), name


# Rates of the first group, and those of the second less a gap.
TRUE_POSITIVE, TRUE_NEGATIVE, POSITIVE = 0.7, 0.8, 0.4
LARGEST = (
    "demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference",
)  # fmt: skip
COVERED = {
    (2, 0.0): ("delta_dp", "delta_eo", "equal_opportunity_difference", "disparate_impact"),
    (2, 0.02): ("delta_dp", "delta_eo", "equal_opportunity_difference", "disparate_impact"),
    (4, 0.0): ("delta_dp_one_vs_rest", "delta_eo_one_vs_rest", "worst_group_accuracy", *LARGEST),
    (4, 0.1): ("delta_dp_one_vs_rest", "delta_eo_one_vs_rest", "worst_group_accuracy", *LARGEST),
}


def cells_of(gap: float) -> np.ndarray:
    """Shares of a group's rows by class and prediction."""
    recall = TRUE_POSITIVE - gap
    return np.array(
        [
            [(1 - POSITIVE) * TRUE_NEGATIVE, (1 - POSITIVE) * (1 - TRUE_NEGATIVE)],
            [POSITIVE * (1 - recall), POSITIVE * recall],
        ]
    )


def truths(gap: float) -> dict[str, float]:
    """The metrics of rates, of which the last group has a gap, in closed form."""
    rates = [POSITIVE * TRUE_POSITIVE + (1 - POSITIVE) * (1 - TRUE_NEGATIVE)]
    rates += [rates[0] - POSITIVE * gap]
    # largest of the group with the gap, whose complement has none
    return {
        "delta_dp": POSITIVE * gap, "delta_eo": gap, "equal_opportunity_difference": gap,
        "disparate_impact": rates[1] / rates[0], "delta_dp_one_vs_rest": POSITIVE * gap,
        "delta_eo_one_vs_rest": gap,
        "demographic_parity_difference": POSITIVE * gap,
        "equalized_odds_difference": gap,
        "worst_group_accuracy": POSITIVE * (TRUE_POSITIVE - gap) + (1 - POSITIVE) * TRUE_NEGATIVE,
    }  # fmt: skip


@pytest.mark.parametrize("small", [5, 50, 500])
@pytest.mark.parametrize(("groups", "gap"), list(COVERED))
def test_intervals_hold_the_truth_as_often_as_they_say(groups: int, gap: float, small: int) -> None:
    """Near no gap too, and in groups of five rows, where resampled rows hold it half as often."""
    rng = np.random.default_rng([groups, int(100 * gap), small])
    rows = (small, *(500,) * (groups - 1))[::-1]
    truth = truths(gap)
    repeats, held = 200, dict.fromkeys(COVERED[groups, gap], 0)
    told = dict.fromkeys(held, 0)
    for _ in range(repeats):
        counts = np.stack(
            [
                rng.multinomial(n, cells_of(gap * (group == groups - 1)).ravel()).reshape(2, 2)
                for group, n in enumerate(rows)
            ]
        )
        bounds = bounds_of(counts, tuple(held))
        for name in held:
            if name in bounds and np.isfinite(bounds[name].low):
                told[name] += 1
                held[name] += bounds[name].low <= truth[name] <= bounds[name].high
                assert bounds[name].low < bounds[name].high
    for name, count in held.items():
        assert told[name] > repeats / 2
        assert count / told[name] > 0.88, name


def test_a_ratio_contains_its_value_and_ends_at_one_where_groups_may_be_alike() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = rng.integers(3, 200, 2)
        hits = rng.binomial(rows, rng.random(2))
        interval = intervals.ratio(hits, rows)
        if not hits.any():
            assert np.isnan(interval.low)
            continue
        ends = [wilson_interval(hits[k : k + 1] / rows[k], rows[k : k + 1]) for k in (0, 1)]
        newcombe = intervals.difference_of(
            *((hits[k] / rows[k], ends[k][0][0], ends[k][1][0]) for k in (0, 1))
        )
        share = hits / rows
        if hits.all() and (hits < rows).all():
            assert (newcombe[0] <= 0 <= newcombe[1]) == (interval.high == 1)
        assert 0 <= interval.low <= share.min() / share.max() <= interval.high <= 1


def test_kernel_scores_are_the_registrys_alone_and_jointly_and_adjusted(
    rows: pd.DataFrame,
) -> None:
    frame = table()
    scored = check(frame, Options("y", "p", ["sex", "region", "age"], threshold=PROBABILITY))
    np.testing.assert_allclose(np.exp(scored.outputs[:, 1]), frame["p"])
    names = ["faircocco_dp", "faircocco_eo_p_value"]
    for row in evaluate(names, scored.samples, scored.outputs):
        assert value(rows, row["metric"], row["attribute"])["value"] == row["value"]
    joint = "sex & region & age"
    assert value(rows, "faircocco_dp_p_value_holm", "sex")["value"] < 0.05
    assert value(rows, "faircocco_dp_p_value_holm", "region")["value"] > 0.05
    assert value(rows, "faircocco_dp", joint)["value"] > 0
    plain = rows[rows["metric"].str.endswith("_p_value")]
    adjusted = rows[rows["metric"].str.endswith("_holm")]
    assert len(plain) == 12
    np.testing.assert_array_equal(adjusted["value"], holm(list(plain["value"])))


def test_a_class_a_probability_and_a_score_of_the_same_decisions_agree() -> None:
    frame = table()
    frame["decided"] = (frame["p"] >= 0.5).astype(int)
    frame["points"] = 100 * frame["p"] - 7
    audits = [
        audit(frame, "y", "p", ["sex"]),
        audit(frame, "y", "decided", ["sex"]),
        audit(frame, "y", "points", ["sex"], prediction_is="score", threshold=43.0),
    ]
    plain = [rows[~rows["metric"].str.match(OF_PROBABILITIES)] for rows in audits]
    pd.testing.assert_frame_equal(plain[0], plain[1])
    pd.testing.assert_frame_equal(plain[0], plain[2])
    scores = [value(rows, "faircocco_dp", "sex")["value"] for rows in audits]
    assert scores[0] == pytest.approx(scores[2], rel=1e-6)
    assert scores[1] != pytest.approx(scores[0])


def test_a_continuous_target_has_errors_with_students_interval() -> None:
    frame = table()
    rng = np.random.default_rng(0)
    frame["z"] = frame["age"] + rng.standard_normal(300)
    audited = audit(frame, "z", "age", ["sex"], continuous=True)
    signed = frame["age"] - frame["z"]
    errors = signed**2
    for metric, values in {"mean_squared_error": errors, "mean_error": signed}.items():
        for group, kept in [("", frame["sex"] != ""), *((g, frame["sex"] == g) for g in "fm")]:
            of_group = values[kept]
            names = (f"{metric}_by_group", "sex", group) if group else (metric,)
            row = value(audited, *names)
            law = stats.t(len(of_group) - 1, of_group.mean(), stats.sem(of_group))
            expected = (of_group.mean(), *law.interval(0.95))
            assert (row["value"], row["low"], row["high"]) == pytest.approx(expected)
    gap = value(audited, "mean_error_difference", "sex")
    (line,) = gaps(audited)
    assert line.startswith(
        f"sex: difference of mean errors {estimate(gap['value'], gap['low'], gap['high'])}, "
    )
    means = signed.groupby(frame["sex"]).mean()
    assert gap["value"] == pytest.approx(np.ptp(means)) and 0 <= gap["low"] < gap["high"]
    assert failures("mean_error_difference[sex]>5", audited) == []
    assert failures("mean_error_by_group<5", audited)
    worst = value(audited, "worst_group_mean_squared_error", "sex")
    assert worst["value"] == pytest.approx(errors.groupby(frame["sex"]).mean().max())
    assert worst["low"] < worst["value"] < worst["high"]
    assert worst["interval"] == "linear functions"


def test_intersections_bins_and_types() -> None:
    frame = table()
    frame["code"] = np.where(frame["sex"] == "f", 0, 1)
    audited = audit(
        frame, "y", "p", ["sex", "age", "code"], bins={"age": (30.0,)}, types={"code": "number"},
        intersections=True,
    )  # fmt: skip
    groups = audited[audited["metric"] == "group_share"]
    assert set(groups["attribute"]) == {"sex", "age", "sex & age"}
    expected = ((frame["sex"] == "f") & (frame["age"] < 30)).mean()
    row = value(audited, "group_share", "sex & age", "f & age < 30")
    assert row["value"] == pytest.approx(expected)
    assert "sex & age & code" in set(audited["attribute"])


def changed(column: str, row: int, cell: object) -> pd.DataFrame:
    """The table with another cell."""
    frame = table(40).astype({column: object})
    frame.loc[row, column] = cell
    return frame


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (table(40), {"y_true": "yy"}, r"table: unknown column 'yy': did you mean 'y'"),
        (table(40), {"sensitive_features": ["sexe"]}, r"unknown column 'sexe': did you mean 'sex'"),
        (table(40), {"sensitive_features": []}, r"attributes: at least one"),
        (table(40), {"sensitive_features": ["y"]}, r"column y has two roles"),
        (table(40).assign(y=1), {}, r"column y: every row has the value 1; at least two"),
        (table(40).assign(sex="f"), {}, r"column sex: every row has the value f; at least two"),
        (table(0), {}, r"table: has no rows"),
        (changed("p", 3, 1.5), {}, r"column p, row 4: 1\.5, allowed: .* probability from 0 to 1"),
        (changed("p", 3, np.inf), {}, r"column p, row 4: 'inf', allowed: a finite number"),
        (changed("p", 3, None), {}, r"column p, row 4: no prediction; 1 rows lack one"),
        (changed("y", 3, None), {}, r"column y, row 4: no target"),
        (table(40), {"pos_label": "yes"}, r"column y: unknown positive value 'yes'"),
        (table(40), {"prediction_is": "score"}, r"column p: a score needs a threshold"),
        (table(40), {"prediction_is": "class"}, r"column p, row \d+: unknown class"),
        (table(40), {"prediction_is": "number"}, r"allowed: class, probability, score"),
        (table(40), {"threshold": 2.0}, r"threshold: 2, allowed: 0 to 1"),
        (
            table(40).assign(p=lambda rows: 30 + 40 * rows["y"]),
            {},
            r"prediction_is='score' threshold=50",
        ),
        (
            table(40).assign(y=["No"] * 9 + ["no"] * 11 + ["yes"] * 20),
            {},
            r"'no' .11 rows., 'No' .9 rows. differ only in case",
        ),
        (table(40), {"y_true": "age"}, r"column age: 40 distinct numbers .* continuous"),
        (table(40), {"bins": {"age": 3}}, r"bins: unknown attribute 'age'"),
        (
            table(400).assign(sex=[f"s{k}" for k in range(400)]),
            {},
            r"column sex: 400 distinct values, allowed: at most 100 .*bins",
        ),
    ],
)
def test_bad_input_is_one_line(frame: pd.DataFrame, options: dict, message: str) -> None:
    given = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"], **options}
    with pytest.raises(InputError, match=message) as error:
        audit(frame, **given)
    assert "\n" not in str(error.value)


# Gates


def test_gates_compare_and_a_missing_value_fails_with_its_reason(rows: pd.DataFrame) -> None:
    gap = value(rows, "delta_eo", "sex")["value"]
    (failure,) = failures("delta_eo[sex]>0.05", rows)
    assert failure.startswith(f"delta_eo[sex]>0.05: delta_eo (sex) is {gap:.2f} (95 % ")
    assert failures(" eo [ sex ] > 1.9 ", rows) == []
    (failure,) = failures("eo>1.9", rows)
    assert (
        failure
        == "eo>1.9: delta_eo (region) has no value: not applicable: 3 groups, defined for two; "
        "equalized_odds_difference is for any number of groups"
    )
    assert failures("accuracy<1", rows) and not failures("accuracy<=.1", rows)
    assert len(failures("accuracy_by_group>=0", rows)) == 5
    assert failures("delta_eo[age]>1", rows) == ["delta_eo[age]>1: the audit has no such row"]


def test_bounds_are_part_of_gates_with_an_equals_sign_only() -> None:
    rows = pd.DataFrame(
        {"metric": ["accuracy"], "attribute": [""], "group": [""], "value": [0.5], "note": [""]}
    )
    failed = {sign: bool(failures(f"accuracy{sign}0.5", rows)) for sign in (">", ">=", "<", "<=")}
    assert failed == {">": False, ">=": True, "<": False, "<=": True}


@pytest.mark.parametrize(
    "text",
    ["", "delta_eo", "delta_eo>", "delta_eo=0.1", "delta_eo==0.1", ">0.1", "delta_eo>x",
     "delta_eo>nan", "delta_eo>1e999", "delta_eo[]>1", "a>1 or b>1", "__import__('os')>1",
     "delta_eo>0.1>0.2"],
)  # fmt: skip
def test_gates_of_other_forms_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^gate .*allowed: a metric, a comparison and a number"):
        parse(text)


# The command


def command(folder: Path, *words: str) -> subprocess.CompletedProcess:
    """Run the command in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "robust_fairness", "audit", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_writes_page_and_rows_and_its_status_tells_of_gates(tmp_path: Path) -> None:
    frame = table(120)
    frame.loc[5, "region"] = None
    frame["region"] = frame["region"].replace("west", "<b>west</b>")
    frame.to_csv(tmp_path / "mine.csv", index=False)
    words = ("mine.csv", "--target=y", "--prediction=p", "--attributes=sex,region")
    done = command(tmp_path, *words, "--fail-if=eo[sex]>1.9", "--fail-if", "accuracy<0.99")
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("failed: accuracy<0.99: accuracy is 0.")
    assert len(done.stderr.splitlines()) == 1
    accuracy = re.match(r"No: accuracy is (0\.\d+), below 0.99\.", done.stdout)
    assert accuracy and accuracy[1] in done.stderr
    assert done.stdout.splitlines()[1].startswith(
        "sex = m: rows with y = 0 are predicted 1 at least"
    )
    assert done.stdout.splitlines()[2].startswith("Also: sex = f: rows with y = 1 are predicted 1")
    assert done.stdout.splitlines()[3] == "gates: 1 FAIL, 1 PASS"
    lines = done.stdout.splitlines()[3:]
    assert [line.partition(":")[0] for line in lines[1:5]] == [
        "region",
        "sex",
        "worst group",
        "80 % power",
    ]
    assert lines[3].startswith("worst group: region <b>")
    assert lines[5].startswith("region: 1 row without a value in no group; demographic")
    rows = pd.read_csv(tmp_path / "mine_audit.csv", keep_default_na=False)
    assert list(rows) == list(AUDIT)
    options = {"metrics": ["conventional"], "name": "mine.csv"}
    expected = audit(frame, "y", "p", ["sex", "region"], **options)
    pd.testing.assert_series_equal(pd.to_numeric(rows["value"]), expected["value"])
    page = (tmp_path / "mine_audit.html").read_text()
    assert "<b>west" not in page and "&lt;b&gt;west" in page
    assert "eo[sex]&gt;1.9" in page and page.count("<strong>FAIL</strong>") == 1
    assert "1 row without a value" in page and "<script" not in page and len(page) < 100_000
    shown = {name: name for name in ("delta_eo", "equalized_odds_difference")}
    shown["accuracy_by_group"] = "accuracy by group"  # a column of a table that has to fit
    for metric, heading in shown.items():
        assert heading in page and definition(metric) in html.unescape(page)
    assert not re.search(r"(src|href)=.https?:|@import", page)


def test_small_groups_are_not_the_worst_and_continuous_attributes_are_named(tmp_path: Path) -> None:
    """A group of one wrong row fails no gate, is not the worst group and has no accuracy."""
    frame = table(400)
    frame.loc[0, ["region", "y", "p"]] = ["islet", 1, 0.0]
    frame.to_csv(tmp_path / "mine.csv", index=False)
    words = ("mine.csv", "--target=y", "--prediction=p", "--attributes=region,age", "--model-card")
    words += ("--fail-if=accuracy_by_group<0.3",)
    undeclared = command(tmp_path, *words)  # age has no groups, of which the gate could be judged
    assert undeclared.returncode == 1
    assert "age is taken for a number and has no groups; allowed: --category age" in (
        undeclared.stderr
    )
    done = command(tmp_path, *words, "--number=age", "--force")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    answer = "Unknown: accuracy_by_group by region, islet is 0.00 to 0.79, perhaps below 0.3."
    assert lines.pop(0) == answer
    assert lines.pop(0) == "No group can be named: too little is known of islet."
    assert lines[0] == "gates: 1 INCONCLUSIVE, 3 PASS"
    assert "(region, islet) is 0.00 (95 % 0.00 to 0.79)" in lines[1]
    gap = value(audit(frame, "y", "p", ["region"]), "equal_opportunity_difference", "region")
    expected = f"equal opportunity difference {estimate(gap['value'], gap['low'], gap['high'])}"
    assert lines[2].startswith(f"region: {expected}")
    assert lines[3].startswith("worst group: region ") and "islet" not in lines[3]
    assert lines.pop(4).startswith("80 % power: region: equal opportunity difference, no gaps")
    assert lines[4].startswith("region: equalized odds difference not defined: islet (no rows of")
    assert "region: too few rows of islet; gaps contain them" in lines
    page = (tmp_path / "mine_audit.html").read_text()
    assert page.index('id="gates"') > page.index('id="groups"') < page.index('id="overall"')
    assert "few rows (0.00 to 0.79)" in page and lines[5] in page
    card = (tmp_path / "mine_model_card.md").read_text()
    assert card.splitlines()[2] == f"**{answer}**" and expected in card
    assert f"<strong>{answer}</strong>" in page
    assert "| islet" not in card.partition("### By group")[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target=z",), r"unknown column 'z'.*; without labels: --labels none"),
        (("--fail-if=delta_e>0.1",), r"unknown metric 'delta_e': did you mean 'delta_eo'"),
        (("--fail-if=eo[age]>0.1",), r"unknown attribute 'age'"),
        (("--fail-if=eopp>0.1",), r"eopp may be equal_opportunity_difference .* or delta_eopp"),
        (("--fail-if=change(accuracy)>0.1",), r"a change needs --reference or --period"),
        (("--metrics=accurracy",), r"unknown metric 'accurracy': did you mean 'accuracy'"),
        (("--period=region",), r"column region, row \d+: '\w+' after rows of another period"),
        (("--period=nope",), r"unknown column 'nope'"),
        (("--fail-if=eo>0.1;1",), r"allowed: a metric, a comparison and a number"),
        (("--bins=sex=x",), r"bins 'sex=x', allowed: age=30,60"),
        (("--missing=f",), r"every row has the value m"),
        (("--output=mine.csv",), r"cannot be written"),
    ],
)
def test_bad_input_is_status_two_and_writes_nothing(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    """In this process: the command line that the process would run."""
    path = tmp_path / "mine.csv"
    table(60).to_csv(path, index=False)
    given = [str(path), "--target=y", "--prediction=p", "--attributes=sex"]
    given += [f"--output={tmp_path}", *(word.replace("mine.csv", str(path)) for word in words)]
    done = CliRunner().invoke(cli, ["audit", *given])
    assert done.exit_code == 2, done.output
    assert len(done.output.splitlines()) == 1
    assert re.search(message, done.output)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.csv"]


def test_groups_of_an_attribute_are_counted_whatever_the_order_of_rows() -> None:
    """Shuffling the rows changes no value of groups."""
    frame = table()
    shuffled = frame.sample(frac=1, random_state=1)
    audits = [audit(rows, "y", "p", ["region"]) for rows in (frame, shuffled)]
    plain = [rows[~rows["metric"].str.match(OF_PROBABILITIES)] for rows in audits]
    pd.testing.assert_frame_equal(plain[0], plain[1])
    assert groups_of(frame.astype("category"), ["region"]).counts.sum() == 300
