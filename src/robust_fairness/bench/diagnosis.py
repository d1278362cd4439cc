"""Diagnosis of the predictions of a run, in every domain that was not trained on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from robust_fairness.auditing.why.decomposition import Coded, ScoredDomains, changes, coefficients
from robust_fairness.auditing.why.domains import (
    FEWEST,
    Columns,
    ComparedRows,
    estimated_shares,
    share_change,
    some,
    two_sample_test,
)
from robust_fairness.auditing.why.regions import ScoredDomain, regions
from robust_fairness.bench.samples.domains import rows_by_domain
from robust_fairness.bench.training.decisions import MISSING
from robust_fairness.bench.training.records import Prediction
from robust_fairness.core import tables
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.evaluation import probability_of_second

BINARY = 2
REGIONS = 3  # shown of every tree

Row = dict[str, object]


def diagnose(
    dataset: str, samples: Samples, predictions: Mapping[str, Sequence[Prediction]]
) -> dict[str, pd.DataFrame]:
    """Why scores change between domains: tables of ``core.tables`` by name.

    Of every cell the replica of the first seed is diagnosed, in each domain out of distribution
    with ``FEWEST`` rows. Columns that name the domain are found first and left out of X.

    Shares are those of all rows. Everything else is of at most ``MOST`` rows of a domain, drawn at
    random: the standard error of a rate of theirs is at most .5 / sqrt(20,000) = .004.

    Args:
        dataset: its name.
        samples: its rows; features are columns of numbers.
        predictions: of the unshifted rows by method, in and out of distribution.
    """
    compared = cache(
        lambda home, away: _domains(samples, *(np.frombuffer(rows, int) for rows in (home, away)))
    )
    described: set[ComparedRows] = set()
    rows: dict[str, list[Row]] = {
        "diagnosis": [], "domain_columns": [], "regions": [], "shares": [],
    }  # fmt: skip
    for method, replicas in predictions.items():
        for every_home, every_away, domain in _pairs(samples, replicas):
            home, away = (part.take(some(len(part.rows))) for part in (every_home, every_away))
            domains = compared(*(part.rows.astype(int).tobytes() for part in (home, away)))
            where: Row = {"dataset": dataset, "domain": domain}
            if domains not in described:  # what does not depend on the method
                described.add(domains)
                columns, naming = domains.columns, domains.naming
                auc, p = two_sample_test(
                    columns.values, domains.away, domains.unit, categorical=columns.categorical
                )
                at_home, elsewhere = domains.overlap.effective_rows
                rows["domain_columns"].append(where | {
                    "column": "", "auc": auc, "p": p, "names_domain": bool(naming),
                    "effective_home": at_home, "effective_away": elsewhere,
                })  # fmt: skip
                rows["domain_columns"] += [
                    where | {"column": name, "auc": value, "names_domain": name in naming}
                    for name, value in domains.column_aucs.items()
                ]
                rows["shares"] += [
                    where | {"method": method} | row
                    for row in _shares(samples, every_home, every_away)
                ]
            where |= {"method": method, "trial": home.trial, "seed": home.seed}
            scored = _scored(samples, domains, home, away)
            groups = _groups(samples, np.concatenate([home.rows, away.rows]))
            rows["diagnosis"] += [where | row for row in _decomposed(scored, groups)]
            rows["regions"] += [where | row for row in _regions(samples, scored, home, away)]
    return {name: tables.table(tables.TABLES[name], listed) for name, listed in rows.items()}


def _domains(samples: Samples, home: np.ndarray, away: np.ndarray) -> ComparedRows:
    """Rows in distribution and in another domain; sensitive categories are columns, too.

    A missing value is a category of its own here.
    """
    attributes = samples.attributes[list(samples.sensitive)].select_dtypes("category")
    codes = {
        str(name): values.cat.codes.where(values.notna(), len(values.cat.categories)).to_numpy()
        for name, values in attributes.items()
    }
    rows = np.concatenate([home, away])
    return ComparedRows(
        away=np.repeat([False, True], [len(home), len(away)]),
        columns=Columns.of(samples).joined(codes).take(rows),
        unit=np.arange(len(rows)) if samples.units is None else samples.units[rows],
        weight=np.ones(len(rows)),
    )


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


def _shares(samples: Samples, home: Prediction, away: Prediction) -> Iterator[Row]:
    """Shares of the groups, of missing ones too, and of the classes in all rows and each group."""
    every = np.ones(len(samples), dtype=bool)
    yield from _class_shares(samples, home, away, every)
    for name in samples.sensitive:
        values = samples.attributes[name]
        if not isinstance(values.dtype, pd.CategoricalDtype):
            continue
        rows_of = {str(group): (values == group).to_numpy() for group in values.cat.categories}
        if values.isna().any():
            rows_of[MISSING] = values.isna().to_numpy()
        for group, of_group in rows_of.items():
            where: Row = {"attribute": name, "group": group}
            yield where | _share(samples, home, away, of_group, every)
            yield from (where | row for row in _class_shares(samples, home, away, of_group))


def _class_shares(
    samples: Samples, home: Prediction, away: Prediction, among: np.ndarray
) -> Iterator[Row]:
    """Shares of the classes among some rows; of two classes that of the second."""
    classes = len(samples.classes)
    selected = [among[part.rows] for part in (home, away)]
    estimated = np.full(classes, np.nan)
    if classes and all(rows.any() for rows in selected):
        predicted = [
            part.outputs.argmax(1)[kept] for part, kept in zip((home, away), selected, strict=True)
        ]
        label = samples.y[home.rows[selected[0]]]
        estimated = estimated_shares(predicted[0], label, predicted[1], classes)
    for number, name in list(enumerate(samples.classes))[classes == BINARY :]:
        of_class = _share(samples, home, away, samples.y == number, among)
        yield {"label": name, "estimated": estimated[number]} | of_class


def _share(
    samples: Samples, home: Prediction, away: Prediction, counted: np.ndarray, among: np.ndarray
) -> Row:
    """The share of some rows among others; tested where both domains have ``FEWEST`` of them."""
    units = samples.units
    rows = [part.rows[among[part.rows]] for part in (home, away)]
    row: Row = {"rows_home": len(rows[0]), "rows_away": len(rows[1])}
    if not all(map(len, rows)):
        return row
    of_rows = None if units is None else (units[rows[0]], units[rows[1]])
    change = share_change(counted[rows[0]], counted[rows[1]], of_rows)
    row |= {
        "at_home": change.at_home, "away": change.away, "change": change.change,
    }  # fmt: skip
    if min(map(len, rows)) < FEWEST:
        return row
    return row | {"low": change.low, "high": change.high, "p": change.p}


def _scored(
    samples: Samples, domains: ComparedRows, home: Prediction, away: Prediction
) -> ScoredDomains:
    """Both predictions: of two classes with decisions, else with the score of every row."""
    rows = np.concatenate([home.rows, away.rows])
    outputs = np.concatenate([home.outputs, away.outputs])
    y, classes = samples.y[rows].astype(np.float64), len(samples.classes)
    if classes == BINARY:
        positive = np.concatenate([home.positive, away.positive])
        return ScoredDomains(domains, "accuracy", y, probability_of_second(outputs), positive)
    if classes:
        predicted = outputs.argmax(1)
        return ScoredDomains(domains, "accuracy", (predicted == y).astype(np.float64), predicted)
    predicted = outputs[:, 0].astype(np.float64)
    return ScoredDomains(domains, "mean_squared_error", np.square(predicted - y), predicted)


def _groups(samples: Samples, rows: np.ndarray) -> dict[str, Coded]:
    """Codes of some rows, -1 where a value is missing, and names by sensitive attribute."""
    values = samples.attributes[list(samples.sensitive)].select_dtypes("category").iloc[rows]
    return {
        str(name): (column.cat.codes.to_numpy(), tuple(map(str, column.cat.categories)))
        for name, column in values.items()
    }


def _decomposed(scored: ScoredDomains, groups: Mapping[str, Coded]) -> Iterator[Row]:
    """A row per change, with its parts and their intervals."""
    overlap = scored.expected.overlap
    where: Row = {
        "auc": overlap.auc, "little_overlap": overlap.little,
        "effective_home": overlap.effective_rows[0], "effective_away": overlap.effective_rows[1],
        "left_out": ", ".join(scored.domains.naming),
    }  # fmt: skip
    for change in changes(scored, groups):
        names = groups[change.attribute][1] if change.groups else ()
        row: Row = {
            "attribute": change.attribute, "metric": change.metric,
            "of": " less ".join(names[code] for code in change.groups),
            "at_home": change.at_home, "away": change.away,
        }  # fmt: skip
        parts = {
            "change": change.whole, "due_to_x": change.x, "due_to_y_given_x": change.y_given_x,
            "due_to_prediction": change.prediction, "due_to_mix": change.mix,
        }  # fmt: skip
        for name, part in parts.items():
            if part is not None:
                row |= {name: part.change, f"{name}_low": part.low, f"{name}_high": part.high}
        yield where | row


def _regions(
    samples: Samples, scored: ScoredDomains, home: Prediction, away: Prediction
) -> Iterator[Row]:
    """Where the score changes most, and its difference between two groups."""
    x, features = np.asarray(samples.x, np.float32), samples.features
    rows, shared = (home.rows, away.rows), scored.expected.overlap
    score = scored.y
    if scored.positive is not None:
        score = scored.values(coefficients(np.eye(BINARY)))
    sides = [
        ScoredDomain(x[part], values, weights)
        for part, values, weights in zip(
            rows, np.split(score, [len(rows[0])]), (shared.home, shared.away), strict=True
        )
    ]
    wanted: list[tuple[Row, list[ScoredDomain], list[ScoredDomain]]] = [
        ({"metric": scored.metric}, sides[:1], sides[1:])
    ]
    for name, (codes, names) in _groups(samples, np.concatenate(rows)).items():
        smallest = min(scored.domains.smallest(codes == code) for code in range(len(names)))
        if len(names) != BINARY or smallest < FEWEST:
            continue
        of_groups = [
            [
                replace(part.take(np.flatnonzero(of_part == group)), sign=sign)
                for group, sign in enumerate((-1, 1))
            ]
            for part, of_part in zip(sides, np.split(codes, [len(rows[0])]), strict=True)
        ]
        where: Row = {"attribute": name, "metric": f"{scored.metric}_difference"}
        wanted.append((where, of_groups[0], of_groups[1]))
    for where, at_home, elsewhere in wanted:
        leaves = regions(at_home, elsewhere, features).head(REGIONS).to_dict("records")
        for number, leaf in enumerate(leaves, 1):
            yield where | {"region": number} | {str(name): value for name, value in leaf.items()}
