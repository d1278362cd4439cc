"""Weights, unknown groups, probabilities of groups and classes."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import robust_fairness as rf
from robust_fairness.auditing.bounds import Strata, bounds_in_counts, bounds_in_strata
from robust_fairness.auditing.verdict import console, lacking
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import by_replicates
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import mean_intervals
from robust_fairness.numbers.quantities import means_of_rows
from robust_fairness.numbers.rates import rates_of

RNG = np.random.default_rng(0)
ROWS = 400
TABLE = pd.DataFrame(
    {"y": RNG.integers(0, 2, ROWS), "p": RNG.integers(0, 2, ROWS), "w": RNG.integers(1, 4, ROWS),
     "sex": RNG.choice(["f", "m"], ROWS), "region": RNG.choice(["e", "n", "w"], ROWS)}
)  # fmt: skip
COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex", "region"]}
LOWEST = ("worst_group_accuracy", "demographic_parity_ratio")  # sharp also without fractions
KEYS = ["attribute", "group", "metric"]


def test_a_weight_is_so_many_rows_for_values_and_equal_weights_change_nothing() -> None:
    plain = rf.audit(TABLE.loc[TABLE.index.repeat(TABLE["w"])], **COLUMNS).to_frame()
    weighted = rf.audit(TABLE, **COLUMNS, sample_weight="w").to_frame()
    both = plain.merge(weighted, on=KEYS)
    assert len(both) == len(plain) == len(weighted)
    np.testing.assert_allclose(both["value_x"], both["value_y"], equal_nan=True)
    equal = rf.audit(TABLE, **COLUMNS, sample_weight=np.full(ROWS, 3.0)).to_frame()
    alone = rf.audit(TABLE, **COLUMNS).to_frame()
    np.testing.assert_allclose(equal["low"], alone["low"], atol=1e-9, equal_nan=True)
    np.testing.assert_allclose(equal["high"], alone["high"], atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("groups", [2, 3])
def test_bounds_are_those_of_all_assignments_of_unknown_rows(groups: int) -> None:
    """By brute force; for the smallest value rows are divisible, so it may be a little lower."""
    names, rng = tuple("abc"[:groups]), np.random.default_rng(groups)
    for _ in range(4):
        y, p = rng.integers(0, 2, (2, 16 + 4))
        index = np.r_[np.arange(16) % groups, np.full(4, -1)]
        y[: 2 * groups], y[-2:] = np.repeat([0, 1], groups), [0, 1]
        cells = Counts.of(Groups.named(index, names), y, p, ("0", "1"))
        for name in ("demographic_parity_difference", "equalized_odds_difference",
                     "worst_group_accuracy", "demographic_parity_ratio"):  # fmt: skip
            least, most = bounds_in_counts(find_metric(name), cells)
            values = []
            for assigned in product(range(groups), repeat=4):
                made = Groups.named(np.r_[index[:16], assigned], names)
                arrays = {"y_true": y, "y_pred": p, "sensitive_features": made}
                values.append(find_metric(name).scores(arrays)[""].value)
            known = [value for value in values if value is not None]
            assert least <= min(known) + 1e-9 and most >= max(known) - 1e-9
            sharp = min(known) if name in LOWEST else max(known)
            assert (least if name in LOWEST else most) == pytest.approx(sharp), name


def test_rows_without_a_group_widen_the_bounds_of_a_gap() -> None:
    some = TABLE.assign(sex=TABLE["sex"].where(TABLE.index >= 20))
    rows = rf.audit(some, **COLUMNS).to_frame().set_index(KEYS)
    row = rows.loc["sex", "", "demographic_parity_difference"]
    assert f"{row['lowest']:.3f} to {row['highest']:.3f} whatever" in " ".join(
        lacking(rf.audit(some, **COLUMNS))
    )
    assert row["lowest"] < row["value"] < row["highest"]
    assert np.isnan(rows.loc["region", "", "demographic_parity_difference"]["lowest"])


def test_certain_probabilities_of_groups_are_the_groups() -> None:
    sure = TABLE.assign(p_f=(TABLE["sex"] == "f") * 1.0, p_m=(TABLE["sex"] == "m") * 1.0)
    options = {"y_true": "y", "y_pred": "p", "membership": {"gender": ["p_f", "p_m"]}}
    values = rf.audit(sure, **options, sensitive_features=["sex"]).to_frame()
    known, other = (values[values["attribute"] == name].reset_index() for name in ("sex", "gender"))
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(known[column], other[column], atol=1e-9, equal_nan=True)
    done = rf.audit(sure, **options, sensitive_features=[])
    assert done.failures("demographic_parity_difference[gender]>=0")
    with pytest.raises(InputError, match="unknown attribute 'sex'.*gender"):
        done.failures("demographic_parity_difference[sex]>=0")
    with pytest.raises(InputError, match="whose sum is 1"):
        rf.audit(sure.assign(p_m=0.5), **options, sensitive_features=["sex"])


def test_several_probabilities_predict_the_largest_and_other_values_need_a_word() -> None:
    share = np.random.default_rng(3).dirichlet(np.ones(3), ROWS)
    columns = dict(zip(["p_e", "p_n", "p_w"], share.T, strict=True))
    table = TABLE.assign(**columns, chosen=np.array(["e", "n", "w"])[share.argmax(1)])
    of = {"y_true": "region", "sensitive_features": ["sex"]}
    several = rf.audit(table, y_pred=["p_w", "p_e", "p_n"], **of).to_frame()
    chosen = rf.audit(table, y_pred="chosen", **of).to_frame()
    pd.testing.assert_frame_equal(several, chosen)
    said = [line for line, _ in console(rf.audit(table, y_pred="chosen", **of))]
    gap = "the equalized odds gap of a group and the rest"
    assert re.match(rf"(No|Yes|Unknown): {gap} by sex ", said[0])
    assert said[2].startswith("No gate is set, so nothing fails, and the answer takes 0.1 as the ")
    assert said[2].endswith("an example: failures('delta_eo_one_vs_rest>0.1').")
    assert said[3].startswith("sex: equalized odds gap of a group and the rest ")
    with pytest.raises(InputError, match="one per class"):
        rf.audit(table, y_pred=["p_w", "p_e"], **of)
    binary = {**of, "y_pred": "chosen", "pos_label": "e"}
    with pytest.raises(InputError, match=r"neither positive nor negative: 'n' .*neg_labels='rest'"):
        rf.audit(table.assign(chosen=table["chosen"].eq("e")), **binary)


def test_rows_without_labels_are_left_out_when_asked() -> None:
    some = TABLE.astype({"y": float}).assign(y=TABLE["y"].where(TABLE.index >= 7))
    with pytest.raises(InputError, match="drop_unlabelled=True"):
        rf.audit(some, **COLUMNS)
    done = rf.audit(some, **COLUMNS, drop_unlabelled=True)
    assert done.predictions.dropped == 7
    expected = rf.audit(TABLE[7:].reset_index(drop=True), **COLUMNS).to_frame()
    np.testing.assert_allclose(done.to_frame()["value"], expected["value"], equal_nan=True)


def test_units_of_one_row_are_rows_and_copies_of_a_row_are_one_unit() -> None:
    names = ["demographic_parity_difference", "accuracy_by_group", "group_share"]
    of = {**COLUMNS, "metrics": names[:2]}
    plain = rf.audit(TABLE, **of).to_frame().set_index("metric").loc[names]
    number = np.arange(ROWS)
    copies = TABLE.assign(unit=number).loc[np.repeat(number, 3)]
    for table, units in ((TABLE, number), (copies, "unit")):
        values = rf.audit(table, **of, unit=units).to_frame().set_index("metric").loc[names]
        np.testing.assert_allclose(values["value"], plain["value"])
        # variances of rates divide by the rows of a group less 1, those of units by all less 1
        np.testing.assert_allclose(values[["low", "high"]], plain[["low", "high"]], atol=0.002)
    narrow = rf.audit(copies, **of).to_frame().set_index("metric").loc[names[1:]]
    plain = plain.loc[names[1:]]
    assert ((narrow["high"] - narrow["low"]) < 0.7 * (plain["high"] - plain["low"])).all()


def test_households_that_span_groups_are_simulated() -> None:
    """Variance of a difference of two groups whose members share households of 1 to 6."""
    rng = np.random.default_rng(3)
    differences, expected = [], []
    for _ in range(800):
        unit = np.repeat(np.arange(150), rng.integers(1, 7, 150))
        groups = Groups.named(rng.integers(0, 2, len(unit)), ("f", "m"))
        reached = (rng.normal(size=150)[unit] + rng.normal(size=len(unit)) > 0).astype(np.int64)
        cells = Counts.of(groups, np.zeros_like(reached), reached, ("0", "1"), unit=unit)
        means = cells.means(cells.grid()[1] == 1)
        covariance = rates_of([means], np.array([True, True])).covariance[0]
        differences.append(np.subtract(*means.value))
        expected.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert np.var(differences) == pytest.approx(np.mean(expected), rel=0.15)


def test_units_of_one_row_are_weighted_rows() -> None:
    """But for the number of units of all groups instead of rows of the group.

    Rare hits have the larger weights: the variance is above that of rows of equal weight.
    """
    groups = Groups.named(RNG.integers(0, 3, ROWS), ("a", "b", "c"))
    y, hit = TABLE["y"].to_numpy(), RNG.integers(0, 10, ROWS) // 9
    rows = (groups, y, hit, ("0", "1"), TABLE["w"].to_numpy() * (1 + hit))
    plain, of_units = (
        cells.means(cells.grid()[1] == 1)
        for cells in (Counts.of(*rows), Counts.of(*rows, unit=np.arange(ROWS)))
    )
    factor = (plain.n - 1) / plain.n * ROWS / (ROWS - 1)
    np.testing.assert_allclose(of_units.variance, plain.variance * factor, rtol=1e-6)
    covariance = of_units.deviations.T @ of_units.deviations
    np.testing.assert_allclose(covariance, np.diag(of_units.variance), atol=1e-12)


def test_replicates_are_those_of_the_census_bureau() -> None:
    """4 / 80 of the sum of squares around the estimate."""
    replicates = np.arange(80.0)[:, None] * [1, -2]
    deviations = by_replicates(replicates, np.array([10.0, -20.0]))
    squares = np.square(np.arange(80.0) - 10).sum() / 20
    np.testing.assert_allclose(deviations.T @ deviations, squares * np.array([[1, -2], [-2, 4]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": [1] * ROWS}, "column unit: 1 unit, allowed: two or more"),
        ({"unit": [None, *range(1, ROWS)]}, "column unit, row 1: no unit; every row needs one"),
        ({"unit": range(ROWS), "replicate_weights": ["w"], "sample_weight": np.ones(ROWS)},
         "without replicate weights"),
        ({"replicate_weights": ["w"], "sample_weight": np.ones(ROWS), "continuous": True},
         "only for classes"),
        ({"sample_weights": "w"}, "unknown option 'sample_weights'"),
    ],
)  # fmt: skip
def test_wrong_units_and_options_are_refused_in_a_line(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        rf.audit(TABLE, **{**COLUMNS, **options})
    assert "\n" not in str(error.value)


def test_weights_enter_changes_gates_and_the_mix_of_groups() -> None:
    then = TABLE.assign(p=TABLE["p"].where(TABLE["sex"] == "f", 0))
    of = {**COLUMNS, "metrics": ["accuracy_by_group", "equalized_odds_difference"]}
    heavy = rf.audit(TABLE, **of, sample_weight="w", reference=then)
    rows = [
        table.loc[table.index.repeat(table["w"])].reset_index(drop=True) for table in (TABLE, then)
    ]
    repeated = rf.audit(rows[0], **of, reference=rows[1])
    both = heavy.changes().merge(repeated.changes(), on=KEYS, suffixes=("", "_rows"))
    assert len(both) == len(heavy.changes()) == len(repeated.changes())
    np.testing.assert_allclose(both["change"], both["change_rows"], atol=1e-12, equal_nan=True)
    assert set(both["metric"]) > {"accuracy_due_to_mix", "group_share", "equalized_odds_difference"}
    plain = rf.audit(TABLE, **of, reference=then).changes()
    key = ("sex", "", "equalized_odds_difference")
    change = heavy.changes().set_index(KEYS).loc[key, "change"]
    assert abs(change - plain.set_index(KEYS).loc[key, "change"]) > 1e-3
    limit = f"change(equalized_odds_difference[sex])>{change - 1e-9}"
    assert heavy.failures(limit)
    assert not heavy.failures(f"change(equalized_odds_difference[sex])>{change + 1e-9}")


def test_bounds_of_probabilities_of_groups_are_those_of_linear_programs() -> None:
    """Sharp for two groups; the rows of a group are variables, as many as its probability says."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        p = rng.choice([0.1, 0.5, 0.8], 120)
        y, predicted = rng.integers(0, 2, (2, 120))
        strata = Strata.of(np.stack([p, 1 - p], 1), y, predicted, ("0", "1"), None)
        limits = {"A_eq": np.stack([p == level for level in np.unique(p)]).astype(float)}
        limits["b_eq"] = limits["A_eq"] @ p
        # the difference of selection rates is linear in who belongs to the first group
        first, second = p.sum(), (1 - p).sum()
        signed = predicted / first + predicted / second
        ends = [
            sign * linprog(sign * signed, bounds=(0, 1), **limits).fun - predicted.sum() / second
            for sign in (1, -1)
        ]
        least, most = bounds_in_strata(find_metric("demographic_parity_difference"), strata)
        assert most == pytest.approx(max(map(abs, ends)))
        assert least == pytest.approx(0 if ends[0] < 0 < ends[1] else min(map(abs, ends)))
        # a true positive rate is fractional: Charnes and Cooper's transformation
        positive = y == 1
        scaled = np.c_[limits["A_eq"], -limits["b_eq"]]
        equal = np.r_[scaled, [np.r_[positive, 0.0]]]
        room = np.c_[np.eye(120), -np.ones(120)]
        low, high = strata.rates(find_metric("true_positive_rate").definition)
        for sign, expected in ((1, low[0]), (-1, high[0])):
            solved = linprog(
                sign * np.r_[positive * predicted, 0.0], A_eq=equal, A_ub=room,
                b_eq=np.r_[np.zeros(len(scaled)), 1.0], b_ub=np.zeros(120),
            )  # fmt: skip
            assert sign * solved.fun == pytest.approx(expected)


def test_dependent_groups_are_inside_of_the_bounds_and_not_of_the_estimate() -> None:
    """Of people with the same probability, those of the group are selected more often."""
    rng = np.random.default_rng(6)
    p = rng.choice([0.2, 0.5, 0.9], 20_000)
    member = rng.random(20_000) < p
    predicted = (rng.random(20_000) < np.where(member, 0.6, 0.3)).astype(int)
    table = pd.DataFrame({"y": rng.integers(0, 2, 20_000), "p": predicted, "p_a": p, "p_b": 1 - p})
    of = {"y_true": "y", "y_pred": "p", "sensitive_features": []}
    values = rf.audit(table, **of, membership={"group": ["p_a", "p_b"]}).to_frame().set_index(KEYS)
    row = values.loc["group", "", "demographic_parity_difference"]
    true = predicted[member].mean() - predicted[~member].mean()
    assert row["high"] < true - 0.05
    assert row["lowest"] <= row["value"] < true < row["highest"] < 1
    # biased by the covariance given the probability over the share of the group, of both groups
    bias = sum(
        sum(
            (p == level).mean() * np.cov(predicted[p == level], member[p == level])[0, 1]
            for level in np.unique(p)
        )
        / share
        for share in (p.mean(), 1 - p.mean())
    )
    assert true - row["value"] == pytest.approx(bias, abs=0.01)


@pytest.mark.parametrize("tiny", [0.0, 1e-9])
def test_a_mean_of_a_row_with_nearly_all_weight_has_no_interval(tiny):
    """Its spread is not known, however many rows of no weight are beside it."""
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=(2, 200))
    group, weight = np.repeat(["a", "b"], 100), np.r_[np.ones(100), np.full(99, tiny), 1]
    table = {"g": group, "y": y, "p": p, "w": weight}
    done = rf.audit(table, y_true="y", y_pred="p", sensitive_features=["g"], sample_weight="w",
                    continuous=True)  # fmt: skip
    rows = done.to_frame().set_index(["metric", "attribute", "group"])
    errors, gap = (
        rows.loc[("mean_error_by_group", "g", "b")],
        rows.loc[("mean_error_difference", "g", "")],
    )
    assert errors["value"] == pytest.approx((p - y)[-1]) and np.isnan(errors["high"])
    assert errors["n"] == (1 if tiny == 0 else 100)
    assert (gap["low"], np.isnan(gap["high"])) == (0, True)


@pytest.mark.parametrize("draws", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_intervals_of_weighted_means_cover(draws):
    """Of 10 rows with log-normal weights, whose number less one are too many degrees of freedom."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(draws):
        values, weight = rng.normal(size=(2, 10))
        means = means_of_rows(np.zeros(10, int), values, 1, np.exp(weight))
        low, high, _ = mean_intervals(find_metric("mean_error").definition, means)
        covered.append(np.isnan(low[0]) or low[0] <= 0 <= high[0])
    assert np.mean(covered) > 0.94 - 3 * np.sqrt(0.05 / draws)
