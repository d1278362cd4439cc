"""The door of tables of predictions: every mistake in them is found here, and nowhere behind it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.auditing.checked import Checked
from robust_fairness.auditing.naming import as_category, bins_of, option
from robust_fairness.auditing.outcomes import ROUNDED, Outcome, outcome_of
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.read.cleaning import (
    MOST_CODES,
    date_names,
    date_unit,
    dates_of,
    is_placeholder,
)
from robust_fairness.auditing.read.columns import (
    alike,
    as_groups,
    as_numbers,
    has_at_most,
    quantile_edges,
    require_two_values,
    row_of,
    typed,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted, exact
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.counts import TWO

MOST_CLASSES = 10  # of a table with some labels
# Of the search for copied rows: rows of similar scores, rows that are read, and of chance.
BLOCK, MOST_ROWS, LEVEL = 100, 20_000, 1e-3
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, which mixes bits


def check(
    table: pd.DataFrame, options: Options, name: str = "table", like: Predictions | None = None
) -> Predictions:
    """The predictions of a table with a row per prediction.

    Null, empty and blank cells are missing, numbers may have decimal commas and percent signs, and
    whole numbers have one spelling. Rows of weight 0 are left out. ``Predictions.notes`` says what
    was taken for what. Without labels y is the predicted class: no measure that needs labels can
    be made of it.

    Args:
        table: with the columns of the options.
        options: its columns.
        name: of the table, for messages.
        like: of a table without labels, others of the same classes and kind.

    Raises:
        InputError: a column does not exist, is constant or has cells that do not fit, or a row
            lacks target or prediction.
    """
    checked = Checked(table, options, name)
    dropped = checked.leave_out_incomplete()
    outcome = outcome_of(checked, like)
    weight, further = None, dict[str, Any]()
    if options.sample_weight is not None or options.replicate_weights:
        weight, further["replicates"] = _weights(checked)
    rows, sensitive = pd.RangeIndex(len(outcome.y)), options.sensitive_features
    attributes = pd.DataFrame({column: _attribute(checked, column) for column in sensitive}, rows)
    control = {column: _stratum(checked, column) for column in options.control_features}
    features = {
        column: typed(checked.table[column], checked.place(column), options.types.get(column))
        for column in options.features
    }
    if options.labels == "some":
        further["known"], further["label_probability"] = _labelled(checked, len(outcome.classes))
    partly = weight is not None and not weight.all()
    used = _rows_of_weight(checked, weight, further["replicates"]) if partly else None
    if options.membership:
        further["membership"] = _membership(checked)
    if options.unit is not None:
        further["units"] = _units(checked, options.unit)
    samples = Samples(
        x=np.empty((len(rows), 0), np.float32),
        y=outcome.y,
        attributes=attributes,
        id=np.broadcast_to(np.int64(0), len(rows)),
        splits=pd.DataFrame(index=rows),
        classes=outcome.classes,
        sensitive=tuple(map(str, sensitive)),
        sample_weight=weight,
    )
    predictions = Predictions(
        samples, outcome.prediction, outcome.kind, outcome.score, outcome.threshold,
        dropped=dropped,
        labelled=options.y_true is not None and further.get("known") is None,
        features=pd.DataFrame(features),
        control=pd.DataFrame(control),
        intersections=options.intersections,
        notes=(*checked.notes, *_hints(checked, attributes, outcome)),
        **further,
    )  # fmt: skip
    return predictions if used is None else predictions.take(used)


def with_bins_of(options: Options, table: pd.DataFrame, name: str) -> Options:
    """The options with bins of a table's quantiles and dates, so that other tables have the same.

    Args:
        options: the options.
        table: the earlier table.
        name: of the table, for messages.
    """
    checked, bins = Checked(table, options, name), dict(options.bins)
    for column in (*options.sensitive_features, *options.control_features):
        chosen, place = bins.get(column), checked.place(column)
        if isinstance(chosen, int):
            bins[column] = quantile_edges(as_numbers(checked.table[column], place), place, chosen)
        elif (dates := _dates(checked, column)) is not None and chosen is None:
            bins[column] = date_unit(dates)
    return replace(options, bins=bins)


def _weights(checked: Checked) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The weights, of which none is negative and not all are 0, and the replicate weights."""
    options, columns = checked.options, checked.options.replicate_weights
    if columns and options.continuous:
        raise InputError("replicate weights: only for classes")
    if options.sample_weight is None:
        if columns:
            raise InputError(
                f"replicate weights: need the weights themselves ({option('sample_weight')})"
            )
        return None, None
    weight = checked.numbers(options.sample_weight)
    wrong = ~(weight >= 0)
    if wrong.any() or not weight.any():
        row = row_of(wrong) if wrong.any() else 1
        raise InputError(
            f"{checked.place(options.sample_weight)}, row {row}: {exact(weight[row - 1])}, "
            "allowed: weights above 0, or 0"
        )
    if not columns:
        return weight, None
    replicates = np.stack([checked.numbers(column) for column in columns], 1)
    missing = np.argwhere(~np.isfinite(replicates))
    if len(missing):
        row, column = missing[0]
        raise InputError(
            f"{checked.place(columns[column])}, row {row + 1}: no replicate weight, allowed: a "
            "number; leave out the columns in which some are missing, or these rows"
        )
    return weight, replicates


def _rows_of_weight(checked: Checked, weight: Any, replicates: np.ndarray | None) -> np.ndarray:
    """Numbers of the rows that have weight, where some have none."""
    zero = weight == 0
    if replicates is not None:
        zero &= (replicates == 0).all(1)
    place = checked.place(checked.options.sample_weight)
    checked.notes.append(f"{place}: {counted({'rows': zero.sum()})} of weight 0 left out")
    return np.flatnonzero(~zero)


def _labelled(checked: Checked, classes: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which rows have a label, and their probabilities ``[n]``; None where every row has one.

    ``classes`` is the number of classes.
    """
    options = checked.options
    known = checked.table[options.y_true].notna().to_numpy()
    if known.all():
        return None, None
    if classes > MOST_CLASSES:
        raise InputError(f"labels some: {classes} classes, allowed: at most {MOST_CLASSES}")
    if options.label_probability is None:
        return known, None
    probability = checked.numbers(options.label_probability)
    wrong = known & ~((probability > 0) & (probability <= 1))
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{checked.place(options.label_probability)}, row {row}: "
            f"{exact(probability[row - 1])}, allowed: probabilities above 0, at most 1, of "
            "every row with a label"
        )
    return known, probability


def _units(checked: Checked, unit: str) -> np.ndarray:
    """Numbers of the units ``[n]`` in a column, of which every row has one."""
    options, place = checked.options, checked.place(unit)
    codes, units = pd.factorize(checked.table[unit])
    if (codes < 0).any():
        raise InputError(f"{place}, row {row_of(codes < 0)}: no unit; every row needs one")
    if len(units) < TWO:
        raise InputError(f"{place}: {len(units)} unit, allowed: two or more")
    if options.continuous or options.replicate_weights:
        raise InputError("unit: only for classes, and without replicate weights")
    return codes


def _membership(checked: Checked) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Probabilities of the groups of attributes; their columns are named after the groups."""
    known = {}
    for attribute, columns in checked.options.membership.items():
        share = np.stack([checked.numbers(column) for column in columns], 1)
        wrong = np.isfinite(share).any(1) & ~(
            (share >= 0).all(1) & (abs(share.sum(1) - 1) < ROUNDED)
        )
        if len(columns) < TWO or wrong.any():
            row = row_of(wrong) if wrong.any() else 1
            raise InputError(
                f"{checked.name}, columns {', '.join(columns)}, row {row}: allowed: a probability "
                "per group from 0 to 1, two columns or more, whose sum is 1, or all missing"
            )
        known[attribute] = (tuple(column.removeprefix("p_") for column in columns), share)
    return known


def _attribute(checked: Checked, column: str) -> pd.Series:
    """An attribute: categories, or numbers, which have no groups."""
    options, place = checked.options, checked.place(column)
    bins, dates = options.bins.get(column), _dates(checked, column)
    if isinstance(bins, str) and dates is None:
        dates = dates_of(checked.table[column])
        if dates is None:
            raise InputError(f"{place}: bins {bins!r} need a column of dates")
    if dates is not None:
        if not isinstance(bins, str | None):
            raise InputError(f"{place}: dates, allowed bins: decade, year, quarter, month, day")
        unit = bins or date_unit(dates)
        if bins is None:
            checked.notes.append(
                f"{place}: dates, divided into groups by {unit} "
                f"({bins_of(column, unit)}; allowed: decade, year, quarter, month, day)"
            )
        return require_two_values(date_names(dates, unit), place)
    edges = None if isinstance(bins, str) else bins
    values = as_groups(checked.table[column], place, options.types.get(column), edges)
    if values.dtype != "category" and column not in options.types:
        checked.notes.append(
            f"{column} is taken for a number, with {values.nunique()} values, and has no "
            f"groups; allowed: {as_category(column)}, "
            f"{bins_of(column, '30,60')} (edges) or {bins_of(column, '4')} (quantiles)"
        )
    return values


def _dates(checked: Checked, column: str) -> pd.Series | None:
    """The dates of a column of them with more values than are groups as they are."""
    cells, declared = checked.table[column], column in checked.options.types
    if declared or (is_text := cells.dtype == "category") and has_at_most(cells, MOST_CODES):
        return None
    return dates_of(cells) if is_text or cells.dtype.kind == "M" else None


def _stratum(checked: Checked, column: str) -> pd.Series:
    """A control feature as categories."""
    values = _attribute(checked, column)
    if values.dtype != "category":
        raise InputError(
            f"{checked.place(column)}: a continuous control feature, allowed: categories, or bins "
            f"of it ({option('bins')})"
        )
    return values


def _hints(checked: Checked, attributes: pd.DataFrame, outcome: Outcome) -> Iterator[str]:
    """Lines on texts that may mean a missing value, groups of several spellings, and copies."""
    for column, values in attributes.select_dtypes("category").items():
        counts = values.value_counts()
        for name in filter(is_placeholder, counts.index[counts > 0]):
            yield (
                f"{column}: {name!r} is a group of {counted({'rows': counts[name]})}; if it "
                f"means a missing value: {option('missing', repr(name))}"
            )
        for name in counts.index[counts > 0]:
            if len(lines := str(name).splitlines()) > 1:
                yield (
                    f"{column}: a group of {counted({'rows': counts[name]})} has "
                    f"{len(lines)} lines, the first {lines[0]!r}; in a CSV file a quotation "
                    "mark may lack its end"
                )
        for names in alike(values):
            rows = ", ".join(f"{ascii(name)} ({counted({'rows': counts[name]})})" for name in names)
            yield f"{column}: {rows} are groups of their own; if they are one, write one name"
    for name in filter(is_placeholder, outcome.classes):
        yield (
            f"target: {name!r} is a class; if it means a missing value: "
            f"{option('missing', repr(name))}"
        )
    options = checked.options
    judged = options.y_true is not None and options.labels == "all" and options.unit is None
    if judged and outcome.score.ndim == 1 and copied(outcome.score, outcome.y):
        yield (
            f"{options.y_pred}: rows with the same score have the same target far more often than "
            "rows with similar scores; if rows were copied, leave out the copies, and if they "
            f"belong together, name what they share: {option('unit', repr('COLUMN'))}"
        )


def copied(score: np.ndarray, y: np.ndarray) -> bool:
    """Whether rows of equal scores have equal labels much more often than rows of similar scores.

    Scores of trees or of few features are equal by nature: the labels of these rows then vary as
    those of rows with similar scores do. The labels of copies do not. The variance of the labels
    within equal scores is compared with that among the ``BLOCK`` rows around them. It has to be at
    most half of it, which is the case if at least half of these rows are copies, and the number
    of different labels has to be too small for chance (Poisson). Of many scores a random part is
    read, with all rows that have them.

    Args:
        score: scores of the positive class ``[n]``.
        y: classes 0 and 1 ``[n]``.

    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> y = rng.random(1000) < score
    >>> copied(score, y), copied(np.tile(score, 2), np.tile(y, 2))
    (False, True)
    """
    if len(score) > MOST_ROWS:
        kept = score.view(np.uint64) * FACTOR < np.uint64(2**64 * MOST_ROWS // len(score))
        score, y = score[kept], y[kept]
    order = np.argsort(score)
    score, y = score[order], y[order]
    first = np.flatnonzero(np.diff(score, prepend=-np.inf))
    n = np.diff(first, append=len(score))
    positive = np.add.reduceat(y, first, dtype=np.float64) if len(first) else np.zeros(0)
    block = first // BLOCK
    of_block, positive_of_block = np.bincount(block, n)[block], np.bincount(block, positive)[block]
    tied = (n > 1) & (of_block > n)
    # variances of the classes of equal scores, and of similar ones, times n
    within, among = (
        hits * (rows - hits) / (rows - 1) * n[tied] / rows
        for hits, rows in ((positive[tied], n[tied]), (positive_of_block[tied], of_block[tied]))
    )
    expected = among.sum()
    return bool(within.sum() <= expected / 2 and special.pdtr(within.sum(), expected) < LEVEL)
