"""The training pipeline."""

from functools import partial

from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import cell_node
from robust_fairness.pipelines.training.nodes import select, train
from robust_fairness.runs.configuration import loader
from robust_fairness.runs.forecast import TRAINS
from robust_fairness.runs.runners import GPU


def create_pipeline() -> Pipeline:
    """Train and select for every cell."""
    return Pipeline([node for cell in loader().selected_experiment.cells for node in _nodes(cell)])


def _nodes(cell: Cell) -> list[Node]:
    named = partial(names.of_cell, cell.name)
    samples, settings = names.of_dataset(cell.dataset, "samples"), f"params:{cell.name}.cell"
    trained = [named(part) for part in ("models", "validation", "history", "trials")]
    selected = [named("selection")] + ([named("choices")] if cell.budget > 1 else [])
    validated = [samples, named("validation"), settings]
    return [
        cell_node(cell, train, [samples, settings], trained, "train", TRAINS, GPU),
        cell_node(cell, select, validated, selected, "select"),
    ]
