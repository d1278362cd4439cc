"""Every cell unprocessed: thresholds by group, fitted in distribution and applied everywhere."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from robust_fairness.core import tables
from robust_fairness.metrics.evaluation import probability_of_second
from robust_fairness.postprocessing.base import Decisions
from robust_fairness.postprocessing.group_thresholds import EqualizedOdds
from robust_fairness.samples import Groups, Samples, groups_of
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
    """Rows of known group, ``[n]`` each: class, score, group and own decision."""

    y: np.ndarray
    score: np.ndarray
    groups: Groups
    positive: np.ndarray

    @classmethod
    def of(cls, samples: Samples, prediction: Prediction) -> "Known":
        rows = samples.without_inputs().take(prediction.rows)
        groups = groups_of(rows.of_split(prediction.split).attributes, samples.sensitive)
        known, score = groups.codes >= 0, probability_of_second(prediction.outputs)
        y, positive = samples.y[prediction.rows], prediction.positive
        return cls(y[known], score[known], groups.take(known), positive[known])

    def cells(self) -> np.ndarray:
        """Rows of every class and group that has rows, ``[class, group]``."""
        both = [np.bincount(self.groups.codes[self.y == k], minlength=len(self.groups.values))
                for k in range(TWO)]  # fmt: skip
        return np.stack(both)[:, self.groups.counts > 0]

    def values(self) -> set[tuple[str, ...]]:
        """Values of the groups that have rows."""
        return {self.groups.values[code] for code in np.flatnonzero(self.groups.counts)}


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
        free = rules[FREE](known.score, known.groups)
        where: Row = {
            "trial": fitted_on.trial,
            "seed": fitted_on.seed,
            "validation_accuracy": _scores(known, free)["accuracy"],
        }
        for domain, part in (pair for of in tested for pair in by_domain(of, samples)):
            rows = Known.of(samples, part)
            place: Row = {"domain": domain, "away": part.part != "test"}
            if len(rows.y) and rows.values() <= known.values():
                yield from (where | place | row for row in _points(rows, rules))


def _rules(validation: Known) -> dict[float, Decisions]:
    """The rule of every tolerance; none where a group has validation rows of one class only."""
    if not validation.cells().all():
        return {}
    rules = {size: EqualizedOdds(EqualizedOdds.Parameters(tolerance=size)) for size in TOLERANCES}
    fitted = (validation.y, validation.score, validation.groups)
    return {size: rule.fit(*fitted) for size, rule in rules.items()}


def _points(rows: Known, rules: Mapping[float, Decisions]) -> Iterator[Row]:
    """Accuracy and gap as trained, and at every tolerance."""
    yield {"tolerance": None, **_scores(rows, rows.positive)}
    for tolerance, rule in rules.items():
        yield {"tolerance": tolerance, **_scores(rows, rule(rows.score, rows.groups))}


def _scores(rows: Known, positive: np.ndarray) -> Row:
    """Expected accuracy, equalised-odds difference and number of rows.

    The difference is the larger one of true and of false positive rates; missing where fewer than
    two groups have rows of a class.
    """
    index = rows.y * len(rows.groups.values) + rows.groups.index
    shape = (TWO, len(rows.groups.values))
    counts, sums = (
        np.bincount(index, weight, shape[0] * shape[1]).reshape(shape)
        for weight in (None, positive)
    )
    is_complete = bool(((counts > 0).sum(1) >= TWO).all())
    rates = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    gaps = np.nanmax(rates, 1) - np.nanmin(rates, 1) if is_complete else np.array([np.nan])
    return {
        "accuracy": float(np.where(rows.y == 1, positive, 1 - positive).mean()),
        "gap": float(gaps.max()) if is_complete else None,
        "n": len(rows.y),
    }
