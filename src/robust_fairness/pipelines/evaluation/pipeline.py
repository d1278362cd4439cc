"""The evaluation pipeline."""

from functools import partial

from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig
from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import cell_node, fan_in
from robust_fairness.pipelines.evaluation.nodes import diagnose, draw, evaluate, predict
from robust_fairness.runs.configuration import loader

DIAGNOSED = names.tables_of("domains")


def create_pipeline() -> Pipeline:
    """Predict and evaluate for every cell."""
    nodes: list[Node] = []
    for dataset in loader().selected_experiment.datasets:
        for cell in dataset.cells:
            named = partial(names.of_cell, cell.name)
            shared = {
                "samples": names.of_dataset(dataset.name, "samples"),
                "selection": named("selection"),
                "cell": f"params:{cell.name}.cell",
                **shifted_inputs(dataset),
            }
            models, predictions = named("models"), named("predictions")
            scored = [named("metrics"), named("counts")]
            inputs = shared | {"predictions": predictions}
            nodes += [
                cell_node(cell, predict, shared | {"models": models}, predictions, "predict"),
                cell_node(cell, evaluate, inputs, scored, "evaluate"),
            ]
        nodes += map(_drawing, dataset.drawn_cells)
        if dataset.domains:
            nodes.append(_diagnosing(dataset))
    return Pipeline(nodes)


def shifted_inputs(dataset: DatasetConfig) -> dict[str, str]:
    """The shifted test sets of a dataset as inputs of a node, by test set."""
    named = partial(names.of_test_set, dataset.name)
    return {test_set.name: named(test_set.name) for test_set in dataset.test_sets}


def _drawing(cell: Cell) -> Node:
    inputs = {part: names.of_cell(cell.name, part) for part in ("validation", "selection")}
    inputs |= {
        "samples": names.of_dataset(cell.dataset, "samples"),
        "cell": f"params:{cell.name}.cell",
    }
    return cell_node(cell, draw, inputs, names.of_cell(cell.name, "planes"), "draw_planes")


def _diagnosing(dataset: DatasetConfig) -> Node:
    parts = [names.of_cell(cell.name, "predictions") for cell in dataset.cells]
    inputs = {name: name for name in parts} | {
        "samples": names.of_dataset(dataset.name, "samples"),
        "dataset": f"params:{dataset.name}.dataset",
    }
    outputs = {part: names.of_dataset(dataset.name, part) for part in DIAGNOSED}
    return fan_in(diagnose, inputs, outputs, "diagnose", dataset.name, f"dataset.{dataset.name}")
