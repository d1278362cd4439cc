"""Gaps within strata: against least squares, statsmodels, loops, and published counts."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.audit import Audit
from robust_fairness.auditing.control import strata_of, within
from robust_fairness.auditing.door import check
from robust_fairness.auditing.export import record
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.strata import in_strata
from robust_fairness.auditing.verdict import answers, of_strata
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.intervals import compared

# Admitted and rejected men and women by department, Berkeley 1973 (Bickel, Hammel and O'Connell
# 1975; as in R's UCBAdmissions).
BERKELEY = {
    "A": ((512, 313), (89, 19)), "B": ((353, 207), (17, 8)), "C": ((120, 205), (202, 391)),
    "D": ((138, 279), (131, 244)), "E": ((53, 138), (94, 299)), "F": ((22, 351), (24, 317)),
}  # fmt: skip
KEYS = ["attribute", "group", "metric"]
COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"]}


def admissions() -> pd.DataFrame:
    return pd.DataFrame(
        [
            (department, sex, decision)
            for department, by_sex in BERKELEY.items()
            for sex, counts in zip("mf", by_sex, strict=True)
            for decision, n in zip((1, 0), counts, strict=True)
            for _ in range(n)
        ],
        columns=["department", "sex", "admitted"],
    )


def drawn(seed: int, rows: int = 500, groups: str = "fm", strata: int = 5) -> pd.DataFrame:
    """Decisions that depend on sex and stratum, which depend on one another."""
    rng = np.random.default_rng(seed)
    stratum = rng.integers(0, strata, rows)
    sex = np.minimum(rng.binomial(len(groups) - 1, (stratum + 1) / (strata + 1)), len(groups) - 1)
    y = rng.integers(0, 2, rows)
    share = 0.15 + 0.1 * stratum + 0.1 * (sex == 0) + 0.1 * y
    return pd.DataFrame(
        {
            "y": y, "p": (rng.random(rows) < share).astype(int),
            "sex": np.array(list(groups))[sex], "stratum": [f"s{code}" for code in stratum],
            "w": rng.integers(1, 5, rows), "house": np.arange(rows) // 2,
            "error": rng.normal(stratum + 2.0 * (sex == 0), 1),
        }
    )  # fmt: skip


def least_squares(rows: pd.DataFrame, value: str, first: str, weight: np.ndarray) -> float:
    """The coefficient of a group beside an intercept of every stratum."""
    dummies = pd.get_dummies(rows["stratum"]).to_numpy(np.float64)
    x = np.column_stack([rows["sex"] == first, dummies]) * np.sqrt(weight)[:, None]
    return float(np.linalg.lstsq(x, rows[value] * np.sqrt(weight), rcond=None)[0][0])


def of(audit: Audit, attribute: str, metric: str) -> pd.Series:
    return audit.to_frame().set_index(KEYS).loc[attribute, "", metric]


def test_berkeley_admissions_are_those_of_statsmodels() -> None:
    """RR: ``StratifiedTable(...).riskratio_pooled``, RD: ``OLS`` of statsmodels 0.15."""
    done = rf.audit(
        admissions(), y_pred="admitted", sensitive_features="sex", control_features="department"
    )
    ratio = of(done, "sex | department", "demographic_parity_ratio")
    assert ratio["value"] == pytest.approx(0.944905022595929, abs=1e-12)
    gap = of(done, "sex | department", "demographic_parity_difference")
    assert gap["value"] == pytest.approx(0.01842519619085135, abs=1e-12)
    # robust standard error of that regression, .01475
    assert gap["high"] - gap["value"] == pytest.approx(1.96 * 0.014746, abs=3e-4)
    (said,) = [line for line in done.remarks if "overall" in line]
    assert "m less f: +0.142 overall, -0.018 within department: most of it" in said
    assert not done.failures("demographic_parity_difference[sex | department]>0.1")
    assert done.failures("demographic_parity_difference[sex]>0.1")
    assert "demographic_parity_difference" in "".join(done.metrics())
    assert "sex.given.department.demographic_parity_difference" in done.metrics()
    assert said in done.to_html() and said in str(done)


@pytest.mark.parametrize("groups", ["fm", "fmx"])
@pytest.mark.parametrize("weighted", [False, True])
def test_differences_are_coefficients_beside_strata_and_ratios_those_of_mantel_and_haenszel(
    groups: str, weighted: bool
) -> None:
    for seed in range(3):
        table = drawn(seed, groups=groups)
        weight = table["w"].to_numpy() if weighted else np.ones(len(table))
        done = rf.audit(
            table, **COLUMNS, control_features="stratum", sample_weight="w" if weighted else None,
            metrics=["demographic_parity_difference", "equalized_odds_difference",
                     "demographic_parity_ratio"],
        )  # fmt: skip
        gaps: dict[str, list[float]] = {"all": [], "odds": [], "ratio": []}
        for pair in combinations(groups, 2):
            kept = table["sex"].isin(pair).to_numpy()
            some, heavy = table[kept], weight[kept]
            gaps["all"].append(abs(least_squares(some, "p", pair[0], heavy)))
            for label in (0, 1):
                of_class = (some["y"] == label).to_numpy()
                rate = least_squares(some[of_class], "p", pair[0], heavy[of_class])
                gaps["odds"].append(abs(rate))
            top = bottom = 0.0
            for name in some["stratum"].unique():
                inside = (some["stratum"] == name).to_numpy()
                first = (some["sex"] == pair[0]).to_numpy()
                sizes = [heavy[inside & side].sum() for side in (first, ~first)]
                hits = [
                    (heavy * some["p"].to_numpy())[inside & side].sum() for side in (first, ~first)
                ]
                top += hits[0] * sizes[1] / sum(sizes)
                bottom += hits[1] * sizes[0] / sum(sizes)
            gaps["ratio"].append(min(top / bottom, bottom / top))
        expected = {
            "demographic_parity_difference": max(gaps["all"]),
            "equalized_odds_difference": max(gaps["odds"]),
            "demographic_parity_ratio": min(gaps["ratio"]),
        }
        for metric, value in expected.items():
            assert of(done, "sex | stratum", metric)["value"] == pytest.approx(value), metric


def test_variances_are_those_of_standardised_rates_by_a_loop() -> None:
    """Of rows, of replicate weights and of units, each by its definition."""
    table = drawn(4)
    table[["r1", "r2", "r3"]] = np.random.default_rng(5).uniform(0.5, 2, (len(table), 3))
    gap = find_metric("demographic_parity_difference").gap
    assert gap is not None
    for options in ({}, {"sample_weight": "w", "replicate_weights": ["r1", "r2", "r3"]},
                    {"unit": "house"}):  # fmt: skip
        chosen = Options(**COLUMNS, control_features=["stratum"], **options)
        predictions = check(table, chosen)
        ((_, strata),) = strata_of(predictions)
        made = within(gap, strata)
        assert made.compared is not None
        weight = table["w"].to_numpy() if "sample_weight" in options else np.ones(len(table))
        cells = [
            [(table["sex"] == sex) & (table["stratum"] == name) for sex in "fm"]
            for name in sorted(table["stratum"].unique())
        ]
        sizes = np.array([[weight[cell].sum() for cell in row] for row in cells])
        k = sizes.prod(1) / sizes.sum(1)
        k /= k.sum()
        p = table["p"].to_numpy()

        def rates(
            weight: np.ndarray, p: np.ndarray = p, k: np.ndarray = k, cells: list = cells
        ) -> np.ndarray:
            return sum(
                part * np.array([np.average(p[cell], weights=weight[cell]) for cell in row])
                for part, row in zip(k, cells, strict=True)
            )

        if "unit" in options:
            influence = np.zeros(len(table))
            expected = []
            for end in (0, 1):
                influence[:] = 0
                for part, row in zip(k, cells, strict=True):
                    cell = row[end].to_numpy()
                    influence[cell] = part * (p[cell] - p[cell].mean()) / cell.sum()
                by_unit = np.bincount(table["house"], influence)
                expected.append((by_unit**2).sum() * len(by_unit) / (len(by_unit) - 1))
        elif options:
            around = [rates(table[name].to_numpy()) - rates(weight) for name in ("r1", "r2", "r3")]
            expected = 4 / 3 * np.square(around).sum(0)
        else:
            expected = np.zeros(2)
            for end in (0, 1):
                of_group = (table["sex"] == "fm"[end]).to_numpy()
                pooled = (p[of_group].sum() + 1) / (of_group.sum() + 2)
                for part, row in zip(k, cells, strict=True):
                    hits, n = p[row[end]].sum(), row[end].sum()
                    share = (hits + 2 * pooled) / (n + 2)
                    least = share * (1 - share) / n / (1 - n / (n + 2) ** 2)
                    expected[end] += part**2 * max(p[row[end]].var(ddof=1) / n, least)
        np.testing.assert_allclose(made.compared.rates.variance[0], expected, err_msg=str(options))
        np.testing.assert_allclose(made.compared.rates.mean[0], rates(weight))


def test_one_stratum_is_the_gap_without_strata() -> None:
    table = drawn(6, strata=1).assign(stratum="s", other=np.arange(500) % 2)
    predictions = check(table, Options(**COLUMNS, control_features=["other"]))
    predictions.control["other"] = pd.Categorical(["s"] * len(table))
    ((_, strata),) = strata_of(predictions)
    for name in ("demographic_parity_difference", "equalized_odds_difference", "delta_eo"):
        metric = find_metric(name)
        plain = compared(metric, predictions.counts["sex"])
        assert metric.gap is not None and plain is not None
        made = within(metric.gap, strata)
        assert made.bound == plain.bound(), name


def test_numbers_are_compared_within_strata_too() -> None:
    table = drawn(7).assign(y=0.0)
    table.loc[0, "y"] = 1.0
    table["p"] = table["error"] + table["y"]
    done = rf.audit(table, **COLUMNS, continuous=True, control_features="stratum")
    row = of(done, "sex | stratum", "mean_error_difference")
    expected = abs(least_squares(table, "error", "f", np.ones(len(table))))
    assert row["value"] == pytest.approx(expected)
    assert row["low"] < 2 < row["high"] and row["high"] - row["low"] < 1


def test_the_variance_of_single_rows_is_that_of_their_group() -> None:
    """Pairs of a woman and a man, of whom one half is selected: 1/4 for each of them."""
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {"y": rng.integers(0, 2, 400), "p": rng.integers(0, 2, 400), "sex": ["f", "m"] * 200,
         "street": [f"s{row // 20}" for row in range(400)],
         "number": [f"n{row // 2 % 10}" for row in range(400)]}
    )  # fmt: skip
    done = rf.audit(table, **COLUMNS, control_features=["street", "number"])
    row = of(done, "sex | street & number", "demographic_parity_difference")
    plain = of(done, "sex", "demographic_parity_difference")
    assert row["value"] == pytest.approx(plain["value"])
    half = row["high"] - row["value"]
    assert half == pytest.approx(1.96 * np.sqrt(2 * 0.25 / 200), rel=0.02)


def test_strata_may_make_a_gap_hide_it_or_turn_it() -> None:
    """Two departments without a gap within either; one with the same gap in both that hides it."""
    counts = {
        "made": ((90, 10, 18, 2), (4, 36, 16, 144)), "hidden": ((40, 60, 2, 18), (18, 2, 60, 40)),
        "turned": ((80, 120, 0, 20), (19, 1, 120, 80)),
    }  # fmt: skip
    said = {}
    for name, departments in counts.items():
        rows = [
            (department, sex, decision)
            for department, (a, b, c, d) in zip("AB", departments, strict=True)
            for sex, numbers in (("m", (a, b)), ("f", (c, d)))
            for decision, n in zip((1, 0), numbers, strict=True)
            for _ in range(n)
        ]
        table = pd.DataFrame(rows, columns=["department", "sex", "p"])
        done = rf.audit(table, y_pred="p", sensitive_features="sex", control_features="department")
        said[name] = "; ".join(map(str, done.between))
    assert "most of it is a difference between strata of department" in said["made"]
    assert "m less f: +0.483 overall, 0.000 within department" in said["made"]
    assert "m less f: -0.033 overall, +0.300 within" not in said["hidden"]
    assert "f less m: +0.033 overall, -0.300 within department: department hides" in said["hidden"]
    assert "f less m: +0.095 overall, -0.375 within department: the sign turns" in said["turned"]


def test_changes_gates_json_and_missing_strata(tmp_path: Path) -> None:
    now, then = drawn(9, 900), drawn(10, 900)
    now.loc[:9, "stratum"] = None
    done = rf.audit(now, **COLUMNS, control_features=["stratum"], reference=then)
    key = ("sex | stratum", "", "demographic_parity_difference")
    change = done.changes().set_index(KEYS).loc[key]
    alone = [
        of(rf.audit(table, **COLUMNS, control_features=["stratum"]), *key[::2])
        for table in (now.dropna(), then)
    ]
    assert change["change"] == pytest.approx(alone[0]["value"] - alone[1]["value"])
    assert change["low"] < change["change"] < change["high"] and change["state"]
    assert "10 rows without stratum" in of(done, *key[::2])["note"]
    assert done.failures(f"change({key[2]}[{key[0]}])>-1")
    assert any(row["attribute"] == key[0] for row in record(done)["rows"])
    now.to_csv(tmp_path / "now.csv", index=False)
    arguments = ["audit", str(tmp_path / "now.csv"), "--target=y", "--prediction=p",
                 "--attributes=sex", "--control=stratum", f"--output={tmp_path}", "--format=json",
                 "--fail-if=demographic_parity_difference[sex | stratum]<1"]  # fmt: skip
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 1, result.output
    rows = pd.DataFrame(json.loads(result.stdout)["rows"]).set_index(KEYS)
    assert rows.loc[key, "value"] == pytest.approx(alone[0]["value"])


def test_strata_that_do_not_meet_have_no_gap() -> None:
    table = drawn(11)
    table["stratum"] = table["sex"] + table["stratum"]
    row = of(rf.audit(table, **COLUMNS, control_features="stratum"), "sex | stratum", "delta_eo")
    assert np.isnan(row["value"])
    assert row["note"] == "no stratum of stratum has rows of f and m for the true positive rate"


@pytest.mark.parametrize(
    ("control", "message"),
    [
        ("age", r"column age: a continuous control feature, allowed: categories, or bins"),
        ("nothing", r"unknown column 'nothing'"),
        ("sex", r"column sex has two roles"),
        (["stratum", "stratum"], r"column stratum has two roles"),
        (5, r"control_features: a int, allowed"),
    ],
)
def test_bad_control_features_are_refused(control: object, message: str) -> None:
    table = drawn(12).assign(age=np.random.default_rng(0).uniform(18, 80, 500))
    with pytest.raises(InputError, match=message):
        rf.audit(table, **COLUMNS, control_features=control)


def test_bins_of_a_control_feature_are_strata() -> None:
    table = drawn(13).assign(age=np.random.default_rng(0).uniform(18, 80, 500))
    binned = table.assign(old=np.where(table["age"] < 50, "young", "old"))
    audits = {
        name: rf.audit(binned, **COLUMNS, control_features=name, bins=bins)
        for name, bins in (("age", {"age": (50,)}), ("old", {}))
    }
    rows = [of(done, f"sex | {name}", "delta_eo") for name, done in audits.items()]
    assert rows[0]["value"] == rows[1]["value"] and rows[0]["high"] == rows[1]["high"]


def opposite(seed: int, strata: int = 2, rows: int = 1000, turned: bool = True) -> pd.DataFrame:
    """Decisions with a gap of .3 in every stratum, of the other sign in every second one."""
    rng = np.random.default_rng(seed)
    stratum, male = rng.integers(0, strata, strata * rows), rng.random(strata * rows) < 0.5
    sign = np.where(stratum % 2 * turned, -1, 1) * np.where(male, 1, -1)
    return pd.DataFrame(
        {
            "sex": np.where(male, "m", "f"), "stratum": [f"s{code}" for code in stratum],
            "p": (rng.random(strata * rows) < 0.5 + 0.15 * sign).astype(int),
        }
    )  # fmt: skip


def test_opposite_gaps_in_strata_are_said_and_a_gate_may_ask_for_them() -> None:
    rows = opposite(0)
    audit = rf.audit(rows, y_pred="p", sensitive_features="sex", control_features="stratum")
    (found,) = audit.strata
    rates = rows.groupby(["stratum", "sex"])["p"].agg(["mean", "size", "sum"]).unstack()
    gaps = (rates["mean"]["m"] - rates["mean"]["f"]).abs()
    assert (found.stratum, found.value) == (gaps.idxmax(), pytest.approx(gaps.max()))
    added = (rates["sum"] + 1) / (rates["size"] + 2)
    error = np.sqrt((added * (1 - added) / (rates["size"] + 2)).sum(axis=1))
    difference = added["m"] - added["f"]
    mean = np.average(difference, weights=error**-2)
    p = stats.chi2.sf((((difference - mean) / error) ** 2).sum(), 1)
    assert found.p == pytest.approx(p, rel=1e-6) and p < 1e-9
    least = (difference.abs() - stats.norm.isf(0.025 / 2) * error).max()
    most = (difference.abs() + stats.norm.isf(0.025) * error).max()
    assert (found.low, found.high) == (pytest.approx(least), pytest.approx(most))
    metric = "demographic_parity_difference"
    gate = f"{metric}[sex in each stratum]>0.1"
    verdicts = [audit.judged(text, "evidence").judgements for text in (f"{metric}>0.1", gate)]
    assert [each.verdict for each in verdicts[0]] == ["PASS", "PASS"]
    assert [(each.verdict, each.row.value) for each in verdicts[1]] == [("FAIL", found.value)]
    assert "strata of stratum disagree" in of_strata(audit)[0]
    assert answers(audit.judged(f"{metric}>0.1"))[-1].startswith("But stratum matters: ")
    alike = rf.audit(opposite(2, turned=False), y_pred="p", sensitive_features="sex",
                     control_features="stratum")  # fmt: skip
    assert not of_strata(alike) and alike.strata[0].p > 0.05


def strata_simulated(draws: int, strata: int, rows: int) -> tuple[float, float]:
    """How often equal strata are said to disagree, and their largest gap is covered."""
    options = Options(None, "p", ["sex"], control_features=["stratum"])
    found = [
        in_strata(check(opposite(seed, strata, rows, turned=False), options),
                  ["demographic_parity_difference"])[0]
        for seed in range(draws)
    ]  # fmt: skip
    said = [(each.p < 0.05, each.low <= 0.3 <= each.high) for each in found]
    disagree, covered = np.mean(said, axis=0)
    return float(disagree), float(covered)


@pytest.mark.parametrize(
    ("draws", "strata", "rows"),
    [(60, 2, 300), (60, 12, 40), *(pytest.param(1000, *of, marks=pytest.mark.slow)
                                   for of in ((2, 1000), (10, 40), (50, 40), (10, 200)))],
)  # fmt: skip
def test_equal_strata_seldom_disagree_and_their_largest_gap_is_covered(draws, strata, rows) -> None:
    disagree, covered = strata_simulated(draws, strata, rows)
    assert disagree <= stats.binom.ppf(0.99, draws, 0.05) / draws
    assert covered >= stats.binom.ppf(0.01, draws, 0.95) / draws


def test_departments_of_berkeley_disagree() -> None:
    """Women were admitted more often in department A, whose gap is the largest of six."""
    audit = rf.audit(
        admissions(), y_pred="admitted", sensitive_features="sex", control_features="department"
    )
    (found,) = audit.strata
    assert (found.stratum, found.groups) == ("A", ("f", "m"))
    assert found.value == pytest.approx(89 / 108 - 512 / 825)
    assert found.p < 0.01
