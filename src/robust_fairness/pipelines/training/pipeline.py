"""The training pipeline."""

from functools import partial

from kedro.pipeline import Pipeline

from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import cell_node
from robust_fairness.pipelines.training.nodes import select, train
from robust_fairness.runs.configuration import loader
from robust_fairness.runs.runners import GPU, TRAINS


def create_pipeline() -> Pipeline:
    """Train and select for every cell."""
    nodes = []
    for cell in loader().selected_experiment.cells:
        named = partial(names.of_cell, cell.name)
        samples, settings = names.of_dataset(cell.dataset, "samples"), f"params:{cell.name}.cell"
        trained = [named(part) for part in ("models", "validation", "history", "trials")]
        selected = [named("selection")] + ([named("choices")] if cell.budget > 1 else [])
        validated = [samples, named("validation"), settings]
        nodes += [
            cell_node(cell, train, [samples, settings], trained, "train", TRAINS, GPU),
            cell_node(cell, select, validated, selected, "select"),
        ]
    return Pipeline(nodes)
