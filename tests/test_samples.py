"""Groups of attributes and of their combinations."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.groups import groups_of

# Names that differ in length and order from their categories' order, numbers, and one unused.
CATEGORIES = (["b", "a", "c & d"], [2, 10, 1], ["only"], ["x", "y"], [])


@st.composite
def frames(draw) -> pd.DataFrame:
    """Up to five categorical columns of up to 30 rows, with missing values or none at all."""
    rows = draw(st.integers(0, 30))
    chosen = draw(st.lists(st.sampled_from(CATEGORIES), min_size=1, max_size=5))
    columns = {}
    for number, categories in enumerate(chosen):
        codes = st.integers(-1, len(categories) - 1)
        drawn = draw(st.lists(codes, min_size=rows, max_size=rows))
        columns[f"column {number}"] = pd.Categorical.from_codes(drawn, categories)
    return pd.DataFrame(columns, index=range(rows))


def combinations(frame: pd.DataFrame) -> list[tuple[int, ...] | None]:
    """Codes of every row, one by one; None where a value is missing."""
    codes = [frame[column].cat.codes.tolist() for column in frame]
    return [None if -1 in row else row for row in zip(*codes, strict=True)]


@given(frames())
def test_groups_of_several_attributes_are_the_combinations_that_occur_in_order(frame):
    """Restated row by row: sorted by the order of the categories, the first attribute first."""
    groups = groups_of(frame, list(frame))
    rows = combinations(frame)
    if len(frame.columns) == 1:
        occurring = [(code,) for code in range(len(frame.iloc[:, 0].cat.categories))]
    else:
        occurring = sorted({row for row in rows if row is not None})
    assert groups.index.dtype == np.int64
    assert groups.index.tolist() == [-1 if row is None else occurring.index(row) for row in rows]
    assert groups.names == tuple(
        " & ".join(
            str(frame[column].cat.categories[code]) for column, code in zip(frame, row, strict=True)
        )
        for row in occurring
    )
    assert groups.counts.tolist() == [rows.count(row) for row in occurring]


def test_many_attributes_of_many_values_have_no_more_groups_than_rows():
    """Far more combinations than an int64 can number: they are never enumerated."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(rng.integers(0, 500, 200), range(500))
            for name in "abcdefghijkl"
        }
    )
    groups = groups_of(frame, list(frame))
    assert sorted(groups.index) == list(range(200))
    for row, group in enumerate(groups.index):
        assert groups.names[group] == " & ".join(map(str, frame.iloc[row]))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "groups: no attribute is given, allowed: sex, age"),
        (["sexx"], "unknown attribute 'sexx': did you mean 'sex'"),
        (["sex", "age"], "attribute 'age' is continuous"),
    ],
)
def test_what_defines_no_groups_is_refused(columns, message):
    """One line that says what is allowed."""
    frame = pd.DataFrame({"sex": pd.Categorical(["f", "m"]), "age": [20.0, 30.0]})
    with pytest.raises(InputError, match=message):
        groups_of(frame, columns)


def imbalanced() -> Samples:
    """Four rows, two splits, one attribute that differs by split."""
    sides = ["majority", "minority"]
    attributes = pd.DataFrame(
        {
            "colour": pd.Categorical(["red", "red", "blue", "blue"]),
        }
    )
    split_attributes = {
        "a": pd.DataFrame({"side": pd.Categorical(["majority", "minority"] * 2, sides)}),
        "b": pd.DataFrame({"side": pd.Categorical(["minority"] * 4, sides)}),
    }
    splits = {
        "a": pd.Categorical(["train", "train", "val", "test"]),
        "b": pd.Categorical(["test", "val", "train", "train"]),
    }
    return Samples(
        x=np.zeros((4, 1), dtype=np.float32),
        y=np.zeros(4, dtype=np.int64),
        attributes=attributes,
        split_attributes=split_attributes,
        id=np.arange(4),
        splits=pd.DataFrame(splits),
        classes=("only",),
        sensitive=("side",),
        downstream=pd.DataFrame({"a": [True, False, False, False], "b": [False, True, True, True]}),
    )


def test_each_split_sees_its_own_value_of_an_attribute_that_differs_by_split():
    """Those of the other splits vanish; other attributes stay, and so do rows and order."""
    samples = imbalanced()
    for split in ("a", "b"):
        seen = samples.of_split(split)
        assert list(seen.attributes) == ["colour", "side"]
        assert seen.attributes["side"].equals(samples.split_attributes[split]["side"])
        assert not seen.split_attributes
        assert seen.of_split(split) is seen


def test_rows_of_downstream_classifiers_are_the_splits_own_or_its_training_rows():
    """They need not be training rows, and go along when rows are taken."""
    samples = imbalanced()
    assert samples.downstream_rows("b").tolist() == [1, 2, 3]
    assert samples.take(np.array([3, 0])).downstream_rows("b").tolist() == [0]
    assert replace(samples, downstream=None).downstream_rows("b").tolist() == [2, 3]
    with pytest.raises(InputError, match="split 'c'"):
        samples.downstream_rows("c")


def test_a_sensitive_attribute_that_no_split_has_is_refused():
    """The message names the attributes as splits see them."""
    with pytest.raises(InputError, match=r"sensitive attribute 'sides'.*side"):
        replace(imbalanced(), sensitive=("sides",))
