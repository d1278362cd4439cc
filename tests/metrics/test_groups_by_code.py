"""Groups whose names look alike stay apart: every gap against pandas, by code."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robust_fairness as rf
from robust_fairness.metrics import evaluate
from robust_fairness.numbers.groups import Groups, groups_of, intersection, shown

from .helpers import samples_of

# Texts that separators, numbers, missing values, markup and other scripts make.
LETTERS = ["\N{HEBREW LETTER ALEF}", "\N{RIGHT-TO-LEFT MARK}", "<b>", '"', "1", "1.0", " "]
PARTS = st.sampled_from(
    ["a", "b", "&", " & ", "a & b", ":", "=", "[", "]", "nan", "None", *LETTERS]
)
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("".join).filter(str.strip)  # blanks are missing
GAPS = {
    "demographic_parity_difference": lambda rows: rows["p"].mean(),
    "accuracy_difference": lambda rows: (rows["p"] == rows["y"]).mean(),
}


def table(names: list[list[str]], seed: int) -> pd.DataFrame:
    """Rows of two columns with these names, by code; every combination occurs."""
    rng = np.random.default_rng(seed)
    codes = np.array(np.meshgrid(*(range(len(of)) for of in names))).reshape(len(names), -1)
    codes = np.repeat(codes, 6, axis=1)
    rate = rng.random(codes.shape[1] // 6).repeat(6)
    y = rng.integers(0, 2, codes.shape[1])
    frame = pd.DataFrame({"y": y, "p": (rng.random(codes.shape[1]) < rate).astype(int)})
    for column, (code, of) in enumerate(zip(codes, names, strict=True)):
        frame[f"code{column}"], frame[f"s{column}"] = code, np.array(of, dtype=object)[code]
    return frame


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(NAMES, min_size=2, max_size=3, unique=True), min_size=2, max_size=2),
    st.integers(0, 100),
)
def test_gaps_are_those_of_pandas_by_code(names, seed):
    frame = table(names, seed)
    sensitive = frame[["s0", "s1"]]
    for metric, value in GAPS.items():
        by_code = frame.groupby(["code0", "code1"])[["y", "p"]].apply(value)
        expected = by_code.max() - by_code.min()
        measured = getattr(rf.metrics, metric)(frame["y"], frame["p"], sensitive_features=sensitive)
        assert measured == pytest.approx(expected)
    by_group = rf.metrics.accuracy_by_group(frame["y"], frame["p"], sensitive_features=sensitive)
    assert len(by_group) == len(by_code)  # names that would look equal are shown apart
    samples = samples_of(
        frame["y"].to_numpy(), ("no", "yes"), ("s0", "s1"),
        **{name: pd.Categorical(sensitive[name]) for name in sensitive},
    )  # fmt: skip
    rows = evaluate(
        ["accuracy_by_group", "accuracy_by_subgroup"], samples, np.eye(2)[frame["p"]],
        train=samples, groupings=[("s0", "s1")],
    )  # fmt: skip
    together = [row["group"] for row in rows if row["attribute"] == shown(("s0", "s1"))]
    assert len(together) == len({*together})


def test_columns_and_intersections_that_are_written_alike_are_two_attributes():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (400, 4)), columns=["y", "p", "sex", "race"])
    frame["sex & race"] = rng.integers(0, 2, 400)
    audit = rf.audit(
        frame, y_true="y", y_pred="p", sensitive_features=["sex", "race", "sex & race"][:2],
        intersections=True,
    )  # fmt: skip
    assert "sex & race" in set(audit.to_frame()["attribute"])
    three = rf.audit(
        frame.rename(columns={"race": "b", "sex": "a", "sex & race": "a & b & a & b"}),
        y_true="y", y_pred="p", sensitive_features=["a", "b", "a & b & a & b"], intersections=True,
    )  # fmt: skip
    attributes = three.to_frame()["attribute"].unique()
    assert {"a", "b", "a & b & a & b"} < {*attributes} and len(attributes) == 5
    assert len(three.metrics()) == len(set(three.metrics()))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a & b", "c"), ("a", "b & c")),
        (('"a', 'b"'), ('"a & b"',)),
        (("a &", "b"), ("a", "& b")),
        (('a" & "b', "c"), ("a", 'b" & c')),
    ],
)
def test_values_that_differ_are_shown_apart(first, second):
    assert shown(first) != shown(second)
    assert shown(["female", "black"]) == "female & black"


def test_intersections_count_what_occurs_and_leave_out_what_is_missing():
    parts = [
        Groups.named(np.array([0, 0, 1, -1]), "ab"),
        Groups.named(np.array([1, 1, 0, 0]), "xy"),
    ]
    both = intersection(parts)
    assert both.values == (("a", "y"), ("b", "x"))
    assert both.index.tolist() == [0, 0, 1, -1]
    frame = pd.DataFrame({"s": pd.Categorical(["a", "a", "b", None]), "t": list("yyxx")})
    frame["t"] = frame["t"].astype("category")
    assert groups_of(frame, ["s", "t"]).values == both.values
