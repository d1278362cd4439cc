"""Every cell unprocessed: thresholds by group, fitted in distribution and applied everywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from robust_fairness.core import tables
from robust_fairness.metrics.evaluation import probability_of_second
from robust_fairness.postprocessing.base import Decisions
from robust_fairness.postprocessing.group_thresholds import EqualizedOdds
from robust_fairness.samples import Samples
from robust_fairness.training.decisions import MISSING, group_names
from robust_fairness.training.evaluation import by_domain
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Prediction

TOLERANCES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)
FREE = 1.0  # tolerance at which every group has its most accurate thresholds
TWO = 2

Row = dict[str, object]
Predicted = tuple[Sequence[Prediction], Sequence[Prediction]]


@dataclass(frozen=True)
class Known:
    """Rows of known group, ``[n]`` each: class, score, name of the group and own decision."""

    y: np.ndarray
    score: np.ndarray
    group: np.ndarray
    positive: np.ndarray

    @cached_property
    def subgroup(self) -> np.ndarray:
        """Number of the class and the group of each row, class first, int64 ``[n]``."""
        codes, names = pd.factorize(self.group)
        return np.asarray(self.y * len(names) + codes)

    @cached_property
    def groups(self) -> int:
        """Number of groups."""
        return len(set(self.group))

    @classmethod
    def of(cls, samples: Samples, prediction: Prediction) -> "Known":
        rows = samples.without_inputs().take(prediction.rows)
        group = group_names(rows, prediction.split, samples.sensitive)
        score = probability_of_second(prediction.outputs)
        columns = (samples.y[prediction.rows], score, group, prediction.positive)
        return cls(*(column[group != MISSING] for column in columns))


def frontier(dataset: str, samples: Samples, cells: Mapping[str, Predicted]) -> pd.DataFrame:
    """Expected accuracy and gap of every replica at every tolerance, ``core.tables`` "frontier".

    Rules of equalised odds between the groups of the sensitive attributes are fitted on the
    validation rows of a replica, as in Cruz and Hardt, "Unprocessing Seven Years of Algorithmic
    Fairness" (ICLR 2024). A replica whose validation rows lack a class in some group has no rows,
    and a domain with other groups neither.

    Args:
        dataset: its name.
        samples: its rows.
        cells: predictions of validation rows, and of unshifted test rows, by method; of cells
            without post-processing.
    """
    categorical = set(samples.attributes.select_dtypes("category"))
    rows: list[Row] = []
    if len(samples.classes) == TWO and samples.sensitive and {*samples.sensitive} <= categorical:
        for method, predicted in cells.items():
            where: Row = {"dataset": dataset, "method": method}
            rows += [where | row for row in _of_cell(samples, *predicted)]
    return tables.table(tables.TABLES["frontier"], rows)


def _of_cell(
    samples: Samples, validation: Sequence[Prediction], predictions: Sequence[Prediction]
) -> Iterator[Row]:
    """Rows of every replica in distribution and in every domain."""
    for fitted_on in validation:
        if fitted_on.part != "val":
            continue
        replica = (fitted_on.trial, fitted_on.seed, UNSHIFTED)
        tested = [of for of in predictions if (of.trial, of.seed, of.test_set) == replica]
        known = Known.of(samples, fitted_on)
        rules = _rules(known) if tested else {}
        if not rules:
            continue
        free = rules[FREE](known.score, known.group)
        where: Row = {
            "trial": fitted_on.trial,
            "seed": fitted_on.seed,
            "validation_accuracy": _scores(known, free)["accuracy"],
        }
        for domain, part in (pair for of in tested for pair in by_domain(of, samples)):
            rows = Known.of(samples, part)
            place: Row = {"domain": domain, "elsewhere": part.part != "test"}
            if len(rows.y) and set(rows.group) <= set(known.group):
                yield from (where | place | row for row in _points(rows, rules))


def _rules(validation: Known) -> dict[float, Decisions]:
    """The rule of every tolerance; none where a group has validation rows of one class only."""
    cells = set(zip(validation.group, validation.y.tolist(), strict=True))
    if len(cells) < TWO * len(np.unique(validation.group)):
        return {}
    rules = {size: EqualizedOdds(EqualizedOdds.Parameters(tolerance=size)) for size in TOLERANCES}
    fitted = (validation.y, validation.score, validation.group)
    return {size: rule.fit(*fitted) for size, rule in rules.items()}


def _points(rows: Known, rules: Mapping[float, Decisions]) -> Iterator[Row]:
    """Accuracy and gap as trained, and at every tolerance."""
    yield {"tolerance": None, **_scores(rows, rows.positive)}
    for tolerance, rule in rules.items():
        yield {"tolerance": tolerance, **_scores(rows, rule(rows.score, rows.group))}


def _scores(rows: Known, positive: np.ndarray) -> Row:
    """Expected accuracy, equalised-odds difference and number of rows.

    The difference is the larger one of true and of false positive rates; missing where fewer than
    two groups have rows of a class.
    """
    counts = np.bincount(rows.subgroup, minlength=TWO * rows.groups)
    sums = np.bincount(rows.subgroup, positive, minlength=TWO * rows.groups)
    known = counts > 0
    rates = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=known)
    is_complete = bool((known.reshape(TWO, -1).sum(1) >= TWO).all())
    by_class = rates.reshape(TWO, -1)
    gaps = np.nanmax(by_class, 1) - np.nanmin(by_class, 1) if is_complete else np.array([np.nan])
    return {
        "accuracy": float(np.where(rows.y == 1, positive, 1 - positive).mean()),
        "gap": float(gaps.max()) if is_complete else None,
        "n": len(rows.y),
    }
