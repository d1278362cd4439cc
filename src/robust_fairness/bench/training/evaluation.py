"""From predictions to rows of the tidy table."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness import metrics
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.samples.domains import rows_by_domain
from robust_fairness.bench.training.prediction import UNSHIFTED
from robust_fairness.bench.training.records import Prediction
from robust_fairness.core import tables
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.criteria import scored_by
from robust_fairness.metrics.evaluation import DECISION

OTHER_DOMAIN = "domain"  # the shift of rows of domains that are not trained on


def score(
    names: Sequence[str],
    prediction: Prediction,
    samples: Samples,
    unshifted: Samples,
    groupings: Sequence[Sequence[str]] = (),
    only: Collection[str] | None = None,
) -> list[dict[str, object]]:
    """Rows attribute, group, metric, value, n, note of one replica on one sample set.

    ``unshifted`` has the training rows of the replica's split; ``groupings`` are combinations of
    attributes in addition to each alone; ``only`` the attributes that count, by default all. Values
    are means over the scored epochs.
    """
    split = prediction.split
    seen = samples.without_inputs().take(prediction.rows).of_split(split)
    train = unshifted.without_inputs().take(unshifted.rows(split, "train")).of_split(split)
    epochs = [
        metrics.evaluate(names, seen, epoch.outputs, epoch.values, train, groupings, only)
        for epoch in prediction.by_epoch()
    ]
    return epochs[0] if len(epochs) == 1 else _averaged(epochs)


def _averaged(epochs: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Rows of scores with means over epochs, missing where an epoch has none.

    The variance is the mean of the epochs' variances, which that of the mean does not exceed. ``n``
    and notes are those of the last epoch.
    """
    by_key = [
        {(row["metric"], row["attribute"], row["group"]): row for row in rows} for rows in epochs
    ]
    result = []
    for row in epochs[-1]:
        key = row["metric"], row["attribute"], row["group"]
        same = [rows[key] for rows in by_key]
        missing = [item["note"] for item in same if item["value"] is None]
        means = {
            name: None
            if any(item[name] is None for item in same)
            else float(np.mean([item[name] for item in same]))
            for name in ("value", "variance")
        }
        note = missing[-1] if missing else row["note"]
        result.append({**row, **means, "note": note})
    return result


def evaluate(
    samples: Samples,
    predictions: Sequence[Prediction],
    chosen: pd.DataFrame,
    cell: Cell,
    shifted: Mapping[str, Samples],
) -> pd.DataFrame:
    """Score the predictions by every metric of the cell, ``tables.METRICS``.

    A replica that two criteria of ``chosen`` (``tables.SELECTION``) selected has rows for both.
    """
    test_sets = {UNSHIFTED: samples, **shifted}
    criteria = chosen.groupby(["trial", "seed"], sort=False)["selection"].agg(list)
    rows = []
    for prediction in predictions:
        due = metrics_of(cell.metrics, prediction.test_set)
        scores = [
            {"domain": domain, **row}
            for domain, part in by_domain(prediction, samples)
            for row in score(
                due,
                part,
                test_sets[prediction.test_set],
                samples,
                cell.groupings,
            )
        ]
        where = _described(prediction, cell)
        for criterion in criteria[prediction.trial, prediction.seed]:
            rows += [{**where, "selection": criterion, **row} for row in scores]
    return tables.table(tables.METRICS, rows)


def count(
    samples: Samples,
    predictions: Sequence[Prediction],
    cell: Cell,
    shifted: Mapping[str, Samples],
) -> pd.DataFrame:
    """Rows by group, class and decision of every replica and test set, ``tables.COUNTS``.

    Numbers of rows are means over the scored epochs.
    """
    test_sets = {UNSHIFTED: samples, **shifted}
    frames = []
    for prediction in predictions:
        is_shifted = prediction.test_set != UNSHIFTED and DECISION not in prediction.values
        before = _before(prediction, predictions, test_sets) if is_shifted else None
        replica = _described(prediction, cell)
        for domain, part in by_domain(prediction, samples):
            rows = test_sets[prediction.test_set].without_inputs().take(part.rows)
            epochs, earlier = part.by_epoch(), before.by_epoch() if before else ()
            counted = [
                metrics.count(
                    rows.of_split(part.split), epoch.outputs, epoch.values, cell.groupings,
                    earlier[number].outputs if earlier else None,
                )
                for number, epoch in enumerate(epochs)
            ]  # fmt: skip
            together = counted[0]
            if len(counted) > 1:
                keys = [name for name in together if name != "n"]
                added = pd.concat(counted).groupby(keys, sort=False, as_index=False)["n"].sum()
                together = added.assign(n=added["n"] / len(counted))
            frames.append(together.assign(**replica, domain=domain))
    counts = pd.concat(frames, ignore_index=True).drop(columns="network")
    return tables.COUNTS.joined([counts.astype(dict(tables.COUNTS))[list(tables.COUNTS)]])


def _described(prediction: Prediction, cell: Cell) -> dict[str, Any]:
    """The replica and the test set of a prediction, as columns of ``tables.METRICS``."""
    shift, severity = {UNSHIFTED: ("none", 0.0), **cell.test_sets}[prediction.test_set]
    return {
        "dataset": cell.dataset,
        "method": cell.label,
        "network": prediction.network,
        "trial": prediction.trial,
        "seed": prediction.seed,
        "shift": shift if prediction.part == "test" else OTHER_DOMAIN,
        "severity": severity,
    }


def _before(
    prediction: Prediction, predictions: Sequence[Prediction], test_sets: Mapping[str, Samples]
) -> Prediction | None:
    """The unshifted prediction of the same rows, if a prediction is of shifted copies of them.

    A shifted sample set has tested rows only, so that rows have other numbers there but their ids.
    """
    replica = prediction.trial, prediction.seed, UNSHIFTED, "test"
    for other in predictions:
        if (other.trial, other.seed, other.test_set, other.part) == replica:
            ids = [test_sets[item.test_set].id[item.rows] for item in (prediction, other)]
            return other if np.array_equal(*ids) else None
    return None


def by_domain(prediction: Prediction, samples: Samples) -> Iterator[tuple[str, Prediction]]:
    """A replica's predictions in distribution, called "", and those of every domain.

    Shifted rows are not taken apart by domain.
    """
    if prediction.part == "test":
        yield "", prediction
    if prediction.test_set == UNSHIFTED:
        for domain, rows in rows_by_domain(samples, prediction.rows).items():
            yield domain, prediction.take(rows)


def metrics_of(names: Sequence[str], test_set: str) -> list[str]:
    """The metrics that a sample set is scored with."""
    unshifted = test_set == UNSHIFTED
    return [name for name in names if unshifted or not metrics.find_metric(name).unshifted_only]


def criterion_scores(
    criteria: Sequence[str], validation: Sequence[Prediction], samples: Samples
) -> pd.DataFrame:
    """Scores of replicas by selection criteria, columns trial, seed, criterion, value.

    A metric of groups counts for the sensitive attributes only. A replica without a score has a
    row without a value. A criterion with a constraint has scores of both its metrics.
    """
    counted = {"", *samples.sensitive}
    due = scored_by(criteria)
    rows: list[dict[str, object]] = []
    for item in validation:
        replica = {"trial": item.trial, "seed": item.seed}
        rows.append({**replica, "criterion": "", "value": None})
        for scored in due:
            if scored.part == item.part:
                rows += [
                    {**replica, "criterion": str(scored), "value": row["value"]}
                    for row in score([scored.metric], item, samples, samples, only=counted)
                ]
    return pd.DataFrame(rows).astype({"value": "float64"})
