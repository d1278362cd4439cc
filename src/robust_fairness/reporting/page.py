"""The report: one page that opens from disk, without network."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.rendering.html import figure, image, rendered, table
from robust_fairness.reporting import (
    agreement,
    bias_mitigation,
    equalized_robustness,
    fair_metric_learning,
    kernel_fairness,
    latent_shift,
    ranks,
    summary,
    trial_selection,
)
from robust_fairness.reporting.citations import bibliography, sources
from robust_fairness.reporting.figures import FIGURES, rank_diagram, trade_off

PAPERS = (
    equalized_robustness,
    bias_mitigation,
    kernel_fairness,
    latent_shift,
    fair_metric_learning,
)
ACROSS = (agreement, trial_selection)  # of no single paper
VIEWS = {view.id: view for paper in (*PAPERS, *ACROSS) for view in paper.VIEWS}
# which the page uses itself
PROCEDURE = {"procedure": ["ranks over datasets", "agreement of measures"]}


def trade_off_figure(metrics: pd.DataFrame) -> go.Figure:
    """The trade-off of the first dataset that has one; an empty figure where none has."""
    found = (trade_off(metrics, name) for name in dict.fromkeys(metrics["dataset"]))
    return next((one for one in found if one is not None), go.Figure())


def report(
    metrics: pd.DataFrame,
    cells: Sequence[Mapping[str, str]],
    manifest: Mapping[str, Any],
    pictures: Mapping[str, tuple[np.ndarray, str]] | None = None,
    further: Mapping[str, pd.DataFrame] | None = None,
) -> str:
    """The page of a run as HTML; the same arguments give the same text.

    Args:
        metrics: rows of the tidy table.
        cells: dataset, method, state ("done", "failed", "not selected") and reason of every cell
            of the full grid.
        manifest: what the run knows of itself; ``used`` are names by kind of all it used.
        pictures: contact sheets by dataset, uint8 ``[height, width, 3]``, and what each shows.
        further: tables of ``views.FURTHER`` by name, where the run has them.
    """
    made = [_paper(metrics, paper, further) for paper in (*PAPERS, *ACROSS)]
    return rendered(
        "robust_fairness.reporting",
        "report.html",
        manifest=manifest,
        manifest_text=json.dumps(manifest, indent=2, default=str),
        grid=_grid(metrics, cells),
        ranks=_ranks(metrics),
        datasets=[
            _dataset(own, str(name), (pictures or {}).get(str(name)))
            for name, own in metrics.groupby("dataset", sort=False)
        ],
        papers=[paper for paper in made if paper["views"] or paper["claims"]],
        citations=_citations(manifest),
    )


def _grid(metrics: pd.DataFrame, cells: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """What was run: in words, by dataset and cell by cell."""
    columns = ["dataset", "method", "state", "reason"]
    return {
        "words": summary.grid_in_words(metrics, cells),
        "failed": [cell for cell in cells if cell["state"] == "failed"],
        "datasets": table(summary.grid_table(metrics, cells), "The grid by dataset", headed=True),
        "cells": table(pd.DataFrame(cells, columns=columns), "All cells"),
        "count": len(cells),
    }


def _ranks(metrics: pd.DataFrame) -> dict[str, Any]:
    """Methods ranked over datasets, with a test; ``table`` is empty where there is not enough."""
    found = summary.comparisons(metrics)
    ranked = summary.rank_table(found)
    drawn = {title: rank_diagram(one, f"Average ranks by {title}") for title, one in found.items()}
    return {
        "table": table(ranked, "Average ranks of methods", headed=True) if len(ranked) else "",
        "comparisons": [
            {
                "title": title,
                "words": ranks.in_words(one),
                "figure": drawn[title] and figure(drawn[title], f"ranks-{number}"),
            }
            for number, (title, one) in enumerate(found.items())
        ],
    }


def _dataset(
    metrics: pd.DataFrame, name: str, sheet: tuple[np.ndarray, str] | None
) -> dict[str, Any]:
    """Overview table, figures and, where there is one, contact sheet of a dataset."""
    drawn = {kind: draw(metrics, name) for kind, draw in FIGURES.items()}
    shown, nowhere = summary.overview(metrics)
    return {
        "name": name,
        "picture": image(*sheet) if sheet else {},
        "overview": table(shown, f"{name}: scores on unshifted test rows", headed=True),
        "nowhere": nowhere,
        "figures": [
            figure(one, f"{name}-{kind}") for kind, one in drawn.items() if one is not None
        ],
    }


def _paper(
    metrics: pd.DataFrame, paper: Any, further: Mapping[str, pd.DataFrame] | None
) -> dict[str, Any]:
    """Views and claims of a paper; views without anything run are named, not shown.

    A paper of which nothing was run has neither.
    """
    made = [(view, view.rows(metrics, further)) for view in paper.VIEWS]
    claims = paper.claims(metrics)
    return {
        "title": paper.TITLE,
        "published": paper in PAPERS,
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
        "not_run": [view.title for view, frame in made if not len(frame)],
        "claims": table(claims, f"{paper.TITLE}: claims") if len(claims) else "",
    }


def _citations(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the run used and its sources; empty where the manifest does not tell."""
    used = dict(manifest.get("used") or {})
    if not used:
        return {}
    rows = [
        {"kind": one.kind, "name": one.name, "source": ", ".join(one.keys), "note": one.note}
        for one in sources(used)
    ]
    shown = table(pd.DataFrame(rows), "Sources of what was used")
    return {"table": shown, "bibtex": bibliography(used | PROCEDURE)}
