"""Why the values of an audited model changed between two periods."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from robust_fairness.auditing.audit import Audit
from robust_fairness.auditing.change_parts import (
    ALL,
    COLUMN,
    MIX,
    OF_SHARE,
    PREDICTION,
    REGION,
    WHY,
    Y_GIVEN_X,
    Why,
    X,
)
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.auditing.why.decomposition import (
    RATES,
    Coded,
    DecomposedChange,
    ScoredDomains,
    changes,
)
from robust_fairness.auditing.why.domains import (
    FEWEST,
    MOST_LEVELS,
    Columns,
    ComparedRows,
    share_change,
    some,
)
from robust_fairness.auditing.why.regions import ScoredDomain, regions
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import all_metrics

TWO = 2
LEVELS = 20  # of a category, the most frequent ones, that may bound a region
REGIONS = 2  # shown of every gap

Row = dict[str, object]


def explained(audit: Audit) -> Audit:
    """The audit with its changes taken apart, see ``auditing.why.Why``.

    Of a period at most ``MOST`` rows are used, drawn at random.

    Raises:
        InputError: there is no earlier period, labels are missing, or the target has not two
            classes.
    """
    now, then = audit.predictions, audit.earlier
    if then is None:
        raise InputError("features: why values changed needs an earlier period to compare with")
    if len(now.samples.classes) != TWO or not now.labelled or not then.labelled:
        raise InputError("features: why values changed needs labels of two classes in both periods")
    both = Both.of(*(part.take(some(len(part.samples))) for part in (then, now)))
    domains, overlap = both.scored.domains, both.scored.expected.overlap
    fewest = max(FEWEST, audit.options.suppress)
    rows: list[Row] = []
    for change in changes(both.scored, both.groups, fewest, _rates(audit.options.metrics)):
        rows += _change(both, change)
        rows += _regions(both, change, fewest) if change.groups else []
    rows += _shares(both, audit.options.suppress)
    every = _sizes(domains, np.ones(len(domains.away), bool))
    rows += [
        every | {"part": COLUMN, "of": name, "auc": auc}
        for name, auc in domains.column_aucs.items()
    ]
    sizes = overlap.effective_rows
    effective = sizes[0] / len(overlap.home), sizes[1] / len(overlap.away)
    why = Why(tables.table(WHY, rows), domains.naming, overlap.auc, effective, overlap.little)
    return replace(audit, why=why)


def _rates(names: Iterable[str]) -> list[str]:
    """The rates that are taken apart: the usual ones, and those of gaps that were asked for."""
    known = {metric.name: metric.gap for metric in all_metrics()}
    gaps = [known.get(name) for name in names]
    asked = [quantity.name for gap in gaps if gap and gap.binary for quantity in gap.of]
    return [*dict.fromkeys([*RATES, *asked])]


@dataclass(frozen=True, eq=False)
class Both:
    """The rows of two periods.

    Attributes:
        scored: their outcomes and predictions, the later period elsewhere.
        groups: codes by attribute, -1 where unknown, and names.
        features: features as a frame of numbers and categories.
    """

    scored: ScoredDomains
    groups: dict[str, Coded]
    features: pd.DataFrame

    @classmethod
    def of(cls, then: Predictions, now: Predictions) -> "Both":
        """Those of checked predictions."""
        parts = (then, now)
        sizes = [len(part.samples) for part in parts]
        features = _stacked([part.features for part in parts])
        attributes = _stacked([part.samples.attributes for part in parts])
        further = attributes.drop(columns=[name for name in features if name in attributes])
        every = pd.concat([features, further], axis=1)
        scores = [part.score if len(part.score) else part.prediction for part in parts]
        weight = [
            np.ones(size) if part.weight is None else part.weight / part.weight.mean()
            for part, size in zip(parts, sizes, strict=True)
        ]
        units = [
            np.arange(size) if part.units is None else part.units
            for part, size in zip(parts, sizes, strict=True)
        ]
        scored = ScoredDomains(
            ComparedRows(
                away=np.repeat([False, True], sizes),
                columns=_columns(every),
                unit=np.concatenate([units[0], units[0].max() + 1 + units[1]]),
                weight=np.concatenate(weight),
            ),
            metric="accuracy",
            y=np.concatenate([part.samples.y for part in parts]).astype(np.float64),
            prediction=np.concatenate([s[:, 1] if s.ndim > 1 else s for s in scores]),
            positive=np.concatenate([part.prediction for part in parts]).astype(np.float64),
        )
        groups = {
            str(name): (values.cat.codes.to_numpy(), tuple(map(str, values.cat.categories)))
            for name, values in attributes.select_dtypes("category").items()
        }
        return cls(scored, groups, every)


def _stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of both, with the categories of both."""
    stacked: dict[Hashable, pd.Categorical | np.ndarray] = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            stacked[name] = pd.api.types.union_categoricals(columns, sort_categories=True)
        elif any(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            stacked[name] = pd.Categorical(np.concatenate([c.astype(str) for c in columns]))
        else:
            stacked[name] = np.concatenate(columns)
    return pd.DataFrame(stacked, index=range(sum(map(len, parts))))


def _columns(frame: pd.DataFrame) -> Columns:
    """The columns of a frame; a missing category is a category."""
    values, categorical = [], []
    for _, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            levels = len(column.cat.categories)
            values.append(column.cat.codes.where(column.notna(), levels).to_numpy(np.float32))
            categorical.append(levels < MOST_LEVELS)
        else:
            values.append(column.to_numpy(np.float32))
            categorical.append(False)
    return Columns(np.column_stack(values), tuple(map(str, frame)), np.array(categorical))


def _change(both: Both, change: DecomposedChange) -> Iterator[Row]:
    """Rows of a change and of its parts."""
    names = both.groups[change.attribute][1] if change.groups else ()
    where = {
        "attribute": change.attribute, "metric": change.metric,
        "of": " less ".join(names[code] for code in change.groups),
    } | _sizes(both.scored.domains, change.rows)  # fmt: skip
    yield (
        where | {"part": ALL, "then": change.at_home, "now": change.away} | (change.whole._asdict())
    )
    parts = {
        MIX: change.mix, X: change.x, Y_GIVEN_X: change.y_given_x, PREDICTION: change.prediction,
    }  # fmt: skip
    for name, part in parts.items():
        if part is not None:
            yield where | {"part": name} | part._asdict()


def _regions(both: Both, change: DecomposedChange, fewest: int) -> Iterator[Row]:
    """Where in the features the rate of the first group less that of the second changes most."""
    x, scored = _one_hot(both.features), both.scored
    away, overlap = scored.domains.away, scored.expected.overlap
    assert scored.positive is not None
    weights = np.empty(len(away))
    weights[~away], weights[away] = overlap.home, overlap.away
    codes, _ = both.groups[change.attribute]
    sides: list[list[ScoredDomain]] = [[], []]
    for period, side in enumerate(sides):
        for group, sign in zip(change.groups, (1, -1), strict=True):
            rows = np.flatnonzero(change.rows & (codes == group) & (away == period))
            side.append(
                ScoredDomain(x.to_numpy()[rows], scored.positive[rows], weights[rows], sign)
            )
    leaves = regions(sides[0], sides[1], [str(name) for name in x], depth=2)
    leaves = leaves[leaves[["rows_home", "rows_away"]].min(axis=1) >= fewest]
    for leaf in leaves.dropna().head(REGIONS).to_dict("records"):
        yield {
            "part": REGION, "attribute": change.attribute, "metric": change.metric,
            "of": leaf["conditions"], "then": leaf["at_home"], "now": leaf["away"],
            "change": leaf["change"], "low": leaf["low"], "high": leaf["high"],
            "then_n": leaf["rows_home"], "now_n": leaf["rows_away"],
        }  # fmt: skip


def _shares(both: Both, suppress: int) -> Iterator[Row]:
    """Shares of the groups, and of class 1 in all rows and in every group."""
    fewest, positive = max(FEWEST, suppress), both.scored.y == 1
    every = np.ones(len(positive), bool)
    yield from _share(both, {"metric": "positive_share"}, every, positive, fewest)
    for attribute, (codes, names) in both.groups.items():
        for code, group in enumerate(names):
            where: Row = {"attribute": attribute, "of": group}
            of_group = codes == code
            if of_group.sum() < suppress:
                continue
            yield from _share(both, where | {"metric": "group_share"}, every, of_group, fewest)
            of_class = where | {"metric": "positive_share"}
            yield from _share(both, of_class, of_group, positive, fewest)


def _share(
    both: Both, where: Row, among: np.ndarray, counted: np.ndarray, fewest: int
) -> Iterator[Row]:
    """The share of some rows among others then and now; nothing where these are few."""
    domains = both.scored.domains
    if domains.smallest(among) < fewest:
        return
    home, away = among & ~domains.away, among & domains.away
    change = share_change(
        counted[home], counted[away], (domains.unit[home], domains.unit[away]),
        (domains.weight[home], domains.weight[away]),
    )  # fmt: skip
    yield where | _sizes(domains, among) | {
        "part": OF_SHARE, "then": change.at_home, "now": change.away,
        "change": change.change, "low": change.low, "high": change.high,
    }  # fmt: skip


def _sizes(domains: ComparedRows, rows: np.ndarray) -> Row:
    now = int((rows & domains.away).sum())
    return {"then_n": int(rows.sum()) - now, "now_n": now}


def _one_hot(features: pd.DataFrame) -> pd.DataFrame:
    """Numbers, and a 0/1 column per frequent category."""
    parts = {}
    for name, column in features.items():
        if not isinstance(column.dtype, pd.CategoricalDtype):
            parts[str(name)] = column.to_numpy(np.float32)
            continue
        for level in column.value_counts().index[:LEVELS]:
            parts[f"{name}={level}"] = (column == level).to_numpy(np.float32)
        if column.isna().any():
            parts[f"{name} missing"] = column.isna().to_numpy(np.float32)
    return pd.DataFrame(parts)
