"""Scores of predictions that somebody already has: every metric that applies, with its uncertainty.

What stands beside a value depends on what it is:

- a share of rows (accuracies, rates, the size of a group): Wilson's 95 % interval;
- a gap, a ratio or a worst group: the interval of ``audit_intervals`` of that name, from the table
  of counts by group, class and prediction, at a cost that does not grow with the rows;
- a mean error: Student's t, 95 %;
- a FairCOCCO score: no interval but a permutation p-value, and that p-value adjusted after Holm for
  all p-values of the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from robust_fairness.audit.intervals import Bound, bounds_of_classes, worst_mean
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.intervals import mean_interval, wilson_interval
from robust_fairness.metrics import evaluate, find_metric, metric_names
from robust_fairness.metrics.faircocco import subset
from robust_fairness.metrics.permutation import holm
from robust_fairness.samples import Groups, Samples, columns, groups_of
from robust_fairness.samples.columns import Bins, Kind

AUDIT = {
    "dataset": "str", "attribute": "str", "group": "str", "metric": "str", "value": "float64",
    "low": "float64", "high": "float64", "interval": "str", "n": "int64", "small": "bool",
    "note": "str",
}  # fmt: skip
SMALL = 30  # rows below which a group is flagged: a share has a standard error of up to 9 points
KERNEL_ROWS = 16_384  # rows that the kernel scores choose theirs from
TWO = 2
THRESHOLD = 0.5
P_VALUE, HOLM = "_p_value", "_holm"
MISSING, SHARE = "missing_attribute", "group_share"
SHARES = (
    "accuracy", "accuracy_by_group", "selection_rate_by_group", "true_positive_rate_by_group",
    "true_negative_rate_by_group", "head_accuracy", "tail_accuracy", SHARE,
)  # fmt: skip
OF_CLASSES = ("delta_eo", "delta_eopp", "equal_opportunity_difference", "delta_eo_one_vs_rest")
OFFERED = frozenset((
    "y", "prediction", "outputs", "classes", "attributes", "group", "groups", "attribute_columns",
    "given_columns",
))  # fmt: skip

PredictionKind = Literal["auto", "class", "probability", "score", "number"]


@dataclass(frozen=True)
class Scored:
    """Predictions that were checked, as metrics take them.

    Attributes:
        samples: target and attributes of the rows; without inputs.
        prediction: class index int64 ``[n]``, or float64 ``[n]``.
        outputs: logarithms of probabilities ``[n, classes]``, or numbers ``[n, 1]``.
        kind: what the predictions are.
    """

    samples: Samples
    prediction: np.ndarray
    outputs: np.ndarray
    kind: str


def audit(
    table: pd.DataFrame,
    target: str,
    prediction: str,
    attributes: Sequence[str],
    *,
    positive: str | None = None,
    continuous: bool = False,
    prediction_is: PredictionKind = "auto",
    threshold: float | None = None,
    types: Mapping[str, Kind] | None = None,
    bins: Mapping[str, Bins] | None = None,
    intersections: bool = False,
    small: int = SMALL,
    name: str = "table",
) -> pd.DataFrame:
    """Score predictions by every metric that needs no model; the same table gives the same rows.

    Args:
        table: a row each prediction.
        target: column of what is true.
        prediction: column of what was predicted.
        attributes: columns of sensitive attributes; rows without one count for no group of it.
        positive: the value of a binary target that is class 1; ``1`` or ``True`` unless given.
        continuous: the target is a number.
        prediction_is: ``class``: a value of the target; ``probability`` of the positive class, in
            [0, 1]; ``score``: any number, positive from ``threshold`` up; ``number``: an estimate
            of a continuous target. ``auto``: number if the target is continuous, class if all
            values are values of the target, else probability.
        threshold: from which on a probability (0.5 unless given) or a score is positive.
        types: ``number`` or ``category`` by attribute, where the rules of ``columns`` would decide
            otherwise or cannot.
        bins: how attributes that are numbers are cut into groups: rising cut points, or a number
            of groups.
        intersections: score the groups of all categorical attributes together as well.
        small: groups with fewer rows are flagged.
        name: name of the table, for rows and errors.

    Returns:
        A row each value, ``AUDIT``. ``value`` is missing where the metric is not defined, and
        ``note`` says why; ``small`` tells that it rests on a group of fewer than ``small`` rows.

    Raises:
        InputError: a column does not exist, has a single value or cells that do not fit, or a row
            lacks target or prediction.
    """
    scored = checked(
        table, target, prediction, attributes, positive=positive, continuous=continuous,
        prediction_is=prediction_is, threshold=threshold, types=types or {}, bins=bins or {},
        name=name,
    )  # fmt: skip
    return rows_of(scored, intersections, small, name)


def checked(
    table: pd.DataFrame,
    target: str,
    prediction: str,
    attributes: Sequence[str],
    *,
    positive: str | None = None,
    continuous: bool = False,
    prediction_is: PredictionKind = "auto",
    threshold: float | None = None,
    types: Mapping[str, Kind],
    bins: Mapping[str, Bins],
    name: str = "table",
) -> Scored:
    """The part of ``audit`` that looks at the table: everything that can be wrong is found here.

    Raises:
        InputError: see ``audit``.
    """
    _require_columns(table, target, prediction, attributes, types, bins, name)
    y_cells, p_cells = table[target], table[prediction]
    for what, column, cells in (("target", target, y_cells), ("prediction", prediction, p_cells)):
        lacking = cells.isna().to_numpy()
        if lacking.any():
            raise InputError(
                f"{name}, column {column}, row {columns.row_of(lacking)}: no {what}, and "
                f"{lacking.sum()} rows lack one in all; allowed: a value in every row"
            )
    frame = pd.DataFrame(
        {
            one: columns.attribute(
                table[one], f"{name}, column {one}", types.get(one), bins.get(one)
            )
            for one in attributes
        }
    ).reset_index(drop=True)
    y_place, p_place = f"{name}, column {target}", f"{name}, column {prediction}"
    classes: tuple[str, ...] = ()
    if continuous:
        if prediction_is not in ("auto", "number") or positive or threshold is not None:
            raise InputError("a continuous target takes a prediction that is a number, no more")
        values = columns.as_numbers(y_cells, y_place)
        columns.require_two_values(values, y_place)
        numbers = columns.as_numbers(p_cells, p_place).to_numpy()
        y, kind = values.to_numpy(), "number"
        predicted, outputs = numbers, numbers[:, None]
    else:
        y, classes, codes = _classes(y_cells, positive, y_place)
        kind = _kind(p_cells, prediction_is, codes, classes, p_place)
        predicted, outputs = _predicted(p_cells, kind, threshold, codes, classes, p_place)
    samples = Samples(
        x=np.empty((len(table), 0), np.float32),
        y=y,
        attributes=frame,
        id=np.arange(len(table)),
        splits=pd.DataFrame(index=range(len(table))),
        classes=classes,
        sensitive=tuple(attributes),
    )
    return Scored(samples, predicted, outputs, kind)


def _require_columns(
    table: pd.DataFrame,
    target: str,
    prediction: str,
    attributes: Sequence[str],
    types: Mapping[str, Kind],
    bins: Mapping[str, Bins],
    name: str,
) -> None:
    """Rows, and columns that exist, each of them for one thing."""
    if table.empty:
        raise InputError(f"{name}: has no rows, allowed: at least one")
    if not attributes:
        raise InputError("attributes: none given, allowed: at least one column")
    wanted = [target, prediction, *attributes]
    for one in wanted:
        if one not in table:
            raise InputError(f"{name}: {unknown_name('column', one, map(str, table.columns))}")
        if wanted.count(one) > 1:
            raise InputError(
                f"column {one} is given twice, allowed: one as target, prediction or attribute"
            )
    for what, given in (("types", types), ("bins", bins)):
        for one in given:
            if one not in attributes:
                raise InputError(f"{what}: {unknown_name('attribute', one, attributes)}")


def _classes(
    cells: pd.Series, positive: str | None, place: str
) -> tuple[np.ndarray, tuple[str, ...], dict[str, int]]:
    """Class of every row int64 ``[n]``, names of the classes, and class by value."""
    if columns.typed_as_number(cells) and cells.nunique() > columns.MOST_CODES and not positive:
        raise InputError(
            f"{place}: {cells.nunique()} different numbers, allowed: classes; or say that the "
            "target is continuous"
        )
    values = columns.as_categories(cells, place)
    columns.require_two_values(values, place)
    names = [str(one) for one in values.cat.categories]
    if positive is None and len(names) > TWO:
        return (
            values.cat.codes.to_numpy(np.int64),
            tuple(names),
            {one: code for code, one in enumerate(names)},
        )
    positive = positive or next((one for one in names if one in ("1", "True")), None)
    if positive is None:
        raise InputError(f"{place}: values {' and '.join(names)}, allowed: say which is positive")
    if positive not in names:
        raise InputError(f"{place}: {unknown_name('positive value', positive, names)}")
    others = [one for one in names if one != positive]
    codes = {one: int(one == positive) for one in names}
    classes = (others[0] if len(others) == 1 else f"not {positive}", positive)
    return values.map(codes).to_numpy(np.int64), classes, codes


def _kind(
    cells: pd.Series,
    asked: PredictionKind,
    codes: Mapping[str, int],
    classes: tuple[str, ...],
    place: str,
) -> PredictionKind:
    """What the predictions of classes are."""
    if asked == "number" or (asked in ("probability", "score") and len(classes) != TWO):
        raise InputError(
            f"{place}: predictions that are a {asked} of {len(classes)} classes, allowed: "
            f"{'class, probability, score' if len(classes) == TWO else 'class'}"
        )
    if asked != "auto":
        return asked
    if cells.nunique() <= len(codes):
        found = columns.as_categories(cells, place).cat.categories
        if set(found) <= set(codes):
            return "class"
    return "probability" if len(classes) == TWO else "class"


def _predicted(
    cells: pd.Series,
    kind: PredictionKind,
    threshold: float | None,
    codes: Mapping[str, int],
    classes: tuple[str, ...],
    place: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Class of every row int64 ``[n]``, and logarithms of probabilities ``[n, classes]``."""
    if kind == "class":
        if threshold is not None:
            raise InputError("threshold: allowed where predictions are probabilities or scores")
        return _predicted_classes(cells, codes, classes, place)
    values = columns.as_numbers(cells, place).to_numpy()
    if kind == "score":
        if threshold is None:
            raise InputError(f"{place}: a score needs a threshold from which on it is positive")
        # scaled to [0, 1]: FairCOCCO standardises its columns, which undoes it
        shares = (values - values.min()) / (np.ptp(values) or 1.0)
    else:
        threshold = THRESHOLD if threshold is None else threshold
        wrong = (values < 0) | (values > 1)
        if wrong.any():
            row = columns.row_of(wrong)
            raise InputError(
                f"{place}, row {row}: {values[row - 1]:g}, allowed: a class of the target, or a "
                "probability from 0 to 1; other numbers are scores, which need a threshold"
            )
        if not 0 <= threshold <= 1:
            raise InputError(f"threshold: {threshold:g}, allowed: 0 to 1")
        shares = values
    with np.errstate(divide="ignore"):  # the logarithm of 0 is what it should be
        outputs = np.log(np.stack([1 - shares, shares], axis=1))
    return (values >= threshold).astype(np.int64), outputs


def _predicted_classes(
    cells: pd.Series, codes: Mapping[str, int], classes: tuple[str, ...], place: str
) -> tuple[np.ndarray, np.ndarray]:
    """Classes that were predicted as such; each has probability 1."""
    named = columns.as_categories(cells, place)
    for one in named.cat.categories:
        if one not in codes:
            row = columns.row_of((named == one).to_numpy())
            raise InputError(f"{place}, row {row}: {unknown_name('class', one, codes)}")
    predicted = named.map(codes).to_numpy(np.int64)
    outputs = np.where(np.arange(len(classes)) == predicted[:, None], 0.0, -np.inf)
    return predicted, outputs


def metrics_of(continuous: bool) -> list[str]:
    """Names of the metrics that an audit has, those of groups and of dependence among them."""
    task = "regression" if continuous else "classification"
    found = []
    for name in metric_names():
        one = find_metric(name)
        if one.task in (task, "any") and OFFERED.issuperset(one.arguments):
            found.append(name)
    return found


def offered_names(continuous: bool) -> list[str]:
    """All that may stand in the column ``metric`` of an audit."""
    names = metrics_of(continuous)
    return [*names, *(f"{name}{HOLM}" for name in names if name.endswith(P_VALUE)), MISSING, SHARE]


def rows_of(scored: Scored, intersections: bool, small: int, name: str) -> pd.DataFrame:
    """All rows of checked predictions, see ``audit``."""
    samples = scored.samples
    categorical = [str(one) for one in samples.attributes.select_dtypes("category")]
    groupings = [tuple(categorical)] if intersections and len(categorical) > 1 else []
    names = metrics_of(not samples.classes)
    kernel = [one for one in names if "attribute_columns" in find_metric(one).arguments]
    plain = [one for one in names if one not in kernel]
    groups = {
        " & ".join(one): groups_of(samples.attributes, one)
        for one in [*((each,) for each in categorical), *groupings]
    }
    rows = evaluate(
        plain, samples, scored.outputs, {"prediction": scored.prediction}, groupings=groupings
    )
    rows += _missing_rows(samples) + _share_rows(groups)
    bounds = dict(_bounds(scored, groups))
    for row in rows:
        row.update(_interval(row, scored, bounds))
        _flag(row, scored, groups, small)
    rows += _dependence(kernel, scored, small)
    empty = {"low": np.nan, "high": np.nan, "interval": "", "small": False}
    return tables.table(AUDIT, [{**empty, **row, "dataset": name} for row in rows])


def _missing_rows(samples: Samples) -> list[dict[str, Any]]:
    """Share of the rows that lack an attribute, and their number."""
    lacking = samples.attributes.isna().sum()
    return [
        _row(str(name), "", MISSING, count / len(samples), len(samples), _counted(count))
        for name, count in lacking.items()
    ]


def _counted(count: int) -> str:
    return f"{count} rows have no value and count for no group" if count else ""


def _share_rows(groups: Mapping[str, Groups]) -> list[dict[str, Any]]:
    """Size of every group as a share of the rows whose group is known; n are its rows."""
    return [
        _row(attribute, group, SHARE, count / found.counts.sum(), int(count), "")
        for attribute, found in groups.items()
        for group, count in zip(found.names, found.counts, strict=True)
    ]


def _row(
    attribute: str, group: str, metric: str, value: float, n: int, note: str
) -> dict[str, Any]:
    return {
        "attribute": attribute, "group": group, "metric": metric, "value": value, "n": n,
        "note": note,
    }  # fmt: skip


def _dependence(names: Sequence[str], scored: Scored, small: int) -> list[dict[str, Any]]:
    """FairCOCCO scores and p-values, and those adjusted for their number."""
    some = subset(len(scored.samples), KERNEL_ROWS)
    rows = evaluate(names, scored.samples.take(some), scored.outputs[some])
    for row in rows:
        row["small"] = row["n"] < small
    tests = [row for row in rows if row["metric"].endswith(P_VALUE)]
    adjusted = iter(holm([row["value"] for row in tests if row["value"] is not None]))
    for row in tests:
        value = None if row["value"] is None else float(next(adjusted))
        rows.append({**row, "metric": f"{row['metric']}{HOLM}", "value": value})
    return rows


def _flag(row: dict[str, Any], scored: Scored, groups: Mapping[str, Groups], small: int) -> None:
    """Tell whether a value rests on a small group, and on which."""
    if row["attribute"] not in groups or row["metric"] == MISSING:
        return
    if row["group"]:
        row["small"] = row["n"] < small
        return
    found = groups[row["attribute"]]
    counts, names = found.counts, list(found.names)
    if row["metric"] in OF_CLASSES:
        classes = scored.samples.classes
        counts = _table_of(scored, found).sum(2).ravel()
        names = [f"{group}, class {label}" for group in found.names for label in classes]
    least = int(counts.argmin())
    row["small"] = bool(counts[least] < small)
    if row["small"]:
        told = f"small group: {names[least]} has {counts[least]} rows"
        row["note"] = "; ".join(filter(None, (row["note"], told)))


def _interval(
    row: Mapping[str, Any], scored: Scored, bounds: Mapping[tuple[str, str], Bound]
) -> dict[str, Any]:
    """Interval of a row and its kind; none where the value is missing or has none."""
    if row["value"] is None:
        return {}
    if row["metric"] in SHARES:
        # of the size of a group, n are its own rows
        n = row["n"] / row["value"] if row["metric"] == SHARE else row["n"]
        low, high = wilson_interval(np.array([row["value"]]), np.array([n]))
        return {"low": low[0], "high": high[0], "interval": "Wilson"}
    key = (row["attribute"], row["metric"] + (f"[{row['group']}]" if row["group"] else ""))
    found = bounds.get(key)
    return found.fields() if found else {}


def _bounds(
    scored: Scored, groups: Mapping[str, Groups]
) -> Iterator[tuple[tuple[str, str], Bound]]:
    """Intervals that are no shares', by attribute and metric, with the group in brackets."""
    if not scored.samples.classes:
        yield from _bounds_of_errors(scored, groups)
        return
    for number, (attribute, found) in enumerate(groups.items()):
        generator = np.random.default_rng([0, number])
        for metric, bound in bounds_of_classes(_table_of(scored, found), generator).items():
            yield (attribute, metric), bound


def _table_of(scored: Scored, groups: Groups) -> np.ndarray:
    """Rows by group, class and predicted class, int64 ``[groups, classes, classes]``."""
    shape = (len(groups.names), len(scored.samples.classes), len(scored.samples.classes))
    known = groups.index >= 0
    cells = (groups.index[known], scored.samples.y[known], scored.prediction[known])
    cell = np.ravel_multi_index(cells, shape)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def _bounds_of_errors(
    scored: Scored, groups: Mapping[str, Groups]
) -> Iterator[tuple[tuple[str, str], Bound]]:
    """Intervals of mean errors of a continuous target."""
    errors = scored.prediction - scored.samples.y
    for metric, values in (("mean_squared_error", errors**2), ("mean_absolute_error", abs(errors))):
        yield ("", metric), _mean_bound(values)
    for attribute, found in groups.items():
        squares = []
        for code, group in enumerate(found.names):
            squares.append(errors[found.index == code] ** 2)
            yield (attribute, f"mean_squared_error_by_group[{group}]"), _mean_bound(squares[-1])
        yield (attribute, "worst_group_mean_squared_error"), worst_mean(squares)


def _mean_bound(values: np.ndarray) -> Bound:
    found = mean_interval(values)
    low = found.low if np.isnan(found.low) else max(found.low, 0.0)
    return Bound("Student's t", low, found.high)
