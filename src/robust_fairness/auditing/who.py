"""Who is decided about differently: the groups of an audit by the rates of its gap, and a title.

A difference of two groups is sure if its lower bound is above 0, where the bounds of all pairs of
groups, of all rates, attributes and intersections hold together at 95 % (Bonferroni). Only sure
differences name a group. The surest one leads; an intersection only where no attribute alone is
nearly as sure, since that is the simpler answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from robust_fairness.auditing.gates import Judgement
from robust_fairness.auditing.predictions import Options, Predictions, attribute_name
from robust_fairness.core.numbers import exact, written
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import TWO, Source
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.groups import groups_of
from robust_fairness.numbers.intervals import MOST_GROUPS, Compared, mean_intervals
from robust_fairness.numbers.quantities import Quantity, RowValues
from robust_fairness.numbers.rates import (
    LinearGap,
    Rates,
    contrast,
    interval,
    linear_gap,
    rates_of,
)

GAPS = {
    "equalized_odds_difference": "equalized odds difference",
    "equal_opportunity_difference": "equal opportunity difference",
    "demographic_parity_difference": "demographic parity difference",
    "mean_error_difference": "difference of mean errors",
    "mean_absolute_error_difference": "difference of mean absolute errors",
    "mean_prediction_difference": "difference of mean predictions",
}
# Of more than two classes.
GAPS_OF_CLASSES = {
    "delta_eo_one_vs_rest": "equalized odds gap of a group and the rest",
    "delta_dp_one_vs_rest": "demographic parity gap of a group and the rest",
}
SUGGESTED = 0.1  # limit of the gate that an audit without one is answered by
MOST_OTHERS = 4  # groups that are "others" together, and names that are listed
MOST_ALSO = 2
NEARLY = 0.75  # share of the largest bound from which on an attribute leads, not an intersection
WHOLE = 10  # a bound from which on it has no decimals
CLOSE = 0.02  # values that are this near have a decimal
# Rates of decisions, and the class of their rows in the words of the user.
DECISIONS = {
    "selection_rate": "",
    "true_positive_rate": "positive",
    "false_positive_rate": "negative",
}


def gap_names(rows: pd.DataFrame) -> dict[str, str]:
    """Names of the gaps that an audit begins with, by metric: of two classes, numbers or more."""
    known = rows.loc[rows["applies"], "metric"]
    return GAPS if known.isin(list(GAPS)).any() else GAPS_OF_CLASSES


@dataclass(frozen=True)
class Panel:
    """A rate of the groups of an attribute or an intersection of two.

    Attributes:
        attribute: its name.
        crossed: whether it is an intersection that no option asked for.
        quantity: the rate.
        label: the class that is decided for, where there are more than two.
        name: the rate in words.
        groups: by name: value, low, high, n and small as in the audit; then, the value of an
            earlier period; least and most, bounds of the value that hold together; merit, the
            value, the larger the better; state, whether the difference from the best group is
            surely ``good``, ``bad``, or ``unsure``.
        least: by how much the group of a row is surely above that of a column ``[groups,
            groups]``; -inf where nothing is known.
        bound: the largest difference that is sure; not above 0 if none is.
        pair: the places of both groups with this difference, the worse one first.
        best: the place of the best group, of those that are not small where there are any.
        worst: the place of the group that is furthest from the best one.
        gap: the largest difference with the bounds of its interval.
        limit: what the difference should not exceed; None without one.
        within: what is within the limit from the best group on; None without a limit.
    """

    attribute: str
    crossed: bool
    quantity: Quantity
    label: str
    name: str
    groups: pd.DataFrame
    least: np.ndarray
    bound: float
    pair: tuple[int, int]
    best: int
    worst: int
    gap: tuple[float, float, float]
    limit: float | None
    within: tuple[float, float] | None

    @property
    def lower(self) -> bool:
        """Whether the worse group of the pair has the lower value."""
        worse, other = self.groups["value"].iloc[[*self.pair]]
        return bool(worse < other)

    @property
    def is_share(self) -> bool:
        """Whether values are shares of rows."""
        return self.quantity.task != "regression"

    def shown(self, most: int) -> list[int]:
        """Places of at most so many groups, the worst first: the worst ones and the best."""
        merit = self.groups["merit"].fillna(-np.inf)
        order = [int(place) for place in np.argsort(merit, kind="stable")]
        known = [place for place in order if np.isfinite(self.groups["value"].iloc[place])]
        named = {*self.pair, self.best} if self.bound > 0 else {self.best}
        kept = {*known[: max(most - len(named), 1)], *named} if len(order) > most else {*order}
        return [place for place in order if place in kept]

    def said(self, value: float, others: pd.Series) -> str:
        """A value against the range of others: per cent, or numbers; unequal ones differ."""
        ends = value, others.min(), others.max()
        digits = int(float(np.ptp(ends)) < CLOSE)
        mine, *texts = (
            f"{100 * end:.{digits}f}" if self.is_share else written(end, TWO) for end in ends
        )
        unit = " %" if self.is_share else ""
        return f"{mine}{unit} against {' to '.join(dict.fromkeys(texts))}{unit}"

    def distance(self, value: float) -> str:
        """A difference that is no larger than the value, in points or a number."""
        return f"{floored(100 * value)} points" if self.is_share else floored(value)


class Findings(Protocol):
    """What a figure needs of ``findings.AuditFindings``."""

    @property
    def rows(self) -> pd.DataFrame: ...
    @property
    def predictions(self) -> Predictions: ...
    @property
    def options(self) -> Options: ...
    @property
    def judgements(self) -> Sequence[Judgement]: ...
    @property
    def changed(self) -> pd.DataFrame | None: ...
    @property
    def earlier(self) -> Predictions | None: ...
    @property
    def compared(self) -> Mapping[tuple[str, str], Compared]: ...
    @property
    def label_selection(self) -> Sequence[str]: ...


class Figure(NamedTuple):
    """The first figure of an audit: its title, what else is sure, and its panels by rate.

    ``left_out`` says which attributes have too many groups, and ``beyond`` whether the difference
    of the title is surely above its limit.
    """

    title: str
    also: str
    left_out: Sequence[str]
    beyond: bool
    panels: Sequence[Sequence[Panel]]


def floored(value: float) -> str:
    """A bound that is no larger than the value: whole from 10 on, else with two digits.

    >>> floored(12.7), floored(1.05), floored(0.478), floored(0.0333)
    ('12', '1.0', '0.47', '0.033')
    """
    if value >= WHOLE:
        return f"{np.floor(value):,.0f}"
    digits = int(1 - np.floor(np.log10(value)))
    return f"{np.floor(value * 10**digits) / 10**digits:.{digits}f}"


def figure_of(audit: Findings) -> Figure | None:
    """The groups of the gap that an audit begins with; None where nothing is compared."""
    leading, quantities = _leading(audit)
    if audit.label_selection or not quantities:
        return None
    sources = _sources(audit.predictions)
    panels = [*_panels(audit, leading, quantities, sources)]
    left_out = [
        f"{name}: {len(source.names):,} groups, at most {MOST_GROUPS} are compared"
        for name, source in sources.items()
        if len(source.names) > MOST_GROUPS
    ]
    if not panels:
        return Figure("", "", left_out, False, []) if left_out else None
    panels.sort(key=lambda panel: -panel.bound)
    nearly = NEARLY * panels[0].bound
    panels.sort(key=lambda panel: panel.crossed or panel.bound < nearly)
    lead, *others = panels
    further = [panel for panel in others if panel.bound > 0 and not panel.crossed]
    further.sort(key=lambda panel: panel.attribute == lead.attribute)
    crossed = next((panel.attribute for panel in panels if panel.crossed), "")
    drawn = {
        (panel.name, panel.attribute): panel
        for panel in panels
        if (not panel.crossed or panel.attribute == crossed)
        and (not panel.label or panel.name == lead.name)
    }
    rates, names = (dict.fromkeys(keys) for keys in zip(*drawn, strict=True))
    return Figure(
        _title(lead, audit) if lead.bound > 0 else _nobody(panels),
        "; ".join(_also(panel, lead, audit) for panel in further[:MOST_ALSO]),
        left_out,
        lead.limit is not None and lead.bound > lead.limit,
        [[drawn[rate, name] for name in names if (rate, name) in drawn] for rate in rates],
    )


def _leading(audit: Findings) -> tuple[str, Sequence[Quantity]]:
    """The gap of the worst gate, or the first one that the audit has, and the rates it compares.

    Of more than two classes no gap, but accuracy and the recall of every class.
    """
    classes = range(len(audit.predictions.samples.classes))
    if len(classes) > TWO:
        recall = replace(_quantity("true_positive_rate"), binary=False, rows=_recalled)
        of_classes = [replace(recall, options={"label": label}) for label in classes]
        return "", [_quantity("accuracy"), *of_classes]
    names = {metric for _, metric in audit.compared}
    gates = [judgement.gate.metric for judgement in audit.judgements if not judgement.gate.change]
    for name in (*gates[:1], *gap_names(audit.rows)):
        if name in names and (gap := find_metric(name).gap):
            return name, gap.of
    return "", []


def _quantity(name: str) -> Quantity:
    definition = find_metric(name).definition
    assert isinstance(definition, Quantity)
    return definition


def _recalled(y_true: np.ndarray, y_pred: np.ndarray, *, label: int) -> RowValues:
    return RowValues(y_pred == label, y_true == label)


def _sources(predictions: Predictions) -> dict[str, Source]:
    """Counts or rows of every attribute, and of all intersections of two."""
    attributes, made = predictions.samples.attributes, dict[str, Source](predictions.counts)
    for columns in [*predictions.columns_of.values(), *combinations(predictions.categorical, TWO)]:
        name = attribute_name(columns, attributes)
        if name not in made:
            made[name] = predictions.source_of(groups_of(attributes, columns))
    return made


def _limit(audit: Findings, leading: str, attribute: str) -> float | None:
    """The limit of the gap of an attribute: of its gates, or what an audit without gates takes."""
    if not audit.judgements:
        alone = audit.changed is None and leading in gap_names(audit.rows)
        return SUGGESTED if alone and not audit.options.continuous else None
    limits = [
        judgement.gate.limit
        for judgement in audit.judgements
        if judgement.gate.metric == leading and not judgement.gate.change
        and judgement.gate.sign in (">", ">=") and judgement.gate.attribute in ("", attribute)
    ]  # fmt: skip
    return min(limits, default=None)


def _panels(
    audit: Findings,
    leading: str,
    quantities: Sequence[Quantity],
    sources: Mapping[str, Source],
) -> Iterator[Panel]:
    """Every rate of every attribute of which at least two groups may be shown."""
    options, predictions = audit.options, audit.predictions
    before = {} if audit.earlier is None else _sources(audit.earlier)
    asked = {*predictions.groups, *predictions.membership}
    family = len(sources) * len(quantities)
    for (name, source), quantity in product(sources.items(), quantities):
        means, present = source.values(quantity), source.values(quantities[0]).shown > 0
        rates, size = rates_of([means], present), int(present.sum())
        if len(source.names) > MOST_GROUPS or size < TWO:
            continue
        if not rates.bounded and np.isnan(rates.variance).all():
            continue
        low, high, _ = mean_intervals(quantity, means)
        columns = {"value": means.value, "low": low, "high": high, "n": means.shown.astype(int)}
        groups = pd.DataFrame(columns, index=source.names)[present].assign(then=np.nan)
        groups[["low", "high"]] = groups[["low", "high"]].mask(groups["value"].isna())
        if name in before:
            earlier = before[name].values(quantity)
            then = np.where(earlier.shown >= options.suppress, earlier.value, np.nan)
            groups["then"] = pd.Series(then, before[name].names).reindex(groups.index)
        pairs = linear_gap("largest", size).functions
        first, second = pairs.argmax(1), pairs.argmin(1)
        surely = np.full((size, size), -np.inf)
        surely[first, second] = _bounds(rates, pairs, LEVEL / (len(pairs) * family))[0]
        least, most = _bounds(rates, np.eye(size), LEVEL / (2 * size * family))
        groups = groups.assign(small=groups["n"] < options.small, least=least, most=most)
        shown = np.flatnonzero(groups["n"] >= options.suppress)
        if len(shown) < TWO:
            continue
        visible = pairs[np.isin(first, shown) & np.isin(second, shown)]
        lower, upper = interval(rates, LinearGap(visible))
        groups, surely = groups.iloc[shown], surely[np.ix_(shown, shown)]
        place = quantity.options.get("label")
        label = "" if place is None else predictions.samples.classes[int(place)]
        gap = (float(np.ptp(groups["value"].dropna())), float(lower[0]), float(upper[0]))
        limit, crossed = _limit(audit, leading, name), name not in asked
        yield _panel(name, crossed, quantity, label, groups, surely, gap, limit)


def _panel(
    attribute: str,
    crossed: bool,
    quantity: Quantity,
    label: str,
    groups: pd.DataFrame,
    least: np.ndarray,
    gap: tuple[float, float, float],
    limit: float | None,
) -> Panel:
    """A panel with what follows from its values and bounds: the best, worst and surest groups."""
    value, direction = groups["value"], 1 if quantity.better == "higher" or quantity.signed else -1
    merit = value * direction
    if quantity.name == "mean_error":  # those near 0 are the best
        merit, direction = -value.abs(), 0
    large = merit.where(~groups["small"])
    best = int(np.argmax((large if large.notna().any() else merit).fillna(-np.inf)))
    worst = int(np.argmax((value - value.iloc[best]).abs().fillna(-1.0)))
    places = np.unravel_index(least.argmax(), least.shape)
    worse, other = sorted(map(int, places), key=lambda place: merit.iloc[place])
    allowed, from_best = limit or 0.0, np.stack([least[:, best], least[best]])
    conditions = {
        "unsure": ~np.isfinite(value), "good": np.arange(len(value)) == best,
        "bad": from_best.max(0) > allowed,
    }  # fmt: skip
    otherwise = np.where(-from_best.min(0) <= allowed, "good", "unsure")
    state = np.select([*conditions.values()], [*conditions], otherwise)
    centre, within = value.iloc[best], None
    if limit is not None and not np.isnan(centre):
        within = centre - limit * (direction >= 0), centre + limit * (direction <= 0)
    return Panel(
        attribute, crossed, quantity, label,
        f"{quantity.words} of {label}" if label else quantity.words,
        groups.assign(merit=merit, state=state), least, float(least.max()), (worse, other), best,
        worst, gap, limit, within,
    )  # fmt: skip


def _bounds(rates: Rates, functions: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """One-sided bounds of functions of rates, infinite where they are not known."""
    made = contrast(rates.corrected(), None, functions, None)
    half = made.critical(tail)
    return np.fmax(made.value - half, -np.inf)[0], np.fmin(made.value + half, np.inf)[0]


def _title(panel: Panel, audit: Findings) -> str:
    """Who differs by how much at least, from whom, with the values, and the side of the limit."""
    worse, other = panel.pair
    group, values = panel.groups.iloc[worse], panel.groups["value"]
    others = values.drop(group.name)
    too = max(group["least"], -group["most"])
    if panel.quantity.name == "mean_error" and too > 0:
        return (
            f"predictions for {panel.attribute} = {group.name} are too "
            f"{'high' if group['least'] > 0 else 'low'} by at least {panel.distance(too)} "
            f"(mean error {panel.said(group['value'], others)})"
        )
    away = panel.least[:, worse] if panel.lower else panel.least[worse]
    limit, bound, than = panel.limit, float(np.delete(away, worse).min()), "others"
    # a bound above the limit is not given up for "others"
    above = limit is None or bound > limit or panel.bound <= limit
    if not (1 < len(others) <= MOST_OTHERS and bound > 0 and above):
        others, bound, than = values.iloc[[other]], panel.bound, str(values.index[other])
    text = f"{_clause(panel, audit, bound, than)} ({panel.said(group['value'], others)})"
    if limit is None:
        return text
    side = "above" if bound > limit else "perhaps above" if panel.gap[1] <= limit else ""
    side = "below" if panel.gap[2] <= limit else side
    written_limit = exact(round(100 * limit, 9) if panel.is_share else limit)
    return f"{text}, {side} the limit of {written_limit}" if side else text


def _also(panel: Panel, lead: Panel, audit: Findings) -> str:
    """Another difference that is sure, in short where it is one of the same rate."""
    group, than = (str(panel.groups.index[place]) for place in panel.pair)
    if panel.name != lead.name:
        return _clause(panel, audit, panel.bound, than)
    more = "lower" if panel.lower else "higher"
    return f"{panel.attribute} = {group} at least {panel.distance(panel.bound)} {more} than {than}"


def _clause(panel: Panel, audit: Findings, bound: float, than: str) -> str:
    """That the worse group differs, in the words of the table or of the user."""
    words, classes = audit.options.words, audit.predictions.samples.classes
    group, least = panel.groups.index[panel.pair[0]], f"at least {panel.distance(bound)}"
    who = f"{group} {words['rows']}" if "rows" in words else f"{panel.attribute} = {group}"
    often = "less often" if panel.lower else "more often"
    if panel.quantity.name in DECISIONS:
        kind = DECISIONS[panel.quantity.name]
        of = panel.label or classes[kind == "positive"]
        which = f" {words.get(kind, f'with {audit.options.y_true} = {of}')}" if kind else ""
        rows = f"{who}{'' if 'rows' in words else ': rows'}{which}"
        decided = f"predicted {panel.label or classes[1]}"
        decided = decided if panel.label else words.get("predicted", decided)
        return f"{rows} are {decided} {least} {often} than {than}"
    if panel.quantity.name == "accuracy":
        return f"predictions for {who} are right {least} {often} than for {than}"
    more = "lower" if panel.lower else "higher"
    return f"the {panel.name} of {who} is {least} {more} than that of {than}"


def _nobody(panels: Sequence[Panel]) -> str:
    """What a title says where no difference is sure: up to how much is possible.

    The largest upper bound of several gaps covers the largest gap as often as each its own.
    """
    asked = [panel for panel in panels if not panel.crossed] or panels
    widest = max(asked, key=lambda panel: panel.gap[2])
    few = [str(name) for name, group in widest.groups.iterrows() if not np.isfinite(group["least"])]
    if few:
        return f"no group can be named: too little is known of {', '.join(few[:MOST_OTHERS])}"
    points = f"{np.ceil(100 * widest.gap[2]):.0f} points"
    most = points if widest.is_share else written(widest.gap[2], TWO)
    names = " or ".join(dict.fromkeys(panel.attribute for panel in asked))
    return (
        f"no group can be named: differences of up to {most} between groups of {names} are possible"
    )
