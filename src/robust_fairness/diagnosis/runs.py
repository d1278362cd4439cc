"""Diagnosis of the predictions of a run, in every domain that was not trained on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from robust_fairness.core import tables
from robust_fairness.diagnosis.decomposition import (
    Decomposition,
    Weighted,
    decompose,
    decompose_by_group,
    rate_difference,
    weighted_mean,
)
from robust_fairness.diagnosis.domains import FEWEST, MOST
from robust_fairness.diagnosis.labels import estimated_shares, share_change
from robust_fairness.diagnosis.pairs import Pair, compared
from robust_fairness.diagnosis.regions import ScoredDomain, regions
from robust_fairness.samples import Samples
from robust_fairness.samples.domains import rows_by_domain
from robust_fairness.training.decisions import MISSING
from robust_fairness.training.records import Prediction

BINARY = 2
REGIONS = 3  # shown of every tree

Row = dict[str, object]


def diagnose(
    dataset: str, samples: Samples, predictions: Mapping[str, Sequence[Prediction]]
) -> dict[str, pd.DataFrame]:
    """Why scores change between domains: tables of ``core.tables`` by name.

    Of every cell the replica of the first seed is diagnosed, in each domain out of distribution
    with ``FEWEST`` rows. Gaps are signed, second group minus first, of the sensitive attributes
    with two groups. Columns that name the domain are found first and left out of X.

    Shares are those of all rows. Everything else is of at most ``MOST`` rows of a domain, drawn at
    random: the standard error of a rate of theirs is at most .5 / sqrt(20,000) = .004.

    Args:
        dataset: its name.
        samples: its rows; features are columns of numbers.
        predictions: of the unshifted rows by method, in and out of distribution.
    """

    @cache
    def pair_of(home: bytes, away: bytes) -> Pair:
        rows = (np.frombuffer(domain, np.int64) for domain in (home, away))
        return compared(samples, *rows)

    described: set[Pair] = set()
    rows: dict[str, list[Row]] = {
        "diagnosis": [], "domain_columns": [], "regions": [], "shares": [],
    }  # fmt: skip
    for method, replicas in predictions.items():
        for home, away, domain in _pairs(samples, replicas):
            every_home, every_away = home, away
            home, away = _at_most(home), _at_most(away)  # noqa: PLW2901
            pair = pair_of(*(part.rows.astype(np.int64).tobytes() for part in (home, away)))
            where: Row = {"dataset": dataset, "domain": domain}
            if pair not in described:  # what does not depend on the method
                rows["domain_columns"] += [where | row for row in _domain_columns(pair)]
                of_all = replace(pair, home=every_home.rows, away=every_away.rows)
                rows["shares"] += [
                    where | {"method": method} | row
                    for row in _shares(of_all, every_home, every_away)
                ]
                described.add(pair)
            where |= {"method": method, "trial": home.trial, "seed": home.seed}
            rows["diagnosis"] += [where | row for row in _decomposed(pair, home, away)]
            rows["regions"] += [where | row for row in _regions(pair, home, away)]
    return {name: tables.table(tables.TABLES[name], listed) for name, listed in rows.items()}


def _pairs(
    samples: Samples, replicas: Sequence[Prediction]
) -> Iterator[tuple[Prediction, Prediction, str]]:
    """The first seed's predictions at home, with those in every other domain."""
    unshifted = [part for part in replicas if not part.test_set]
    if not unshifted:
        return
    first = min(unshifted, key=lambda part: part.seed)
    replica = (first.seed, first.trial)
    parts = {part.part: part for part in unshifted if (part.seed, part.trial) == replica}
    if {"test", "ood_test"} <= set(parts) and len(parts["test"].rows) >= FEWEST:
        for domain, rows in rows_by_domain(samples, parts["ood_test"].rows).items():
            if len(rows) >= FEWEST:
                yield parts["test"], parts["ood_test"].take(rows), domain


def _at_most(prediction: Prediction) -> Prediction:
    """The prediction, or that of ``MOST`` of its rows, the same for all methods."""
    if len(prediction.rows) <= MOST:
        return prediction
    generator = np.random.default_rng(0)
    return prediction.take(np.sort(generator.choice(len(prediction.rows), MOST, replace=False)))


def _domain_columns(pair: Pair) -> Iterator[Row]:
    """The AUC of all columns and of each one alone."""
    auc, p = pair.two_sample
    home, away = pair.of_all_columns.effective_rows
    yield {
        "column": "", "auc": auc, "p": p, "names_domain": bool(pair.naming),
        "effective_home": home, "effective_away": away,
    }  # fmt: skip
    for name, value in pair.column_aucs.items():
        yield {"column": name, "auc": value, "names_domain": name in pair.naming}


def _shares(pair: Pair, home: Prediction, away: Prediction) -> Iterator[Row]:
    """Shares of the groups, of missing ones too, and of the classes in all rows and each group."""
    samples, every = pair.samples, np.ones(len(pair.samples), dtype=bool)
    yield from _class_shares(pair, home, away, every)
    for name in samples.sensitive:
        values = samples.attributes[name]
        if not isinstance(values.dtype, pd.CategoricalDtype):
            continue
        rows_of = {str(group): (values == group).to_numpy() for group in values.cat.categories}
        if values.isna().any():
            rows_of[MISSING] = values.isna().to_numpy()
        for group, of_group in rows_of.items():
            where: Row = {"attribute": name, "group": group}
            yield where | _share(pair, of_group, every)
            yield from (where | row for row in _class_shares(pair, home, away, of_group))


def _class_shares(
    pair: Pair, home: Prediction, away: Prediction, among: np.ndarray
) -> Iterator[Row]:
    """Shares of the classes among some rows; of two classes that of the second."""
    samples, classes = pair.samples, len(pair.samples.classes)
    selected = [among[part.rows] for part in (home, away)]
    estimated = np.full(classes, np.nan)
    if classes and all(rows.any() for rows in selected):
        predicted = [
            part.outputs.argmax(1)[kept] for part, kept in zip((home, away), selected, strict=True)
        ]
        label = samples.y[home.rows[selected[0]]]
        estimated = estimated_shares(predicted[0], label, predicted[1], classes)
    for number, name in list(enumerate(samples.classes))[classes == BINARY :]:
        of_class = _share(pair, samples.y == number, among)
        yield {"label": name, "estimated": estimated[number]} | of_class


def _share(pair: Pair, counted: np.ndarray, among: np.ndarray) -> Row:
    """The share of some rows among others; tested where both domains have ``FEWEST`` of them."""
    units = pair.samples.units
    rows = [domain[among[domain]] for domain in (pair.home, pair.away)]
    row: Row = {"rows_home": len(rows[0]), "rows_away": len(rows[1])}
    if not all(map(len, rows)):
        return row
    of_rows = None if units is None else (units[rows[0]], units[rows[1]])
    change = share_change(counted[rows[0]], counted[rows[1]], of_rows)
    row |= {
        "at_home": change.at_home, "elsewhere": change.elsewhere, "change": change.change,
    }  # fmt: skip
    if min(map(len, rows)) < FEWEST:
        return row
    low, high = change.interval
    return row | {"low": low, "high": high, "p": change.p}


def _decomposed(pair: Pair, home: Prediction, away: Prediction) -> Iterator[Row]:
    """Accuracy or squared error, by group where groups are large enough, and gaps."""
    together, sizes = pair.shared, pair.shared.effective_rows
    where: Row = {
        "auc": together.auc, "effective_home": sizes[0], "effective_away": sizes[1],
        "little_overlap": together.little, "left_out": ", ".join(pair.naming),
    }  # fmt: skip
    score = [_score(pair.samples, part) for part in (home, away)]
    metric: Row = {"metric": "accuracy" if pair.samples.classes else "mean_squared_error"}
    yield (
        where
        | metric
        | _parts(decompose(weighted_mean(score[0]), weighted_mean(score[1]), together))
    )
    for name, groups, categories in _groups(pair):
        named: Row = where | {"attribute": name}
        if min(_smallest(group, categories) for group in groups) >= FEWEST:
            yield named | metric | _parts(decompose_by_group(score, groups, together.take))
        if len(pair.samples.classes) == BINARY and categories == BINARY:
            at_home, elsewhere = (
                _gaps(pair.samples, part, group)
                for part, group in zip((home, away), groups, strict=True)
            )
            for gap in at_home:
                yield (
                    named
                    | {"metric": gap}
                    | _parts(decompose(at_home[gap], elsewhere[gap], together))
                )


def _groups(pair: Pair) -> Iterator[tuple[str, list[np.ndarray], int]]:
    """Names of categorical sensitive attributes, codes in both domains, numbers of groups.

    A missing value has the code -1.
    """
    for name in pair.samples.sensitive:
        values = pair.samples.attributes[name]
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes = values.cat.codes.to_numpy()
            yield name, [codes[pair.home], codes[pair.away]], len(values.cat.categories)


def _parts(parts: Decomposition) -> Row:
    return {
        "at_home": parts.at_home, "elsewhere": parts.elsewhere, "due_to_x": parts.due_to_x,
        "due_to_y_given_x": parts.due_to_y_given_x, "due_to_mix": parts.mix,
    }  # fmt: skip


def _regions(pair: Pair, home: Prediction, away: Prediction) -> Iterator[Row]:
    """Where the score changes most, and its difference between two groups."""
    x, features = np.asarray(pair.samples.x, np.float32), pair.samples.features
    classes = bool(pair.samples.classes)
    score = [_score(pair.samples, part) for part in (home, away)]
    shared, rows = pair.shared, (pair.home, pair.away)
    scored = [
        ScoredDomain(x[domain], values, weights)
        for domain, values, weights in zip(rows, score, (shared.home, shared.away), strict=True)
    ]
    metric = "accuracy" if classes else "mean_squared_error"
    yield from _found({"metric": metric}, regions(scored[:1], scored[1:], features))
    for name, groups, categories in _groups(pair):
        if categories != BINARY or min(_smallest(codes, BINARY) for codes in groups) < FEWEST:
            continue
        of_groups = [
            [
                replace(part.take(np.flatnonzero(codes == group)), sign=sign)
                for group, sign in enumerate((-1, 1))
            ]
            for part, codes in zip(scored, groups, strict=True)
        ]
        where: Row = {"attribute": name, "metric": f"{metric}_difference"}
        yield from _found(where, regions(of_groups[0], of_groups[1], features))


def _found(where: Row, leaves: pd.DataFrame) -> Iterator[Row]:
    """The first regions, numbered from 1."""
    for number, leaf in enumerate(leaves.head(REGIONS).to_dict("records"), 1):
        yield where | {"region": number} | {str(name): value for name, value in leaf.items()}


def _score(samples: Samples, prediction: Prediction) -> np.ndarray:
    """Whether each prediction is right, or its squared error, float64 ``[n]``."""
    y = samples.y[prediction.rows]
    if len(samples.classes) == BINARY:
        return np.where(y == 1, prediction.positive, 1 - prediction.positive)
    if samples.classes:
        return (prediction.outputs.argmax(1) == y).astype(np.float64)
    return np.square(prediction.outputs[:, 0].astype(np.float64) - y)


def _gaps(samples: Samples, prediction: Prediction, group: np.ndarray) -> dict[str, Weighted]:
    """Signed differences of rates between groups 0 and 1; rows of unknown group do not count."""
    y, positive = samples.y[prediction.rows], prediction.positive
    known, second = group >= 0, group == 1
    return {
        "selection_rate_difference": rate_difference(positive, second, known),
        "true_positive_rate_difference": rate_difference(positive, second, known & (y == 1)),
        "false_positive_rate_difference": rate_difference(positive, second, known & (y == 0)),
    }


def _smallest(codes: np.ndarray, groups: int) -> int:
    """Rows of the smallest group; rows of unknown group do not count."""
    return int(np.bincount(codes[codes >= 0], minlength=groups).min())
