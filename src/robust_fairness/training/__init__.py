"""Training a cell: fit all replicas, choose trials, predict and score.

The four functions are the four nodes of a cell; a notebook can call them as they are.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from robust_fairness import tables
from robust_fairness.parameters import EVERY, CellParameters, require_replicas
from robust_fairness.samples import Samples
from robust_fairness.training import evaluation, fitting, prediction, selection
from robust_fairness.training.checkpoints import Checkpoint, threads
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Fitted, Prediction

__all__ = ["evaluate", "predict", "select", "train"]


def train(
    samples: Samples, cell: CellParameters
) -> tuple[list[Fitted], list[Prediction], pd.DataFrame]:
    """Fit every trial with every seed, stacks of replicas at once.

    Args:
        samples: the dataset with its named splits.
        cell: the cell's settings.

    Returns:
        The fitted replicas, their predictions on their own validation rows, and the training
        curves as ``tables.HISTORY``.

    Raises:
        InputError: the samples or settings do not fit (an empty part, a device that is absent,
            a trial given twice, a checkpoint that is corrupted).
    """
    replicas = cell.replicas()
    require_replicas(replicas)
    fitted: list[Fitted] = []
    curves = []
    for together in fitting.stacks(replicas, samples):
        with threads(together[0].protocol.threads):
            stack = fitting.Stack(samples, cell, together)
            content = fitting.training_key(samples, cell, together)
            stack.train_to_end(Checkpoint(f"{cell.dataset}.{cell.label}", content))
            fitted += stack.fitted()
            curves += stack.curves()
    position = {(one.trial, one.seed): number for number, one in enumerate(replicas)}
    fitted.sort(key=lambda one: position[one.trial, one.seed])
    with threads(cell.protocol.threads):
        validation = prediction.predict(samples, fitted, cell, {UNSHIFTED: samples}, "val")
    return fitted, validation, tables.table(tables.HISTORY, curves)


def select(
    samples: Samples, validation: Sequence[Prediction], cell: CellParameters
) -> pd.DataFrame:
    """Choose trials by the cell's criteria from predictions on validation rows.

    A metric of groups counts for the sensitive attributes only. Returns ``tables.SELECTION``.
    """
    criteria = [name for name in cell.selections if name != EVERY]
    scores = pd.DataFrame(
        [
            {"trial": one.trial, "seed": one.seed, **row}
            for one in validation
            for row in evaluation.score(criteria, one, samples) or [{}]
        ]
    )
    if "attribute" in scores:
        scores = scores[
            scores["attribute"].isin(["", *samples.sensitive]) | scores["metric"].isna()
        ]
    return selection.choose(scores, cell.selections)


def predict(
    samples: Samples,
    models: Sequence[Fitted],
    chosen: pd.DataFrame,
    cell: CellParameters,
    shifted: Mapping[str, Samples],
) -> list[Prediction]:
    """Predictions of the chosen replicas on the test rows of every sample set.

    Args:
        samples: the unshifted dataset.
        models: all fitted replicas.
        chosen: ``tables.SELECTION``.
        cell: the cell's settings.
        shifted: shifted sample sets by name.
    """
    keys = set(zip(chosen["trial"], chosen["seed"], strict=True))
    fitted = [one for one in models if (one.trial, one.seed) in keys]
    with threads(cell.protocol.threads):
        return prediction.predict(samples, fitted, cell, {UNSHIFTED: samples, **shifted})


def evaluate(
    samples: Samples,
    predictions: Sequence[Prediction],
    chosen: pd.DataFrame,
    cell: CellParameters,
    shifted: Mapping[str, Samples],
) -> pd.DataFrame:
    """Score the predictions by every metric of the cell.

    Args:
        samples: the unshifted dataset.
        predictions: what ``predict`` gave.
        chosen: ``tables.SELECTION``.
        cell: the cell's settings.
        shifted: shifted sample sets by name.

    Returns:
        Rows of the tidy table, ``tables.METRICS``.
    """
    return evaluation.metric_rows(predictions, chosen, cell, {UNSHIFTED: samples, **shifted})
