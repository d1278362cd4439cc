"""The reporting pipeline."""

from collections.abc import Mapping
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.core.errors import Failure
from robust_fairness.experiment.grid import Cell, DatasetGrid
from robust_fairness.experiment.parameters import CellParameters
from robust_fairness.runs.configuration import full_grid, loader, selected_grid

SHEET = "_contact_sheet"
# What the sheets show: of a dataset that is read, and of one that is generated.
CLASSES = "The first training rows of each class, a class a row."
FAMILY = "The same test draws, a draw a row; the unshifted set first, then severity by severity."
ATTRIBUTE = "The first training rows of each value of {}, a value a row in their order."
PLANE, PLANES = "embedding_plane", "_embedding_planes"
CHOICES, SPLITS, TRIALS = "_choices", "_splits", "_trials"
CELLS = "cells"
# Endings of the names of further tables, and the table that those of all datasets make together.
OF_GENERATED = {"_distances": "distances", "_generator_quality": "generator_quality"}
FURTHER = OF_GENERATED | {
    PLANES: "planes", CHOICES: "choices", SPLITS: "splits", TRIALS: "trials", CELLS: "cells",
}  # fmt: skip


def draw(samples: Any, validation: Any, selection: Any, cell: CellParameters) -> Any:
    """The validation embeddings of a cell in the plane, one replica's."""
    from robust_fairness.core.checkpoints import threads
    from robust_fairness.reporting.embedding_plane import planes, selected

    trial, seed = selected(selection)
    own = [one for one in validation if (one.trial, one.seed, one.part) == (trial, seed, "val")]
    with threads(cell.protocol.threads):
        found = [
            planes(
                cell.dataset, cell.label, samples.of_split(one.split), seed, one.rows, one.values
            )
            for one in own
        ]
    return found[0]


def collect(**tables: Any) -> Any:
    """Join the rows of all datasets."""
    from robust_fairness.pipelines._collecting import join

    return join(tables)


def summarise(metrics: Any) -> tuple[Any, Any]:
    """The table and the figure that Kedro-Viz shows first."""
    from robust_fairness import reporting

    return reporting.summary_table(metrics), reporting.trade_off_figure(metrics)


def report(metrics: Any, manifest: dict[str, Any], **parts: Any) -> str:
    """The HTML page, which tells not selected from failed.

    Args:
        metrics: the tidy table.
        manifest: what the run knows of itself.
        parts: ``{dataset}_states`` and, if there is one, ``{dataset}_contact_sheet``,
            ``{dataset}_distances``, ``{dataset}_generator_quality``,
            ``{dataset}_embedding_planes``, ``{dataset}_choices``, ``{dataset}_splits`` and
            ``{dataset}_trials``; and ``cells``.
    """
    from robust_fairness import reporting

    cells = [
        {
            "dataset": cell.dataset,
            "method": cell.label,
            **_state(cell, parts.get(f"{cell.dataset}_states")),
        }
        for cell in full_grid().cells
    ]
    datasets = {one.name: one for one in full_grid().datasets}
    sheets = {
        name.removesuffix(SHEET): (sheet, _caption(datasets[name.removesuffix(SHEET)]))
        for name, sheet in parts.items()
        if name.endswith(SHEET) and not isinstance(sheet, Failure)
    }
    results = reporting.Results(metrics, **further(parts))
    return reporting.report(results, cells, manifest, sheets)


def _caption(dataset: DatasetGrid) -> str:
    """What the contact sheet of a dataset shows."""
    if dataset.generator:
        return FAMILY
    of = dataset.contact_sheet
    return ATTRIBUTE.format(of) if isinstance(of, str) else CLASSES


def collect_planes(**planes: Any) -> Any:
    """Join the planes of a dataset's cells; a cell that failed has left none."""
    import pandas as pd

    from robust_fairness.core import tables

    found = [plane for plane in planes.values() if not isinstance(plane, Failure)]
    return pd.concat([tables.table(tables.PLANES, []), *found], ignore_index=True)


def further(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The further tables of the datasets that have them, joined; what failed is left out.

    Args:
        parts: among others what ``report`` takes.

    Returns:
        By name as in ``results.TABLES``.
    """
    from robust_fairness.core import tables
    from robust_fairness.reporting.results import TABLES

    found: dict[str, list[Any]] = {}
    for name, part in parts.items():
        for ending, table in FURTHER.items():
            if name.endswith(ending) and not isinstance(part, Failure):
                found.setdefault(table, []).append(part)
    return {name: tables.join_rows(TABLES[name], some) for name, some in found.items()}


def describe_cells() -> Any:
    """The cells of the full grid with their facets, ``tables.CELLS``."""
    from robust_fairness.core import tables

    cells = full_grid().cells
    names = loader().names_of_cells
    rows = [{"dataset": one.dataset, "method": one.label, **names[one.name]} for one in cells]
    return tables.with_fields(tables.CELLS, rows, "facets.", [dict(one.facets) for one in cells])


def _state(cell: Cell, states: Any) -> dict[str, str]:
    """Done, failed and why, or not selected; collecting the dataset may itself have failed."""
    if isinstance(states, Failure):
        return {"state": "failed", "reason": str(states)}
    rows = [] if states is None else states.to_dict("records")
    found = {row["method"]: {"state": row["state"], "reason": row["reason"]} for row in rows}
    return found.get(cell.label, {"state": "not selected", "reason": ""})


def create_pipeline() -> Pipeline:
    """Collect, summarise and report what the grid has."""
    datasets = [dataset.name for dataset in selected_grid().datasets]
    drawn = [f"{one.name}{SHEET}" for one in selected_grid().datasets if one.contact_sheet]
    made = [one.name for one in selected_grid().datasets if one.generator]
    joined = [f"{name}{ending}" for name in made for ending in OF_GENERATED]
    joined += [f"{name}{ending}" for name in datasets for ending in (CHOICES, SPLITS, TRIALS)]
    embedded = [dataset for dataset in selected_grid().datasets if dataset.drawn_cells]
    joined += [f"{dataset.name}{PLANES}" for dataset in embedded]
    return Pipeline(
        [
            *map(_planes, embedded),
            Node(
                collect,
                {name: f"{name}_table" for name in datasets},
                "metrics",
                name="collect",
                tags=["fan_in"],
            ),
            Node(describe_cells, None, CELLS, name="describe_cells"),
            Node(summarise, "metrics", ["summary", "trade_off"], name="summarise"),
            Node(
                report,
                {
                    "metrics": "metrics",
                    "manifest": "manifest",
                    **{f"{name}_states": f"{name}_states" for name in datasets},
                    **{name: name for name in (*drawn, *joined, CELLS)},
                },
                "report",
                name="report",
                tags=["fan_in"],
            ),
        ]
    )


def _planes(dataset: DatasetGrid) -> Pipeline:
    """A node for the embeddings of every cell that is drawn, and one that joins them."""
    drawing = Node(
        draw,
        {name: name for name in ("samples", "validation", "selection")} | {"cell": "params:cell"},
        PLANE,
        name="draw_embedding_plane",
    )
    cells = dataset.drawn_cells
    labels = {cell.label: cell.label for cell in cells}
    joining = Pipeline(
        [Node(collect_planes, labels, PLANES.strip("_"), name="collect_embedding_planes")],
        namespace=dataset.name,
        inputs={cell.label: f"{cell.name}.{PLANE}" for cell in cells},
        outputs={PLANES.strip("_"): f"{dataset.name}{PLANES}"},
        tags=[f"dataset.{dataset.name}", "fan_in"],
    )
    drawn = [
        Pipeline(
            [drawing],
            namespace=cell.name,
            inputs={"samples": f"{dataset.name}.samples"},
            tags=[f"dataset.{dataset.name}", f"method.{cell.label}"],
        )
        for cell in cells
    ]
    return Pipeline([*drawn, joining])
