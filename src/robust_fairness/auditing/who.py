"""Who is decided about differently: the groups of an audit by the rates of its gap, and a title.

A difference of two groups is sure if its lower bound is above 0, where the bounds of all pairs of
groups, of all rates, attributes and intersections hold together at 95 % (Bonferroni). Only sure
differences name a group.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from robust_fairness.auditing.gates import Judgement
from robust_fairness.auditing.predictions import Options, Predictions, attribute_name
from robust_fairness.auditing.scores import Scored, scored
from robust_fairness.core.numbers import exact, written
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import TWO
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.intervals import Compared
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.rates import LinearGap, contrast, interval, known_or, linear_gap

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
OF_CLASSES = "accuracy_difference"  # of more than two classes, whose groups are shown
SUGGESTED = 0.1  # limit of the gate that an audit without one is answered by
MOST_OTHERS = 4  # groups that are "others" together
MOST_ALSO = 2
WHOLE = 10  # a bound from which on it has no decimals
CLOSE = 0.02  # values that are this near have a decimal
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
        groups: by name: value, low, high, n and small as in the audit; then, the value of an
            earlier period; least and most, bounds of the value that hold together.
        least: by how much the group of a row is surely above that of a column ``[groups,
            groups]``; -inf where nothing is known.
        gap: the largest difference with the bounds of its interval.
        limit: what the difference should not exceed; None without one.
    """

    attribute: str
    crossed: bool
    quantity: Quantity
    groups: pd.DataFrame
    least: np.ndarray
    gap: tuple[float, float, float]
    limit: float | None

    @property
    def bound(self) -> float:
        """The largest difference that is sure; not above 0 if none is."""
        return float(self.least.max())

    @property
    def merit(self) -> pd.Series:
        """The values, the larger the better; of signed errors the nearest to 0 is best."""
        value = self.groups["value"]
        if self.quantity.name == "mean_error":
            return -value.abs()
        higher = self.quantity.better == "higher" or self.quantity.signed
        return value if higher else -value

    @property
    def best(self) -> int:
        """The place of the best group, of those that are not small where there are any."""
        merit = self.merit.where(~self.groups["small"])
        merit = merit if merit.notna().any() else self.merit
        return int(np.argmax(merit.fillna(-np.inf)))

    @property
    def pair(self) -> tuple[int, int]:
        """The places of both groups with the surest difference, the worse one first."""
        places = np.unravel_index(self.least.argmax(), self.least.shape)
        first, second = sorted(map(int, places), key=lambda place: self.merit.iloc[place])
        return first, second

    @property
    def within(self) -> tuple[float, float] | None:
        """What is within the limit from the best group on; None without a limit."""
        if self.limit is None or np.isnan(best := self.groups["value"].iloc[self.best]):
            return None
        below = self.quantity.name == "mean_error" or self.merit.iloc[self.best] == best
        above = self.quantity.name == "mean_error" or not below
        return best - self.limit * below, best + self.limit * above

    def state(self, place: int) -> str:
        """Whether the difference from the best group is surely ``good``, ``bad``, or ``unsure``."""
        if not np.isfinite(self.groups["value"].iloc[place]):
            return "unsure"
        if place == self.best:
            return "good"
        above, below = self.least[place, self.best], self.least[self.best, place]
        limit = self.limit or 0.0
        if max(above, below) > limit:
            return "bad"
        return "good" if max(-above, -below) <= limit else "unsure"

    def shown(self, most: int) -> list[int]:
        """Places of at most so many groups, the worst first: the worst ones and the best."""
        order = [int(place) for place in np.argsort(self.merit.fillna(-np.inf), kind="stable")]
        known = [place for place in order if np.isfinite(self.groups["value"].iloc[place])]
        named = {*self.pair, self.best} if self.bound > 0 else {self.best}
        kept = {*known[: max(most - len(named), 1)], *named} if len(order) > most else {*order}
        return [place for place in order if place in kept]

    def said(self, *values: float) -> list[str]:
        """Values in the words of a title, each once: per cent, or numbers; unequal ones differ."""
        if not self.is_share:
            return [*dict.fromkeys(written(value, TWO) for value in values)]
        digits = int(float(np.ptp(values)) < CLOSE)
        return [*dict.fromkeys(f"{100 * value:.{digits}f} %" for value in values)]

    def distance(self, value: float) -> str:
        """A difference likewise, in points."""
        return f"{floored(100 * value)} points" if self.is_share else floored(value)

    @property
    def worst(self) -> int:
        """The place of the group that is furthest from the best one."""
        away = (self.groups["value"] - self.groups["value"].iloc[self.best]).abs()
        return int(np.argmax(away.fillna(-1.0)))

    def write(self, value: float) -> str:
        """A value as the picture writes it: per cent, or a number."""
        return f"{100 * value:.3g} %" if self.is_share else written(value)

    def estimate(self, value: float, low: float, high: float) -> str:
        """A value with its interval likewise."""
        if not np.isfinite(value):
            return "not known"
        factor, unit = (100, " %") if self.is_share else (1, "")
        if not np.isfinite([low, high]).all():
            return f"{factor * value:.3g}{unit}"
        return f"{factor * value:.2g}{unit} ({factor * low:.2g} to {factor * high:.2g})"

    @property
    def is_share(self) -> bool:
        """Whether values are shares of rows."""
        return self.quantity.task != "regression"


class Findings(Protocol):
    """What a picture needs of ``findings.AuditFindings``."""

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


class Picture(NamedTuple):
    """The first picture of an audit: its panels by rate, its title, and what else is sure.

    ``beyond`` says whether the difference of the title is surely above its limit.
    """

    title: str
    also: str
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


def picture_of(audit: Findings) -> Picture | None:
    """The groups of the gap that an audit begins with; None where nothing is compared."""
    leading = None if audit.label_selection else _leading(audit)
    if leading is None:
        return None
    sources = [*_sources(audit, leading)]
    gap = find_metric(leading).gap
    panels = [
        panel
        for quantity_place in range(len(gap.of) if gap else 0)
        for source in sources
        if (panel := _panel(audit, leading, source, quantity_place, len(sources))) is not None
    ]
    if not panels:
        return None
    order = sorted(panels, key=lambda panel: -panel.bound)
    lead, *others = order
    title = _title(lead, audit) if lead.bound > 0 else _nobody(panels)
    further = [panel for panel in others if panel.bound > 0 and not panel.crossed]
    further.sort(key=lambda panel: panel.attribute == lead.attribute)
    also = [_also(panel, lead, audit) for panel in further[:MOST_ALSO]]
    beyond = lead.limit is not None and lead.bound > lead.limit
    by_rate: dict[str, list[Panel]] = {}
    crossed = next((panel.attribute for panel in order if panel.crossed), "")
    places = {panel.attribute: place for place, panel in reversed([*enumerate(order)])}
    for panel in sorted(order, key=lambda panel: places[panel.attribute]):
        if not panel.crossed or panel.attribute == crossed:
            by_rate.setdefault(panel.quantity.name, []).append(panel)
    rates = sorted(by_rate, key=lambda name: name != lead.quantity.name)
    return Picture(title, "; ".join(also), beyond, [by_rate[name] for name in rates])


class _Source(NamedTuple):
    """Groups of an attribute: their rows of an audit, what is compared, and values before."""

    attribute: str
    crossed: bool
    rows: pd.DataFrame
    compared: Compared
    before: pd.DataFrame


def _leading(audit: Findings) -> str | None:
    """The gap of the worst gate, or the first that the audit has, whose rates are compared."""
    names = {metric for _, metric in audit.compared}
    gates = [judgement.gate.metric for judgement in audit.judgements if not judgement.gate.change]
    if len(audit.predictions.samples.classes) > TWO:
        labelled = audit.predictions.labelled or audit.predictions.known is not None
        return OF_CLASSES if labelled and audit.predictions.groups(False) else None
    first = [*gates[:1], *gap_names(audit.rows)]
    return next((name for name in first if name in names and find_metric(name).gap), None)


def _sources(audit: Findings, leading: str) -> Iterator[_Source]:
    """Every attribute, and the intersections of two that were not asked for."""
    attributes = audit.predictions.samples.attributes
    groupings = audit.predictions.groupings(audit.options.intersections)
    names = {attribute_name(columns, attributes): columns for columns in groupings}
    pairs = [*combinations([columns[0] for columns in groupings if len(columns) == 1], TWO)]
    names |= {attribute_name(pair, attributes): pair for pair in pairs}
    asked = {attribute_name(columns, attributes) for columns in groupings}
    names |= dict.fromkeys(audit.predictions.membership, ())
    changed = audit.changed
    for name, columns in names.items():
        compared = audit.compared.get((name, leading))
        if compared is not None and name in {*asked, *audit.predictions.membership}:
            before = pd.DataFrame() if changed is None else changed
            yield _Source(name, False, audit.rows, compared, before)
        elif columns:
            now = _scored(audit, audit.predictions, leading, columns)
            if (name, leading) not in now.compared:
                continue
            before = pd.DataFrame()
            if audit.earlier is not None:
                rows = _scored(audit, audit.earlier, leading, columns).rows
                before = rows.rename(columns={"value": "then"})
            yield _Source(name, name not in asked, now.rows, now.compared[name, leading], before)


def _scored(
    audit: Findings, predictions: Predictions, leading: str, columns: Sequence[str]
) -> Scored:
    """The gap and its rates of some columns together."""
    samples = predictions.samples
    some = replace(
        predictions, samples=replace(
            samples, attributes=samples.attributes[[*columns]], sensitive=tuple(columns)
        ),
        membership={}, control=pd.DataFrame(index=range(len(samples))),
    )  # fmt: skip
    gap = find_metric(leading).gap
    rates = [f"{quantity.name}_by_group" for quantity in gap.of] if gap else []
    labelled = predictions.labelled or predictions.known is not None
    options = replace(
        audit.options, metrics=[leading, *rates], intersections=len(columns) > 1, functions={},
        control_features=(), membership={}, y_true=audit.options.y_true if labelled else None,
    )  # fmt: skip
    return scored(some, options)


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


def _panel(audit: Findings, leading: str, source: _Source, place: int, family: int) -> Panel | None:
    """A rate of the groups that may be shown; None without two of them."""
    gap, compared = find_metric(leading).gap, source.compared
    size = len(compared.groups)
    if gap is None or compared.rates.value.shape[1] != len(gap.of) * size:
        return None
    quantity = gap.of[place]
    rows = source.rows
    rows = rows[
        (rows["attribute"] == source.attribute) & (rows["metric"] == f"{quantity.name}_by_group")
    ].set_index("group")
    shown = [number for number, name in enumerate(compared.groups) if name in rows.index]
    if len(shown) < TWO:
        return None
    groups = rows.loc[[compared.groups[number] for number in shown]]
    groups = groups[["value", "low", "high", "n", "small"]]
    then = _then(source, f"{quantity.name}_by_group")
    groups = groups.assign(then=[then.get(name, np.nan) for name in groups.index])
    around = ((0, 0), (place * size, (len(gap.of) - 1 - place) * size))
    pairs = np.pad(linear_gap("largest", size).functions, around)
    alone = np.pad(np.eye(size), around)
    least, most = _bounds(compared, pairs, LEVEL / (len(pairs) * len(gap.of) * family))
    matrix = np.full((size, size), -np.inf)
    high, low = pairs.argmax(1) - place * size, pairs.argmin(1) - place * size
    matrix[high, low] = least
    lowest, highest = _bounds(compared, alone, LEVEL / (2 * size * family))
    visible = np.isin(high, shown) & np.isin(low, shown)
    value = compared.rates.mean[0, place * size :][shown]
    ends = interval(compared.rates, LinearGap(pairs[visible]))
    return Panel(
        source.attribute, source.crossed, quantity,
        groups.assign(least=lowest[shown], most=highest[shown]),
        matrix[np.ix_(shown, shown)],
        (float(np.nanmax(value) - np.nanmin(value)), float(ends[0][0]), float(ends[1][0])),
        _limit(audit, leading, source.attribute),
    )  # fmt: skip


def _then(source: _Source, metric: str) -> dict[str, float]:
    if source.before.empty:
        return {}
    of = source.before
    of = of[(of["attribute"] == source.attribute) & (of["metric"] == metric)]
    return dict(zip(of["group"], of["then"], strict=True))


def _bounds(
    compared: Compared, functions: np.ndarray, tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """One-sided bounds of functions of rates, infinite where they are not known."""
    made = contrast(compared.rates.corrected(), None, functions, None)
    half = made.critical(tail)
    least = known_or(made.value - half, -np.inf)[0]
    return least, known_or(made.value + half, np.inf)[0]


def _title(panel: Panel, audit: Findings) -> str:
    """Who differs by how much at least, from whom, with the values, and the side of the limit."""
    worse, other = panel.pair
    names, values = panel.groups.index, panel.groups["value"]
    if panel.quantity.name == "mean_error" and (text := _too(panel, worse)):
        return text
    rest = [place for place in range(len(names)) if place != worse]
    lower = values.iloc[worse] < values.iloc[other]
    bounds = [panel.least[place, worse] if lower else panel.least[worse, place] for place in rest]
    together = 1 < len(rest) <= MOST_OTHERS and min(bounds) > 0
    if together and panel.limit is not None:  # a bound above the limit is not given up
        together = min(bounds) > panel.limit or panel.bound <= panel.limit
    bound = min(bounds) if together else panel.bound
    others = sorted(values.iloc[rest if together else [other]])
    mine, *ends = panel.said(values.iloc[worse], others[0], others[-1])
    against = " to ".join(ends).replace(" % to", " to")
    than = "others" if together else str(names[other])
    text = _clause(panel, audit, str(names[worse]), panel.distance(bound), lower, than)
    return f"{text} ({mine} against {against}){_side(panel, bound)}"


def _side(panel: Panel, bound: float) -> str:
    """Where the difference is of the limit."""
    if panel.limit is None:
        return ""
    limit = exact(round(100 * panel.limit, 9)) if panel.is_share else exact(panel.limit)
    if bound > panel.limit:
        return f", above the limit of {limit}"
    if panel.gap[1] > panel.limit:  # as the interval of the gap alone says
        return ""
    return f", {'below' if panel.gap[2] <= panel.limit else 'perhaps above'} the limit of {limit}"


def _also(panel: Panel, lead: Panel, audit: Findings) -> str:
    """Another difference that is sure, in short where it is one of the same rate."""
    worse, other = panel.pair
    names, values = panel.groups.index, panel.groups["value"]
    lower, bound = values.iloc[worse] < values.iloc[other], panel.distance(panel.bound)
    if panel.quantity != lead.quantity:
        return _clause(panel, audit, str(names[worse]), bound, lower, str(names[other]))
    more = "lower" if lower else "higher"
    return f"{panel.attribute} = {names[worse]} at least {bound} {more} than {names[other]}"


def _clause(panel: Panel, audit: Findings, group: str, bound: str, lower: bool, than: str) -> str:
    """A sentence about a group without its values, in the words of the table or of the user."""
    words, name = audit.options.words, panel.quantity.name
    who = f"{group} {words['rows']}" if "rows" in words else f"{panel.attribute} = {group}:"
    if name in DECISIONS:
        classes = audit.predictions.samples.classes
        which = ""
        if DECISIONS[name]:
            label = classes[DECISIONS[name] == "positive"]
            which = words.get(DECISIONS[name], f"with {audit.options.y_true} = {label}")
        decided = words.get("predicted", f"predicted {classes[1]}")
        rows = " ".join(filter(None, (who, "" if "rows" in words else "rows", which)))
        return (
            f"{rows} are {decided} at least {bound} {'less' if lower else 'more'} often than {than}"
        )
    more = "lower" if lower else "higher"
    if name == "accuracy":
        more = "less" if lower else "more"
        of = f"predictions for {who} are" if "rows" in words else f"{who} predictions are"
        return f"{of} right at least {bound} {more} often than for {than}"
    of = (
        f"the {panel.quantity.words} of {who}"
        if "rows" in words
        else f"{who} the {panel.quantity.words}"
    )
    return f"{of} is at least {bound} {more} than that of {than}"


def _too(panel: Panel, worse: int) -> str:
    """That predictions for a group are too high or too low, where that is sure."""
    group = panel.groups.iloc[worse]
    bound = max(group["least"], -group["most"])
    if not bound > 0:
        return ""
    side, others = "high" if group["least"] > 0 else "low", panel.groups["value"].drop(group.name)
    mine, *ends = panel.said(group["value"], others.min(), others.max())
    return (
        f"predictions for {panel.attribute} = {group.name} are too {side} by at least "
        f"{panel.distance(bound)} (mean error {mine} against "
        f"{' to '.join(ends)})"
    )


def _nobody(panels: Sequence[Panel]) -> str:
    """What a title says where no difference is sure: up to how much is possible."""
    widest = max(panels, key=lambda panel: panel.gap[2] - 1e9 * panel.crossed)
    few = [str(name) for name, group in widest.groups.iterrows() if not np.isfinite(group["least"])]
    if few:
        return f"no group can be named: too little is known of {', '.join(few[:MOST_OTHERS])}"
    points = f"{np.ceil(100 * widest.gap[2]):.0f} points"
    most = points if widest.is_share else written(widest.gap[2], TWO)
    return (
        f"no group can be named: differences of up to {most} between groups of {widest.attribute} "
        "are possible"
    )
