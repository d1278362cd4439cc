"""Post-processed predictions: decisions by a rule that is fitted on validation rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.registry import find
from robust_fairness.experiment.experiment import Cell
from robust_fairness.experiment.plugins import Named
from robust_fairness.metrics.evaluation import DECISION, probability_of_second
from robust_fairness.samples import Samples, groups_of
from robust_fairness.training import prediction
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Fitted, Prediction

MISSING = "missing"


def decided(
    samples: Samples,
    fitted: Sequence[Fitted],
    cell: Cell,
    test_sets: Mapping[str, Samples],
    predictions: Sequence[Prediction],
) -> list[Prediction]:
    """The predictions with probabilities of decisions, ``DECISION``, and their log odds.

    The rule of every replica is fitted on the validation rows of its split.
    """
    named = cell.postprocessing
    if named is None:
        return list(predictions)
    names = named.parameters.attributes or samples.sensitive
    rule = find("postprocessing", named.name)(named.parameters)
    rules = {}
    for scored in prediction.predict(samples, fitted, cell, {UNSHIFTED: samples}, "val"):
        group = group_names(samples.take(scored.rows), scored.split, names)
        known, score = group != MISSING, probability_of_second(scored.outputs)
        y_true = samples.y[scored.rows]
        rules[scored.trial, scored.seed] = rule.fit(y_true[known], score[known], group[known])
    result = []
    for item in predictions:
        group = group_names(test_sets[item.test_set].take(item.rows), item.split, names)
        positive = rules[item.trial, item.seed](probability_of_second(item.outputs), group)
        with np.errstate(divide="ignore"):
            outputs = np.log(np.stack([1 - positive, positive], axis=1)).astype(np.float32)
        result.append(replace(item, outputs=outputs, values={DECISION: positive}))
    return result


def require_groups(samples: Samples, split: str, named: Named | None) -> None:
    """Raise unless rows of two classes in known groups can be post-processed.

    Every group of the rows to decide on needs validation rows of both classes.
    """
    if named is None:
        return
    if len(samples.classes) != 2:
        raise InputError(f"postprocessing {named.name}: defined for two classes")
    names = named.parameters.attributes or samples.sensitive
    for name in names:
        if name not in samples.attributes:
            raise unknown_name("attribute of postprocessing", name, samples.attributes.columns)
        if not isinstance(samples.attributes[name].dtype, pd.CategoricalDtype):
            raise InputError(f"postprocessing {named.name}: attribute {name} is continuous")
    if not names:
        raise InputError(f"postprocessing {named.name}: no attribute defines groups")
    group = group_names(samples, split, names)
    rows = {part: samples.rows(split, part) for part in ("val", "test", "ood_test")}
    fitted = set(zip(group[rows["val"]], samples.y[rows["val"]].tolist(), strict=True))
    for part in ("val", "test", "ood_test"):
        for name in np.unique(group[rows[part]]):
            if name == MISSING and part == "val":
                continue
            if not {(name, 0), (name, 1)} <= fitted or name == MISSING:
                raise InputError(
                    f"postprocessing {named.name}: {part} rows of group {name}, which lacks "
                    f"validation rows of both classes in split {split!r}; choose other attributes"
                )


def group_names(samples: Samples, split: str, names: Sequence[str]) -> np.ndarray:
    """Name of the group of every row, ``MISSING`` where an attribute is missing, ``[n]``."""
    groups = groups_of(samples.of_split(split).attributes, names)
    return np.array([*groups.names, MISSING], dtype=object)[groups.index].astype(str)
