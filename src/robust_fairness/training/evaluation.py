"""From predictions to rows of the tidy table."""

from collections.abc import Mapping, Sequence

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.experiment.experiment import Cell
from robust_fairness.metrics import evaluate, find_metric
from robust_fairness.metrics.criteria import scored_by
from robust_fairness.samples import Samples
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Prediction


def score(
    metrics: Sequence[str],
    prediction: Prediction,
    samples: Samples,
    unshifted: Samples,
    groupings: Sequence[Sequence[str]] = (),
) -> list[dict[str, object]]:
    """Rows attribute, group, metric, value, n, note of one replica on one sample set.

    Args:
        metrics: names of metrics.
        prediction: the replica's predictions of rows of ``samples``.
        samples: the sample set.
        unshifted: the dataset, which has the training rows of the replica's split.
        groupings: combinations of attributes, beside each alone.
    """
    split = prediction.split
    seen = samples.without_inputs().take(prediction.rows).of_split(split)
    train = unshifted.without_inputs().take(unshifted.rows(split, "train")).of_split(split)
    return evaluate(metrics, seen, prediction.outputs, prediction.values, train, groupings)


def metric_rows(
    predictions: Sequence[Prediction],
    selection: pd.DataFrame,
    cell: Cell,
    test_sets: Mapping[str, Samples],
) -> pd.DataFrame:
    """All rows of a cell, ``tables.METRICS``.

    Args:
        predictions: of the selected replicas.
        selection: which criterion selected which replica; one selected twice is in the table under
            both.
        cell: the cell's settings.
        test_sets: sample sets by name; ``UNSHIFTED`` is the dataset itself.
    """
    shifts = {UNSHIFTED: ("none", 0.0), **cell.test_sets}
    chosen: dict[tuple[str, int], list[str]] = {}
    for row in selection.to_dict("records"):
        chosen.setdefault((row["trial"], row["seed"]), []).append(row["selection"])
    rows = []
    for prediction in predictions:
        shift, severity = shifts[prediction.test_set]
        samples = test_sets[prediction.test_set]
        due = metrics_of(cell.metrics, prediction.test_set)
        scores = score(due, prediction, samples, test_sets[UNSHIFTED], cell.groupings)
        for criterion in chosen[prediction.trial, prediction.seed]:
            where = {
                "dataset": cell.dataset,
                "method": cell.label,
                "network": prediction.network,
                "trial": prediction.trial,
                "seed": prediction.seed,
                "selection": criterion,
                "shift": shift,
                "severity": severity,
                "domain": "",
            }
            rows += [where | one for one in scores]
    return tables.table(tables.METRICS, rows)


def metrics_of(metrics: Sequence[str], test_set: str) -> list[str]:
    """The metrics that a sample set is scored with."""
    return [
        name for name in metrics if test_set == UNSHIFTED or not find_metric(name).unshifted_only
    ]


def criterion_scores(
    criteria: Sequence[str], validation: Sequence[Prediction], samples: Samples
) -> pd.DataFrame:
    """Scores of replicas by selection criteria, columns trial, seed, criterion, value.

    A metric of groups counts for the sensitive attributes only. A replica without a score has a
    row without a value. A criterion with a constraint has scores of both its metrics.

    Args:
        criteria: the criteria; ``every`` needs no scores.
        validation: predictions on the validation parts.
        samples: the unshifted dataset.
    """
    counted = {"", *samples.sensitive}
    due = scored_by(criteria)
    rows: list[dict[str, object]] = []
    for one in validation:
        replica = {"trial": one.trial, "seed": one.seed}
        rows.append({**replica, "criterion": "", "value": None})
        for scored in due:
            if scored.part == one.part:
                rows += [
                    {**replica, "criterion": str(scored), "value": row["value"]}
                    for row in score([scored.metric], one, samples, samples)
                    if row["attribute"] in counted
                ]
    return pd.DataFrame(rows).astype({"value": "float64"})
