"""The tables of a run, and their rows with facets and hyperparameters as plain columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.experiment.parameters import DEFAULT_TRIAL, EVERY
from robust_fairness.metrics.criteria import Criterion

FACET, HPARAM = "facets.", "hparams."
CELL = ["dataset", "method"]
TRIAL = [*CELL, "trial"]
REPLICA = [*TRIAL, "seed"]
KEY = [*REPLICA, "shift", "severity", "domain", "attribute", "group", "metric"]
UNSHIFTED = "none"
NOTHING: Mapping[str, str] = MappingProxyType({})


def _empty(columns: Mapping[str, str]) -> pd.DataFrame:
    return field(default_factory=partial(tables.table, dict(columns), []))


@dataclass(frozen=True, eq=False)
class Results:
    """The tables of a run, each as declared in ``core.tables``.

    Attributes:
        metrics: the tidy table; a row may occur under several selections.
        cells: one row per cell, with a column ``facets.<name>`` per facet.
        trials: one row per trial, with a column ``hparams.<field>`` per hyperparameter that some
            trial changes; missing where a trial does not change it.
        choices: the trial that each criterion selects.
        distances: distances of test sets to the training set.
        generator_quality: accuracy of classifiers of real rows on generated rows.
        planes: 2-D projections of validation embeddings.
        splits: sizes of splits.
    """

    metrics: pd.DataFrame
    cells: pd.DataFrame = _empty(tables.CELLS)
    trials: pd.DataFrame = _empty(tables.TRIALS)
    choices: pd.DataFrame = _empty(tables.CHOICES)
    distances: pd.DataFrame = _empty(tables.DISTANCES)
    generator_quality: pd.DataFrame = _empty(tables.GENERATOR_QUALITY)
    planes: pd.DataFrame = _empty(tables.PLANES)
    splits: pd.DataFrame = _empty(tables.SPLITS)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Rows of ``metrics``, each once."""
        return self.metrics.drop_duplicates(KEY)

    @cached_property
    def unshifted(self) -> pd.DataFrame:
        """Rows of the unshifted test sets, each once."""
        return self.scores[self.scores["shift"] == UNSHIFTED]

    def with_facets(
        self, rows: pd.DataFrame, names: Sequence[str], otherwise: Mapping[str, str] = NOTHING
    ) -> pd.DataFrame:
        """Rows with the facets of their cells, missing where a cell does not have one.

        Args:
            rows: rows with the columns dataset and method.
            names: facets, or other columns of ``cells``.
            otherwise: columns whose values replace missing ones, by facet.
        """
        columns = {name if name in self.cells else FACET + name: name for name in names}
        facets = self.cells.reindex(columns=[*CELL, *columns]).rename(columns=columns)
        found = rows.merge(facets, how="left", on=CELL)
        for name, column in otherwise.items():
            found[name] = found[name].where(found[name].notna(), found[column])
        return found

    def with_hparams(self, rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
        """Rows of the trials that change nothing but some hyperparameters, with their values.

        Args:
            rows: rows with the columns dataset, method and trial.
            names: hyperparameters; a value is missing where the trial does not change it.
        """
        columns = dict(zip([HPARAM + name for name in names], names, strict=True))
        others = [name for name in self.trials if name.startswith(HPARAM) and name not in columns]
        known = self.trials[self.trials[others].isna().all(axis=1)]
        changed = known.reindex(columns=[*TRIAL, *columns]).rename(columns=columns)
        found = rows.merge(changed, how="left", on=TRIAL, indicator="known")
        kept = (found["known"] == "both") | (found["trial"] == DEFAULT_TRIAL)
        return found[kept].drop(columns="known")


def objectives(selections: pd.Series) -> pd.Series:
    """The metric that each criterion optimises; missing for ``every``."""
    known = {text: Criterion.parse(text).objective for text in set(selections) - {EVERY}}
    return selections.map(known)
