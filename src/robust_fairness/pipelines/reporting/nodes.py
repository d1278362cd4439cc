"""The nodes of the reporting pipeline."""

from dataclasses import dataclass
from typing import Any

from robust_fairness.bench.experiment.experiment import Experiment
from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError

# Captions of contact sheets: of a dataset that is read, and of one that is generated.
CLASSES = "The first training rows of each class, one row per class."
FAMILY = "The same test draws, one row per draw; the unshifted set first, then by severity."
ATTRIBUTE = "The first training rows of each value of {}, one row per value in their order."


@dataclass(frozen=True)
class Collected:
    """What a dataset and its cells made, without what failed. It is in memory only.

    Attributes:
        tables: data frames by name of their table, each of a cell or of the dataset.
        reasons: why a cell failed, by label; None of a cell that is done.
        contact_sheet: uint8 ``[height, width, 3]``; None without one.
    """

    tables: dict[str, list[Any]]
    reasons: dict[str, str | None]
    contact_sheet: Any = None


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


def collect(**parts: Any) -> Collected:
    """The tables of a dataset and its cells, its contact sheet, and which cells failed."""
    tables: dict[str, list[Any]] = {}
    reasons: dict[str, str | None] = {}
    for name, part in parts.items():
        place = names.parse(name)
        if place.part == "metrics":
            reasons[place.label] = str(part) if isinstance(part, Failure) else None
        if not isinstance(part, Failure):
            tables.setdefault(place.part, []).append(part)
    (sheet,) = tables.pop("contact_sheet", [None])
    return Collected(tables, reasons, sheet)


def join(*wanted: str, **results: Collected | Failure) -> dict[str, Any]:
    """The wanted tables of a run, each of the rows of all datasets; a failed one has none."""
    from robust_fairness.core import tables

    made = [result.tables for result in results.values() if isinstance(result, Collected)]
    return {
        name: tables.TABLES[name].joined([frame for part in made for frame in part.get(name, ())])
        for name in wanted
    }


def report(metrics: Any, manifest: dict[str, Any], experiment: Experiment, **parts: Any) -> str:
    """The HTML page, of tables and of what datasets made by their names in the catalog."""
    from robust_fairness import report as reporting
    from robust_fairness.papers import SECTIONS

    if isinstance(metrics, Failure):
        raise InputError(f"metrics are missing: {metrics}")
    collected = {
        dataset.name: parts.pop(names.of_dataset(dataset.name, "results"), None)
        for dataset in experiment.datasets
    }
    cells = []
    for cell in experiment.cells:
        made = collected[cell.dataset]
        state, reason = "not selected", ""
        if isinstance(made, Failure):  # collecting the dataset itself
            state, reason = "failed", str(made)
        elif made is not None and cell.label in made.reasons:
            reason = made.reasons[cell.label] or ""
            state = "done" if made.reasons[cell.label] is None else "failed"
        place = {"dataset": cell.dataset, "method": cell.label}
        cells.append(place | {"state": state, "reason": reason})
    if metrics.empty and any(cell["state"] == "done" for cell in cells):
        raise InputError("metrics: no rows although a cell is done; use another --run-id")
    sheets = {}
    for dataset in experiment.datasets:
        made, attribute = collected[dataset.name], dataset.contact_sheet
        if isinstance(made, Collected) and made.contact_sheet is not None:
            caption = ATTRIBUTE.format(attribute) if isinstance(attribute, str) else CLASSES
            sheets[dataset.name] = made.contact_sheet, FAMILY if dataset.generator else caption
    further = {name: part for name, part in parts.items() if not isinstance(part, Failure)}
    results = reporting.Results.of(metrics, **further)
    return reporting.report(results, cells, manifest, SECTIONS.values(), sheets)
