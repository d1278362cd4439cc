"""Values of an audit in the vocabulary of fairlearn's ``MetricFrame``, with intervals.

Groups are those of all sensitive features together, within every level of the control features.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.functions import metrics_of_functions
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.scores import SCORES, scored, selected
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.groups import groups_of
from robust_fairness.numbers.intervals import Compared
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.rates import LinearGap

METHODS = ("between_groups", "to_overall")
GROUP = "group"
COLUMNS = ["value", "low", "high"]
UNKNOWN = (np.nan, np.nan)


@dataclass(frozen=True)
class Level:
    """A level of the control features: its values, overall and by group, and what gaps compare."""

    names: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    rows: pd.DataFrame
    compared: dict[str, Compared]
    predictions: Predictions

    def of_groups(self, metric: str) -> pd.DataFrame:
        """Columns value, low, high and n by number of the group, in order."""
        rows = self.rows[self.rows["metric"] == f"{metric}_by_group"]
        return rows.assign(place=rows["group"].astype(int)).set_index("place").sort_index()

    def overall(self, metric: str) -> pd.Series:
        """Value, low, high and n of all rows."""
        return self.rows[self.rows["metric"] == metric].iloc[0]


@dataclass(frozen=True)
class Frame:
    """Metrics by group of an audit's predictions.

    Attributes:
        predictions: the predictions.
        options: what is scored; names of quantities and functions.
    """

    predictions: Predictions
    options: Options

    @cached_property
    def metrics(self) -> list[str]:
        """Names of the quantities."""
        functions = metrics_of_functions(self.options.functions)
        metrics = [
            *(find_metric(name) for name in selected(self.options) if name not in SCORES),
            *functions.values(),
        ]
        named = [
            (metric.quantity, metric.aggregation)
            for metric in metrics
            if not metric.is_measure and metric.aggregation in ("", "by_group")
        ]
        names = [*dict.fromkeys(quantity for quantity, _ in named)]
        if not names:
            raise InputError(
                "metrics: none of these has values by group; allowed: quantities such as accuracy, "
                "and functions"
            )
        return names

    @property
    def sensitive_levels(self) -> list[str]:
        """Names of the sensitive features."""
        return [str(name) for name in self.predictions.samples.attributes.select_dtypes("category")]

    @property
    def control_levels(self) -> list[str]:
        """Names of the control features."""
        return [str(name) for name in self.predictions.control]

    @cached_property
    def levels(self) -> list[Level]:
        """The values of every level of the control features, a single one without any."""
        return list(self._levels())

    def _levels(self) -> Iterator[Level]:
        predictions, names = self.predictions, self.metrics
        if not self.sensitive_levels:
            raise InputError("sensitive features: groups need a categorical one")
        groups = groups_of(predictions.samples.attributes, self.sensitive_levels)
        of_users = [name for name in names if name in self.options.functions]
        wanted = [
            form.format(name)
            for name in names
            if name not in of_users
            for form in ("{}", "{}_by_group", "{}_difference", "{}_ratio")
        ]
        options = replace(
            self.options, metrics=wanted, control_features=(), membership={}, small=0,
            intersections=False, sensitive_features=[GROUP],
        )  # fmt: skip
        codes = np.zeros(len(groups.codes), np.int64)
        values: Sequence[tuple[str, ...]] = [()]
        if self.control_levels:
            strata = groups_of(predictions.control, self.control_levels)
            codes, values = strata.index, strata.values
        for number, level in enumerate(values):
            some = predictions.take(np.flatnonzero(codes == number))
            if not len(some.prediction):
                continue
            of_level = groups.index[codes == number]
            kept = np.unique(of_level[of_level >= 0])
            column = pd.Categorical.from_codes(
                np.where(of_level >= 0, np.searchsorted(kept, of_level), -1),
                pd.Index([str(place) for place in range(len(kept))]),
            )
            samples = replace(some.samples, attributes=pd.DataFrame({GROUP: column}),
                              sensitive=(GROUP,))  # fmt: skip
            some = replace(some, samples=samples, membership={}, control=pd.DataFrame())
            made = scored(some, options)
            compared = {metric: part for (_, metric), part in made.compared.items()}
            yield Level(
                level, tuple(groups.values[code] for code in kept), made.rows, compared, some
            )

    def by_group(self) -> pd.DataFrame:
        """See ``Audit.by_group``."""
        parts = []
        for level in self.levels:
            frames = {name: level.of_groups(name) for name in self.metrics}
            places = next(iter(frames.values())).index
            table = pd.concat(
                {name: part[[*COLUMNS, "n"]] for name, part in frames.items()}, axis=1
            )
            table.index = pd.MultiIndex.from_tuples(
                [(*level.names, *level.groups[place]) for place in places],
                names=[*self.control_levels, *self.sensitive_levels],
            )
            parts.append(table)
        table = pd.concat(parts)
        if table.index.nlevels == 1:
            table.index = table.index.get_level_values(0)
        return table

    def overall(self) -> pd.DataFrame:
        """See ``Audit.overall``."""
        return self._of_levels(
            lambda level, name: level.overall(name)[[*COLUMNS, "n"]].to_dict()
        )  # fmt: skip

    def difference(self, method: str) -> pd.DataFrame:
        """See ``Audit.difference``."""
        _require_method(method)

        def of(level: Level, name: str) -> dict[str, Any]:
            values = level.of_groups(name)["value"].to_numpy()
            compared, (low, high) = level.compared.get(f"{name}_difference"), UNKNOWN
            value = values.max() - values.min()
            if method == "to_overall":
                value = np.abs(values - level.overall(name)["value"]).max()
                compared = compared and _to_overall(compared, level, name)
            if compared is not None:
                bound = compared.bound()
                low, high = bound.low, bound.high
            return {"value": value, "low": low, "high": high}

        return self._of_levels(of)

    def ratio(self, method: str) -> pd.DataFrame:
        """See ``Audit.ratio``."""
        _require_method(method)

        def of(level: Level, name: str) -> dict[str, Any]:
            values = level.of_groups(name)["value"].to_numpy()
            low, high = UNKNOWN
            with np.errstate(divide="ignore", invalid="ignore"):
                if method == "to_overall":
                    shares = values / level.overall(name)["value"]
                    value = np.minimum(shares, 1 / shares).min()
                else:
                    value = values.min() / values.max()
                    rows = level.rows[level.rows["metric"] == f"{name}_ratio"]
                    if len(rows):
                        low, high = rows.iloc[0][["low", "high"]]
            return {"value": value, "low": low, "high": high}

        return self._of_levels(of)

    def _of_levels(self, of: Any) -> pd.DataFrame:
        """A row per level of the control features and metric."""
        rows = {(*level.names, name): of(level, name) for level in self.levels
                for name in self.metrics}  # fmt: skip
        table = pd.DataFrame(rows.values())
        if self.control_levels:
            table.index = pd.MultiIndex.from_tuples(rows, names=[*self.control_levels, "metric"])
        else:
            table.index = pd.Index([name for (name,) in rows], name="metric")
        return table


def _require_method(method: str) -> None:
    if method not in METHODS:
        raise InputError(f"method: {method!r}, allowed: {' or '.join(METHODS)}")


def _to_overall(compared: Compared, level: Level, name: str) -> Compared | None:
    """Groups against all rows, whose mean has the shares of these rows; None of other means."""
    try:
        definition = find_metric(name).definition
    except InputError:  # a function of a user's own
        return None
    if not isinstance(definition, Quantity) or definition.rows is None:
        return None
    rows = level.predictions
    counts = rows.counts(False)[GROUP] if rows.samples.classes and rows.known is None else None
    if counts is None or counts.known().sum() < len(rows.prediction):
        return None
    weight = counts.values(definition).weight
    functions = np.eye(len(weight)) - weight / weight.sum()
    return replace(compared, gap=LinearGap(np.concatenate([functions, -functions])))
