"""The collector: joins the tables of cells and datasets, past those that failed."""

from collections.abc import Iterable
from functools import partial, update_wrapper
from typing import Any

from kedro.pipeline import Node

from robust_fairness.catalog import names
from robust_fairness.experiment.experiment import Cell, Dataset


def collect(name: str, /, **parts: Any) -> Any:
    """The rows of all parts of a table; a part that failed has none."""
    import pandas as pd

    from robust_fairness.core import tables

    found = [part for part in parts.values() if isinstance(part, pd.DataFrame)]
    return tables.TABLES[name].joined(found)


def collector(name: str, parts: Iterable[str], output: str, **options: Any) -> Node:
    """A node that joins parts of the catalog."""
    function = partial(collect, name)
    update_wrapper(function, collect)
    inputs = {part: part for part in parts}
    return Node(function, inputs or None, output, name=f"collect_{name}", **options)


def of_cells(name: str, dataset: str, cells: Iterable[Cell], part: str) -> Node:
    """The node that joins a part of a dataset's cells."""
    return collector(
        name,
        [names.of_cell(cell.name, part) for cell in cells],
        names.of_dataset(dataset, name),
        namespace=dataset,
        tags=[f"dataset.{dataset}", "fan_in"],
    )


def of_datasets(name: str, datasets: Iterable[Dataset], part: str) -> Node:
    """The node that joins a part of several datasets to a table of the run."""
    parts = [names.of_dataset(dataset.name, part) for dataset in datasets]
    return collector(name, parts, name, tags=["fan_in"])
