"""Aggregations over groups, by hand and as metrics of every quantity."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.maths.embeddings import clusters, same_class_rank
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import Score, evaluate, find_metric
from robust_fairness.numbers.gaps import (
    halves_gap,
    light_dark_gap,
    majority_gap,
    worst_gap,
    worst_group,
)
from robust_fairness.numbers.quantities import Means

from .helpers import samples_of, score_of

ENDINGS = ("majority_gap", "worst_gap", "halves_gap", "light_dark_gap")
QUANTITIES = (
    "recall_at", "nmi", "u_kl", "positive_alignment", "negative_alignment", "macro_precision",
    "macro_recall", "macro_precision_present", "balanced_accuracy", "accuracy",
)  # fmt: skip
LOWER = {"u_kl", "positive_alignment"}
values = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=9)


def means_of(**given_values) -> tuple[Means, list[str]]:
    """Values of ten rows each, with names; None for a group without rows, or a score."""
    scores = [
        value
        if isinstance(value, Score)
        else Score(None, 0, "no rows")
        if value is None
        else Score(value, 10)
        for value in given_values.values()
    ]
    return Means.of_scores(scores), [*given_values]


FOUR = means_of(a=0.9, b=0.5, c=0.6, d=0.2)


def check(score: Score, value: float, n: int, note: str) -> None:
    assert (score.value, score.n, score.note) == (pytest.approx(value), n, note)


def test_gaps_by_hand():
    """Of four groups, of which b has most training rows and a fewest."""
    check(majority_gap(*FOUR, np.array([1, 9, 5, 5])), 0.5 - 0.9, 20, "b less a")
    check(worst_gap(*FOUR, higher=True), 2 / 3 - 0.2, 40, "a, c, b less d")
    check(worst_gap(*FOUR, higher=False), 0.9 - 1.3 / 3, 40, "d, b, c less a")
    check(halves_gap(*FOUR, higher=True), 0.75 - 0.35, 40, "a, c less b, d")
    check(halves_gap(*FOUR, higher=False), 0.75 - 0.35, 40, "d, b less c, a")
    check(worst_group(*FOUR, higher=True), 0.2, 10, "group d")
    check(worst_group(*FOUR, higher=False), 0.9, 10, "group a")


def test_ties_make_the_first_group_the_majority_and_the_last_the_minority():
    """As a balanced control needs it, whose groups are called majority and minority."""
    scores = means_of(majority=0.7, minority=0.4)
    check(majority_gap(*scores, np.array([5, 5])), 0.3, 20, "majority less minority")
    check(majority_gap(*FOUR, np.array([3, 3, 3, 3])), 0.7, 20, "a less d")
    check(majority_gap(*FOUR, np.array([0, 3, 3, 0])), 0.3, 20, "b less d")


def test_middle_group_is_in_neither_half():
    check(halves_gap(*means_of(a=1.0, b=0.5, c=0.0), higher=True), 1, 20, "a less c")


def test_group_without_rows_is_left_out_and_named():
    """Of the majority, too: what has no rows here is no group here."""
    scores = means_of(a=0.9, b=None, c=0.6)
    out = "; left out: b (no rows)"
    check(majority_gap(*scores, np.array([1, 9, 5])), -0.3, 20, "c less a" + out)
    check(worst_gap(*scores, higher=True), 0.3, 20, "a less c" + out)
    check(halves_gap(*scores, higher=True), 0.3, 20, "a less c" + out)
    check(worst_group(*scores, higher=True), 0.6, 10, "group c" + out)
    tones = means_of(I=0.9, II=None, VI=0.6)
    check(light_dark_gap(*tones), 0.3, 20, "I less VI; left out: II (no rows)")


@pytest.mark.parametrize("scores", [means_of(a=0.9, b=None), means_of(a=None, b=None), means_of()])
def test_fewer_than_two_groups_have_no_gap(scores):
    missing = Score(None, 0, "fewer than two groups with rows")
    assert majority_gap(*scores, np.ones(len(scores[1]), int)) == missing
    assert worst_gap(*scores, higher=True) == halves_gap(*scores, higher=True) == missing


def test_worst_of_no_groups_has_no_value():
    assert worst_group(*means_of(a=None), higher=True) == Score(None, 0, "no rows")


def test_group_with_rows_but_no_value_leaves_no_gap():
    """A collapsed group is not to be left out of what tells of it."""
    infinite = Score(None, 7, "infinite")
    scores = means_of(a=0.9, b=0.5, c=0.6, d=0.2, e=infinite)
    missing = Score(None, 0, "group e: infinite")
    assert majority_gap(*scores, np.arange(5)) == missing
    assert worst_gap(*scores, higher=True) == halves_gap(*scores, higher=True) == missing
    assert worst_group(*scores, higher=True) == missing
    assert light_dark_gap(*means_of(I=infinite, IV=0.9)).value is None


def test_skin_types_are_averaged_type_by_type():
    """Each counts alike; other groups have no such gap."""
    tones = means_of(I=0.9, II=0.6, IV=0.3, V=0.1, VI=0.2)
    check(light_dark_gap(*tones), 0.75 - 0.2, 50, "I, II less IV, V, VI")
    assert light_dark_gap(*FOUR).note == "not applicable: groups that are no skin types I to VI"
    assert light_dark_gap(*means_of(I=0.9, II=0.8)).note == "no rows of skin types IV to VI"
    assert light_dark_gap(*means_of(I=None, V=0.8)).note == "no rows of skin types I to III"


@given(values, st.booleans(), st.integers(0, 100))
def test_gaps_to_the_worst_and_between_halves_are_never_negative(drawn, higher, seed):
    """And both are 0 only where they must be; order of groups changes no value."""
    scores = {f"g{number}": value for number, value in enumerate(drawn)}
    sign = 1 if higher else -1
    best_first = sorted(drawn, reverse=higher)
    half = len(drawn) // 2
    expected = {
        worst_gap: sign * (np.mean(best_first[:-1]) - best_first[-1]),
        halves_gap: sign * (np.mean(best_first[:half]) - np.mean(best_first[-half:])),
    }
    names = list(scores)
    np.random.default_rng(seed).shuffle(names)
    for gap, value in expected.items():
        assert gap(*means_of(**scores), higher).value == pytest.approx(value, abs=1e-12)
        assert gap(*means_of(**scores), higher).value >= -1e-12
        shuffled = means_of(**{name: scores[name] for name in names})
        assert gap(*shuffled, higher).value == pytest.approx(value, abs=1e-12)
    assert worst_group(*means_of(**scores), higher).value == best_first[-1]


@pytest.fixture(scope="module")
def case():
    """Rows of skin types with an embedding, and training rows most of which are of type V."""
    rng = np.random.default_rng(0)
    rows = 240
    y, tone = rng.integers(0, 4, rows), rng.integers(0, 6, rows)
    x = rng.normal(size=(4, 6))[y] + rng.normal(size=(rows, 6)) * (1 + tone[:, None] / 3)
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    outputs = x[:, :4].astype(np.float64)
    tones = pd.Categorical.from_codes(tone, ["I", "II", "III", "IV", "V", "VI"])
    samples = samples_of(y, ("0", "1", "2", "3"), tone=tones)
    per_row = {
        "embedding": x,
        "same_class_rank": same_class_rank(x, y),
        "cluster": clusters(x, 4),
    }
    train = samples.take(np.concatenate([np.flatnonzero(tone == 4), np.flatnonzero(tone != 1)]))
    return samples, outputs, per_row, train


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_metrics_are_gaps_of_the_group_metrics_rows(case, quantity):
    """Majority is type V and minority type II, by the training rows."""
    samples, outputs, per_row, train = case
    names = [f"{quantity}_by_group", *(f"{quantity}_{ending}" for ending in ENDINGS)]
    names.append(f"worst_group_{quantity}")
    rows = evaluate(names, samples, outputs, per_row, train)
    of = {row["group"]: row["value"] for row in rows if row["metric"] == names[0]}
    gaps = {row["metric"]: row["value"] for row in rows if not row["group"]}
    ranked = sorted(of.values(), reverse=quantity not in LOWER)
    assert len(of) == 6
    assert len(set(ranked)) > 1
    assert gaps == {
        f"{quantity}_majority_gap": pytest.approx(of["V"] - of["II"]),
        f"{quantity}_worst_gap": pytest.approx(abs(np.mean(ranked[:-1]) - ranked[-1])),
        f"{quantity}_halves_gap": pytest.approx(abs(np.mean(ranked[:3]) - np.mean(ranked[3:]))),
        f"{quantity}_light_dark_gap": pytest.approx(
            np.mean([of[name] for name in ("I", "II", "III")])
            - np.mean([of[name] for name in ("IV", "V", "VI")])
        ),
        f"worst_group_{quantity}": pytest.approx(ranked[-1]),
    }


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_metrics_are_registered_with_what_selection_must_know(quantity):
    """Gaps are better when lower, the worst group as its quantity is."""
    of_groups = find_metric(f"{quantity}_by_group")
    assert of_groups.better == ("lower" if quantity in LOWER else "higher")
    assert find_metric(f"worst_group_{quantity}").better == of_groups.better
    for ending in ENDINGS:
        gap = find_metric(f"{quantity}_{ending}")
        assert (gap.better, gap.task) == ("lower", of_groups.task)
        assert (gap.quantity, gap.aggregation) == (quantity, ending)
        assert set(gap.needs) - set(of_groups.needs) == (
            {"sensitive_features_train"} if ending == "majority_gap" else set()
        )


def test_options_of_a_quantity_are_those_of_its_gaps(case):
    """``recall_at_majority_gap(k=4)``."""
    samples, outputs, per_row, train = case
    names = ["recall_at_by_group(k=4)", "recall_at_majority_gap(k=4)", "recall_at_majority_gap"]
    rows = evaluate(names, samples, outputs, per_row, train)
    of = {row["group"]: row["value"] for row in rows if row["group"]}
    four, nearest = (row["value"] for row in rows if not row["group"])
    assert four == pytest.approx(of["V"] - of["II"])
    assert four != nearest
    with pytest.raises(InputError, match="recall_at: k is 0"):
        evaluate(["worst_group_recall_at(k=0)"], samples, outputs, per_row, train)
    with pytest.raises(InputError, match="nmi_worst_gap takes no options"):
        find_metric("nmi_worst_gap(k=1)")


def test_rows_of_unknown_group_are_left_out_of_wide_arrays(case):
    """Arrays of rows may have further axes; neighbours stay those of all rows."""
    samples, outputs, per_row, train = case
    tone = samples.attributes["tone"].where(samples.y > 0)
    samples = samples_of(samples.y, samples.classes, tone=tone.astype("category"))
    known = samples.y > 0
    rows = evaluate(["u_kl_by_group", "recall_at_by_group"], samples, outputs, per_row, train)
    for row in rows:
        mine = known & (tone == row["group"]).to_numpy()
        assert row["n"] == mine.sum()
        if row["metric"] == "u_kl_by_group":
            expected = score_of("u_kl", embedding=per_row["embedding"][mine]).value
        else:
            expected = np.mean(per_row["same_class_rank"][mine] == 1)
        assert row["value"] == pytest.approx(expected)


def test_embedding_that_was_not_kept_is_not_applicable(case):
    """As any array that a prediction lacks: one row says so."""
    samples, outputs, _, train = case
    names = ["recall_at", "recall_at_by_group", "worst_group_u_kl"]
    rows = evaluate(names, samples, outputs, {}, train)
    assert [row["note"] for row in rows] == [
        "not applicable: needs same_class_rank",
        "not applicable: needs same_class_rank",
        "not applicable: needs embedding",
    ]
