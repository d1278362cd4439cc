"""Views: the results of a run as the tables and figures of a paper."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.resources import files
from operator import attrgetter
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import yaml

from robust_fairness.bench.experiment.yaml_source import FASTER
from robust_fairness.core.rendering.figures import drawn
from robust_fairness.metrics.criteria import EVERY
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.report.claims import declared, effects
from robust_fairness.report.results import CELL, FACET, Results, where, with_metrics
from robust_fairness.report.statistics import over_seeds

PUBLISHED = {
    "view": "str", "dataset": "str", "method": "str", "trial": "str", "shift": "str",
    "severity": "float64", "attribute": "str", "group": "str", "metric": "str",
    "value": "float64", "std": "float64", "low": "float64", "high": "float64", "note": "str",
    "notion": "str", "weight": "float64", "explicit": "str", "field": "str", "published": "str",
}  # fmt: skip
NUMBERS = [name for name, kind in PUBLISHED.items() if kind == "float64"]
PLACE = ["dataset", "method", "trial", "shift", "severity", "attribute", "group", "metric"]


@dataclass(frozen=True)
class About:
    """The runs that may have rows of a view or a section: those with any of these, or all runs.

    Attributes:
        paper: whose claims and published numbers name datasets.
        datasets: further ones, and those that have them as facet ``study``.
        tables: of ``Results``, with rows.
        facets: of cells.
        shifts: of scores.
        quantities: that metrics measure.
    """

    paper: str = ""
    datasets: Collection[str] = ()
    tables: Collection[str] = ()
    facets: Collection[str] = ()
    shifts: Collection[str] = ()
    quantities: Collection[str] = ()

    def fits(self, results: Results) -> bool:
        """Whether a run is one of them; the page of another one does not compute the rows."""
        if self == About():
            return True
        names = {*self.datasets, *(datasets_of(self.paper) if self.paper else ())}
        rows = results.metrics
        known = (
            not results.studied.isdisjoint(names)
            or any(len(getattr(results, name)) for name in self.tables)
            or any(FACET + name in results.cells for name in self.facets)
            or rows["shift"].isin(self.shifts).any()
        )
        if known or not self.quantities:
            return bool(known)
        measured = with_metrics(rows.drop_duplicates("metric"), ["quantity"])["quantity"]
        return bool(measured.isin(self.quantities).any())


@dataclass(frozen=True, eq=False)
class View:
    """A table or figure of a paper, as a ``views.yml`` declares it.

    Attributes:
        id: short name, for links.
        title: what the paper calls it and what it shows.
        note: what the paper says about it, or how to read it.
        make: returns its rows from ``results``; none if nothing of it was run.
        draw: draws these rows, for what the paper shows as a figure.
        needs: tables of ``Results`` without which it has no rows.
        about: the runs that it is shown of, if it has rows.
        columns: those that are shown, with their titles; all if there are none.
    """

    id: str
    title: str
    note: str
    make: Callable[..., pd.DataFrame]
    draw: Callable[[pd.DataFrame], go.Figure] | None
    needs: tuple[str, ...]
    about: About
    columns: Mapping[str, str]

    def rows(self, results: Results) -> pd.DataFrame:
        """The rows shown."""
        if any(getattr(results, name).empty for name in self.needs):
            return pd.DataFrame()
        rows = self.make(results=results)
        return (
            rows[[*self.columns]].rename(columns=self.columns)
            if self.columns and len(rows)
            else rows
        )


@dataclass(frozen=True, eq=False)
class Section:
    """The views of a paper, or of a question across papers.

    Attributes:
        name: that of its module, or of the paper.
        title: its title.
        views: its views.
        measured: of a paper, returns the scores that its claims are about.
        about: the runs that it is shown of, if it has rows.
    """

    name: str
    title: str
    views: tuple[View, ...]
    measured: Callable[[Results], pd.DataFrame] | None
    about: About

    def claims(self, results: Results) -> pd.DataFrame:
        """``claims.effects.table`` of a paper."""
        assert self.measured is not None
        return effects.table(declared.listed()[self.name], self.measured(results), results)


def own_section(name: str) -> Section:
    """The section that a module of the report makes, as ``views.yml`` declares it."""
    package = "robust_fairness.report"
    fields = {"module": name} | declared_in(package)[name]
    return section_of(f"{package}.{fields.pop('module')}", name, **fields)


def declared_in(package: str) -> dict[str, Any]:
    """The views that a package declares."""
    text = (files(package) / "views.yml").read_text(encoding="utf-8")
    result: dict[str, Any] = yaml.load(text, FASTER)  # a safe loader
    return result


def section_of(module: str, name: str, title: str, views: Mapping[str, Any]) -> Section:
    """A section.

    Args:
        module: that has the functions of its views.
        name: of the section.
        title: its title.
        views: as declared, by name.
    """
    functions = vars(import_module(module))
    scope = SimpleNamespace(**{**GENERIC, **functions})
    made = tuple(_view(key, scope, **fields) for key, fields in views.items())
    return Section(name, title, made, functions.get("measured"), functions.get("ABOUT", About()))


def _view(
    key: str,
    scope: SimpleNamespace,
    rows: str,
    title: str,
    note: str = "",
    options: Mapping[str, Any] = MappingProxyType({}),
    figure: str = "",
    looks: Mapping[str, Any] = MappingProxyType({}),
    needs: Sequence[str] = (),
    about: Mapping[str, Any] = MappingProxyType({}),
    columns: Sequence[str] = (),
    titles: Mapping[str, str] = MappingProxyType({}),
) -> View:
    make = partial(attrgetter(rows)(scope), **options)
    if figure == "drawn":
        looks = {"title": title, **looks}
    draw = partial(attrgetter(figure)(scope), **looks) if figure else None
    shown = {name: titles.get(name, name) for name in columns}
    return View(key, title, note, make, draw, tuple(needs), About(**about), shown)


@cache
def datasets_of(paper: str) -> frozenset[str]:
    """The datasets, and those that others are forms of, that a paper's claims name."""
    parts = [
        part
        for claim in declared.listed()[paper]
        for written in (claim, claim.of_default_run())
        for part in written.each()
    ]
    named = [
        side[column]
        for part in parts
        for side in (part.rows, part.first, part.second)
        for column in ("dataset", "study")
        if column in side
    ]
    return frozenset(np.hstack([published(paper)["dataset"].unique(), *named]).tolist())


@cache
def published(paper: str, table: str = "published") -> pd.DataFrame:
    """The numbers that a paper printed, as fractions; columns of ``PUBLISHED``."""
    path = files("robust_fairness.papers") / paper / f"{table}.csv"
    with path.open(encoding="utf-8") as file:
        missing = {name: [""] for name in NUMBERS}
        return pd.read_csv(file, dtype=PUBLISHED, keep_default_na=False, na_values=missing)


def beside_published(paper: str, view: str, results: Results) -> pd.DataFrame:
    """The published numbers of a view beside ours; see ``beside``."""
    return beside(where(published(paper), view=view), results.scores)


def beside(theirs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Published numbers beside the mean, standard deviation and number of seeds of ours.

    Cells that were not run have 0 seeds. There are no rows if no cell of the view was run.
    """
    ours = over_seeds(rows[rows["metric"].isin(theirs["metric"])], PLACE)
    joined = joined_published(theirs, ours, PLACE)
    if not joined["seeds"].any():
        return joined.iloc[:0]
    return joined[[*PLACE, "published", "published std", "ours", "std", "seeds", "note"]]


def joined_published(theirs: pd.DataFrame, ours: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Published numbers, as columns published and published std, with ours by ``keys``."""
    renamed = theirs.rename(columns={"value": "published", "std": "published std"})
    joined = renamed.merge(ours, how="left", on=keys)
    return joined.assign(seeds=joined["seeds"].fillna(0).astype(int))


def selected_beside(theirs: pd.DataFrame, rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The trial that each criterion selected beside the published hyperparameters, by ``keys``.

    ``theirs`` has the columns field and published, one row per hyperparameter.
    """
    trials = rows[rows["selection"] != EVERY]
    trials = trials[list(dict.fromkeys([*CELL, *keys, "selection", "trial"]))].drop_duplicates()
    theirs = theirs.assign(published=theirs["field"] + " = " + theirs["published"])
    shown = theirs.groupby(keys, as_index=False, sort=False).agg(
        published=("published", ", ".join),
        note=("note", lambda notes: "; ".join(filter(None, notes.unique()))),
    )
    return trials.merge(shown, how="left", on=keys)


def subgroups(dataset: str, attribute: str, results: Results) -> pd.DataFrame:
    """Accuracy and rows of every group and class of an attribute, with Wilson's interval.

    The interval is that of one replica with the mean accuracy over seeds: with few rows it, rather
    than the spread over seeds, shows how little is known.
    """
    place = {"dataset": dataset, "attribute": attribute, "trial": "default"}
    rows = where(results.scores, metric="accuracy_by_subgroup", **place)
    keys = ["method", "shift", "severity", "group"]
    result = over_seeds(rows, keys).merge(
        rows.groupby(keys, as_index=False).agg(rows=("n", "min")), on=keys
    )
    low, high = wilson_interval(result["ours"].to_numpy(), result["rows"].to_numpy())
    return result.assign(low=low, high=high)


def sizes_of_splits(results: Results) -> pd.DataFrame:
    """``Results.sizes_of_splits`` as a table."""
    return results.sizes_of_splits.reset_index()


# What views of several sections name.
GENERIC = {
    "beside_published": beside_published, "drawn": drawn, "sizes_of_splits": sizes_of_splits,
    "subgroups": subgroups,
}  # fmt: skip
