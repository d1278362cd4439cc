"""Nodes of datasets and cells, and nodes that accept failed inputs."""

from collections.abc import Callable
from typing import Any

from kedro.pipeline import Node

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.catalog import names
from robust_fairness.core.registry import find
from robust_fairness.runs.runners import FAN_IN


class FanIn(Node):
    """A node that reads a part of every cell or dataset, hashed by its name.

    Kedro hashes a node anew for each of its inputs, and its own hash is of all of them: with one
    input per cell the time to make a pipeline would grow with the square of the cells.
    """

    def __hash__(self) -> int:
        return hash(self.name)


def source_of(named: Named) -> Any:
    """The source of a dataset."""
    return find("dataset", named.name)(named.parameters)


def dataset_node(
    dataset: str, function: Callable, inputs: Any, outputs: Any, name: str, *tags: str
) -> Node:
    """A node of a dataset."""
    tagged = [f"dataset.{dataset}", *tags]
    return Node(function, inputs, outputs, name=name, namespace=dataset, tags=tagged)


def fan_in(
    function: Callable, inputs: Any, outputs: Any, name: str, namespace: str, *tags: str
) -> FanIn:
    """A node that accepts failed inputs."""
    return FanIn(function, inputs, outputs, name=name, namespace=namespace, tags=[*tags, FAN_IN])


def cell_node(
    cell: Cell, function: Callable, inputs: Any, outputs: Any, name: str, *tags: str
) -> Node:
    """A node of a cell."""
    tagged = [f"dataset.{cell.dataset}", f"method.{cell.label}", *tags]
    return Node(function, inputs, outputs, name=name, namespace=cell.name, tags=tagged)


def tables_of(dataset: DatasetConfig) -> dict[str, list[str]]:
    """Names in the catalog of what a dataset and its cells make for the report, by table.

    Only tables that have rows are made (``part_of`` of ``core/tables.yml`` says of what).
    """
    generator = dataset.generator
    cells = {
        "cell": dataset.cells,
        "drawing": dataset.drawn_cells,
        "trials": [cell for cell in dataset.cells if cell.budget > 1],
    }
    asked = {
        "dataset": True,
        "domains": dataset.domains,
        "generator": generator,
        "reference": generator and generator.reference,
    }
    made = {
        table: [names.of_cell(cell.name, table) for cell in of]
        for maker, of in cells.items()
        for table in names.tables_of(maker)
        if of
    }
    of_dataset = names.tables_of(*(maker for maker, applies in asked.items() if applies))
    return made | {table: [names.of_dataset(dataset.name, table)] for table in of_dataset}
