"""Post-processed predictions: decisions by a rule that is fitted on validation rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.bench.training import prediction
from robust_fairness.bench.training.prediction import UNSHIFTED
from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.evaluation import DECISION, probability_of_second
from robust_fairness.numbers.groups import Groups, groups_of

MISSING = "missing"


def decided(
    samples: Samples,
    fitted: Sequence[Fitted],
    cell: Cell,
    test_sets: Mapping[str, Samples],
    predictions: Sequence[Prediction],
) -> list[Prediction]:
    """The predictions with probabilities of decisions, ``DECISION``, and their log odds."""
    assert cell.postprocessing is not None
    rules = rules_of(samples, fitted, cell)
    result = []
    for item in predictions:
        groups = row_groups(test_sets[item.test_set], item.split, cell.postprocessing)
        score = probability_of_second(item.outputs)
        positive = rules[item.trial, item.seed](score, groups.take(item.rows))
        with np.errstate(divide="ignore"):
            outputs = np.log(np.stack([1 - positive, positive], axis=1)).astype(np.float32)
        result.append(replace(item, outputs=outputs, values={DECISION: positive}))
    return result


def rules_of(samples: Samples, fitted: Sequence[Fitted], cell: Cell) -> dict[tuple[str, int], Any]:
    """The rule of every replica, by trial and seed, fitted on the validation rows of its split."""
    named = cell.postprocessing
    assert named is not None
    rule = find("postprocessing", named.name)(named.parameters)
    rules = {}
    for scored in prediction.predict(samples, fitted, cell, {UNSHIFTED: samples}, "val"):
        groups = row_groups(samples, scored.split, named).take(scored.rows)
        known, score = groups.codes >= 0, probability_of_second(scored.outputs)
        rows = scored.rows[known]
        rules[scored.trial, scored.seed] = rule.fit(
            samples.y[rows], score[known], groups.take(known), samples.weights()[rows]
        )
    return rules


def row_groups(samples: Samples, split: str, named: Named) -> Groups:
    """Groups of all rows by the attributes of the rule."""
    names = named.parameters.attributes or samples.sensitive
    return groups_of(samples.of_split(split).attributes, names)


def require_groups(samples: Samples, split: str, named: Named) -> None:
    """Raise unless rows of two classes in known groups can be post-processed.

    Every group of the rows to decide on needs validation rows of both classes, unless the rule is
    common to all groups.
    """
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
    groups = row_groups(samples, split, named)
    fitted = samples.rows(split, "val")
    both = [
        set(groups.index[fitted[samples.y[fitted] == label]].tolist()) - {-1} for label in (0, 1)
    ]
    is_common = getattr(named.parameters, "common", False)  # a plug-in may have none
    decided_on = ("val",) if is_common else ("val", "test", "ood_test")
    for part in decided_on:
        for code in np.unique(groups.index[samples.rows(split, part)]).tolist():
            if code < 0 and part == "val":
                continue
            if code not in both[0] & both[1]:
                name = MISSING if code < 0 else groups.names[code]
                raise InputError(
                    f"postprocessing {named.name}: {part} rows of group {name}, which lacks "
                    f"validation rows of both classes in split {split!r}; choose other attributes"
                )
