"""Shares of test rows after resampling."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.shifts.resampling import kept_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from tests.shifts.rows import samples_of


def samples(rows: int = 400) -> Samples:
    """Two groups and two classes; half of the rows are tested."""
    generator = np.random.default_rng(0)
    parts = ["test", "train", "val", "test"]
    splits = {f"split_{k}": pd.Categorical(np.roll(parts * 100, k)) for k in (0, 1)}
    return replace(
        samples_of(generator.normal(size=(rows, 2)).astype(np.float32)),
        y=(generator.random(rows) < 0.3).astype(np.int64),
        attributes=pd.DataFrame({"sex": pd.Categorical(generator.choice(["f", "m"], rows))}),
        splits=pd.DataFrame(splits),
    )


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 10))
def test_the_share_is_reached_with_as_many_rows_as_possible(selected, tenths):
    """Against a search of all subsets' sizes: no larger one is within half a row of the share."""
    selected, share = np.array(selected), tenths / 10
    kept = kept_rows(selected, np.random.default_rng(1).random(len(selected)), share)
    chosen, others = (kept & selected).sum(), (kept & ~selected).sum()
    assert abs(chosen - share * (chosen + others)) <= 1
    exact = [
        (a, b)
        for a in range(selected.sum() + 1)
        for b in range((~selected).sum() + 1)
        if a * 10 == tenths * (a + b)
    ]
    assert chosen + others >= max(a + b for a, b in exact)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_group_mix_states_the_share_in_every_split(share):
    plugin = find("shift", "group_mix")
    shift = plugin(plugin.Parameters(attribute="sex", group="f"))
    before = samples()
    after = shift.apply(before, share)
    for split in before.split_names:
        rows = after.rows(split, "test")
        assert set(rows) < set(before.rows(split, "test"))
        assert (after.attributes["sex"][rows] == "f").mean() == pytest.approx(share, abs=0.01)
        np.testing.assert_array_equal(after.rows(split, "train"), before.rows(split, "train"))


def test_label_prevalence_is_of_the_last_class_and_leaves_out_more_and_more_rows():
    shift = find("shift", "label_prevalence")()
    before = samples()
    parts = [set(shift.apply(before, share).rows("split_0", "test")) for share in (0.5, 0.7, 0.9)]
    for share, rows in zip((0.5, 0.7, 0.9), parts, strict=True):
        assert before.y[list(rows)].mean() == pytest.approx(share, abs=0.02)
    assert parts[0] > parts[1] > parts[2]


def test_rows_keep_their_fate_when_only_tested_rows_are_shifted():
    """As the pipeline does it: places say where the rows are in the dataset."""
    shift = find("shift", "label_prevalence")()
    before = samples()
    places = np.flatnonzero((before.splits == "test").any(axis=1))
    whole, part = shift.apply(before, 0.6), shift.apply(before.take(places), 0.6, places)
    for split in before.split_names:
        np.testing.assert_array_equal(places[part.rows(split, "test")], whole.rows(split, "test"))


def test_mistakes_are_named():
    mix, prevalence = find("shift", "group_mix"), find("shift", "label_prevalence")
    with pytest.raises(InputError, match="unknown attribute of group_mix 'sexx'"):
        mix(mix.Parameters(attribute="sexx", group="f")).apply(samples(), 0.5)
    with pytest.raises(InputError, match="unknown group of sex 'female'"):
        mix(mix.Parameters(attribute="sex", group="female")).apply(samples(), 0.5)
    with pytest.raises(InputError, match="unknown class 'maybe'"):
        prevalence(prevalence.Parameters(label="maybe")).apply(samples(), 0.5)
    continuous = replace(samples(), classes=(), y=np.zeros(400, np.float32))
    with pytest.raises(InputError, match="not applicable to a continuous outcome"):
        prevalence().apply(continuous, 0.5)
    one_class = replace(samples(), y=np.zeros(400, np.int64))
    with pytest.raises(InputError, match="no test row of split_0 is left"):
        prevalence().apply(one_class, 1)
