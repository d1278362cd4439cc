"""The training pipeline."""

from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.experiment.experiment import Cell
from robust_fairness.pipelines.nodes import cell_node
from robust_fairness.runs.configuration import loader
from robust_fairness.runs.forecast import TRAINS


def train(samples: Any, cell: Cell) -> tuple[Any, Any, Any, Any]:
    """Fit all trials and seeds of a cell."""
    from robust_fairness import training

    return training.train(samples, cell)


def select(samples: Any, validation: Any, cell: Cell) -> tuple[Any, Any]:
    """The trials selected on validation rows, and what every criterion would select."""
    from robust_fairness import training
    from robust_fairness.compute.checkpoints import threads

    with threads(cell.protocol.threads):
        selected = training.select(samples, validation, cell)
        return selected, training.compare(samples, validation, cell)


def create_pipeline() -> Pipeline:
    """Train and select for every cell."""
    return Pipeline([node for cell in loader().selected_experiment.cells for node in _nodes(cell)])


def _nodes(cell: Cell) -> list[Node]:
    named = partial(names.of_cell, cell.name)
    samples, settings = names.of_dataset(cell.dataset, "samples"), f"params:{cell.name}.cell"
    trained = [named(part) for part in ("models", "validation", "history", "trials")]
    selected = [named("selection"), named("choices")]
    validated = [samples, named("validation"), settings]
    return [
        cell_node(cell, train, [samples, settings], trained, "train", TRAINS),
        cell_node(cell, select, validated, selected, "select"),
    ]
