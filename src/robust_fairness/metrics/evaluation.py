"""From predictions to rows of the tidy table."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.samples import Samples
from robust_fairness.numbers.counts import Rows
from robust_fairness.numbers.groups import Groups, everyone, groups_of, numbers_of, shown, width_of
from robust_fairness.numbers.metrics import MOST_GROUPS, Metric, find_metric, rows_of
from robust_fairness.numbers.quantities import GROUPED, WEIGHTS, Array, NotApplicable

# What arrays are of that not every prediction has.
OF = {
    **dict.fromkeys(("curvature", "curvature_one_shot"), "of a network with derivatives"),
    "y_standard": "predictions of the standard model",
}
DECISION = "decision"  # probability of deciding class 1, of predictions that are decided at random
COLUMNS = "sensitive_columns"
OF_SCORES = frozenset(("y_score", "outputs"))
OF_GROUPS = frozenset((GROUPED, "sensitive_features_train"))
OF_COLUMNS = frozenset((COLUMNS, "conditioning_columns"))


def evaluate(
    names: Sequence[str | Metric],
    samples: Samples,
    outputs: Array,
    per_row: Mapping[str, Array] | None = None,
    train: Samples | None = None,
    groupings: Sequence[Sequence[str]] = (),
    only: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows attribute, group, metric, value, n, note, applies, variance of every metric.

    A metric of groups is computed for every categorical attribute and every combination of
    ``groupings``, sensitive attributes first; one of columns for every attribute, for the sensitive
    ones together and for every combination. Rows whose attribute is missing are left out. A metric
    that does not apply, or whose arrays are missing, has one row without value that says why.

    ``sample_weight`` in ``per_row`` weights the rows; metrics without weights do not apply then.
    Random decisions (``DECISION``) are scored by their expectation: each row counts once with
    every class, weighted by its probability. Metrics of scores do not apply to them.

    Args:
        names: names of metrics, with their options, or metrics.
        samples: the rows that were predicted.
        outputs: logits ``[n, classes]`` or outcomes ``[n, 1]``.
        per_row: further arrays ``[n, ...]`` by name.
        train: the rows that the model was trained on.
        groupings: combinations of categorical attributes, each an attribute of its own, called
            ``texture & digit_color``.
        only: attributes whose rows are computed, "" for those of no attribute; by default all.

    Raises:
        InputError: no such metric or option, or a grouping names an attribute that does not exist
            or is continuous.
    """
    metrics = [find_metric(name) if isinstance(name, str) else name for name in names]
    rows = []
    for metric, attribute, source in sources(metrics, samples, outputs, per_row, train, groupings):
        if isinstance(source, NotApplicable):
            rows += rows_of(metric.name, attribute, {"": source.score(len(samples))})
        elif only is None or attribute in only:
            rows += rows_of(metric.name, attribute, metric.of(source))
    # the two decisions of a row are not independent
    random = DECISION in (per_row or {})
    return [row | {"variance": None, "n": row["n"] // 2} for row in rows] if random else rows


def sources(
    metrics: Sequence[Metric],
    samples: Samples,
    outputs: Array,
    per_row: Mapping[str, Array] | None = None,
    train: Samples | None = None,
    groupings: Sequence[Sequence[str]] = (),
    independent: bool = True,
) -> Iterator[tuple[Metric, str, Rows | NotApplicable]]:
    """Every metric with every attribute and the rows that it is computed of, or why it is not.

    The arguments are those of ``evaluate``; ``independent`` is that of ``Rows``.
    """
    # sensitive attributes first: who shows one attribute shows the first
    order = dict.fromkeys([*samples.sensitive, *samples.attributes])
    samples = replace(samples, attributes=samples.attributes[list(order)])
    random = DECISION in (per_row or {})
    samples, predicted = _predicted(samples, outputs, per_row or {})
    needed = {need for metric in metrics for need in metric.needs}
    arrays = {name: array for name, array in predicted.items() if name in {*needed, WEIGHTS}}
    whole: dict[str, Any] = {"classes": samples.classes, "attributes": samples.attributes}
    if train is not None:
        whole |= {"y_train": train.y, "attributes_train": train.attributes}
    of_training = whole.get("y_train"), whole.get("attributes_train")
    grouped = by_attribute(arrays, samples.attributes, *of_training, groupings)
    in_columns = by_columns(arrays, samples, groupings) if COLUMNS in needed else {}
    available = {*arrays, *whole, *OF_COLUMNS, *(OF_GROUPS if train is not None else (GROUPED,))}
    whole_table: dict[str, dict[str, Any]] = {"": arrays}
    of_groups, of_columns, alone = (
        {
            name: Rows({**whole, **known}, known.get(GROUPED), independent=independent)
            for name, known in parts.items()
        }
        for parts in (grouped, in_columns, whole_table)
    )
    for metric in metrics:
        if reason := _not_applicable(metric, samples, available, random):
            yield metric, "", NotApplicable(reason)
            continue
        parts = alone
        if OF_GROUPS.intersection(metric.needs):
            parts = of_groups
        elif OF_COLUMNS.intersection(metric.needs):
            parts = of_columns
        yield from ((metric, attribute, source) for attribute, source in parts.items())


def count(
    samples: Samples,
    outputs: Array,
    per_row: Mapping[str, Array] | None = None,
    groupings: Sequence[Sequence[str]] = (),
    before: Array | None = None,
) -> pd.DataFrame:
    """Rows of every group by class and decision, from which rates and gaps follow.

    Args:
        samples: the rows that were predicted.
        outputs: logits ``[n, classes]``, or outcomes ``[n, 1]``.
        per_row: further arrays; ``DECISION`` are probabilities of deciding class 1.
        groupings: combinations of attributes, each an attribute of its own.
        before: outputs of the same rows before a shift.

    Returns:
        A row per attribute (the first one, "", has all rows), group, class, decision before the
        shift (-1 without one) and decision that occurs, in this order, with its number of rows
        ``n``; a random decision counts as its probability, rows without classes as of one. An
        attribute of more than ``MOST_GROUPS`` groups is counted as one group without a name.
    """
    decided = (per_row or {}).get(DECISION)
    classes = samples.classes or ("",)
    label = samples.y if samples.classes else np.zeros(len(samples), np.int64)
    earlier = np.full(len(samples), -1) if before is None else before.argmax(-1)
    decision, weight = outputs.argmax(-1), np.ones(len(samples))
    if decided is not None:
        label, earlier = np.tile(label, 2), np.tile(earlier, 2)
        decision = np.repeat([0, 1], len(samples))
        weight = np.concatenate([1 - decided, decided])
    sizes = len(classes), len(classes) + 1, len(classes)
    cell = np.ravel_multi_index((label, earlier + 1, decision), sizes)
    alone = ((str(name),) for name in samples.attributes.select_dtypes("category"))
    frames = []
    for columns in [(), *alone, *groupings]:
        of_attribute = groups_of(samples.attributes, columns) if columns else everyone(len(samples))
        if len(of_attribute.values) > MOST_GROUPS:
            of_attribute = everyone(len(samples))
        frame = _cells_of(of_attribute, cell, weight, sizes, classes)
        frame.insert(0, "attribute", shown(columns) if columns else "")
        frame.insert(1, "sensitive", set(columns) <= set(samples.sensitive))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _cells_of(
    groups: Groups, cell: Array, weight: Array, sizes: tuple[int, int, int], classes: Sequence[str]
) -> pd.DataFrame:
    """Rows of every group by class, decision before and decision, which ``cell`` numbers."""
    group = np.resize(groups.index, len(cell))
    known = group >= 0
    place, index = np.unique((group * np.prod(sizes) + cell)[known], return_inverse=True)
    group, label, earlier, decision = np.unravel_index(place, (len(groups.names), *sizes))
    return pd.DataFrame(
        {
            "group": np.array(groups.names, dtype=object)[group],
            "label": label, "class": np.array(classes, dtype=object)[label],
            "before": earlier - 1, "decision": decision,
            "n": np.bincount(index, weight[known], len(place)),
        }
    )  # fmt: skip


def _predicted(
    samples: Samples, outputs: Array, per_row: Mapping[str, Array]
) -> tuple[Samples, dict[str, Array]]:
    """The samples and the arrays of their rows, with random decisions every row twice.

    Once with class 0 and once with class 1 decided, weighted by the probability of that.
    """
    if DECISION in per_row:
        positive = per_row[DECISION]
        twice = samples.take(np.tile(np.arange(len(positive)), 2))
        decided = {"y_true": twice.y, "y_pred": np.repeat([0, 1], len(positive))}
        return twice, decided | {WEIGHTS: np.concatenate([1 - positive, positive])}
    prediction = outputs.argmax(-1) if samples.classes else outputs[:, 0]
    arrays = {"y_true": samples.y, "y_pred": prediction, "outputs": outputs}
    if len(samples.classes) == 2:
        arrays["y_score"] = probability_of_second(outputs)
    return samples, arrays | dict(per_row)


def probability_of_second(outputs: Array) -> Array:
    """Probability of class 1, float64 ``[n]``, from logits of two classes ``[n, 2]``."""
    # exp(-logaddexp(0, x)) is 1 / (1 + exp(x)) without overflow
    return np.exp(-np.logaddexp(0, outputs[:, 0].astype(np.float64) - outputs[:, 1]))


def _not_applicable(
    metric: Metric, samples: Samples, available: Iterable[str], random: bool
) -> str:
    """Why a metric has no value for any attribute; empty where it may have one."""
    task = "classification" if samples.classes else "regression"
    if metric.task not in (task, "any"):
        return f"a metric of {metric.task}"
    if random and OF_SCORES.intersection(metric.needs):
        return "a metric of scores, predictions are decisions"
    if random and "y_pred" in metric.needs and not metric.definition.takes_weights:
        return "not defined for random decisions"
    if WEIGHTS in available and not metric.definition.takes_weights:
        return "takes no sample_weight"
    needs = [need for need in metric.needs if need not in available and need != "y_score"]
    absent = [f"{need} ({OF[need]})" if need in OF else need for need in needs]
    return f"needs {', '.join(absent)}" if absent else ""


def by_attribute(
    arrays: Mapping[str, Array],
    attributes: pd.DataFrame,
    y_train: Array | None = None,
    attributes_train: pd.DataFrame | None = None,
    groupings: Sequence[Sequence[str]] = (),
) -> dict[str, dict[str, Any]]:
    """Arrays of the rows whose group is known, by categorical attribute and combination.

    Beside the arrays there are ``sensitive_features`` and, of the training rows whose group is
    known, ``y_train`` and ``sensitive_features_train``. A number means the same group in both.
    """
    together = pd.concat([attributes, attributes_train])
    alone = ((str(name),) for name in attributes.select_dtypes("category"))
    result = {}
    for columns in [*alone, *groupings]:
        groups = groups_of(together, columns)
        group, group_train = np.split(groups.index, [len(attributes)])
        rows = slice(None) if (group >= 0).all() else group >= 0  # a view where all are known
        of_known: dict[str, Any] = {name: array[rows] for name, array in arrays.items()}
        of_known[GROUPED] = Groups(group[rows], groups.values)
        if y_train is not None:
            known = group_train >= 0
            of_known["y_train"] = y_train[known]
            of_known["sensitive_features_train"] = Groups(group_train[known], groups.values)
        result[shown(columns)] = of_known
    return result


def by_columns(
    arrays: Mapping[str, Array], samples: Samples, groupings: Sequence[Sequence[str]] = ()
) -> dict[str, dict[str, Any]]:
    """Arrays of the rows whose attribute is known, by attribute, with attributes as numbers.

    An attribute of more than ``MOST_GROUPS`` categories, each a column, is left out.
    """
    narrow = [
        str(name) for name, values in samples.attributes.items() if width_of(values) <= MOST_GROUPS
    ]
    conditioning = samples.conditioning_values().to_frame()
    wanted = [*((name,) for name in narrow if name != samples.conditioning), *map(tuple, groupings)]
    if len(samples.sensitive) > 1:
        wanted.append(samples.sensitive)
    result = {}
    for names in dict.fromkeys(wanted):
        if not set(narrow) >= set(names):
            continue
        values = samples.attributes[list(names)]
        known = ~(values.isna().any(axis=1) | conditioning.isna().any(axis=1)).to_numpy()
        rows = slice(None) if known.all() else known  # a view where all are known
        of_known: dict[str, Any] = {name: array[rows] for name, array in arrays.items()}
        of_known[COLUMNS] = NumericColumns(values[rows])
        of_known["conditioning_columns"] = NumericColumns(conditioning[rows])
        result[shown(names)] = of_known
    return result


@dataclass(frozen=True)
class NumericColumns:
    """Attributes as numbers, which are made of the rows that are taken only."""

    values: pd.DataFrame

    def __getitem__(self, rows: Array) -> Array:
        """Numbers of these rows, float64 ``[rows, columns]``."""
        some = self.values.iloc[rows]
        return np.concatenate([numbers_of(some[name]) for name in some], axis=1)
