"""Training a cell: fit all replicas, choose trials, predict and score.

``train``, ``select``, ``predict`` and ``evaluate`` are nodes of a cell; a notebook can call them as
they are.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import pandas as pd

from robust_fairness.bench.compute.checkpoints import threads
from robust_fairness.bench.compute.process import keep_freed_memory
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.training import (
    decisions,
    evaluation,
    fitting,
    prediction,
    search,
)
from robust_fairness.bench.training.evaluation import count, evaluate
from robust_fairness.bench.training.prediction import UNSHIFTED
from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.core import tables
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.criteria import EVERY

__all__ = [
    "check", "compare", "count", "evaluate", "expected_seconds", "predict", "select", "train",
]  # fmt: skip

TRIED_STEPS = 4

# Criteria that are compared with those of the cell: accuracy, the worst group (Sagawa et al. 2020),
# the mean over groups (the bias mitigation study), and fairness alone and under the constraint of
# Donini et al. 2018.
COMPARED = (
    "accuracy",
    "worst_group_accuracy",
    "unbiased_accuracy",
    "delta_eo",
    "delta_dp subject to 0.97 of the best accuracy",
    "delta_eo subject to 0.97 of the best accuracy",
    "mean_squared_error",
    "worst_group_mean_squared_error",
)


def check(samples: Samples, cell: Cell) -> None:
    """Raise an error if a cell does not fit the samples; nothing is trained."""
    search.require_fitting(samples, cell)
    with search.naming(cell.name):
        fitting.Stack(samples, cell, cell.replicas()[:1])


def expected_seconds(samples: Samples, cell: Cell) -> float:
    """CPU seconds that the trainings of a cell will take, by a few steps of its first stack.

    A search is expected to take as long a trial as the default one. Nothing of it is kept.
    """
    alone = cell.model_copy(update={"trials": (), "search": ()})
    replicas = alone.replicas()
    stacked, _ = fitting.trainings(replicas, samples, cell.network.name)[0]
    logging.disable(logging.WARNING)  # the training itself will warn
    try:
        with threads(cell.protocol.threads):
            seconds = fitting.Stack(samples, alone, stacked).expected_seconds(TRIED_STEPS)
    finally:
        logging.disable(logging.NOTSET)
    return seconds * cell.budget * len(replicas) / len(stacked)


def train(
    samples: Samples,
    cell: Cell,
    rounds: Callable[[search.TrainedReplicas], Iterable[search.Round]] = search.rounds,
) -> tuple[list[Fitted], list[Prediction], pd.DataFrame, pd.DataFrame]:
    """Fit replicas round by round, each in stacks, and predict their validation rows.

    Args:
        samples: rows of the dataset.
        cell: dataset, method and network in one setting.
        rounds: the replicas that train next, asked for once the last ones have trained; default:
            every trial with every seed, then the stages of the cell's search.

    Returns:
        The fitted replicas, their predictions on the validation parts of their own splits, the
        training curves as ``tables.HISTORY``, and all that was tried as ``tables.TRIALS``.

    Raises:
        InputError: a configured trial has weights or losses that are not finite. Such a trial of a
            search has failed, and the search goes on.
    """
    keep_freed_memory()
    search.require_fitting(samples, cell)
    trained = search.TrainedReplicas(samples, cell)
    for wanted in rounds(trained):
        trained.train(wanted)
    history = tables.table(tables.HISTORY, trained.curves)
    return trained.fitted, trained.validation, history, trained.table()


def select(samples: Samples, validation: Sequence[Prediction], cell: Cell) -> pd.DataFrame:
    """Select trials by the cell's criteria on validation rows, ``tables.SELECTION``.

    A metric of groups counts for the sensitive attributes only.
    """
    return search.choose(
        evaluation.criterion_scores(cell.selections, validation, samples), cell.selections
    )


def compare(samples: Samples, validation: Sequence[Prediction], cell: Cell) -> pd.DataFrame:
    """The trial that each criterion would select, used or not, ``tables.CHOICES``.

    A cell with a single trial has no rows.
    """
    trials = {item.trial for item in validation}
    criteria = list(dict.fromkeys([*cell.selections, *COMPARED]))
    criteria = [item for item in criteria if item != EVERY] if len(trials) > 1 else []
    scores = evaluation.criterion_scores(criteria, validation, samples)
    cell_of = {"dataset": cell.dataset, "method": cell.label, "trials": len(trials)}
    rows = [
        {**cell_of, **score, "used": score["criterion"] in cell.selections}
        for score in search.compare(scores, criteria)
    ]
    return tables.table(tables.CHOICES, rows)


def predict(
    samples: Samples,
    models: Sequence[Fitted],
    chosen: pd.DataFrame,
    cell: Cell,
    shifted: Mapping[str, Samples],
) -> list[Prediction]:
    """Predictions of the chosen replicas on the test rows of the dataset and its shifted sets.

    Test rows out of distribution are predicted without shifts. The cell's post-processing decides
    on all of them.
    """
    keys = set(zip(chosen["trial"], chosen["seed"], strict=True))
    fitted = [model for model in models if (model.trial, model.seed) in keys]
    unshifted = {UNSHIFTED: samples}
    with threads(cell.protocol.threads):
        result = prediction.predict(samples, fitted, cell, {**unshifted, **shifted})
        if (samples.splits == "ood_test").any(axis=None):
            result += prediction.predict(samples, fitted, cell, unshifted, "ood_test")
        if cell.postprocessing is not None:
            return decisions.decided(samples, fitted, cell, {**unshifted, **shifted}, result)
    return result
