"""What the pipelines of cells share: one copy of some nodes for every cell of the grid."""

from collections.abc import Callable, Sequence

from kedro.pipeline import Node, Pipeline

from robust_fairness.experiment.grid import DatasetGrid
from robust_fairness.runs.configuration import selected_grid


def shifted_inputs(dataset: DatasetGrid) -> dict[str, str]:
    """Node inputs for all shifted test sets of a dataset, by test set."""
    return {test_set.name: test_set.name for test_set in dataset.test_sets}


def for_every_cell(nodes: Callable[[DatasetGrid], Sequence[Node]]) -> Pipeline:
    """The nodes in the namespace of every cell; samples are those of the cell's dataset."""
    return Pipeline([_of_dataset(dataset, nodes(dataset)) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid, nodes: Sequence[Node]) -> Pipeline:
    shared = {"samples": f"{dataset.name}.samples"}
    shared |= {name: f"{dataset.name}.shifted.{name}" for name in shifted_inputs(dataset)}
    used = {name for node in nodes for name in node.inputs}
    return Pipeline(
        [
            Pipeline(
                nodes,
                namespace=cell.name,
                inputs={name: full for name, full in shared.items() if name in used},
                tags=[f"dataset.{dataset.name}", f"method.{cell.label}"],
            )
            for cell in dataset.cells
        ]
    )
