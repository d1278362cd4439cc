"""How metrics are found by name with options, and what they are called with."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.metrics import Score, evaluate, find_metric, parse_metrics
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.quantities import DEFINITIONS, Measure

from .helpers import samples_of


def make_samples(**attributes) -> Samples:
    """Rows of two classes by turns."""
    rows = len(next(iter(attributes.values())))
    return samples_of(np.arange(rows) % 2, ("no", "yes"), **attributes)


def letters(text: str, known: str = "abc") -> pd.Categorical:
    """One category a letter; any other is missing."""
    return pd.Categorical([letter if letter in known else None for letter in text], list(known))


@pytest.fixture
def calls(monkeypatch) -> list[dict]:
    """What the metric ``recorded`` was called with."""
    calls = []

    def recorded(y_true, *, scale, **groups):
        calls.append({"y_true": y_true, "scale": scale, **groups})
        return Score(scale, len(y_true))

    needs = ("y_true", "sensitive_features", "y_train", "sensitive_features_train")
    measure = Measure(
        name="recorded", function=recorded, better="higher", task="any", needs=needs,
        options={"scale": 1},
    )  # fmt: skip
    monkeypatch.setitem(DEFINITIONS, "recorded", measure)
    return calls


@given(st.one_of(st.integers(-(10**9), 10**9), st.floats(allow_nan=False, allow_infinity=False)))
def test_any_finite_number_is_read_as_python_writes_it(number):
    """Exponents, signs and points."""
    assert find_metric(f"accuracy_at(alpha={number})").options == {"alpha": float(number)}


def test_options_are_bound_and_are_no_arguments():
    """The direction and task stay those of the metric; its default is 0."""
    plain, bound = find_metric("accuracy_at"), find_metric("accuracy_at(alpha=-0.5)")
    assert plain.options == {"alpha": 0}
    assert plain.needs == bound.needs
    assert "alpha" not in plain.needs
    assert (bound.better, bound.task) == (plain.better, plain.task)
    case = {
        "y_true": np.array([0, 0]),
        "y_pred": np.array([0, 1]),
        "sensitive_features": Groups.named(np.array([0, 1]), ("a", "b")),
        "y_train": np.array([0, 0, 0]),
        "sensitive_features_train": Groups.named(np.array([0, 1, 1]), ("a", "b")),
    }
    assert bound.scores(case) != plain.scores(case)
    assert bound.scores(case)[""] == plain.definition.function(**case, alpha=-0.5)


def test_metrics_of_a_column_are_parsed_into_columns():
    """What reports group and filter by."""
    names = pd.Series(["recall_at_majority_gap(k=4)", "accuracy_at(alpha=-0.5)", "test_share"])
    columns = parse_metrics(names)
    assert columns["quantity"].tolist() == ["recall_at", "accuracy_at", "test_share"]
    assert columns["aggregation"].tolist() == ["majority_gap", "", ""]
    assert columns["better"].tolist() == ["lower", "higher", ""]
    assert columns["k"].iloc[0] == 4
    assert columns["alpha"].iloc[1] == -0.5
    assert columns[["k", "alpha"]].iloc[2].isna().all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acuracy_at(alpha=1)", "unknown metric 'acuracy_at': did you mean 'accuracy_at'"),
        (
            "accuracy_at(alhpa=1)",
            "unknown option of metric accuracy_at 'alhpa': did you mean 'alpha'? Allowed: alpha",
        ),
        ("accuracy_at()", "unknown option of metric accuracy_at ''. Allowed: alpha"),
        ("accuracy_at(1)", "unknown option of metric accuracy_at '1'. Allowed: alpha"),
        (
            "accuracy_at(alpha=1, alpha=2)",
            "'accuracy_at(alpha=1, alpha=2)' has alpha twice, allowed: accuracy_at(alpha=0)",
        ),
        ("accuracy_at(alpha=1", "'accuracy_at(alpha=1' does not end in a parenthesis, allowed:"),
        ("accuracy_at(alpha=1)x", "does not end in a parenthesis, allowed: accuracy_at(alpha=0)"),
        ("accuracy_at(alpha=1))", "alpha is '1)', allowed: a finite number"),
        ("accuracy_at(alpha=)", "alpha is '', allowed: a finite number"),
        ("accuracy_at(alpha=nan)", "alpha is 'nan', allowed: a finite number"),
        ("accuracy_at(alpha=1e999)", "alpha is '1e999', allowed: a finite number"),
        ("accuracy_at(alpha=1_000)", "alpha is '1_000', allowed: a finite number"),
        ("accuracy_at(alpha=exit())", "alpha is 'exit()', allowed: a finite number"),
        ("accuracy(alpha=1)", "metric 'accuracy(alpha=1)': accuracy takes no options"),
    ],
)
def test_bad_names_are_refused_in_one_line_that_says_what_is_allowed(name, message):
    """Nothing of them is evaluated."""
    with pytest.raises(InputError) as error:
        find_metric(name)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_carry_the_name_as_it_was_written():
    """So that a table can hold several values of an option."""
    samples = make_samples(a=letters("aabb"))
    names = ["accuracy_at(alpha=1)", "accuracy_at(alpha=1.0)", "tail_accuracy(beta=.5)"]
    rows = evaluate(names, samples, np.eye(2)[samples.y], train=samples)
    assert [row["metric"] for row in rows] == names


def test_metric_of_training_rows_is_not_applicable_without_them():
    """One row says what it needs."""
    samples = make_samples(a=letters("aabbab"))
    outputs = np.random.default_rng(0).normal(size=(6, 2))
    names = ["accuracy_at", "unbiased_accuracy", "constant_accuracy"]
    notes = [row["note"] for row in evaluate(names, samples, outputs)]
    assert notes == [
        "not applicable: needs y_train, sensitive_features_train",
        "not applicable: needs y_train, attributes_train",
        "not applicable: needs y_train",
    ]
    rows = evaluate(names, samples, outputs, train=samples.take(np.array([0, 5])))
    assert all(row["value"] is not None for row in rows)


def test_rows_without_a_group_are_left_out_of_both_sides(calls):
    """Labels and groups stay together."""
    train = make_samples(a=letters("?bca"))
    evaluate(
        ["recorded(scale=2)"], make_samples(a=letters("ab?")), np.eye(2)[[0, 0, 0]], None, train
    )
    (call,) = calls
    assert call["scale"] == 2
    assert (call["y_true"].tolist(), call["sensitive_features"].index.tolist()) == ([0, 1], [0, 1])
    assert call["y_train"].tolist() == [1, 0, 1]
    assert call["sensitive_features_train"].index.tolist() == [1, 2, 0]
    assert call["sensitive_features"].names == ("a", "b", "c")


def test_combination_has_the_same_numbers_in_training_and_here(calls):
    """Found in both together, though neither has all; after the attributes alone."""
    samples = make_samples(one=letters("aab"), two=letters("ab?"), size=np.zeros(3))
    train = make_samples(one=letters("bac"), two=letters("abc"), size=np.zeros(3))
    rows = evaluate(
        ["recorded", "accuracy"], samples, np.eye(2)[[0, 0, 0]], None, train, [("one", "two")]
    )
    assert [row["attribute"] for row in rows] == ["one", "two", "one & two", ""]
    both = calls[2]
    assert both["sensitive_features"].names == ("a & a", "a & b", "b & a", "c & c")
    assert both["sensitive_features"].index.tolist() == [0, 1]
    assert both["sensitive_features_train"].index.tolist() == [2, 1, 3]
    assert both["y_true"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("grouping", "message"),
    [(("one", "tow"), "unknown attribute 'tow'"), (("one", "size"), "'size' is continuous")],
)
def test_grouping_by_what_defines_no_groups_is_refused(grouping, message):
    """One line."""
    samples = make_samples(one=letters("aab"), size=np.zeros(3))
    with pytest.raises(InputError, match=message):
        evaluate(["accuracy"], samples, np.eye(2)[[0, 0, 0]], groupings=[grouping])


def test_grouping_of_one_attribute_adds_no_second_row(calls):
    """It is there anyway."""
    samples = make_samples(one=letters("aab"))
    rows = evaluate(["recorded"], samples, np.eye(2)[[0] * 3], None, samples, [("one",)])
    assert len(rows) == 1


def test_sensitive_attributes_come_first():
    """Figures and ranks show the first attribute: that which methods mitigate."""
    samples = make_samples(age=letters("abab"), sex=letters("bbaa"), race=letters("abba"))
    samples = dataclasses.replace(samples, sensitive=("race", "sex"))
    outputs = np.random.default_rng(0).normal(size=(4, 2))
    rows = evaluate(["worst_group_accuracy", "faircocco_dp"], samples, outputs)
    named = {
        metric: [row["attribute"] for row in rows if row["metric"] == metric]
        for metric in ("worst_group_accuracy", "faircocco_dp")
    }
    assert named["worst_group_accuracy"] == ["race", "sex", "age"]
    assert named["faircocco_dp"] == ["race", "sex", "age", "race & sex"]
