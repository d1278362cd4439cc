"""Diagnosis of domain shift on constructed data, of which it is known what changed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.auditing.why.domains import (
    Columns,
    ComparedRows,
    Overlap,
    domain_columns,
    estimated_shares,
    share_change,
    two_sample_test,
)
from robust_fairness.auditing.why.regions import ScoredDomain, regions
from robust_fairness.bench import diagnosis as runs
from robust_fairness.bench.diagnosis import diagnose
from robust_fairness.bench.training.records import Prediction
from robust_fairness.core.samples import Samples


def shared_by(home: np.ndarray, away: np.ndarray) -> Overlap:
    """The overlap of two samples of numbers ``[n, columns]``."""
    both, names = np.concatenate([home, away]), tuple(map(str, range(home.shape[1])))
    columns = Columns(both.astype(np.float32), names, np.zeros(len(names), bool))
    elsewhere = np.repeat([False, True], [len(home), len(away)])
    return ComparedRows(elsewhere, columns, np.arange(len(both)), np.ones(len(both))).overlap


def test_the_shared_distribution_is_that_of_the_densities():
    """Two normal distributions: the weighted means are those of p t / (p + t), by quadrature."""
    rng = np.random.default_rng(1)
    home, away = rng.normal(0, 1, (6000, 1)), rng.normal(1, 1, (3000, 1))
    shared = shared_by(home, away)
    grid = np.linspace(-6, 7, 20_001)
    p, t = stats.norm.pdf(grid), stats.norm.pdf(grid, 1)
    density = p * t / (p + t)
    expected = np.sum(grid * density) / np.sum(density)
    assert np.sum(shared.home * home[:, 0]) == pytest.approx(expected, abs=0.06)
    assert np.sum(shared.away * away[:, 0]) == pytest.approx(expected, abs=0.06)
    assert not shared.little
    assert shared.auc == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.03)


def test_a_column_that_names_the_domain_leaves_no_overlap():
    rng = np.random.default_rng(2)
    home = np.column_stack([rng.normal(size=500), np.zeros(500)])
    away = np.column_stack([rng.normal(size=500), np.ones(500)])
    assert shared_by(home, away).little
    assert not shared_by(home[:, :1], away[:, :1]).little


def test_alike_domains_are_not_told_apart_and_units_matter():
    """The test keeps its level when units have several rows; different domains are found."""
    rng = np.random.default_rng(3)
    small = 0
    for seed in range(20):
        unit = np.repeat(np.arange(100), 4)
        x = np.repeat(rng.normal(size=(100, 3)), 4, axis=0)
        where = (np.arange(100) < 50)[unit]
        small += two_sample_test(x, where, unit, permutations=99, seed=seed)[1] <= 0.05
    assert small <= 4
    moved = x + where[:, None]
    auc, p = two_sample_test(moved, where, unit, permutations=99)
    assert auc > 0.6
    assert p <= 0.05


def test_the_region_of_the_change_is_found():
    """Labels change where the first feature is above 1; the tree names it, with its numbers."""
    rng = np.random.default_rng(4)
    x, x2 = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 3))
    shared = shared_by(x, x2)
    right, right2 = rng.random(4000) < 0.9, rng.random(4000) < np.where(x2[:, 0] > 1, 0.3, 0.9)
    leaves = regions(
        [ScoredDomain(x, right.astype(float), shared.home)],
        [ScoredDomain(x2, right2.astype(float), shared.away)],
        ["income", "age", "hours"],
    )
    first = leaves.iloc[0]
    assert first["conditions"].startswith("income > ")
    assert first["change"] == pytest.approx(-0.6, abs=0.1)
    assert first["low"] < -0.6 < first["high"] < 0
    assert leaves["rows_home"].sum() == leaves["rows_away"].sum() == 2000


def test_the_region_where_a_gap_opens_is_found():
    """Only the second group's rows are hurt, only where the 0/1 feature is set."""
    rng = np.random.default_rng(5)
    x, x2 = (
        np.column_stack([rng.normal(size=4000), rng.random(4000) < 0.3]).astype(np.float32)
        for _ in range(2)
    )
    group, group2 = rng.random(4000) < 0.5, rng.random(4000) < 0.5
    right = rng.random(4000) < 0.9
    right2 = rng.random(4000) < np.where(group2 & (x2[:, 1] == 1), 0.4, 0.9)
    weights = np.full(4000, 1 / 4000)
    parts = [
        [
            ScoredDomain(rows[of_group], score[of_group] * 1.0, weights[of_group], sign)
            for of_group, sign in ((~groups, -1), (groups, 1))
        ]
        for rows, score, groups in ((x, right, group), (x2, right2, group2))
    ]
    first = regions(*parts, ["age", "urban"]).iloc[0]
    assert first["conditions"].split(" and ")[0] == "urban"
    assert first["change"] == pytest.approx(-0.5, abs=0.15)
    assert first["low"] < -0.5 < first["high"] < 0


def test_a_share_that_changes_by_unit_has_a_wider_interval():
    """Against the textbook formula for rows; copies of rows in one unit add nothing."""
    rng = np.random.default_rng(7)
    home, away = rng.random(300) < 0.3, rng.random(200) < 0.5
    by_row = share_change(home, away)
    assert (by_row.at_home, by_row.away) == (home.mean(), away.mean())
    assert by_row.change == away.mean() - home.mean()
    error = np.sqrt(home.var(ddof=1) / 300 + away.var(ddof=1) / 200)
    ends = stats.norm.interval(0.95, by_row.change, error)
    assert (by_row.low, by_row.high) == pytest.approx(ends)
    assert by_row.p == pytest.approx(stats.norm.sf(abs(by_row.change) / error) * 2)
    units = tuple(np.repeat(np.arange(n), 3) for n in (300, 200))
    copied = share_change(home.repeat(3), away.repeat(3), units)
    assert (copied.low, copied.high) == pytest.approx((by_row.low, by_row.high))


def test_label_shift_is_estimated_without_labels_and_other_shifts_are_not():
    rng = np.random.default_rng(8)

    def predictions(share, rates):
        y = rng.choice(3, 30_000, p=share)
        return y, np.where(rng.random(30_000) < rates, y, (y + 1) % 3)

    y, predicted = predictions([0.5, 0.3, 0.2], 0.8)
    _, shifted = predictions([0.2, 0.2, 0.6], 0.8)
    shares = estimated_shares(predicted, y, shifted, 3)
    assert shares == pytest.approx([0.2, 0.2, 0.6], abs=0.02)
    other, same = predictions([0.5, 0.3, 0.2], 0.8)
    moved = np.where((other == 0) & (rng.random(30_000) < 0.5), 2, same)  # features of a class
    assert estimated_shares(predicted, y, moved, 3)[2] > np.mean(other == 2) + 0.1
    assert np.isnan(estimated_shares(np.zeros(9, int), y[:9], predicted, 3)).all()


def two_domains(rows=600, leak=False):
    """A number, a colour as three 0/1 features and, with ``leak``, one that names the domain."""
    rng = np.random.default_rng(9)
    away = np.arange(rows) >= rows // 2
    colour = rng.choice(3, rows)
    number = rng.normal(size=rows) + 0.5 * away
    parts = [number[:, None], np.eye(3)[colour], *([away[:, None]] if leak else [])]
    sex = pd.Categorical.from_codes((rng.random(rows) < 0.5).astype(int), ["f", "m"])
    y = (number + rng.normal(size=rows) * 0.5 > away * 0.8).astype(int)
    samples = Samples(
        x=np.concatenate(parts, axis=1).astype(np.float32),
        y=y,
        attributes=pd.DataFrame(
            {"sex": sex, "place": pd.Categorical.from_codes(away * 1, ["north", "south"])}
        ),
        id=np.arange(rows),
        splits=pd.DataFrame({"split_0": np.where(away, "ood_test", "test")}),
        features=("age", "colour=a", "colour=b", "colour=c", *(["unit"] if leak else [])),
        columns=("age", "colour", "colour", "colour", *(["unit"] if leak else [])),
        classes=("no", "yes"),
        sensitive=("sex",),
        domain="place",
    )
    logits = np.column_stack([-number, number]).astype(np.float32)
    predictions = [
        Prediction("default", 0, "split_0", "", part, of_part, logits[of_part])
        for part, of_part in (("test", np.flatnonzero(~away)), ("ood_test", np.flatnonzero(away)))
    ]
    return samples, predictions


def test_one_hot_features_are_one_column():
    samples, _ = two_domains()
    columns = Columns.of(samples)
    assert columns.names == ("age", "colour")
    assert columns.categorical.tolist() == [False, True]
    np.testing.assert_array_equal(columns.values[:, 1], samples.x[:, 1:].argmax(1))


def test_a_category_that_names_the_domain_is_found_among_its_levels():
    """No single level does, but all levels of the first half belong to one domain."""
    rng = np.random.default_rng(10)
    away = np.arange(2000) % 2 == 1
    born = rng.integers(0, 20, 2000) + 20 * away
    other = rng.normal(size=2000)
    columns = Columns(
        np.column_stack([other, born]).astype(np.float32), ("age", "born"), np.array([False, True])
    )
    aucs = domain_columns(columns, away)
    assert aucs.index.tolist() == ["born", "age"]
    assert aucs["born"] == 1
    assert aucs["age"] == pytest.approx(0.5, abs=0.06)


def test_columns_that_name_the_domain_are_left_out_of_the_comparison():
    """With the column or without it, the rows are compared by the others."""
    scored = []
    for leak in (False, True):
        samples, predictions = two_domains(leak=leak)
        domains = runs._domains(samples, np.arange(300), np.arange(300, 600))
        scored.append(runs._scored(samples, domains, *predictions))
    plain, leaking = scored
    assert (plain.domains.naming, leaking.domains.naming) == ((), ("unit",))
    assert leaking.domains.overlap.little
    assert not leaking.expected.overlap.little
    np.testing.assert_array_equal(leaking.expected.overlap.home, plain.expected.overlap.home)
    assert leaking.domains.column_aucs["age"] < 0.7


def test_intervals_of_regions_hold_for_all_leaves_together():
    """By hand, from the shares in every leaf: the largest of several changes is shown first."""
    rng = np.random.default_rng(0)
    home, away = (
        [ScoredDomain(rng.normal(size=(400, 2)), rng.random(400) < 0.8, np.full(400, 1 / 400))]
        for _ in range(2)
    )
    leaves = regions(home, away, ["a", "b"])
    variance = sum(
        leaves[share] * (1 - leaves[share]) / (leaves[rows] - 1)
        for share, rows in (("at_home", "rows_home"), ("away", "rows_away"))
    )
    critical = stats.norm.isf(0.025 / len(leaves))
    assert len(leaves) > 4
    assert (leaves["high"] - leaves["change"]).to_numpy() == pytest.approx(
        critical * np.sqrt(variance.to_numpy())
    )


def test_a_run_of_two_domains_has_shares_and_regions():
    samples, predictions = two_domains()
    diagnosed = diagnose("two", samples, {"erm": predictions})
    shares = diagnosed["shares"].set_index(["attribute", "group", "label"])
    home, away = (prediction.rows for prediction in predictions)
    assert shares.loc[("", "", "yes"), "away"] == samples.y[away].mean()
    women = (samples.attributes["sex"] == "f").to_numpy()
    assert shares.loc[("sex", "f", ""), "at_home"] == women[home].mean()
    of_women = shares.loc[("sex", "f", "yes")]
    assert of_women["at_home"] == samples.y[home][women[home]].mean()
    assert of_women["rows_home"] == women[home].sum()
    assert of_women["low"] < of_women["change"] < of_women["high"] < 0
    regions_of = diagnosed["regions"]
    assert set(regions_of["metric"]) == {"accuracy", "accuracy_difference"}
    assert regions_of.iloc[0]["conditions"].startswith("age ")
    assert regions_of["change"].min() < -0.2
    assert set(diagnosed["diagnosis"]["left_out"]) == {""}
    columns = diagnosed["domain_columns"].set_index("column")
    assert set(columns.index) == {"", "age", "colour", "sex"}
    assert not columns["names_domain"].any()
    assert columns.loc["", "p"] <= 0.05


def test_rows_of_unknown_group_count_in_no_gap_and_no_group():
    """Gaps of numpy over the rows of known group; as a group of their own they would change it."""
    samples, predictions = two_domains(rows=2000)
    unknown = np.arange(2000) % 7 == 0
    attributes = samples.attributes.assign(sex=samples.attributes["sex"].mask(unknown))
    samples = replace(samples, attributes=attributes)
    diagnosed = diagnose("two", samples, {"erm": predictions})
    rows = diagnosed["diagnosis"].set_index(["attribute", "metric"])
    for column, prediction in zip(("at_home", "away"), predictions, strict=True):
        sex = samples.attributes["sex"].iloc[prediction.rows].to_numpy()
        predicted = prediction.outputs.argmax(1)
        right = predicted == samples.y[prediction.rows]
        first, second = rows.loc[("sex", "selection_rate"), "of"].split(" less ")
        gap = predicted[sex == first].mean() - predicted[sex == second].mean()
        assert {first, second} == {"f", "m"}
        assert rows.loc[("sex", "selection_rate"), column] == pytest.approx(gap)
        assert rows.loc[("", "accuracy"), column] == pytest.approx(right.mean())
        known = pd.notna(sex)
        assert rows.loc[("sex", "accuracy"), column] == pytest.approx(right[known].mean())
    shares = diagnosed["shares"].query("group == 'missing' and label == ''")
    assert shares["at_home"].item() == unknown[predictions[0].rows].mean()
    assert {"sex"} < set(diagnosed["domain_columns"]["column"])
    assert "accuracy_difference" in set(diagnosed["regions"]["metric"])


def test_large_domains_are_sampled_within_the_stated_error_and_shares_are_of_all_rows(monkeypatch):
    samples, predictions = two_domains(rows=6000)
    every = diagnose("two", samples, {"erm": predictions})
    monkeypatch.setattr("robust_fairness.auditing.why.domains.MOST", 1000)
    some = diagnose("two", samples, {"erm": predictions})
    pd.testing.assert_frame_equal(some["shares"], every["shares"])
    measured = [
        table["regions"].query("metric == 'accuracy'")["rows_home"].sum() for table in (some, every)
    ]
    assert measured[0] <= 500 < measured[1]  # regions share no rows; half of the rows measure them
    right = [table["diagnosis"].query("metric == 'accuracy'").iloc[0] for table in (some, every)]
    for column in ("at_home", "away"):
        assert 0 < abs(right[0][column] - right[1][column]) < 4 * 0.5 / np.sqrt(1000)
    assert right[0]["effective_home"] <= 1000
