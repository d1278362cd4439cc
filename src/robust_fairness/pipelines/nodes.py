"""Nodes of datasets and cells, and nodes that join their tables without the failed ones."""

from collections.abc import Callable, Iterable
from functools import partial, update_wrapper
from typing import Any

from kedro.pipeline import Node

from robust_fairness.catalog import names
from robust_fairness.core.registry import find
from robust_fairness.experiment.experiment import Cell, Dataset
from robust_fairness.experiment.plugins import Named
from robust_fairness.runs.runners import FAN_IN

# Tables of a dataset with domains.
DIAGNOSED = ("diagnosis", "domain_columns", "frontier", "regions", "shares")


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


def fan_in(function: Callable, inputs: Any, outputs: Any, name: str, dataset: str = "") -> FanIn:
    """A node that accepts failed inputs, of a dataset or of the run."""
    tags = [f"dataset.{dataset}", FAN_IN] if dataset else [FAN_IN]
    return FanIn(function, inputs, outputs, name=name, namespace=dataset or None, tags=tags)


def cell_node(cell: Cell, function: Callable, inputs: Any, outputs: Any, name: str) -> Node:
    """A node of a cell."""
    tags = [f"dataset.{cell.dataset}", f"method.{cell.label}"]
    return Node(function, inputs, outputs, name=name, namespace=cell.name, tags=tags)


def collect(name: str, /, **parts: Any) -> Any:
    """The rows of all parts of a table; a part that failed has none."""
    import pandas as pd

    from robust_fairness.core import tables

    found = [part for part in parts.values() if isinstance(part, pd.DataFrame)]
    return tables.TABLES[name].joined(found)


def _collector(name: str, parts: Iterable[str], output: str, dataset: str = "") -> Node:
    function = partial(collect, name)
    update_wrapper(function, collect)
    inputs = {part: part for part in parts}
    return fan_in(function, inputs or None, output, f"collect_{name}", dataset)


def of_cells(name: str, dataset: str, cells: Iterable[Cell], part: str) -> Node:
    """The node that joins a part of a dataset's cells."""
    parts = [names.of_cell(cell.name, part) for cell in cells]
    return _collector(name, parts, names.of_dataset(dataset, name), dataset)


def of_datasets(name: str, datasets: Iterable[Dataset], part: str) -> Node:
    """The node that joins a part of several datasets to a table of the run."""
    return _collector(name, [names.of_dataset(one.name, part) for one in datasets], name)
