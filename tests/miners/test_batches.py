"""Batches of classes: replacement only as far as needed, all classes and rows alike."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from robust_fairness.bench.methods.metric_learning import class_batches, occurrences
from robust_fairness.core.errors import InputError


def places(labels, batch_size, per_class, seed=0):
    drawn = class_batches(
        torch.tensor(labels), batch_size, per_class, torch.Generator().manual_seed(seed)
    )
    assert drawn.dtype == torch.int64
    return drawn.numpy()


def even(counts, total):
    """Whether ``total`` was shared out as evenly as whole numbers allow."""
    share, rest = divmod(total, len(counts))
    return sorted(counts) == [share] * (len(counts) - rest) + [share + 1] * rest


@given(
    labels=st.lists(st.integers(0, 6).map(lambda number: 3 * number), min_size=1, max_size=60),
    needed=st.integers(1, 6),
    per_class=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_a_batch_is_as_varied_as_the_rows_allow(labels, needed, per_class, seed):
    """Classes stand equally often up to one, and so do the rows of each."""
    labels, size = np.array(labels), needed * per_class
    drawn = places(labels, size, per_class, seed)
    assert len(drawn) == max(1, len(labels) // size) * size
    present = np.unique(labels)
    for batch in drawn.reshape(-1, size):
        blocks = labels[batch].reshape(needed, per_class)
        assert (blocks == blocks[:, :1]).all()
        times = Counter(blocks[:, 0].tolist())
        assert even([times[label] for label in present], needed)
        rows = Counter(batch.tolist())
        for label in times:
            members = np.flatnonzero(labels == label)
            assert even([rows[row] for row in members], times[label] * per_class)


def test_classes_are_drawn_alike_whatever_their_size():
    labels = np.repeat(np.arange(6), [400, 400, 400, 20, 20, 20])
    counts = Counter(
        label for seed in range(20) for label in labels[places(labels, 6, 2, seed)].tolist()
    )
    assert stats.chisquare([counts[label] / 2 for label in range(6)]).pvalue > 1e-3


def test_rows_of_a_class_are_drawn_alike_and_in_all_pairs():
    labels = np.repeat([0, 1], [5, 40])
    rows, pairs = Counter(), Counter()
    for seed in range(400):
        first = places(labels, 4, 2, seed)[:4].reshape(2, 2)
        small = first[labels[first[:, 0]] == 0][0]
        rows.update(small.tolist())
        pairs[tuple(small.tolist())] += 1
    assert stats.chisquare(list(rows.values())).pvalue > 1e-3
    assert len(pairs) == 5 * 4
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-3


def test_an_epoch_of_equal_classes_visits_nearly_all_rows():
    """Every class's pack is dealt before it begins anew."""
    labels = np.arange(640) % 10
    drawn = places(labels, 20, 2)
    assert Counter(drawn.tolist()) == dict.fromkeys(range(640), 1)


def test_draws_come_from_the_generator_alone():
    labels, state = np.arange(100) % 7, torch.random.get_rng_state()
    first = places(labels, 8, 2, 1)
    assert torch.random.get_rng_state().equal(state)
    np.testing.assert_array_equal(places(labels, 8, 2, 1), first)
    assert (places(labels, 8, 2, 2) != first).any()


def test_what_makes_no_batches_is_refused():
    with pytest.raises(InputError, match="per_class 3: must divide batch_size, which"):
        places([0, 1], 4, 3)


@given(values=st.lists(st.integers(-3, 3), max_size=20))
def test_occurrences_count_what_stood_before(values):
    expected = [values[:place].count(value) for place, value in enumerate(values)]
    assert occurrences(torch.tensor(values, dtype=torch.int64)).tolist() == expected
