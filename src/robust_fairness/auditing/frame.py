"""Values of an audit in the vocabulary of fairlearn's ``MetricFrame``, with intervals.

Groups are those of all sensitive features together, within every level of the control features.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.functions import metrics_of_functions
from robust_fairness.auditing.metric_names import SCORES, selected
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.scores import sources_of
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.groups import Groups, groups_of
from robust_fairness.numbers.intervals import Compared, estimated
from robust_fairness.numbers.quantities import NotApplicable, Quantity, Score
from robust_fairness.numbers.rates import LinearGap

METHODS = ("between_groups", "to_overall")
GROUP = "group"
COLUMNS = ["value", "low", "high"]
UNKNOWN = (np.nan, np.nan)
FORMS = ("{}", "{}_by_group", "{}_difference", "{}_ratio")


@dataclass(frozen=True)
class Level:
    """A level of the control features: scores by metric with what gaps compare, by its groups.

    ``predictions`` have the number of the group as their only attribute.
    """

    names: tuple[str, ...]
    estimates: dict[str, tuple[dict[str, Score], Compared | None]]
    predictions: Predictions

    def of_groups(self, metric: str) -> pd.DataFrame:
        """Columns value, low, high and n by number of the group, in order."""
        scores, _ = self.estimates[f"{metric}_by_group"]
        present = self.predictions.samples.attributes[GROUP].cat.categories
        rows = [asdict(scores.get(name, Score(None, 0))) for name in present]
        table = pd.DataFrame(rows, present.astype(int))[[*COLUMNS, "n"]]
        return table.astype(dict.fromkeys(COLUMNS, "float64"))

    def overall(self, metric: str) -> dict[str, Any]:
        """Value, low, high and n of all rows."""
        score = self.estimates[metric][0][""]
        value = np.nan if score.value is None else score.value
        return {"value": value, "low": score.low, "high": score.high, "n": score.n}


class Frame:
    """Metrics by group of an audit's predictions: quantities and functions of its options."""

    predictions: Predictions
    options: Options

    @cached_property
    def _quantities(self) -> list[str]:
        metrics = [
            *(find_metric(name) for name in selected(self.options) if name not in SCORES),
            *metrics_of_functions(self.options.functions).values(),
        ]
        names = dict.fromkeys(
            metric.quantity
            for metric in metrics
            if not metric.is_measure and metric.aggregation in ("", "by_group")
        )
        if not names:
            raise InputError(
                "metrics: none of these has values by group; allowed: quantities such as accuracy, "
                "and functions"
            )
        return [*names]

    @property
    def sensitive_levels(self) -> list[str]:
        """Names of the sensitive features, the last levels of the index of ``by_group``."""
        return [str(name) for name in self.predictions.samples.attributes.select_dtypes("category")]

    @property
    def control_levels(self) -> list[str]:
        """Names of the control features, the first levels of the index of ``by_group``."""
        return [str(name) for name in self.predictions.control]

    @cached_property
    def _groups(self) -> Groups:
        """Groups of all sensitive features together."""
        if not self.sensitive_levels:
            raise InputError("sensitive features: groups need a categorical one")
        return groups_of(self.predictions.samples.attributes, self.sensitive_levels)

    @cached_property
    def _levels(self) -> list[Level]:
        """The values of every level of the control features, a single one without any."""
        metrics = metrics_of_functions(self.options.functions)
        for name in [name for name in self._quantities if name not in self.options.functions]:
            metrics |= {key: find_metric(key) for key in (form.format(name) for form in FORMS)}
        numbers = [str(number) for number in range(len(self._groups.values))]
        column = pd.Categorical.from_codes(self._groups.index, pd.Index(numbers))
        samples = replace(
            self.predictions.samples, attributes=pd.DataFrame({GROUP: column}), sensitive=(GROUP,)
        )
        predictions = replace(
            self.predictions, samples=samples, membership={}, control=pd.DataFrame()
        )
        codes = np.zeros(len(samples), np.int64)
        names: Sequence[tuple[str, ...]] = [()]
        if self.control_levels:
            strata = groups_of(self.predictions.control, self.control_levels)
            codes, names = strata.index, strata.values
        levels = []
        for number in np.unique(codes[codes >= 0]):
            some = predictions.take(np.flatnonzero(codes == number))
            estimates: dict[str, tuple[dict[str, Score], Compared | None]] = {}
            for metric, _, source in sources_of(some, metrics.values()):
                estimates[metric.name] = (
                    ({"": source.score(len(some.prediction))}, None)
                    if isinstance(source, NotApplicable)
                    else estimated(metric, source)
                )
            levels.append(Level(names[number], estimates, some))
        return levels

    @property
    def by_group(self) -> pd.DataFrame:
        """Metrics by group of all sensitive features together, as ``MetricFrame.by_group``.

        A row per level of the control features and group that has rows, columns ``(metric,
        value)``, ``(metric, low)``, ``(metric, high)`` and ``(metric, n)``. Small groups are not
        shown, gaps contain them.
        """
        parts = []
        for level in self._levels:
            groups = {name: level.of_groups(name) for name in self._quantities}
            fewest = self.options.suppress
            shown = {name: table[table["n"] >= fewest] for name, table in groups.items()}
            table = pd.concat(shown, axis=1)
            table.index = pd.MultiIndex.from_tuples(
                [(*level.names, *self._groups.values[place]) for place in table.index],
                names=[*self.control_levels, *self.sensitive_levels],
            )
            parts.append(table)
        table = pd.concat(parts)
        if table.index.nlevels == 1:
            table.index = table.index.get_level_values(0)
        return table

    @property
    def overall(self) -> pd.DataFrame:
        """Metrics of all rows, as ``MetricFrame.overall``: columns value, low, high and n.

        A row per level of the control features and metric.
        """
        return self._of_levels(Level.overall)

    def difference(self, method: str = "between_groups") -> pd.DataFrame:
        """Largest differences of the metrics, as ``MetricFrame.difference``, with intervals.

        Args:
            method: ``between_groups``, or ``to_overall``: between a group and all rows, whose mean
                is taken with the shares of these rows. Functions have no interval there.

        Returns:
            A row per level of the control features and metric, columns value, low and high.
        """
        _require_method(method)

        def of(level: Level, name: str) -> dict[str, Any]:
            values = level.of_groups(name)["value"].to_numpy()
            (_, compared), (low, high) = level.estimates[f"{name}_difference"], UNKNOWN
            value = values.max() - values.min()
            if method == "to_overall":
                value = np.abs(values - level.overall(name)["value"]).max()
                compared = compared and _to_overall(compared, level, name)
            if compared is not None:
                low, high, _ = compared.bound()
            return {"value": value, "low": low, "high": high}

        return self._of_levels(of)

    def ratio(self, method: str = "between_groups") -> pd.DataFrame:
        """Smallest ratios of the metrics, as ``MetricFrame.ratio``; two groups have intervals.

        Args:
            method: ``between_groups``, or ``to_overall``: the smaller over the larger of a group's
                value and that of all rows, without intervals.

        Returns:
            A row per level of the control features and metric, columns value, low and high.
        """
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
                    if f"{name}_ratio" in level.estimates:
                        score = level.estimates[f"{name}_ratio"][0][""]
                        low, high = score.low, score.high
            return {"value": value, "low": low, "high": high}

        return self._of_levels(of)

    def _of_levels(self, of: Any) -> pd.DataFrame:
        """A row per level of the control features and metric."""
        rows = {(*level.names, name): of(level, name) for level in self._levels
                for name in self._quantities}  # fmt: skip
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
    counts = rows.counts.get(GROUP) if rows.known is None else None
    if counts is None or counts.known().sum() < len(rows.prediction):
        return None
    weight = counts.values(definition).weight
    functions = np.eye(len(weight)) - weight / weight.sum()
    return replace(compared, gap=LinearGap(np.concatenate([functions, -functions])))
