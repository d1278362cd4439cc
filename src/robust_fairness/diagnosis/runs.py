"""Diagnosis of the predictions of a run, in every domain that was not trained on."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd

from robust_fairness.core import tables
from robust_fairness.diagnosis.decomposition import (
    Decomposition,
    OverlapOf,
    Weighted,
    decompose,
    decompose_by_group,
    rate_difference,
    weighted_mean,
)
from robust_fairness.diagnosis.domains import Overlap, overlap
from robust_fairness.samples import Samples
from robust_fairness.samples.domains import rows_by_domain
from robust_fairness.training.records import Prediction

FEWEST = 50  # rows of a domain, or of a group in it, for which classifiers are fitted
BINARY = 2


def diagnose(
    dataset: str, samples: Samples, predictions: Mapping[str, Sequence[Prediction]]
) -> pd.DataFrame:
    """The changes of accuracy and of gaps between two groups, decomposed: ``tables.DIAGNOSIS``.

    Of every cell the replica of the first seed is diagnosed, in each domain out of distribution
    with ``FEWEST`` rows. Gaps are signed, second group minus first, of the sensitive attributes
    with two groups.

    Args:
        dataset: its name.
        samples: its rows; features are columns of numbers.
        predictions: of the unshifted rows by method, in and out of distribution.
    """
    x = np.asarray(samples.x, dtype=np.float32)

    @cache
    def shared(home: tuple[int, ...], away: tuple[int, ...]) -> Overlap:
        one, other = np.array(home), np.array(away)
        units = None if samples.units is None else (samples.units[one], samples.units[other])
        return overlap(x[one], x[other], units)

    def overlap_of(home: np.ndarray, away: np.ndarray) -> Overlap:
        return shared(tuple(home.tolist()), tuple(away.tolist()))

    rows: list[dict[str, object]] = []
    for method, replicas in predictions.items():
        for home, away, domain in _pairs(samples, replicas):
            together = overlap_of(home.rows, away.rows)
            sizes = together.effective_rows
            where = {
                "dataset": dataset, "method": method, "trial": home.trial, "seed": home.seed,
                "domain": domain, "auc": together.auc, "effective_home": sizes[0],
                "effective_away": sizes[1], "little_overlap": together.little,
            }  # fmt: skip
            for measured, one in _decomposed(samples, home, away, overlap_of):
                parts = {
                    "at_home": one.at_home, "elsewhere": one.elsewhere, "due_to_x": one.due_to_x,
                    "due_to_y_given_x": one.due_to_y_given_x, "due_to_mix": one.mix,
                }  # fmt: skip
                rows.append(where | measured | parts)
    return tables.table(tables.DIAGNOSIS, rows)


def _pairs(
    samples: Samples, replicas: Sequence[Prediction]
) -> Iterator[tuple[Prediction, Prediction, str]]:
    """The first seed's predictions at home, with those in every other domain."""
    unshifted = [one for one in replicas if not one.test_set]
    if not unshifted:
        return
    first = min(one.seed for one in unshifted)
    trial = next(one.trial for one in unshifted if one.seed == first)
    parts = {one.part: one for one in unshifted if (one.seed, one.trial) == (first, trial)}
    if {"test", "ood_test"} <= set(parts) and len(parts["test"].rows) >= FEWEST:
        for domain, rows in rows_by_domain(samples, parts["ood_test"].rows).items():
            if len(rows) >= FEWEST:
                yield parts["test"], parts["ood_test"].take(rows), domain


def _decomposed(
    samples: Samples,
    home: Prediction,
    away: Prediction,
    overlap_of: OverlapOf,
) -> Iterator[tuple[dict[str, str], Decomposition]]:
    """Accuracy or squared error, by group where groups are large enough, and gaps."""
    together = overlap_of(home.rows, away.rows)
    score = [_score(samples, one) for one in (home, away)]
    metric = {"metric": "accuracy" if samples.classes else "mean_squared_error"}
    yield metric, decompose(weighted_mean(score[0]), weighted_mean(score[1]), together)
    for name in samples.sensitive:
        values = samples.attributes[name]
        if not isinstance(values.dtype, pd.CategoricalDtype):
            continue
        groups = [values.iloc[one.rows].cat.codes.to_numpy() for one in (home, away)]
        named = {"attribute": name}
        if min(_smallest(group, len(values.cat.categories)) for group in groups) >= FEWEST:

            def within(one: np.ndarray, other: np.ndarray) -> Overlap:
                return overlap_of(home.rows[one], away.rows[other])

            yield (
                metric | named,
                decompose_by_group(score, groups, within),
            )
        if len(samples.classes) == BINARY and len(values.cat.categories) == BINARY:
            at_home, elsewhere = (
                _gaps(samples, one, group == 1)
                for one, group in zip((home, away), groups, strict=True)
            )
            for gap in at_home:
                yield {"metric": gap} | named, decompose(at_home[gap], elsewhere[gap], together)


def _score(samples: Samples, one: Prediction) -> np.ndarray:
    """Whether each prediction is right, or its squared error, float64 ``[n]``."""
    y = samples.y[one.rows]
    if samples.classes:
        return (one.outputs.argmax(1) == y).astype(np.float64)
    return np.square(one.outputs[:, 0].astype(np.float64) - y)


def _gaps(samples: Samples, one: Prediction, second: np.ndarray) -> dict[str, Weighted]:
    """Signed differences of rates between two groups."""
    y, positive = samples.y[one.rows], one.outputs.argmax(1) == 1
    return {
        "selection_rate_difference": rate_difference(positive, second),
        "true_positive_rate_difference": rate_difference(positive, second, y == 1),
        "false_positive_rate_difference": rate_difference(positive, second, y == 0),
    }


def _smallest(codes: np.ndarray, groups: int) -> int:
    """Rows of the smallest group; rows without a group do not count."""
    return int(np.bincount(codes[codes >= 0], minlength=groups).min()) if (codes >= 0).all() else 0
