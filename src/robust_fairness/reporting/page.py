"""The report: one page that opens from disk, without network."""

import base64
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment
from markupsafe import Markup
from PIL import Image
from plotly.offline import get_plotlyjs

from robust_fairness.reporting import (
    bias_mitigation,
    equalized_robustness,
    fair_metric_learning,
    kernel_fairness,
    latent_shift,
    trial_selection,
)
from robust_fairness.reporting.figures import FIGURES, trade_off
from robust_fairness.reporting.statistics import distinct

PAPERS = (
    equalized_robustness,
    bias_mitigation,
    kernel_fairness,
    latent_shift,
    fair_metric_learning,
    trial_selection,
)
LONG = 40  # rows; a longer table is folded
MOST_ROWS = 1000  # of a view on the page; the files hold all
KEYS = ["dataset", "method", "trial", "selection", "shift", "severity", "attribute", "metric"]
SHOWN_SELECTION = "every"  # where trials are shown one by one, not in the overview


def summary_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of everything that is not of single groups.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns dataset, method, trial, selection, shift, severity, attribute, metric, mean,
        deviation, seeds, note. A missing mean has its reason in the note.
    """
    rows = metrics[metrics["group"] == ""]
    return rows.groupby(KEYS, as_index=False, sort=False).agg(
        mean=("value", "mean"),
        deviation=("value", "std"),
        seeds=("value", "count"),
        note=("note", "first"),
    )


def trade_off_figure(metrics: pd.DataFrame) -> go.Figure:
    """The trade-off of the first dataset that has one; an empty figure where none has."""
    found = (trade_off(metrics, name) for name in dict.fromkeys(metrics["dataset"]))
    return next((figure for figure in found if figure is not None), go.Figure())


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
        manifest: what the run knows of itself.
        pictures: contact sheets by dataset, uint8 ``[height, width, 3]``, and what each shows.
        further: tables of ``views.FURTHER`` by name, where the run has them.
    """
    template = files("robust_fairness.reporting") / "templates" / "report.html"
    # autoescape: names of datasets and groups come from data files
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        template.read_text(encoding="utf-8")
    )
    made = [_paper(metrics, paper, further) for paper in PAPERS]
    return page.render(
        plotly=Markup(get_plotlyjs()),  # noqa: S704 - the library's own source
        manifest=manifest,
        manifest_text=json.dumps(manifest, indent=2, default=str),
        cells=cells,
        datasets=[
            {**_dataset(metrics, name), "picture": _png(*(pictures or {}).get(name, (None,)))}
            for name in dict.fromkeys(metrics["dataset"])
        ],
        papers=[paper for paper in made if paper["views"] or paper["claims"]],
    )


def _dataset(metrics: pd.DataFrame, name: str) -> dict[str, Any]:
    """Overview table and figures of a dataset."""
    drawn = {kind: draw(metrics, name) for kind, draw in FIGURES.items()}
    return {
        "name": name,
        "overview": _html(_overview(metrics[metrics["dataset"] == name])),
        "figures": [
            _figure(figure, f"{name}-{kind}")
            for kind, figure in drawn.items()
            if figure is not None
        ],
    }


def _png(picture: np.ndarray | None, shows: str = "") -> dict[str, str]:
    """A picture as text that a page can hold, and what it shows; empty where there is none."""
    if picture is None:
        return {}
    content = BytesIO()
    Image.fromarray(picture).save(content, format="PNG")
    return {"content": base64.b64encode(content.getvalue()).decode(), "shows": shows}


def _overview(metrics: pd.DataFrame) -> pd.DataFrame:
    """Methods by metrics, the unshifted test set, the trial that was selected."""
    rows = metrics[(metrics["shift"] == "none") & (metrics["selection"] != SHOWN_SELECTION)]
    if rows.empty:
        rows = distinct(metrics[(metrics["shift"] == "none")])
    summary = summary_table(rows)
    summary["shown"] = summary.apply(_shown, axis=1)
    summary["metric"] += summary["attribute"].map(lambda name: f" ({name})" if name else "")
    methods = list(dict.fromkeys(summary["method"]))
    order = list(dict.fromkeys(summary["metric"]))
    wide = summary.pivot_table(
        index="metric", columns="method", values="shown", aggfunc="first", sort=False
    )
    seeds = summary.groupby("metric")["seeds"].max()
    return wide.reindex(order)[methods].assign(seeds=seeds).reset_index()


def _shown(row: Any) -> str:
    """Mean and deviation of a row of the summary, or why there is none."""
    return _number(row["mean"], row["deviation"]) if row["seeds"] else row["note"] or "n/a"


def _number(mean: float, deviation: float) -> str:
    return f"{mean:.4g}" if pd.isna(deviation) else f"{mean:.4g} ± {deviation:.2g}"


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
        "views": [
            {
                "id": view.id,
                "title": view.title,
                "note": view.note,
                "table": _html(frame.head(MOST_ROWS)),
                "rows": len(frame),
                "folded": len(frame) > LONG,
                "left_out": max(0, len(frame) - MOST_ROWS),
                "figure": view.draw and _figure(view.draw(frame), view.id),
            }
            for view, frame in made
            if len(frame)
        ],
        "not_run": [view.title for view, frame in made if not len(frame)],
        "claims": _html(claims) if len(claims) else "",
    }


def _html(frame: pd.DataFrame) -> Markup:
    """A table with escaped cells, numbers short, missing values as n/a."""
    shown = [[_cell(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in frame.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in shown
    )
    return Markup(  # noqa: S704 - every cell is escaped above
        "<div class='scroll'><table>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and pd.isna(value)):
        return "n/a"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _figure(figure: go.Figure, name: str) -> dict[str, Any]:
    text = figure.layout.title.text
    return {
        "label": f"{text}. The numbers stand in the tables of this page.",
        "html": Markup(  # noqa: S704 - plotly escapes what it draws
            figure.to_html(
                full_html=False,
                include_plotlyjs=False,
                div_id=f"figure-{name}",
                config={"responsive": True, "displaylogo": False},
            )
        ),
    }
