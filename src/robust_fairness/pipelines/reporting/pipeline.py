"""The reporting pipeline."""

from collections.abc import Iterator
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.experiment.experiment import Cell, Dataset, Experiment
from robust_fairness.pipelines.nodes import DIAGNOSED, cell_node, fan_in, of_cells, of_datasets
from robust_fairness.runs.configuration import loader

# Captions of contact sheets: of a dataset that is read, and of one that is generated.
CLASSES = "The first training rows of each class, one row per class."
FAMILY = "The same test draws, one row per draw; the unshifted set first, then by severity."
ATTRIBUTE = "The first training rows of each value of {}, one row per value in their order."
PLANE = "embedding_plane"
# Tables of the report beside the metrics.
FURTHER = (
    "cells", "choices", "diagnosis", "distances", "domain_columns", "frontier",
    "generator_quality", "planes", "regions", "shares", "splits", "trials",
)  # fmt: skip


def draw(samples: Any, validation: Any, selection: Any, cell: Cell) -> Any:
    """The validation embeddings of one replica of a cell in the plane."""
    from robust_fairness.core.checkpoints import threads
    from robust_fairness.reporting.embedding_plane import planes, selected

    trial, seed = selected(selection)
    own = next(one for one in validation if (one.trial, one.seed, one.part) == (trial, seed, "val"))
    with threads(cell.protocol.threads):
        seen = samples.of_split(own.split)
        return planes(cell.dataset, cell.label, seen, seed, own.rows, own.values)


def describe_cells() -> Any:
    """The cells of the full experiment with their facets, ``tables.CELLS``."""
    from robust_fairness.core import tables

    datasets = loader().full_experiment.datasets
    described = [(dataset, cell) for dataset in datasets for cell in dataset.cells]
    rows = [
        {
            "dataset": cell.dataset,
            "method": cell.label,
            "algorithm": cell.method.name,
            "network": cell.network.name,
            "sees": ", ".join(cell.sees),
            "postprocessing": cell.postprocessing.name if cell.postprocessing else "",
            "margin": dataset.margin,
        }
        for dataset, cell in described
    ]
    return tables.CELLS.table(rows, [cell.facets for _, cell in described])


def summarise(metrics: Any) -> tuple[Any, Any]:
    """The table and the figure that Kedro-Viz shows first."""
    from robust_fairness import reporting

    overall = metrics[metrics["domain"] == ""]
    return reporting.summary_table(metrics), reporting.trade_off_figure(overall)


def report(metrics: Any, manifest: dict[str, Any], **parts: Any) -> str:
    """The HTML page, of tables, states and contact sheets by their names in the catalog."""
    from robust_fairness import reporting

    if isinstance(metrics, Failure):
        raise InputError(f"metrics are missing: {metrics}")
    experiment = loader().full_experiment
    cells = [
        {"dataset": cell.dataset, "method": cell.label, **_state(cell, parts)}
        for cell in experiment.cells
    ]
    if metrics.empty and any(cell["state"] == "done" for cell in cells):
        raise InputError("metrics: no rows although a cell is done; use another --run-id")
    made = {name: one for name, one in parts.items() if not isinstance(one, Failure)}
    sheets = {
        one.name: (made[_sheet(one)], _caption(one))
        for one in experiment.datasets
        if _sheet(one) in made
    }
    further = {name: made[name] for name in FURTHER if name in made}
    return reporting.report(reporting.Results.of(metrics, **further), cells, manifest, sheets)


def _sheet(dataset: Dataset) -> str:
    return names.of_dataset(dataset.name, "contact_sheet")


def _caption(dataset: Dataset) -> str:
    if dataset.generator:
        return FAMILY
    attribute = dataset.contact_sheet
    return ATTRIBUTE.format(attribute) if isinstance(attribute, str) else CLASSES


def _state(cell: Cell, parts: dict[str, Any]) -> dict[str, str]:
    """Done, failed and why, or not selected; collecting the dataset may itself have failed."""
    states = parts.get(names.of_dataset(cell.dataset, "states"))
    if isinstance(states, Failure):
        return {"state": "failed", "reason": str(states)}
    rows = [] if states is None else states.to_dict("records")
    found = {row["method"]: {"state": row["state"], "reason": row["reason"]} for row in rows}
    return found.get(cell.label, {"state": "not selected", "reason": ""})


def create_pipeline() -> Pipeline:
    """Collect, summarise and report."""
    experiment = loader().selected_experiment
    inputs = ["metrics", "manifest", *FURTHER]
    for dataset in experiment.datasets:
        inputs += [names.of_dataset(dataset.name, "states")]
        inputs += [_sheet(dataset)] if dataset.contact_sheet else []
    return Pipeline(
        [
            *(_plane(cell) for dataset in experiment.datasets for cell in dataset.drawn_cells),
            *_collectors(experiment),
            Node(describe_cells, None, "cells", name="describe_cells"),
            Node(summarise, "metrics", ["summary", "trade_off"], name="summarise"),
            fan_in(report, {name: name for name in inputs}, "report", "report"),
        ]
    )


def _plane(cell: Cell) -> Node:
    inputs = {part: names.of_cell(cell.name, part) for part in ("validation", "selection")}
    inputs |= {
        "samples": names.of_dataset(cell.dataset, "samples"),
        "cell": f"params:{cell.name}.cell",
    }
    return cell_node(cell, draw, inputs, names.of_cell(cell.name, PLANE), "draw_embedding_plane")


def _collectors(experiment: Experiment) -> Iterator[Node]:
    datasets = experiment.datasets
    generated = [dataset for dataset in datasets if dataset.generator]
    drawn = [dataset for dataset in datasets if dataset.drawn_cells]
    for dataset in datasets:
        for part in ("choices", "trials"):
            yield of_cells(part, dataset.name, dataset.cells, part)
        if dataset.drawn_cells:
            yield of_cells("planes", dataset.name, dataset.drawn_cells, PLANE)
    yield of_datasets("metrics", datasets, "table")
    for part in ("choices", "trials", "splits"):
        yield of_datasets(part, datasets, part)
    for part in DIAGNOSED:
        yield of_datasets(part, [one for one in datasets if one.domains], part)
    for part in ("distances", "generator_quality"):
        yield of_datasets(part, generated, part)
    yield of_datasets("planes", drawn, "planes")
