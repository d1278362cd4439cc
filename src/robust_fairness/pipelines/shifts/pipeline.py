"""The shifts pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.grid import DatasetGrid, selected_grid
from robust_fairness.parameters import TestSetParameters
from robust_fairness.registry import find


def shift(samples: Any, test_set: TestSetParameters) -> Any:
    """Shift the whole dataset, then keep the rows that some split tests on.

    In this order, since a row's noise depends on its place, not on the number of splits.
    """
    import numpy as np

    module = find("shift", test_set.shift.name)
    shifted = module.apply(samples, test_set.severity, test_set.shift.parameters)
    return shifted.take(np.flatnonzero((samples.splits == "test").any(axis=1)))


def create_pipeline() -> Pipeline:
    """One node a test set of every dataset of the grid."""
    return Pipeline([_of_dataset(dataset) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    return Pipeline(
        [
            Node(
                shift,
                ["samples", f"params:shifted.{test_set.name}"],
                test_set.name,
                name=f"shift_{test_set.name}",
                tags=[f"shift.{test_set.shift}"],
            )
            for test_set in dataset.test_sets
        ],
        namespace=dataset.name,
        outputs={t.name: f"{dataset.name}.shifted.{t.name}" for t in dataset.test_sets},
        tags=[f"dataset.{dataset.name}"],
    )
