"""The shifts pipeline."""

from collections.abc import Callable
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.core.registry import find
from robust_fairness.experiment.grid import DatasetGrid, TestSet
from robust_fairness.experiment.parameters import (
    GeneratedTestSetParameters,
    GivenTestSetParameters,
    TestSetParameters,
)
from robust_fairness.runs.configuration import selected_grid


def shift_given(samples: Any, test_set: GivenTestSetParameters) -> Any:
    """Shift a dataset that is read."""
    return shift(samples, test_set)


def shift(samples: Any, test_set: TestSetParameters) -> Any:
    """Shift the rows that some split tests on.

    The noise of a row depends on its place in the dataset, not on the number of splits.
    """
    places = _tested(samples)
    found = find("shift", test_set.shift.name)(test_set.shift.parameters)
    return found.apply(samples.take(places), test_set.severity, places)


def shift_generated(samples: Any, test_set: GeneratedTestSetParameters, generator: Any) -> Any:
    """Shift the test rows of a generated dataset: in latent space, or their images."""
    if not find("shift", test_set.shift.name).latent:
        return shift(samples, test_set)
    source = test_set.source
    dataset = find("dataset", source.source.name)(source.source.parameters)
    name = TestSet(test_set.shift.name, test_set.severity).name
    folder = f"{source.dataset}.shifted.{name}"
    return dataset.shifted(samples.take(_tested(samples)), test_set, generator, folder)


def _tested(samples: Any) -> Any:
    """Row numbers that some split tests on."""
    import numpy as np

    return np.flatnonzero((samples.splits == "test").any(axis=1))


def create_pipeline() -> Pipeline:
    """One node a test set of every dataset of the grid."""
    return Pipeline([_of_dataset(dataset) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    function: Callable[..., Any] = shift_given
    outside: dict[str, str] = {}
    if dataset.generator and dataset.test_sets:
        function, outside = shift_generated, {"generator": f"{dataset.generator.name}_generator"}
    return Pipeline(
        [
            Node(
                function,
                ["samples", f"params:shifted.{test_set.name}", *outside],
                test_set.name,
                name=f"shift_{test_set.name}",
                tags=[f"shift.{test_set.shift}"],
            )
            for test_set in dataset.test_sets
        ],
        namespace=dataset.name,
        inputs=outside,
        outputs={t.name: f"{dataset.name}.shifted.{t.name}" for t in dataset.test_sets},
        tags=[f"dataset.{dataset.name}"],
    )
