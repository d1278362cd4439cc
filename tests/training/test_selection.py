"""Choosing trials, on made-up records."""

import pandas as pd
import pytest

from robust_fairness import training
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.metrics.criteria import criterion_text
from robust_fairness.training.selection import choose, compare

from .conftest import make_cell, make_samples

CONSTRAINED = "delta_eo subject to 0.97 of the best accuracy"


def scores(
    values: dict[tuple[str, int], float | None], criterion: str = "accuracy"
) -> pd.DataFrame:
    """Records of one criterion from (trial, seed) to value."""
    return pd.DataFrame(
        [
            {"trial": trial, "seed": seed, "criterion": criterion, "value": value}
            for (trial, seed), value in values.items()
        ]
    ).astype({"value": float})


def chosen(frame: pd.DataFrame, criterion: str) -> list[tuple[str, int]]:
    """What a criterion chose."""
    rows = frame[frame["selection"] == criterion]
    return list(zip(rows["trial"], rows["seed"], strict=True))


def test_best_mean_over_seeds_wins_with_all_its_seeds():
    """Not the trial with the best single seed."""
    records = scores({("a", 0): 0.9, ("a", 1): 0.5, ("b", 0): 0.8, ("b", 1): 0.8})
    frame = choose(records, ["accuracy"])
    assert chosen(frame, "accuracy") == [("b", 0), ("b", 1)]
    assert list(frame.columns) == list(tables.SELECTION)
    assert frame["score"].tolist() == [0.8, 0.8]


def test_a_criterion_per_seed_selects_within_each_seed():
    """Also its constraint; a seed without a score leaves nothing to select."""
    values = {
        ("a", 0): 0.9,
        ("a", 1): 0.5,
        ("b", 0): 0.8,
        ("b", 1): 0.8,
        ("c", 0): 0.1,
        ("c", 1): 0.79,
    }
    gaps = {("a", 0): 0.3, ("a", 1): 0.1, ("b", 0): 0.2, ("b", 1): 0.2, ("c", 0): 0, ("c", 1): 0.1}
    records = pd.concat([scores(values), scores(gaps, "delta_eo")])
    assert chosen(choose(records, ["accuracy, per seed"]), "accuracy, per seed") == [
        ("a", 0), ("b", 1),
    ]  # fmt: skip
    assert chosen(choose(records, [f"{CONSTRAINED}, per seed"]), f"{CONSTRAINED}, per seed") == [
        ("a", 0), ("c", 1),
    ]  # fmt: skip
    assert chosen(choose(records, [CONSTRAINED]), CONSTRAINED) == [("b", 0), ("b", 1)]
    assert compare(records, ["accuracy, per seed"])[0]["trial"] == "a | b"
    missing = scores({("a", 0): 0.9, ("a", 1): None})
    with pytest.raises(InputError, match="no trial has a score for all seeds"):
        choose(missing, ["accuracy, per seed"])
    mapping = {"objective": "delta_eo", "subject_to": {"accuracy": 0.97}, "per": "seed"}
    assert criterion_text(mapping) == criterion_text(f"{CONSTRAINED}, per seed")
    with pytest.raises(InputError, match="per 'row', allowed: seed"):
        criterion_text({"objective": "accuracy", "per": "row"})


def test_gaps_are_minimised():
    """The direction comes from the metric."""
    records = scores({("a", 0): 0.3, ("b", 0): 0.1}, "delta_eo")
    assert chosen(choose(records, ["delta_eo"]), "delta_eo") == [("b", 0)]


def test_earlier_trial_wins_a_tie():
    """The default trial comes first."""
    records = scores({("default", 0): 0.5, ("a", 0): 0.5})
    assert chosen(choose(records, ["accuracy"]), "accuracy") == [("default", 0)]


def test_trial_with_a_missing_score_cannot_be_chosen():
    """And a criterion without any score is an error."""
    records = scores({("a", 0): 0.9, ("a", 1): None, ("b", 0): 0.1, ("b", 1): 0.1})
    assert chosen(choose(records, ["accuracy"]), "accuracy") == [("b", 0), ("b", 1)]
    with pytest.raises(InputError, match="selection by accuracy: no trial"):
        choose(scores({("a", 0): None}), ["accuracy"])


def test_every_chooses_all_replicas_beside_other_criteria():
    """For ablations and trade-off curves."""
    records = scores({("a", 0): 0.9, ("b", 0): 0.1})
    frame = choose(records, ["accuracy", "every"])
    assert chosen(frame, "every") == [("a", 0), ("b", 0)]
    assert chosen(frame, "accuracy") == [("a", 0)]


def both(values: dict[str, tuple[float | None, float | None]], quality: str) -> pd.DataFrame:
    """Records of a gap and of a quality by trial, one seed."""
    return pd.concat(
        [
            scores({(trial, 0): pair[number] for trial, pair in values.items()}, criterion)
            for number, criterion in enumerate(("delta_dp", quality))
        ]
    )


def test_the_fairest_wins_among_those_that_keep_a_share_of_quality():
    """Without the condition the constant would win."""
    values = {"plain": (0.30, 0.8), "fair": (0.10, 0.73), "constant": (0.0, 0.71)}
    records = both(values, "accuracy")
    criterion = "delta_dp subject to 0.9 of the best accuracy"
    frame = choose(records, [criterion, "delta_dp", "accuracy"])
    assert chosen(frame, criterion) == [("fair", 0)]
    assert frame[frame["selection"] == criterion]["score"].tolist() == [0.10]
    assert chosen(frame, "delta_dp") == [("constant", 0)]
    assert chosen(frame, "accuracy") == [("plain", 0)]
    strict = choose(records, ["delta_dp subject to 1 of the best accuracy"])
    assert strict["trial"].tolist() == ["plain"]


def test_an_error_may_be_the_inverse_of_the_share_above_the_best():
    """0.5 lets it double."""
    records = both({"a": (0.3, 4.0), "b": (0.2, 8.0), "c": (0.1, 8.1)}, "mean_squared_error")
    frame = choose(records, ["delta_dp subject to 0.5 of the best mean_squared_error"])
    assert frame["trial"].tolist() == ["b"]


def test_trials_without_a_quality_or_without_a_goal_are_not_chosen():
    """And where none is left, that is an error that names the criterion."""
    values = {"a": (0.3, 0.8), "b": (0.1, None), "c": (None, 0.8)}
    criterion = "delta_dp subject to 0.9 of the best accuracy"
    assert choose(both(values, "accuracy"), [criterion])["trial"].tolist() == ["a"]
    with pytest.raises(InputError, match=f"selection by {criterion}: no trial"):
        choose(both({"b": (0.1, None), "c": (None, 0.8)}, "accuracy"), [criterion])


def test_every_criterion_tells_what_it_would_choose():
    """Used or not; one that no trial has a score of is left out."""
    records = pd.concat(
        [
            scores({("a", 0): 0.9, ("a", 1): 0.7, ("b", 0): 0.6, ("b", 1): 0.6}),
            scores({("a", 0): 0.3, ("a", 1): 0.5, ("b", 0): 0.1, ("b", 1): 0.1}, "delta_eo"),
            scores({("a", 0): None, ("b", 0): None}, "delta_dp"),
        ]
    )
    found = compare(records, ["accuracy", "delta_eo", "delta_dp", CONSTRAINED])
    assert found == [
        {"criterion": "accuracy", "trial": "a", "score": pytest.approx(0.8)},
        {"criterion": "delta_eo", "trial": "b", "score": pytest.approx(0.1)},
        {"criterion": CONSTRAINED, "trial": "a", "score": pytest.approx(0.4)},
    ]


@pytest.mark.parametrize("method", ["adv_debias", "erm"])
def test_choices_of_a_cell_are_those_of_its_selection(method):
    """For what it uses; a single trial leaves nothing to choose."""
    samples = make_samples()
    trials = ({"alpha": 4.0},) if method == "adv_debias" else ()
    cell = make_cell(method, epochs=2).model_copy(
        update={"trials": trials, "selections": ("worst_group_accuracy", "every")}
    )
    validation = training.train(samples, cell)[1]
    found = training.compare(samples, validation, cell)
    assert list(found.columns) == list(tables.CHOICES)
    if not trials:
        assert found.empty
        return
    chosen_trial = training.select(samples, validation, cell)["trial"].iloc[0]
    (used,) = found[found["used"]].to_dict("records")
    assert used["criterion"] == "worst_group_accuracy"
    assert used["trial"] == chosen_trial
    assert {"accuracy", "delta_eo", CONSTRAINED} <= set(found["criterion"])
    assert "mean_squared_error" not in set(found["criterion"])
    assert set(found["trials"]) == {2}
