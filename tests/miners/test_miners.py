"""Miners: triplets that keep their definition, densities, draws that only the generator makes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from robust_fairness.bench.miners.triplets import log_inverse_density
from robust_fairness.core.registry import find

NAMES = ("distance_weighted", "random", "semi_hard")
GRID = 0.25  # distances of multiples of it, and a margin that is one, are compared exactly


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def mined(name, embeddings, labels, seed=0, **options):
    """Triplets of one batch, as a list of three numbers each."""
    miner = find("miner", name)
    source = seed if isinstance(seed, torch.Generator) else generator(seed)
    embeddings = torch.as_tensor(embeddings, dtype=torch.float64)
    labels = torch.tensor(labels, dtype=torch.int64)
    triplets = miner(miner.Parameters(**options)).mine(embeddings, labels, source)
    assert all(places.dtype == torch.int64 for places in triplets)
    return list(zip(*(places.tolist() for places in triplets), strict=True))


def unit(rows, dimensions, seed=0):
    """Random directions, float64."""
    x = np.random.default_rng(seed).normal(size=(rows, dimensions))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def counts_of(name, embeddings, labels, repeats, **options):
    """How often each row was drawn for each anchor: as its positive, as its negative."""
    positives, negatives = np.zeros((2, len(labels), len(labels)), int)
    source = generator()
    for _ in range(repeats):
        for anchor, positive, negative in mined(name, embeddings, labels, source, **options):
            positives[anchor, positive] += 1
            negatives[anchor, negative] += 1
    return positives, negatives


def agree(counts, probabilities):
    """Whether counts of draws fit probabilities: the chance of a worse fit is not tiny."""
    assert not counts[probabilities == 0].any()
    some = probabilities > 0
    expected = (probabilities * counts.sum(1, keepdims=True))[some]
    freedom = some.sum() - len(counts)
    return stats.chi2.sf((((counts[some] - expected) ** 2) / expected).sum(), freedom) > 1e-3


@st.composite
def batches(draw):
    """Embeddings on a grid with few classes: ties, copies, zeros and lone classes occur."""
    labels = draw(st.lists(st.integers(0, 3), max_size=9))
    dimensions = draw(st.integers(1, 3))
    numbers = st.integers(-4, 4).map(lambda number: number * GRID)
    size = len(labels) * dimensions
    values = draw(st.lists(numbers, min_size=size, max_size=size))
    return np.array(values).reshape(len(labels), dimensions), np.array(labels, np.int64)


@pytest.mark.parametrize("name", NAMES)
@given(batch=batches(), seed=st.integers(0, 99))
def test_one_triplet_for_every_row_with_a_positive_and_a_negative(name, batch, seed):
    embeddings, labels = batch
    triplets = mined(name, embeddings, labels, seed)
    expected = [
        row
        for row, label in enumerate(labels)
        if (labels == label).sum() > 1 and (labels != label).any()
    ]
    assert [anchor for anchor, _, _ in triplets] == expected
    for anchor, positive, negative in triplets:
        assert labels[positive] == labels[anchor] != labels[negative]
        assert positive != anchor


@given(batch=batches(), seed=st.integers(0, 99))
def test_semi_hard_negatives_lie_between_the_positive_and_the_margin(batch, seed):
    """Else there is no such row."""
    embeddings, labels = batch
    for anchor, positive, negative in mined("semi_hard", embeddings, labels, seed, margin=GRID):
        near = np.linalg.norm(embeddings[anchor] - embeddings[positive])

        def qualifies(row, anchor=anchor, near=near):
            far = np.linalg.norm(embeddings[anchor] - embeddings[row])
            return labels[row] != labels[anchor] and near < far < near + GRID

        assert qualifies(negative) or not any(map(qualifies, range(len(labels))))


@pytest.mark.parametrize(
    ("name", "options", "embeddings", "classes", "expected"),
    [
        # On a line: row 0 at 0, its positive at 1; the negatives at 1.05 and -1.1 qualify.
        (
            "semi_hard",
            {},
            [[0.0], [1.0], [1.05], [-1.1], [0.5], [1.3], [1.0]],
            [0, 0, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 0, 0, 0],
        ),
        # None qualifies: all negatives.
        ("semi_hard", {}, [[0.0], [1.0], [0.5], [3.0], [4.0]], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]),
        # Two classes at opposite poles: none is near.
        (
            "distance_weighted",
            {"farther": "left_out"},
            [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [-0.8, 0.6]],
            [0, 0, 1, 1, 1],
            [0, 0, 1, 1, 1],
        ),
    ],
)
def test_negatives_are_drawn_alike_from_those_that_qualify(
    name, options, embeddings, classes, expected
):
    """For row 0; from all where none does."""
    _, negatives = counts_of(name, embeddings, classes, 700, **options)
    assert agree(negatives[:1], np.array([expected]) / sum(expected))


@pytest.mark.parametrize("name", NAMES)
def test_positives_are_drawn_alike(name):
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    positives, _ = counts_of(name, unit(8, 5), labels, 700)
    same = (labels == labels[:, None]) & ~np.eye(8, dtype=bool)
    assert agree(positives[:7], same[:7] / same[:7].sum(1, keepdims=True))


def test_random_negatives_are_drawn_alike():
    labels = np.array([0, 0, 0, 1, 1, 2, 2])
    _, negatives = counts_of("random", unit(7, 5), labels, 700)
    different = labels != labels[:, None]
    assert agree(negatives, different / different.sum(1, keepdims=True))


def inverse_density(distance, dimensions):
    """1 / q of Definition 6 with the square that it lacks."""
    return distance ** (2 - dimensions) * (1 - distance**2 / 4) ** ((3 - dimensions) / 2)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"smallest_distance": 0.9, "largest_distance": 1.2},
        {"farther": "left_out"},
        {"smallest_distance": 0.2, "largest_distance": 1.0, "farther": "left_out"},
        {"largest_distance": None},
    ],
)
def test_distance_weighted_negatives_follow_the_inverse_density(options):
    """Loops over anchors and rows, weights as the definition has them."""
    rows, dimensions = 9, 5
    labels = np.arange(rows) % 3
    embeddings = unit(rows, dimensions, seed=3)
    smallest = options.get("smallest_distance", 0.5)
    largest = options.get("largest_distance", 1.4) or 2.0
    left_out = options.get("farther") == "left_out"
    expected = np.zeros((rows, rows))
    for anchor in range(rows):
        for row in range(rows):
            distance = np.linalg.norm(embeddings[anchor] - embeddings[row])
            if labels[row] != labels[anchor] and not (left_out and distance > largest):
                kept = min(max(distance, smallest), largest)
                expected[anchor, row] = inverse_density(kept, dimensions)
        if not expected[anchor].any():
            expected[anchor] = labels != labels[anchor]
    expected /= expected.sum(1, keepdims=True)
    assert (expected > 0.05).sum() > rows
    _, negatives = counts_of("distance_weighted", embeddings, labels, 900, **options)
    assert agree(negatives, expected)


@pytest.mark.parametrize("dimensions", [3, 16, 128])
def test_the_density_is_that_of_random_directions(dimensions):
    """Kolmogorov-Smirnov on distances of independent pairs; as printed, it fails."""
    distances = np.linalg.norm(unit(3000, dimensions, 1) - unit(3000, dimensions, 2), axis=1)
    grid = np.linspace(0, 2, 20_001)[1:-1]
    log_density = -log_inverse_density(torch.tensor(grid), dimensions).numpy()
    printed = (dimensions - 2) * np.log(grid) + (dimensions - 3) / 2 * np.log(1 - grid / 4)

    def chance(log_density):
        mass = np.exp(log_density - log_density.max()).cumsum()
        return stats.kstest(distances, lambda d: np.interp(d, grid, mass / mass[-1])).pvalue

    assert chance(log_density) > 0.01
    assert dimensions == 3 or chance(printed) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_of_one_anchor_do_not_reach_another(dtype):
    """In many dimensions one close pair weighs e^200 times what others do."""
    embeddings = torch.tensor(unit(32, 512), dtype=dtype)
    embeddings[1] = embeddings[0] + 1e-3
    labels = torch.arange(32) % 16
    miner = find("miner", "distance_weighted")
    triplets = miner(miner.Parameters()).mine(embeddings, labels, generator())
    assert triplets.anchor.tolist() == list(range(32))
    assert (triplets.negative[0], triplets.negative[1]) == (1, 0)
    assert len(set(triplets.negative.tolist())) > 10


@pytest.mark.parametrize("largest", [1.4, 2.0, None])
def test_weights_are_finite_from_copies_to_poles(largest):
    """Zero norm, the same point, the opposite point; and one dimension."""
    x = [[1.0, 0, 0], [1.0, 0, 0], [-1.0, 0, 0], [0.0, 0, 0], [0, 0, 0], [0, 1, 0]]
    options = {"largest_distance": largest}
    for embeddings in (np.array(x), np.array(x)[:, :1]):
        triplets = mined("distance_weighted", embeddings, [0, 1, 2, 0, 1, 2], **options)
        assert len(triplets) == 6
    assert torch.isfinite(log_inverse_density(torch.tensor([1e-30, 2.0, 3.0]), 128)).all()


@pytest.mark.parametrize("name", NAMES)
def test_draws_come_from_the_generator_alone(name):
    embeddings, labels = unit(40, 6), np.arange(40) % 4
    state = torch.random.get_rng_state()
    first = mined(name, embeddings, labels, 1)
    assert torch.random.get_rng_state().equal(state)
    torch.rand(3)
    assert mined(name, embeddings, labels, 1) == first
    assert mined(name, embeddings, labels, 2) != first
    source = generator(1)
    assert mined(name, embeddings, labels, source) == first
    assert mined(name, embeddings, labels, source) != first
