"""Group fairness against fairlearn, by hand, and by properties."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness import metrics
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.metrics import evaluate
from robust_fairness.metrics.fairness import delta_dp_one_vs_rest, delta_eo_one_vs_rest

from .helpers import samples_of

GAPS = ["delta_dp", "delta_eo", "delta_eopp", "equal_opportunity_difference"]
OF_TWO = GAPS[:3]


def make(y, group, names=None, classes=("no", "yes")) -> Samples:
    """Samples with one categorical attribute; -1 is a missing group."""
    y, group = np.asarray(y), np.asarray(group)
    names = names or [f"g{k}" for k in range(max(group.max() + 1, 2))]
    return samples_of(y, classes, ("a",), a=pd.Categorical.from_codes(group, names))


def scores(names, samples, prediction) -> dict:
    """Values by metric, or by (metric, group) where it has groups."""
    outputs = np.eye(len(samples.classes))[np.asarray(prediction)]
    return {
        (row["metric"], row["group"]) if row["group"] else row["metric"]: row
        for row in evaluate(names, samples, outputs)
    }


def random_rows(seed, rows=400, groups=2, classes=2):
    """Labels, predictions and groups that lean on each other."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, rows)
    y = rng.integers(0, classes, rows)
    prediction = np.where(
        rng.random(rows) < 0.3 + 0.2 * (group == 0), y, rng.integers(0, classes, rows)
    )
    return y, prediction, group


@pytest.mark.parametrize(("groups", "weighted"), [(2, False), (2, True), (3, False), (4, True)])
def test_unfolded_disparate_impact_equals_pandas(groups, weighted):
    """Of two groups it is Eq. 16 and its inverse, of which the folded form is the lower one."""
    y, p, group = random_rows(7, groups=groups)
    frame = pd.DataFrame({"p": p, "group": group, "w": 1.0})
    if weighted:
        frame["w"] = np.random.default_rng(1).uniform(0.5, 3, len(y))
    measured = metrics.disparate_impact_by_group(
        y, p, sensitive_features=group, sample_weight=frame["w"] if weighted else None
    )
    for a in range(groups):
        inside, outside = frame[frame["group"] == a], frame[frame["group"] != a]
        expected = np.average(inside["p"], weights=inside["w"])
        expected /= np.average(outside["p"], weights=outside["w"])
        assert measured[str(a)] == pytest.approx(expected, rel=1e-12)
    if groups == 2:
        folded = metrics.disparate_impact(y, p, sensitive_features=group, sample_weight=frame["w"])
        assert min(measured.values()) == pytest.approx(folded, rel=1e-12)
        assert measured["0"] * measured["1"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("group", "prediction", "expected"),
    [
        ([0, 0, 1, 1], [1, 1, 1, 0], {"g0": 2.0, "g1": 0.5}),
        ([0, 0, 1, 1], [1, 0, 0, 0], {"g0": "no positive prediction", "g1": 0.0}),
        ([0, 0, 1, 1], [0, 0, 0, 0], {"g0": "no positive", "g1": "no positive"}),
        ([0, 0, 0, 0], [1, 0, 0, 0], {"g0": "other than g0", "g1": "no rows of group g1"}),
    ],
)
def test_unfolded_disparate_impact_by_hand(group, prediction, expected):
    """A zero rate of the others leaves it undefined."""
    rows = scores(["disparate_impact_by_group"], make([0, 1, 0, 1], group), prediction)
    for name, value in expected.items():
        row = rows["disparate_impact_by_group", name]
        if isinstance(value, str):
            assert row["value"] is None
            assert value in row["note"]
        else:
            assert row["value"] == value


@pytest.mark.parametrize(("groups", "classes"), [(3, 2), (2, 3), (4, 3)])
def test_one_vs_rest_equals_loops(groups, classes):
    """The largest gap over groups (and classes), written out; also of classes without names."""
    y, p, group = random_rows(3, groups=groups, classes=classes)
    names = tuple(f"c{k}" for k in range(classes))
    rows = scores(
        ["delta_dp_one_vs_rest", "delta_eo_one_vs_rest"], make(y, group, classes=names), p
    )
    dp = max(
        abs((p[group == a] == c).mean() - (p[group != a] == c).mean())
        for a in range(groups)
        for c in range(classes)
    )
    eo = max(
        sum(
            abs((p[(group == a) & (y == c)] == c).mean() - (p[(group != a) & (y == c)] == c).mean())
            for c in range(classes)
        )
        for a in range(groups)
    )
    assert rows["delta_dp_one_vs_rest"]["value"] == pytest.approx(dp)
    assert rows["delta_eo_one_vs_rest"]["value"] == pytest.approx(eo)
    for function, expected in ((delta_dp_one_vs_rest, dp), (delta_eo_one_vs_rest, eo)):
        assert function(y, p, sensitive_features=group).value == pytest.approx(expected)
        with pytest.raises(InputError, match=f"{classes} classes, of which 1 have names"):
            function(y, p, sensitive_features=group, classes=["c0"])


@pytest.mark.parametrize(("groups", "classes"), [(3, 2), (2, 3)])
def test_plain_gaps_do_not_apply_to_more_than_two(groups, classes):
    """They say so instead of guessing."""
    y, p, group = random_rows(1, groups=groups, classes=classes)
    names = tuple(f"c{k}" for k in range(classes))
    for row in scores(OF_TWO, make(y, group, classes=names), p).values():
        assert row["value"] is None
        assert row["note"].startswith("not applicable: ")


def test_empty_group_gives_a_missing_value_with_count_zero():
    """No crash, no NaN; the group is named."""
    samples = make([0, 1, 0, 1], [0, 0, 0, 0], ["men", "women"])
    names = [*OF_TWO, "disparate_impact", "delta_dp_one_vs_rest"]
    few = ["equal_opportunity_difference", "equalized_odds_ratio", "accuracy_worst_gap"]
    by_group = ["accuracy_by_group", "worst_group_accuracy"]
    rows = scores([*names, *few, *by_group], samples, [0, 1, 1, 1])
    for name in few:
        assert rows[name]["note"] == "fewer than two groups with rows"
    assert rows["worst_group_accuracy"]["note"] == "group men; left out: women (no rows)"
    for name in names:
        assert rows[name]["value"] is None, name
        assert rows[name]["n"] == 0
        assert "women" in rows[name]["note"]
    assert rows["accuracy_by_group", "women"]["value"] is None
    assert rows["accuracy_by_group", "men"]["value"] == 0.75


def test_empty_cell_of_group_and_class_is_named():
    """Women of class yes are missing: Delta-EO is not defined, Delta-DP and Delta-EOpp are."""
    samples = make([0, 1, 0, 0], [0, 0, 1, 1], ["men", "women"])
    rows = scores(GAPS, samples, [0, 1, 0, 1])
    assert rows["delta_eo"]["value"] is None
    assert "group women: no rows of class 1" in rows["delta_eo"]["note"]
    assert rows["equal_opportunity_difference"]["value"] is None
    assert rows["delta_dp"]["value"] == 0
    assert rows["delta_eopp"]["value"] == 0.5


def test_no_positive_prediction_leaves_disparate_impact_undefined():
    """0/0."""
    rows = scores(["disparate_impact"], make([0, 1, 0, 1], [0, 0, 1, 1]), [0, 0, 0, 0])
    assert rows["disparate_impact"]["value"] is None
    assert "0 in every group" in rows["disparate_impact"]["note"]


def test_rows_without_group_are_left_out():
    """They count for metrics without groups only."""
    rows = scores(["accuracy", "delta_dp"], make([1, 1, 1], [0, 1, -1]), [1, 0, 0])
    assert rows["accuracy"]["n"] == 3
    assert (rows["delta_dp"]["value"], rows["delta_dp"]["n"]) == (1.0, 2)


@given(st.integers(0, 10**6))
def test_properties_of_gaps(seed):
    """Bounds; blind to the order of rows and to which group is first; zero for equal groups."""
    y, p, group = random_rows(seed, rows=60)
    values = {name: row["value"] for name, row in scores(GAPS, make(y, group), p).items()}
    for name, value in values.items():
        if value is None:
            continue
        assert 0 <= value <= (2 if name == "delta_eo" else 1)
    swapped = scores(GAPS, make(y, 1 - group), p)
    order = np.random.default_rng(seed).permutation(60)
    shuffled = scores(GAPS, make(y[order], group[order]), p[order])
    twice = scores(GAPS, make(np.tile(y, 2), np.repeat([0, 1], 60)), np.tile(p, 2))
    one_vs_rest = scores(["delta_dp_one_vs_rest", "delta_eo_one_vs_rest"], make(y, group), p)
    for name in GAPS:
        assert swapped[name]["value"] == pytest.approx(values[name])
        assert shuffled[name]["value"] == pytest.approx(values[name])
        assert twice[name]["value"] in (0, None)
    for name in ("delta_dp", "delta_eo"):
        assert one_vs_rest[f"{name}_one_vs_rest"]["value"] == pytest.approx(values[name])
