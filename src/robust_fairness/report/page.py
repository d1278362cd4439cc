"""The report: one page that opens from disk, without network."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.bench.citations import bibliography, sources
from robust_fairness.core.rendering.figure_html import figure, image, plotly_source
from robust_fairness.core.rendering.html import rendered, table
from robust_fairness.numbers import answers
from robust_fairness.report import first_screen, ranks, summary
from robust_fairness.report.claims.in_words import drawn, main_claim
from robust_fairness.report.figures import FIGURES, rank_diagram, trade_off
from robust_fairness.report.matrix import other_networks
from robust_fairness.report.results import CELL, Results
from robust_fairness.report.views import Section

PACKAGE = "robust_fairness.report"
NO_SHEETS: Mapping[str, tuple[np.ndarray, str]] = MappingProxyType({})
PROJECT = "../../../../"  # its folder, from the report of a run
# which the page uses itself
PROCEDURE = {"procedure": ["ranks over datasets", "agreement of measures"]}


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
    shown = [_section(results, item) for item in sections if item.concerns(results)]
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
    columns = ["dataset", "method", "state", "reason"]
    return {
        "words": summary.grid_in_words(results, cells),
        "failed": [cell for cell in cells if cell["state"] == "failed"],
        "datasets": table(
            summary.grid_table(results.metrics, cells), "The grid by dataset", headed=True
        ),
        "cells": table(pd.DataFrame(cells, columns=columns), "All cells"),
        "count": len(cells),
    }


def _ranks(results: Results) -> dict[str, Any]:
    """Methods ranked over datasets, where there are enough to test; networks are no methods."""
    cells = results.cells[other_networks(results.cells, "dataset")][CELL]
    keys = pd.MultiIndex.from_frame(results.metrics[CELL])
    tested = {
        title: compared
        for title, compared in summary.comparisons(
            results.metrics[~keys.isin(pd.MultiIndex.from_frame(cells))]
        ).items()
        if compared.test
    }
    return {
        "table": table(summary.rank_table(tested), "Average ranks of methods", headed=True),
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
    """Overview table, figures and, if there is one, contact sheet of a dataset."""
    drawn = {kind: draw(metrics, name) for kind, draw in FIGURES.items()}
    shown, nowhere = summary.overview(metrics)
    return {
        "name": name,
        "sheet": image(*sheet) if sheet else {},
        "overview": table(shown, f"{name}: scores on unshifted test rows", headed=True),
        "nowhere": nowhere,
        "figures": [
            figure(plot, f"{name}-{kind}") for kind, plot in drawn.items() if plot is not None
        ],
    }


def _section(results: Results, shown: Section) -> dict[str, Any]:
    """The views of a section that have rows, and its claims; neither if nothing of it was run."""
    made = [(view, view.rows(results)) for view in shown.views]
    parts = shown.claims(results)
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
