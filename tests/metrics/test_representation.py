"""Neighbours, clusters, singular values and pairs of an embedding, restated pair by pair."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from scipy.stats import entropy
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

from robust_fairness.bench.maths import embeddings as module
from robust_fairness.bench.maths.embeddings import clusters, same_class_rank
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import Score
from robust_fairness.numbers.groups import Groups

from .helpers import score_of, scores_of_groups

GROUPS = ("a", "b", "c")
ONE = {"sensitive_features": Groups.named(np.array([0]), ("a",))}


def recall_at(rank, k=1) -> Score:
    return score_of(f"recall_at(k={k})", same_class_rank=rank)


def nmi(y, cluster) -> Score:
    return score_of("nmi", y_true=y, cluster=cluster)


def u_kl(x) -> Score:
    return score_of("u_kl", embedding=x)


def positive_alignment(x, y) -> Score:
    return score_of("positive_alignment", embedding=x, y_true=y)


def negative_alignment(x, y) -> Score:
    return score_of("negative_alignment", embedding=x, y_true=y)


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Everything at once, and blocks that cut unevenly through rows and classes."""
    if request.param == "many blocks":
        monkeypatch.setattr(module, "ROWS", 7)
        monkeypatch.setattr(module, "VALUES", 60)
        monkeypatch.setattr("robust_fairness.bench.metrics.representation.BLOCK", 60)


def make_embedding(seed: int, rows: int, columns: int = 5, classes: int = 4):
    """Unit vectors around a direction for each class, with classes and groups."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    x = rng.normal(size=(classes, columns))[y] * 0.8 + rng.normal(size=(rows, columns))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), y, rng.integers(0, len(GROUPS), rows)


def rank_by_sorting(embedding, y):
    """From the sorted list of all other rows."""
    between = cdist(embedding.astype(np.float64), embedding.astype(np.float64))
    ranks = []
    for row, distances in enumerate(between):
        others = [other for other in np.argsort(distances) if other != row]
        places = [place for place, other in enumerate(others, 1) if y[other] == y[row]]
        ranks.append(min(places, default=0))
    return ranks


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 9))
def test_rank_is_the_place_in_the_list_of_neighbours(seed, rows, classes):
    """Classes of a single row are among them."""
    x, y, _ = make_embedding(seed, rows, classes=classes)
    assert same_class_rank(x, y).tolist() == rank_by_sorting(x, y)


def test_recall_equals_scikit_learns_neighbours_on_real_digits(blocks):
    """Of k from 1 to 8."""
    digits = load_digits()
    x, y = digits.data[:300].astype(np.float32), digits.target[:300].astype(np.int64)
    x += np.random.default_rng(0).normal(size=x.shape).astype(np.float32) * 4
    rank = same_class_rank(x, y)
    near = (
        NearestNeighbors(n_neighbors=9).fit(x.astype(np.float64)).kneighbors(return_distance=False)
    )
    for k in (1, 2, 4, 8):
        expected = np.mean(
            [(y[neighbours[:k]] == label).any() for neighbours, label in zip(near, y, strict=True)]
        )
        assert 0.5 < expected < 1 or k > 2
        score = recall_at(rank, k=k)
        assert (score.value, score.n) == (pytest.approx(expected), 300)


def test_order_of_rows_changes_nothing(blocks):
    x, y, _ = make_embedding(1, 200, classes=30)
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_array_equal(same_class_rank(x[order], y[order]), same_class_rank(x, y)[order])


def test_neighbours_closer_than_float32_can_tell_are_told_apart(blocks):
    """Two rows on either side, 1e-9 of a squared distance apart."""
    step = 1e-9
    x = np.array([[0.0, 0.0], [1, 0], [0, 1 + step], [0, -1 - 2 * step], [-1, 0]])
    assert same_class_rank(x, np.array([0, 0, 1, 1, 2])).tolist()[0] == 2  # row 4 is as near
    assert same_class_rank(x[:4], np.array([0, 0, 1, 1])).tolist()[0] == 1
    assert same_class_rank(x[:4], np.array([0, 1, 0, 1])).tolist()[0] == 2


def test_an_embedding_in_one_place_is_not_close(blocks):
    """Neither in one place nor where classes share places: ties count against a row."""
    y = np.arange(60) % 3
    collapsed = np.full((60, 4), 0.5, np.float32)
    assert (same_class_rank(collapsed, y) == 41).all()
    assert recall_at(same_class_rank(collapsed, y)).value == 0
    two_places = np.eye(4, dtype=np.float32)[np.arange(60) // 30]
    assert recall_at(same_class_rank(two_places, y)).value == 0
    assert (same_class_rank(np.zeros((60, 4), np.float32), y) == 41).all()
    apart = np.eye(4, dtype=np.float32)[y]
    assert recall_at(same_class_rank(apart, y)).value == 1


def test_class_that_occurs_once_counts_as_zero_and_is_counted():
    """D.4 divides by all rows of the group."""
    x = np.array([[0.0], [0.1], [5], [9]], np.float32)
    rank = same_class_rank(x, np.array([0, 0, 1, 2]))
    assert rank.tolist() == [1, 1, 0, 0]
    assert recall_at(rank) == Score(0.5, 4, "2 rows without another of their class count as 0")
    scores = scores_of_groups(
        "recall_at_by_group", np.array([0, 0, 0, 2]), GROUPS, same_class_rank=rank
    )
    assert scores["a"] == Score(2 / 3, 3, "1 rows without another of their class count as 0")
    assert scores["b"] == Score(None, 0, "no rows")
    assert scores["c"].value == 0


def test_rows_that_are_not_finite_are_left_out():
    """Of the neighbours and clusters of all others."""
    x, y, _ = make_embedding(2, 40)
    bad = np.concatenate([x, np.full((2, 5), np.nan, np.float32), np.full((1, 5), np.inf)])
    labels = np.concatenate([y, [0, 0, 1]])
    assert same_class_rank(bad, labels).tolist() == [*same_class_rank(x, y), 0, 0, 0]
    assert clusters(bad, 4).tolist() == [*clusters(x, 4), -1, -1, -1]
    none = np.full((3, 2), np.nan)
    assert same_class_rank(none, np.zeros(3, int)).tolist() == [0, 0, 0]
    assert clusters(none, 2).tolist() == [-1, -1, -1]
    for measure in (
        u_kl,
        partial(positive_alignment, y=labels),
        partial(negative_alignment, y=labels),
    ):
        assert measure(bad) == Score(None, 43, "the embedding is not finite")


def test_no_rows_at_all():
    """Empty arrays, and scores without value."""
    x, y = np.empty((0, 3), np.float32), np.empty(0, np.int64)
    rank, cluster = same_class_rank(x, y), clusters(x, 2)
    assert len(rank) == len(cluster) == 0
    for score in (
        recall_at(rank),
        nmi(y, cluster),
        u_kl(x),
        positive_alignment(x, y),
        negative_alignment(x, y),
    ):
        assert score == Score(None, 0, "no rows")


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_bad_k_is_refused(k):
    with pytest.raises(InputError, match="allowed: a whole number of 1 or more"):
        recall_at(np.array([1, 2]), k=k)
    with pytest.raises(InputError, match="allowed: a whole number of 1 or more"):
        score_of(f"worst_group_recall_at(k={k})", same_class_rank=np.array([1]), **ONE)


@given(st.integers(0, 10_000), st.integers(2, 60))
def test_recall_rises_with_k_and_is_the_mean_of_its_groups(seed, rows):
    """Weighted by their rows; k-close fairness is one of neighbours among all rows."""
    x, y, group = make_embedding(seed, rows)
    rank = same_class_rank(x, y)
    values = [recall_at(rank, k=k).value for k in range(1, rows)]
    assert values == sorted(values)
    assert values[-1:] in ([], [np.mean(rank > 0)])
    for k in (1, 3):
        scores = scores_of_groups(
            f"recall_at_by_group(k={k})", group, GROUPS, same_class_rank=rank
        ).values()
        total = sum(score.value * score.n for score in scores if score.n)
        assert total / rows == pytest.approx(recall_at(rank, k=k).value)


def test_clusters_equal_scikit_learns_from_the_same_rows(blocks):
    """Lloyd's algorithm with twenty steps; labels are those of the last centres."""
    x = load_digits().data[:400].astype(np.float32)
    first = np.random.default_rng(3).permutation(400)[:10]
    start = x[first].astype(np.float64)
    lloyd = KMeans(10, init=start, n_init=1, max_iter=module.ITERATIONS, tol=0)
    expected = lloyd.fit(x.astype(np.float64)).labels_
    np.testing.assert_array_equal(clusters(x, 10, seed=3), expected)
    assert lloyd.n_iter_ > 5


def test_clusters_are_those_of_far_heaps_and_of_their_seed():
    """Two heaps with one first row in each; the seed decides where it starts."""
    rng = np.random.default_rng(0)
    heap = np.arange(50) % 2
    x = (rng.normal(size=(50, 3)) + 1e4 * heap[:, None]).astype(np.float32)
    assert nmi(heap, clusters(x, 2)).value == pytest.approx(1)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    np.testing.assert_array_equal(clusters(x, 9, seed=1), clusters(x, 9, seed=1))
    assert (clusters(x, 9, seed=1) != clusters(x, 9, seed=2)).any()
    np.testing.assert_array_equal(clusters(x, 9), clusters(x * 1e30, 9))


def test_more_clusters_than_places_leave_some_empty(blocks):
    """Equal rows share a cluster; more clusters than rows are as many as rows."""
    x = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)
    cluster = clusters(x, 5)
    assert 2 <= len(set(cluster.tolist())) <= 3
    assert all(len(set(cluster[place : place + 4].tolist())) == 1 for place in (0, 4, 8))
    assert sorted(clusters(np.eye(3, dtype=np.float32), 10)) == [0, 1, 2]
    with pytest.raises(InputError, match="number of clusters: 0, allowed: 1 or more"):
        clusters(x, 0)


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_nmi_is_scikit_learns_of_the_groups_rows(seed, rows):
    """By Definition 15 from entropies, which scipy has."""
    rng = np.random.default_rng(seed)
    y, cluster = rng.integers(0, 4, rows), rng.integers(0, 5, rows)
    group = rng.integers(0, len(GROUPS), rows)
    for name, score in scores_of_groups(
        "nmi_by_group", group, GROUPS, y_true=y, cluster=cluster
    ).items():
        mine = group == GROUPS.index(name)
        assert score.n == mine.sum()
        if not mine.any():
            assert score.value is None
            continue
        table = np.zeros((4, 5))
        np.add.at(table, (y[mine], cluster[mine]), 1)
        both = entropy(table.sum(0)) + entropy(table.sum(1))
        shared = both - entropy(table.ravel())
        expected = 2 * shared / both if both > 0 else 1
        assert score.value == pytest.approx(expected, abs=1e-9)
        assert score.value == pytest.approx(
            normalized_mutual_info_score(y[mine], cluster[mine]), abs=1e-9
        )


def test_nmi_of_a_single_class_is_one_or_zero_and_says_so():
    """Its entropy is 0."""
    y, cluster, group = np.array([4, 4, 4, 4]), np.array([1, 1, 1, 2]), np.array([0, 0, 1, 1])
    scores = scores_of_groups("nmi_by_group", group, GROUPS, y_true=y, cluster=cluster)
    assert (scores["a"].value, scores["b"].value) == (1, 0)
    assert scores["a"].note == f"a single class; {module.CLUSTERING}"
    assert "seed 0" in nmi(np.array([0, 1]), np.array([0, 1])).note


@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(2, 8))
def test_u_kl_is_scipys_entropy_of_the_singular_values(seed, rows, columns):
    """Of all of them, as they are."""
    x, _, _ = make_embedding(seed, rows, columns)
    values = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    assert len(values) == min(rows, columns)
    expected = entropy(np.full(len(values), 1 / len(values)), values / values.sum())
    score = u_kl(x)
    assert (score.value, score.n) == (pytest.approx(expected, abs=1e-9), rows)
    assert (score.note != "") == (rows < columns)


def test_u_kl_by_hand(blocks):
    """Orthogonal rows are uniform; of 3 and 1 as values the distance is log 2 - log(3) / 2."""
    assert u_kl(np.eye(4)).value == pytest.approx(0, abs=1e-12)
    two = np.array([[3.0, 0], [0, 1], [0, 0]])
    assert u_kl(two).value == pytest.approx(np.log(2) - np.log(3) / 2)
    turned = two @ np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    assert u_kl(turned * 7).value == pytest.approx(u_kl(two).value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_u_kl_takes_no_rounding_for_a_direction(dtype):
    """A projection from three features to eight dimensions, in either precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)).astype(dtype) @ rng.normal(size=(3, 8)).astype(dtype)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert u_kl(x) == Score(None, 200, "infinite: the rows lie in 3 of 8 dimensions")
    assert u_kl(x + rng.normal(size=x.shape).astype(dtype) / 100).value > 0.5


def test_u_kl_of_a_group_is_that_of_its_rows(blocks):
    """With fewer rows than dimensions it is of fewer directions."""
    x, _, group = make_embedding(5, 90)
    scores = scores_of_groups("u_kl_by_group", group, GROUPS, embedding=x)
    for number, name in enumerate(GROUPS):
        assert scores[name].value == pytest.approx(u_kl(x[group == number]).value, rel=1e-9)
        assert scores[name].note == ""
    few = scores_of_groups("u_kl_by_group", np.zeros(4, int), GROUPS, embedding=x[:4])
    assert few["a"].note == "of 4 directions: fewer rows than dimensions"
    assert few["b"] == Score(None, 0, "no rows")


@pytest.mark.parametrize(
    ("x", "note"),
    [
        (np.ones((1, 3)), "1 rows of 3 dimensions: one singular value"),
        (np.ones((3, 1)), "3 rows of 1 dimensions: one singular value"),
        (np.ones((3, 2)), "infinite: the rows lie in 1 of 2 dimensions"),
        (np.zeros((3, 2)), "infinite: the rows lie in 0 of 2 dimensions"),
        (np.eye(3)[:, [0, 1, 1]], "infinite: the rows lie in 2 of 3 dimensions"),
    ],
)
def test_u_kl_without_value_says_why(x, note):
    assert u_kl(x) == Score(None, len(x), note)


def alignment_by_pairs(x, y, group, wanted, same):
    """Mean over all pairs with an end in the group."""
    x = x.astype(np.float64)
    distances = [
        np.sum((x[a] - x[b]) ** 2)
        for a, b in combinations(range(len(x)), 2)
        if (y[a] == y[b]) == same and wanted in (group[a], group[b])
    ]
    return np.mean(distances) if distances else None


@given(st.integers(0, 10_000), st.integers(1, 25), st.integers(1, 9))
def test_alignment_is_the_mean_over_pairs(seed, rows, classes):
    """Of one class and of two, with one end in the group or both."""
    x, y, group = make_embedding(seed, rows, classes=classes)
    alone = np.zeros(rows, int)
    for same, of_groups, overall, none in (
        (True, "positive_alignment_by_group", positive_alignment, "no two rows of one class"),
        (
            False,
            "negative_alignment_by_group",
            negative_alignment,
            "no two rows of different classes",
        ),
    ):
        scores = scores_of_groups(of_groups, group, GROUPS, embedding=x, y_true=y)
        for number, name in enumerate(GROUPS):
            n = int((group == number).sum())
            value = alignment_by_pairs(x, y, group, number, same)
            if value is None:
                assert scores[name] == Score(None, n, none if n else "no rows")
            else:
                assert (scores[name].value, scores[name].n) == (pytest.approx(value, rel=1e-6), n)
        value = alignment_by_pairs(x, y, alone, 0, same)
        assert overall(x, y).value == (None if value is None else pytest.approx(value, rel=1e-6))


def test_alignment_of_near_copies_far_away_is_not_lost():
    """Sums around the class's mean keep the digits that raw sums lose."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    x = 1e4 + 100 * y[:, None] + 1e-3 * rng.normal(size=(40, 3))
    alone = np.zeros(40, int)
    for same, overall in ((True, positive_alignment), (False, negative_alignment)):
        expected = alignment_by_pairs(x, y, alone, 0, same)
        assert overall(x, y).value == pytest.approx(expected, rel=1e-6)


def test_zero_norm_embeddings_have_values():
    """A row of zeros is a place like any other."""
    x = np.array([[0, 0], [0, 0], [1, 0], [0, 1]], np.float32)
    y = np.array([0, 0, 1, 1])
    assert positive_alignment(x, y).value == pytest.approx((0 + 2) / 2)
    assert negative_alignment(x, y).value == pytest.approx(1)
    assert same_class_rank(x, y).tolist() == [1, 1, 3, 3]
    assert u_kl(x).value == pytest.approx(0, abs=1e-12)


def test_memory_does_not_grow_with_the_pairs(monkeypatch):
    """No matrix of distances that is looked through is larger than a block."""
    seen = []
    squares = module._squares

    def squared(a, b):
        seen.append((len(a), len(b)))
        return squares(a, b)

    monkeypatch.setattr(module, "_squares", squared)
    x, y, _ = make_embedding(0, 2000, classes=100)
    same_class_rank(x, y)
    assert max(a * b for a, b in seen) <= module.ROWS**2
    assert len(seen) >= 10  # every two of four blocks
    seen.clear()
    monkeypatch.setattr(module, "VALUES", 5000)
    clusters(x, 100)
    assert max(a * b for a, b in seen) <= 5000
    assert len(seen) >= 40
