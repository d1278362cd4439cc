"""The nodes of the reporting pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig, Experiment
from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.pipelines.evaluation.nodes import join

# Captions of contact sheets: of a dataset that is read, and of one that is generated.
CLASSES = "The first training rows of each class, one row per class."
FAMILY = "The same test draws, one row per draw; the unshifted set first, then by severity."
ATTRIBUTE = "The first training rows of each value of {}, one row per value in their order."
# Tables of the run that are joined from those of datasets, and those of the report beside metrics.
COLLECTED = names.tables_of("cell", "dataset", "domains", "generator")
FURTHER = tuple(name for name in ("cells", *COLLECTED) if name != "metrics")


def describe_cells(experiment: Experiment) -> Any:
    """The cells of the full experiment with their facets, ``tables.CELLS``."""
    from robust_fairness.core import tables

    described = [(dataset, cell) for dataset in experiment.datasets for cell in dataset.cells]
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
    from robust_fairness import report as reporting

    overall = metrics[metrics["domain"] == ""]
    return reporting.summary_table(metrics), reporting.trade_off_figure(overall)


def collect(**results: Any) -> dict[str, Any]:
    """The tables of a run, each of the rows of all datasets; a failed one has none."""
    made = [dataset for dataset in results.values() if not isinstance(dataset, Failure)]
    return {name: join(name, [part[name] for part in made if name in part]) for name in COLLECTED}


def report(metrics: Any, manifest: dict[str, Any], experiment: Experiment, **parts: Any) -> str:
    """The HTML page, of tables and the results of datasets by their names in the catalog."""
    from robust_fairness import report as reporting
    from robust_fairness.papers import SECTIONS

    if isinstance(metrics, Failure):
        raise InputError(f"metrics are missing: {metrics}")
    cells = [
        {"dataset": cell.dataset, "method": cell.label, **_state(cell, parts)}
        for cell in experiment.cells
    ]
    if metrics.empty and any(cell["state"] == "done" for cell in cells):
        raise InputError("metrics: no rows although a cell is done; use another --run-id")
    made = {name: part for name, part in parts.items() if not isinstance(part, Failure)}
    sheets = {}
    for dataset in experiment.datasets:
        results = made.get(names.of_dataset(dataset.name, "results"), {})
        if "contact_sheet" in results:
            sheets[dataset.name] = results["contact_sheet"], _caption(dataset)
    further = {name: made[name] for name in FURTHER if name in made}
    results = reporting.Results.of(metrics, **further)
    return reporting.report(results, cells, manifest, SECTIONS.values(), sheets)


def _caption(dataset: DatasetConfig) -> str:
    if dataset.generator:
        return FAMILY
    attribute = dataset.contact_sheet
    return ATTRIBUTE.format(attribute) if isinstance(attribute, str) else CLASSES


def _state(cell: Cell, parts: dict[str, Any]) -> dict[str, str]:
    """Done, failed and why, or not selected; collecting the dataset may itself have failed."""
    results = parts.get(names.of_dataset(cell.dataset, "results"))
    if isinstance(results, Failure):
        return {"state": "failed", "reason": str(results)}
    rows = results["states"].to_dict("records") if results else []
    states = {row["method"]: {"state": row["state"], "reason": row["reason"]} for row in rows}
    return states.get(cell.label, {"state": "not selected", "reason": ""})
