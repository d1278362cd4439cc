"""The report: one page that opens from disk, without network."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.bench.citations import bibliography, sources
from robust_fairness.core.numbers import counted, written
from robust_fairness.core.rendering.figures import figure, image, plotly_source
from robust_fairness.core.rendering.html import rendered, table
from robust_fairness.metrics.criteria import EVERY
from robust_fairness.numbers import answers
from robust_fairness.report import first_screen, ranks
from robust_fairness.report.claims.in_words import drawn, main_claim
from robust_fairness.report.figures import FAIRNESS, FIGURES, QUALITY, rank_diagram, trade_off
from robust_fairness.report.matrix import other_networks
from robust_fairness.report.results import CELL, UNSHIFTED, Results, distinct, where
from robust_fairness.report.views import Section

PACKAGE = "robust_fairness.report"
NO_SHEETS: Mapping[str, tuple[np.ndarray, str]] = MappingProxyType({})
PROJECT = "../../../../"  # its folder, from the report of a run
# which the page uses itself
PROCEDURE = {"procedure": ["ranks over datasets", "agreement of measures"]}
SUMMARISED = [
    "dataset", "method", "trial", "selection", "shift", "severity", "domain", "attribute", "metric",
]  # fmt: skip
STATES = ("done", "failed", "not selected")


def summary_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of all scores but those of single groups.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns dataset, method, trial, selection, shift, severity, domain, attribute, metric,
        mean, std, seeds, note. A missing mean has its reason in the note.
    """
    return (
        where(metrics, group="")
        .groupby(SUMMARISED, as_index=False, sort=False)
        .agg(
            mean=("value", "mean"),
            std=("value", "std"),
            seeds=("value", "count"),
            note=("note", "first"),
        )
    )


def trade_off_figure(metrics: pd.DataFrame) -> go.Figure:
    """The trade-off of the first dataset that has one; an empty figure if none has."""
    figures = (trade_off(metrics, name) for name in dict.fromkeys(metrics["dataset"]))
    return next((drawn for drawn in figures if drawn is not None), go.Figure())


@pd.option_context("mode.string_storage", "python")  # see Results
def report(
    results: Results,
    cells: Sequence[Mapping[str, str]],
    manifest: Mapping[str, Any],
    sections: Iterable[Section],
    sheets: Mapping[str, tuple[np.ndarray, str]] = NO_SHEETS,
) -> str:
    """The page of a run as HTML; the same arguments give the same text.

    Args:
        results: the tables of the run.
        cells: dataset, method, state ("done", "failed", "not selected") and reason of every cell
            of the full grid.
        manifest: the manifest of the run; ``used`` has the names by kind of all it used.
        sections: of papers and questions, in their order; one that the run does not concern, or
            of which it has no rows, is left out.
        sheets: contact sheets by dataset, uint8 ``[height, width, 3]``, with their captions.
    """
    metrics = results.metrics
    failed = {
        (cell["dataset"], cell["method"]): cell["reason"]
        for cell in cells
        if cell["state"] == "failed"
    }
    shown = [_section(results, item) for item in sections if item.about.fits(results)]
    return rendered(
        PACKAGE,
        "report.html",
        plotly=plotly_source(),
        manifest=manifest,
        manifest_text=json.dumps(manifest, indent=2, default=str),
        grid=_grid(results, cells),
        panels=first_screen.panels(results, failed),
        unknown=answers.NOTHING,
        ranks=_ranks(results),
        datasets=[
            _dataset(rows, str(name), sheets.get(str(name)))
            for name, rows in metrics.groupby("dataset", sort=False)
        ],
        project=PROJECT,
        sections=[section for section in shown if section["views"] or section["claims"]],
        citations=_citations(manifest),
    )


def _grid(results: Results, cells: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """The grid in words, by dataset and cell by cell."""
    metrics = results.metrics
    shifted = metrics[metrics["shift"] != UNSHIFTED]
    counts = {
        "datasets": metrics["dataset"].nunique(),
        "methods": metrics["method"].nunique(),
        "networks": metrics["network"].nunique(),
        "domains": results.by_domain["domain"].nunique(),
        "shifts": shifted["shift"].nunique(),
        "seeds": metrics["seed"].nunique(),
    }
    size = counted({name: n for name, n in counts.items() if n})
    states = [cell["state"] for cell in cells if cell["state"] != "not selected"]
    ended = ", ".join(f"{states.count(state)} {state}" for state in ("done", "failed"))
    frame = pd.DataFrame(cells, columns=["dataset", "method", "state", "reason"])
    return {
        "words": f"{size}; {counted({'cells': len(states)})}: {ended}.",
        "failed": [cell for cell in cells if cell["state"] == "failed"],
        "datasets": table(_by_dataset(metrics, frame), "The grid by dataset", headed=True),
        "cells": table(frame, "All cells"),
        "count": len(cells),
    }


def _by_dataset(metrics: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """A row per dataset: its methods, networks, shifts and seeds, and its cells by state."""
    rows = []
    for name, states in cells.groupby("dataset", sort=False)["state"]:
        subset = where(metrics, dataset=name)
        shifted = subset[subset["shift"] != UNSHIFTED].groupby("shift", sort=False)["severity"]
        shifts = "; ".join(
            f"{shift} {', '.join(f'{severity:g}' for severity in sorted(values))}"
            for shift, values in shifted.unique().items()
        )
        rows.append(
            {
                "dataset": name,
                "methods": ", ".join(subset["method"].unique()),
                "networks": ", ".join(subset["network"].unique()),
                "shifts": shifts,
                "seeds": subset["seed"].nunique(),
                **{state: (states == state).sum() for state in STATES},
            }
        )
    return pd.DataFrame(
        rows, columns=["dataset", "methods", "networks", "shifts", "seeds", *STATES]
    )


def _ranks(results: Results) -> dict[str, Any]:
    """Methods ranked over datasets, where there are enough to test; networks are no methods.

    They are ranked by one quality and one unfairness, unshifted and shifted: of the metrics that
    the figures show, each is the one with scores on most datasets.
    """
    cells = results.cells[other_networks(results.cells, "dataset")][CELL]
    keys = pd.MultiIndex.from_frame(results.metrics[CELL])
    metrics = results.metrics[~keys.isin(pd.MultiIndex.from_frame(cells))]
    tested = {}
    for names in (QUALITY, FAIRNESS):
        rows = where(metrics, metric=names).dropna(subset="value")
        datasets = rows.groupby("metric")["dataset"].nunique()
        name = max(names, key=lambda name: datasets.get(name, 0))
        for shifted in (False, True) if datasets.max() >= ranks.FEWEST else ():
            compared = ranks.comparison_of(metrics, name, shifted)
            if compared.test:
                tested[f"{name}, {'shifted' if shifted else 'unshifted'}"] = compared
    by_method = pd.DataFrame({title: compared.ranks for title, compared in tested.items()})
    by_method = by_method.sort_values([*tested][:1]) if tested else by_method
    shown = by_method.rename_axis("method").reset_index()
    return {
        "table": table(shown, "Average ranks of methods", headed=True),
        "comparisons": [
            {
                "title": title,
                "words": ranks.in_words(compared),
                "figure": figure(
                    rank_diagram(compared, f"Average ranks by {title}"), f"ranks-{number}"
                ),
            }
            for number, (title, compared) in enumerate(tested.items())
        ],
    }


def _dataset(
    metrics: pd.DataFrame, name: str, sheet: tuple[np.ndarray, str] | None
) -> dict[str, Any]:
    """Overview table, figures and, if there is one, contact sheet of a dataset.

    The table has metrics by methods on the unshifted rows, of the selected trials; ``nowhere`` is
    why some metrics are not in it: they are defined for none of the methods.
    """
    rows = where(metrics, shift=UNSHIFTED)
    selected = rows[rows["selection"] != EVERY]
    summary = summary_table(selected if len(selected) else distinct(rows))
    columns = (summary[column] for column in ("seeds", "mean", "std", "note"))
    summary["shown"] = [
        (str(note) or "n/a")
        if not seeds
        else written(mean)
        if pd.isna(std)
        else f"{written(mean)} ± {written(std, 2)}"
        for seeds, mean, std, note in zip(*columns, strict=True)
    ]
    summary["metric"] += summary["attribute"].map(lambda name: f" ({name})" if name else "")
    defined = summary.groupby("metric", sort=False)["seeds"].transform("max") > 0
    kept, nowhere = summary[defined], summary[~defined].drop_duplicates("metric")
    reasons = nowhere.groupby("shown", sort=False)["metric"].agg(", ".join)
    wide = kept.pivot_table(
        index="metric", columns="method", values="shown", aggfunc="first", sort=False
    ).reindex(columns=list(summary["method"].unique()))
    seeds = kept.groupby("metric", sort=False)["seeds"].max()
    shown = wide.assign(seeds=seeds).reset_index()
    figures = {kind: draw(metrics, name) for kind, draw in FIGURES.items()}
    return {
        "name": name,
        "sheet": image(*sheet) if sheet else {},
        "overview": table(shown, f"{name}: scores on unshifted test rows", headed=True),
        "nowhere": [f"{reason} ({names})" for reason, names in reasons.items()],
        "figures": [
            figure(plot, f"{name}-{kind}") for kind, plot in figures.items() if plot is not None
        ],
    }


def _section(results: Results, shown: Section) -> dict[str, Any]:
    """The views of a section that have rows, and its claims; neither if nothing of it was run."""
    made = [(view, view.rows(results)) for view in shown.views if view.about.fits(results)]
    parts = shown.claims(results) if shown.measured else pd.DataFrame()
    run = len(parts) > 0 and (parts["state"] != "not run").any()
    return {
        "title": shown.title,
        "published": shown.measured is not None,
        "main": main_claim(shown.name, parts) if run else {},
        "document": f"studies/{shown.name}/README.md",
        "verdicts": drawn({"": parts}) if run else "",
        "views": [
            {
                "id": view.id,
                "title": view.title,
                "note": view.note,
                "table": table(frame, view.title),
                "figure": view.draw and figure(view.draw(frame), view.id),
            }
            for view, frame in made
            if len(frame)
        ],
        "claims": table(parts, f"{shown.title}: claims") if run else "",
    }


def _citations(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The sources of what the run used; empty if the manifest does not list it."""
    used = dict(manifest.get("used") or {})
    if not used:
        return {}
    rows = [
        (source.kind, source.name, ", ".join(source.keys), source.note) for source in sources(used)
    ]
    columns = ["kind", "name", "source", "note"]
    shown = table(pd.DataFrame(rows, columns=columns), "Sources of what was used")
    return {"table": shown, "bibtex": bibliography(used | PROCEDURE)}
