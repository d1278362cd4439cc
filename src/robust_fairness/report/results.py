"""The tables of a run, and their rows with facets and hyperparameters as plain columns."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial, wraps
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.core import tables
from robust_fairness.metrics import parse_metrics
from robust_fairness.metrics.criteria import EVERY, Criterion
from robust_fairness.report.statistics import sizes_of_splits

FACET, HPARAM = "facets.", "hparams."
CELL = ["dataset", "method"]
TRIAL = [*CELL, "trial"]
KEY = [*TRIAL, "seed", "shift", "severity", "domain", "attribute", "group", "metric"]
CORRECT = [*TRIAL, "seed", "shift", "severity", "correct"]
UNSHIFTED = "none"
SMALL = 50_000  # rows of a table
NOTHING: Mapping[str, str] = MappingProxyType({})
Computed = TypeVar("Computed")
Columns = TypeVar("Columns", pd.Series, pd.DataFrame)


def _no_rows(name: str) -> Any:
    return field(default_factory=partial(tables.table, tables.TABLES[name], []))


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of a run, each as declared in ``core.tables``.

    ``metrics`` may repeat a row under several selections; ``by_domain`` has the rows of single
    domains. ``correct``, of which a run has no table, has an array of bools for a replica on a test
    set: whether the class of each row was predicted. ``cells`` has a column ``facets.<name>`` per
    facet, ``trials`` a column ``hparams.<field>`` per hyperparameter that some trial changes,
    missing in the others. What ``computed_once`` computes of them is in ``computed``.
    """

    metrics: pd.DataFrame
    cells: pd.DataFrame = _no_rows("cells")
    trials: pd.DataFrame = _no_rows("trials")
    choices: pd.DataFrame = _no_rows("choices")
    correct: pd.DataFrame = field(default_factory=partial(pd.DataFrame, columns=CORRECT))
    counts: pd.DataFrame = _no_rows("counts")
    diagnosis: pd.DataFrame = _no_rows("diagnosis")
    distances: pd.DataFrame = _no_rows("distances")
    domain_columns: pd.DataFrame = _no_rows("domain_columns")
    generator_quality: pd.DataFrame = _no_rows("generator_quality")
    planes: pd.DataFrame = _no_rows("planes")
    regions: pd.DataFrame = _no_rows("regions")
    shares: pd.DataFrame = _no_rows("shares")
    splits: pd.DataFrame = _no_rows("splits")
    by_domain: pd.DataFrame = _no_rows("metrics")
    computed: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, metrics: pd.DataFrame, **others: pd.DataFrame) -> "Results":
        """Results of the tables of a run, whose metrics may have rows of single domains."""
        plain = {}
        for name, table in {"metrics": metrics, **others}.items():
            # names of columns are few in every table
            rows = table.set_axis(table.columns.astype(object), axis=1)
            if len(rows) <= SMALL:
                # texts as Python objects, in one block: selecting rows is fast then
                texts: dict[Any, Any] = dict.fromkeys(rows.select_dtypes("string"), object)
                rows = rows.astype(texts).copy()
            plain[name] = rows
        metrics = plain.pop("metrics")
        alone = metrics["domain"] != ""
        return cls(metrics[~alone], by_domain=metrics[alone], **plain)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Rows of ``metrics``, each once."""
        return distinct(self.metrics)

    @cached_property
    def studied(self) -> frozenset[str]:
        """Datasets that have scores, and those that they are forms of (facet ``study``)."""
        datasets = self.metrics["dataset"].unique()
        cells = where(self.cells, dataset=datasets).reindex(columns=[FACET + "study"])
        return frozenset([*datasets, *cells[FACET + "study"].dropna()])

    @cached_property
    def selected(self) -> pd.DataFrame:
        """Rows, of single domains too, of the trial that is shown, each once.

        That is the one that the first criterion of a dataset selects, or else the default one.
        """
        every = pd.concat([self.by_domain, self.metrics])
        parts = [of_shown_trial(rows) for _, rows in every.groupby("dataset", sort=False)]
        return distinct(pd.concat([every.iloc[:0], *parts]))

    @cached_property
    def selected_counts(self) -> pd.DataFrame:
        """Rows of ``counts`` of the replicas in ``selected``."""
        replica = [*TRIAL, "seed"]
        return self.counts.merge(self.selected[replica].drop_duplicates(), on=replica)

    @cached_property
    def comparable(self) -> pd.DataFrame:
        """Rows of ``metrics`` of datasets that have several models or shifted test sets."""
        scored = self.metrics[["dataset", "method", "seed", "shift", "severity"]].drop_duplicates()
        several = scored["dataset"].value_counts() > 1
        return where(self.metrics, dataset=several.index[several])

    @cached_property
    def unshifted(self) -> pd.DataFrame:
        """Rows of the unshifted test sets, each once."""
        return where(self.scores, shift=UNSHIFTED)

    @cached_property
    def sizes_of_splits(self) -> pd.DataFrame:
        """``statistics.sizes_of_splits`` by dataset."""
        return sizes_of_splits(self.splits).set_index("dataset")

    @cached_property
    def sensitive(self) -> frozenset[tuple[str, str]]:
        """Datasets with their declared sensitive attributes, intersections of these among them."""
        rows = self.counts.loc[self.counts["sensitive"], ["dataset", "attribute"]]
        return frozenset(rows.drop_duplicates().itertuples(index=False, name=None))

    def declares(self, dataset: str, attribute: str) -> bool:
        """Whether an attribute, or each of an intersection, is a sensitive one of a dataset.

        Where nothing was counted, the first attribute that is scored is.
        """
        if any(name == dataset for name, _ in self.sensitive):
            return (dataset, attribute) in self.sensitive
        rows = where(self.metrics, dataset=dataset)["attribute"]
        return attribute in ("", next(iter(rows[rows != ""]), ""))

    def with_facets(
        self, rows: pd.DataFrame, names: Sequence[str], otherwise: Mapping[str, str] = NOTHING
    ) -> pd.DataFrame:
        """Rows with the facets of their cells, "" if a cell does not have one.

        Args:
            rows: rows with the columns dataset and method.
            names: facets, or other columns of ``cells``.
            otherwise: columns whose values replace missing ones, by facet.
        """
        if rows.empty:
            return rows.assign(**{name: pd.Series(dtype=object) for name in names})
        columns = {name if name in self.cells else FACET + name: name for name in names}
        facets = self.cells.reindex(columns=[*CELL, *columns]).rename(columns=columns)
        result = rows.merge(facets, how="left", on=CELL)
        for name in names:
            value = result[otherwise[name]] if name in otherwise else ""
            known = result[name].astype(object)
            result[name] = known.mask(known.isna() | (known == ""), value)
        return result

    def with_hparams(self, rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Rows of the trials that change nothing but some hyperparameters, with their values.

        Args:
            rows: rows with the columns dataset, method and trial.
            names: hyperparameters; a value is missing if the trial does not change it.
        """
        if rows.empty:
            return rows.assign(**dict.fromkeys(names, np.nan))
        columns = {HPARAM + name: name for name in names}
        others = self.trials.columns.difference([*tables.TRIALS, *columns])
        default = self.trials[self.trials["trial"] == DEFAULT_TRIAL][[*CELL, *others]]
        changed, usual = self.trials[others], self.trials[CELL].merge(default, how="left", on=CELL)
        same = (_missing(changed) | (changed == usual[others].set_index(changed.index))).all(axis=1)
        values = self.trials[same].reindex(columns=[*TRIAL, *columns]).rename(columns=columns)
        values[list(names)] = values[list(names)].mask(_missing(values[list(names)]))
        result = rows.merge(values, how="left", on=TRIAL, indicator="known")
        kept = (result["known"] == "both") | (result["trial"] == DEFAULT_TRIAL)
        return result[kept].drop(columns="known")


# Fields that are tables of a run, which the catalog has by the same names.
TABLES = tuple(item.name for item in fields(Results) if item.name in tables.TABLES)


def computed_once(compute: Callable[..., Computed]) -> Callable[..., Computed]:
    """A function of results, and of hashable arguments, that is computed once for each of them.

    Views share what it returns, and must not change it.
    """

    @wraps(compute)
    def shared(results: Results, *arguments: Hashable) -> Computed:
        key = compute, arguments
        if key not in results.computed:
            results.computed[key] = compute(results, *arguments)
        known: Computed = results.computed[key]
        return known

    return shared


def _missing(values: Columns) -> Columns:
    """Where a column, or the columns of a data frame, have neither a number nor a text."""
    return values.isna() | (values == "")


def where(rows: pd.DataFrame, /, **values: Any) -> pd.DataFrame:
    """The rows that have the given value, or one of several, in each of the named columns."""
    kept = np.arange(len(rows))
    for column, value in values.items():
        if not len(kept):
            break
        known = rows[column] if len(kept) == len(rows) else rows[column].iloc[kept]
        kept = kept[known.isin(value if is_list_like(value) else [value]).to_numpy()]
    return rows if len(kept) == len(rows) else rows.iloc[kept]


def distinct(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows, without repetitions under further selections."""
    return metrics.drop_duplicates(KEY)


def of_shown_trial(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a dataset of the trial that its first criterion selects, or else the default one."""
    criteria = [name for name in rows["selection"].unique() if name != EVERY]
    return rows[rows["selection"] == criteria[0] if criteria else rows["trial"] == DEFAULT_TRIAL]


def with_metrics(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Rows with columns of ``parse_metrics``: quantity, aggregation, better or an option.

    An option is missing if the metric does not have it.
    """
    if rows.empty:
        return rows.assign(**{name: pd.Series(dtype=object) for name in names})
    metrics = pd.Series(rows["metric"].unique(), dtype=rows["metric"].dtype)
    facts = parse_metrics(metrics).reindex(columns=list(names)).assign(metric=metrics)
    return rows.merge(facts, how="left", on="metric")


def objectives(selections: pd.Series) -> pd.Series:
    """The metric that each criterion optimises; missing for ``every``."""
    known = {text: Criterion.parse(text).objective.metric for text in set(selections) - {EVERY}}
    return selections.map(known)
