"""Choosing trials, on made-up records."""

import pandas as pd
import pytest

from robust_fairness.bench import training
from robust_fairness.bench.training.search import choose, compare
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.metrics.criteria import criterion_text

from .conftest import make_cell, make_samples

CONSTRAINED = "delta_eo subject to 0.97 of the best accuracy"


def scores(values: dict[tuple[str, int], float | None], criterion: str = "accuracy"):
    """Records of one criterion from (trial, seed) to value."""
    rows = [(trial, seed, criterion, value) for (trial, seed), value in values.items()]
    table = pd.DataFrame(rows, columns=["trial", "seed", "criterion", "value"])
    return table.astype({"value": float})


def both(values: dict[str, tuple[float | None, float | None]], quality: str = "accuracy"):
    """Records of a gap and of a quality by trial, one seed."""
    return pd.concat(
        [
            scores({(trial, 0): pair[number] for trial, pair in values.items()}, criterion)
            for number, criterion in enumerate(("delta_dp", quality))
        ]
    )


def chosen(frame: pd.DataFrame, criterion: str) -> list[tuple[str, int]]:
    """What a criterion chose."""
    rows = frame[frame["selection"] == criterion]
    return list(zip(rows["trial"], rows["seed"], strict=True))


A, B, C = ([(trial, seed) for seed in (0, 1)] for trial in "abc")
MEANS = scores(dict(zip(A + B, (0.9, 0.5, 0.8, 0.8), strict=True)))
OF_SEEDS = pd.concat(
    [
        scores(dict(zip(A + B + C, values, strict=True)), criterion)
        for criterion, values in (
            ("accuracy", (0.9, 0.5, 0.8, 0.8, 0.1, 0.79)),
            ("delta_eo", (0.3, 0.1, 0.2, 0.2, 0, 0.1)),
        )
    ]
)
FAIREST = both({"plain": (0.30, 0.8), "fair": (0.10, 0.73), "constant": (0.0, 0.71)})
DOUBLED = both({"a": (0.3, 4.0), "b": (0.2, 8.0), "c": (0.1, 8.1)}, "mean_squared_error")


@pytest.mark.parametrize(
    ("records", "criterion", "expected"),
    [
        # the best mean over seeds with all its seeds, not the best single seed
        (MEANS, "accuracy", B),
        # the direction comes from the metric
        (scores({A[0]: 0.3, B[0]: 0.1}, "delta_eo"), "delta_eo", B[:1]),
        # the earlier of equal trials
        (scores({("default", 0): 0.5, A[0]: 0.5}), "accuracy", [("default", 0)]),
        # no trial whose score is missing for a seed
        (scores({A[0]: 0.9, A[1]: None, B[0]: 0.1, B[1]: 0.1}), "accuracy", B),
        (OF_SEEDS, "accuracy, per seed", [A[0], B[1]]),
        (OF_SEEDS, f"{CONSTRAINED}, per seed", [A[0], C[1]]),
        (OF_SEEDS, CONSTRAINED, B),
        # the fairest of those that keep a share of quality; without it the constant would win
        (FAIREST, "delta_dp subject to 0.9 of the best accuracy", [("fair", 0)]),
        (FAIREST, "delta_dp subject to 1 of the best accuracy", [("plain", 0)]),
        (FAIREST, "delta_dp", [("constant", 0)]),
        (FAIREST, "accuracy", [("plain", 0)]),
        # an error may be the inverse of the share above the best
        (DOUBLED, "delta_dp subject to 0.5 of the best mean_squared_error", B[:1]),
        # no trial without a quality or without a goal
        (
            both({"a": (0.3, 0.8), "b": (0.1, None), "c": (None, 0.8)}),
            "delta_dp subject to 0.9 of the best accuracy",
            A[:1],
        ),
    ],
)
def test_a_criterion_selects_the_trial_that_is_best_by_it(records, criterion, expected):
    frame = choose(records, [criterion])
    assert chosen(frame, criterion) == expected
    assert list(frame.columns) == list(tables.SELECTION)


@pytest.mark.parametrize(
    ("records", "criterion"),
    [
        (scores({A[0]: None}), "accuracy"),
        (scores({A[0]: 0.9, A[1]: None}), "accuracy, per seed"),
        (
            both({"b": (0.1, None), "c": (None, 0.8)}),
            "delta_dp subject to 0.9 of the best accuracy",
        ),
    ],
)
def test_a_criterion_that_no_trial_has_a_score_of_is_refused(records, criterion):
    message = f"selection by {criterion}: no trial has a score for all seeds"
    with pytest.raises(InputError, match=message):
        choose(records, [criterion])


def test_scores_are_those_of_the_criterion():
    assert choose(MEANS, ["accuracy"])["score"].tolist() == [0.8, 0.8]
    criterion = "delta_dp subject to 0.9 of the best accuracy"
    assert choose(FAIREST, [criterion])["score"].tolist() == [0.10]
    assert compare(OF_SEEDS, ["accuracy, per seed"])[0]["trial"] == "a | b"


def test_a_criterion_per_seed_may_be_written_as_a_mapping():
    mapping = {"objective": "delta_eo", "subject_to": {"accuracy": 0.97}, "per": "seed"}
    assert criterion_text(mapping) == criterion_text(f"{CONSTRAINED}, per seed")
    with pytest.raises(InputError, match="per 'row', allowed: seed"):
        criterion_text({"objective": "accuracy", "per": "row"})


def test_every_chooses_all_replicas_beside_other_criteria():
    """For ablations and trade-off curves."""
    frame = choose(scores({A[0]: 0.9, B[0]: 0.1}), ["accuracy", "every"])
    assert chosen(frame, "every") == [A[0], B[0]]
    assert chosen(frame, "accuracy") == A[:1]


def test_every_criterion_tells_what_it_would_choose():
    """Used or not; one that no trial has a score of is left out."""
    accuracy, gap = ((0.9, 0.7, 0.6, 0.6), (0.3, 0.5, 0.1, 0.1))
    records = pd.concat(
        [
            scores(dict(zip(A + B, accuracy, strict=True))),
            scores(dict(zip(A + B, gap, strict=True)), "delta_eo"),
            scores({A[0]: None, B[0]: None}, "delta_dp"),
        ]
    )
    compared = compare(records, ["accuracy", "delta_eo", "delta_dp", CONSTRAINED])
    assert compared == [
        {"criterion": "accuracy", "trial": "a", "score": pytest.approx(0.8)},
        {"criterion": "delta_eo", "trial": "b", "score": pytest.approx(0.1)},
        {"criterion": CONSTRAINED, "trial": "a", "score": pytest.approx(0.4)},
    ]


@pytest.mark.parametrize("method", ["adv_debias", "erm"])
def test_choices_of_a_cell_are_those_of_its_selection(method):
    """For what it uses; a single trial leaves nothing to choose."""
    samples = make_samples()
    trials = ({"alpha": 4.0},) if method == "adv_debias" else ()
    fields = {"selections": ("worst_group_accuracy", "every")}
    cell = make_cell(method, trials, epochs=2, fields=fields)
    validation = training.train(samples, cell)[1]
    compared = training.compare(samples, validation, cell)
    assert list(compared.columns) == list(tables.CHOICES)
    if not trials:
        assert compared.empty
        return
    chosen_trial = training.select(samples, validation, cell)["trial"].iloc[0]
    (used,) = compared[compared["used"]].to_dict("records")
    assert used["criterion"] == "worst_group_accuracy"
    assert used["trial"] == chosen_trial
    assert {"accuracy", "delta_eo", CONSTRAINED} <= set(compared["criterion"])
    assert "mean_squared_error" not in set(compared["criterion"])
    assert set(compared["trials"]) == {2}
