"""Statistics and views of natural shift, on tables made by hand."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.numbers.estimate import REFITS, Component, Estimate, over_domains
from robust_fairness.report import Results
from robust_fairness.report.natural_shift import (
    KEYS,
    at_equal_sizes,
    curves,
    diagnoses,
    domain_columns,
    draw_curves,
    draw_scatter,
    found_regions,
    gaps,
    matrix,
    over_pairs,
    robustness,
    shares,
    tableshift,
)
from robust_fairness.report.statistics import fitted_line
from robust_fairness.report.views import published
from tests.report.made_up import results, row

STATES = ["HI", "ME", "NE", "RI", "SD", "WV"]


@pytest.mark.parametrize(
    ("n", "level", "power"),
    [(20, 0.05, 0.8), (8, 0.05, 0.8), (8, 0.05 / 8, 0.77), (3, 0.05 / 8, 0.69)],
)
def test_the_detectable_difference_has_its_power(n, level, power):
    """Simulated; with few values at a small level it is lower than the 0.8 that is said."""
    said = Estimate(np.zeros(1), {REFITS: Component(np.array([1 / n]), np.array([n - 1.0]))})
    size = (40_000, n)
    values = np.random.default_rng(1).normal(said.detectable(level=level)[0], 1, size)
    rejected = stats.ttest_1samp(values, 0, axis=1).pvalue < level
    assert rejected.mean() == pytest.approx(power, abs=0.008)


def run(fall: float, states: Sequence[str] = STATES) -> Results:
    """Every state to every other: accuracy falls elsewhere, for the method ``robust`` by half."""
    rng, rows = np.random.default_rng(2), []
    for source, method in product(states, ["erm", "robust"]):
        lost = fall if method == "erm" else fall / 2
        for seed, target in product(range(3), ["", *states]):
            other = target not in ("", source)
            rows.append(
                row(
                    dataset=f"income_{source}", method=method, seed=seed, selection="accuracy",
                    shift="domain" if other else "none", domain=target, n=1000,
                    value=0.8 - lost * other + rng.normal(0, 0.002),
                )
            )  # fmt: skip
    facets = {f"income_{source}": {"data": "income", "trained_on": source} for source in states}
    return results(rows, facets)


def test_a_fall_in_every_state_is_found():
    def changes(results: Results) -> pd.DataFrame:
        return over_pairs(matrix(results), [*KEYS, "method"], "change", ("falls", "rises"))

    (line,) = changes(run(0.05)).query("method == 'erm'").to_dict("records")
    assert line["change"] == pytest.approx(-0.05, abs=0.003)
    assert line["low"] < line["change"] < line["high"] < 0
    assert (line["domains"], line["says"]) == (6, "falls")
    pairs = matrix(run(0.05)).query("method == 'erm'")
    change = pairs["change"].to_numpy()[None]
    mean = over_domains(change, pairs["trained_on"], pairs["tested_on"])
    assert line["p"] == pytest.approx(mean.p()[0]) and line["p_holm"] == 2 * line["p"]
    assert (line["low"], line["high"]) == pytest.approx(tuple(end[0] for end in mean.interval()))
    few = run(0.05, STATES[:4])
    assert (changes(few)["says"] == "inconclusive").all() and changes(few)["p"].isna().all()


def test_the_matrix_has_every_pair_without_the_diagonal():
    by_pair = matrix(run(0.05)).query("method == 'erm'")
    pairs = set(zip(by_pair["trained_on"], by_pair["tested_on"], strict=True))
    assert pairs == {(a, b) for a, b in product(STATES, STATES) if a != b}
    assert (by_pair["seeds"] == 3).all()
    assert np.allclose(by_pair["change"], by_pair["ours"] - by_pair["at_home"])


def test_the_line_of_the_published_models_is_the_known_one():
    """Golden: slope and intercept of TableShift's 19 models, mean drop .0489."""
    table = published("tableshift").pivot(index="field", columns="shift", values="value")
    x, y = table["none"].to_numpy(), table["domain"].to_numpy()
    line = fitted_line(x, y, np.zeros(19, int), probit=True)
    assert (line.slope, line.intercepts[0]) == pytest.approx((1.238, -0.206), abs=5e-4)
    above = pd.Series(y - line.at(x, np.zeros(19, int)), table.index)
    expected = {"CatBoost": -0.0005, "LightGBM": -0.018, "MixUp": 0.039}
    assert above[list(expected)].to_dict() == pytest.approx(expected, abs=5e-4)
    assert (x - y).mean() == pytest.approx(0.0489, abs=5e-5)


def test_pairs_share_a_slope_and_have_their_own_intercepts():
    x = np.array([0.1, 0.2, 0.4, 0.3, 0.5])
    pairs = np.array([0, 0, 0, 1, 1])
    line = fitted_line(x, 2 * x + np.array([0.1, -0.3])[pairs], pairs, probit=False)
    assert [line.slope, *line.intercepts] == pytest.approx([2, 0.1, -0.3])
    assert np.isnan(fitted_line(x[[0, 3]], x[[0, 3]], np.array([0, 1]), probit=False).slope)


def test_gaps_of_unequal_sizes_are_compared_without_bias():
    """Simulated: 300 and 6,000 rows per group, the same true rates; the plain gap seems to fall."""
    rng, draws = np.random.default_rng(4), 20_000
    for rates in ((0.3, 0.3), (0.3, 0.34)):
        differences, variances = [], []
        for rows in (300, 6000):
            drawn = rng.binomial(rows, rates, (draws, 2)) / rows
            differences.append(drawn[:, 1] - drawn[:, 0])
            variances.append((drawn * (1 - drawn)).sum(1) / (rows - 1))
        home, away = at_equal_sizes(*differences, tuple(variances))
        plain = np.abs(differences[1]) - np.abs(differences[0])
        assert plain.mean() < -0.006
        assert (away - home).mean() == pytest.approx(0, abs=0.0009)
        np.testing.assert_array_equal(home, np.abs(differences[0]))


def test_signed_differences_change_between_domains():
    """Women are selected .1 less at home, and .3 less or .1 more elsewhere."""
    selected = {"": (0.5, 0.4), "c": (0.6, 0.3), "d": (0.4, 0.5)}
    rows = [
        row(
            dataset=f"visits_{source}", selection="accuracy", attribute="sex", group=group,
            shift="domain" if domain else "none", domain=domain, value=rate,
            metric="selection_rate_by_group", n=400 if domain else 100,
        )
        for source, (domain, rates) in product("ab", selected.items())
        for group, rate in zip(("m", "f"), rates, strict=True)
    ]  # fmt: skip
    facets = {f"visits_{source}": {"data": "visits", "trained_on": source} for source in "ab"}
    (line,) = gaps(results(rows, facets)).to_dict("records")
    assert (line["metric"], line["groups"]) == ("selection_rate_difference", "f minus m")
    assert line["at_home"] == pytest.approx(-0.1)
    assert line["change"] == pytest.approx((-0.2 + 0.2) / 2, abs=1e-12)
    assert line["plain_change"] == pytest.approx((0.2 + 0) / 2)
    assert line["gap_at_home"] == pytest.approx(0.1)
    # .1 with the noise of 100 rows instead of 400: the mean of its absolute value, by quadrature
    noise = np.sqrt((0.25 + 0.24) / 99 - (0.24 + 0.25) / 399)
    grid = np.linspace(-8, 8, 100_001)
    elsewhere = [
        np.trapezoid(np.abs(d + noise * grid) * stats.norm.pdf(grid), grid) for d in (0.1, -0.3)
    ]
    assert line["gap_away"] == pytest.approx(np.mean(elsewhere), abs=2e-3)
    assert (line["n_at_home"], line["n_away"], line["domains"]) == (100, 400, 2)
    assert line["says"] == "inconclusive"


def test_a_method_above_the_line_of_the_others_is_robust():
    both = run(0.05)
    extra = both.by_domain.query("method == 'erm'"), both.metrics.query("method == 'erm'")
    copies = [
        part.assign(method=name, value=part["value"] + step)
        for part in extra
        for name, step in {"weak": -0.03, "strong": 0.02}.items()
    ]
    cells = [both.cells.assign(method=name) for name in ("weak", "strong")]
    run_of_four = Results.of(
        pd.concat([both.metrics, both.by_domain, *copies]),
        cells=pd.concat([both.cells, *cells]).drop_duplicates(["dataset", "method"]),
    )
    robust = robustness(run_of_four).set_index("method")["effective_robustness"]
    assert robust.index[0] == "robust"  # loses half of what the others lose
    assert robust["robust"] == pytest.approx(0.025, abs=0.008)
    assert robustness(both).empty  # two methods have no line


def test_curves_start_where_training_ends():
    rng, years = np.random.default_rng(5), ["2013", "2014", "2015", "2016"]
    facets = {
        f"one_{end}": {
            "data": "one", "trained_on": " + ".join(years[: end + 1]), "trained_until": years[end],
        }
        for end in range(3)
    }  # fmt: skip
    rows = [
        row(
            dataset=f"one_{end}", selection="accuracy", shift="domain" if year else "none",
            domain=year, value=rng.random(), n=100,
        )
        for end in range(3)
        for year in ["", *years[end + 1 :]]
    ]  # fmt: skip
    table = curves(results(rows, facets))
    lags = table.set_index(["trained_until", "tested_on"])["lag"].to_dict()
    assert lags == {(years[a], years[b]): b - a for a in range(3) for b in range(4) if b > a}
    drawn = draw_curves(table)
    first = table[table["trained_until"] == "2013"]
    assert list(drawn.data[0].x) == ["2013", "2014", "2015", "2016"]
    assert list(drawn.data[0].y) == [first["at_home"].iloc[0], *first["ours"]]
    assert curves(run(0.05)).empty  # states have no order
    shown = [trace.name for trace in draw_scatter(matrix(run(0.05))).data if trace.showlegend]
    assert shown[:2] == ["no change", "fitted line"] and len(shown) == len(set(shown))


def test_views_of_the_diagnosis_conclude_what_the_tables_say():
    where = {"dataset": "visits_a", "domain": "b"}
    columns = [("", 0.99, True), ("born", 0.97, True), *((f"x{k}", 0.6, False) for k in range(6))]
    changed = where | {"rows_home": 90, "rows_away": 80, "method": "erm"}
    interval = {"at_home": 0.5, "away": 0.3, "change": -0.2, "low": -0.3, "high": -0.1}
    wide = interval | {"change": 0.1, "low": -0.1, "high": 0.3}
    made = {
        "domain_columns": [
            where | {"column": name, "auc": auc, "names_domain": names}
            for name, auc, names in columns
        ],
        "shares": [
            changed | interval | {"label": "ill", "p": 0.001},
            changed | wide | {"attribute": "sex", "group": "f", "p": 0.03},
        ],
        "regions": [
            changed | ends | {"seed": 0, "metric": "accuracy", "region": number}
            for number, ends in enumerate((wide, interval))
        ],
        "diagnosis": [
            changed | interval | {"seed": 0, "metric": "accuracy", "little_overlap": False}
        ],
    }
    run_of_one = results(
        [row(dataset="visits_a")],
        {"visits_a": {"data": "visits", "trained_on": "a"}},
        **{name: tables.TABLES[name].table(rows) for name, rows in made.items()},
    )
    shown = domain_columns(run_of_one)
    assert shown["column"].tolist() == ["all columns", "born", "x0", "x1"]
    assert (shown["trained_on"] == "a").all()
    assert shares(run_of_one)["says"].tolist() == ["falls", "rises"]  # .002 and .03 by Holm
    assert found_regions(run_of_one)[["change", "says"]].to_numpy().tolist() == [
        [-0.2, "falls"],
        [0.1, "inconclusive"],
    ]
    (line,) = diagnoses(run_of_one).to_dict("records")
    assert line["change"] == pytest.approx(-0.2)
    assert line["data"] == "visits"


def test_published_accuracies_stand_beside_ours():
    rows = [
        row(
            dataset="visits", method="plain", seed=seed, selection="accuracy", domain=domain,
            shift="domain" if domain else "none", value=value + 0.001 * seed, n=100,
        )
        for seed in range(3)
        for domain, value in {"": 0.645, "7": 0.55}.items()
    ]  # fmt: skip
    plain = {"plain": "erm"}
    described = results(rows, {"visits": {"benchmark": "readmission"}}, plain)
    table = tableshift(described).set_index("shift")
    assert table["estimator"].tolist() == ["MLP", "MLP"]
    assert table["published"].to_dict() == {"none": 0.647539, "domain": 0.612384}
    assert table["ours"].to_dict() == pytest.approx({"none": 0.646, "domain": 0.551})
    assert table["overlap"].to_dict() == {"none": True, "domain": False}
    assert tableshift(results(rows, algorithms=plain)).empty


def test_without_domains_there_is_nothing_to_show():
    metrics = run(0.05).metrics
    for view in (matrix, gaps, robustness, curves):
        assert view(Results.of(metrics)).empty
