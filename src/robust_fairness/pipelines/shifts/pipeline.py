"""The shifts pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.core.registry import find
from robust_fairness.experiment.experiment import DatasetConfig, TestSet
from robust_fairness.pipelines.nodes import dataset_node, source_of
from robust_fairness.runs.configuration import loader


def shift(samples: Any, test_set: TestSet) -> Any:
    """Shift the rows that some split tests on.

    The noise of a row depends on its place in the dataset, not on the number of splits.
    """
    places = _tested(samples)
    plugin = find("shift", test_set.shift.name)(test_set.shift.parameters)
    return plugin.apply(samples.take(places), test_set.severity, places)


def shift_generated(samples: Any, test_set: TestSet, dataset: DatasetConfig, generator: Any) -> Any:
    """Shift the test rows of a generated dataset: in latent space, or their images."""
    if not find("shift", test_set.shift.name).latent:
        return shift(samples, test_set)
    folder = names.of_test_set(dataset.name, test_set.name)
    return source_of(dataset.source).shifted(
        samples.take(_tested(samples)), test_set, generator, folder
    )


def _tested(samples: Any) -> Any:
    """Row numbers that some split tests on."""
    import numpy as np

    return np.flatnonzero((samples.splits == "test").any(axis=1))


def create_pipeline() -> Pipeline:
    """One node per test set of every dataset."""
    datasets = loader().selected_experiment.datasets
    return Pipeline(
        [_node(dataset, test_set) for dataset in datasets for test_set in dataset.test_sets]
    )


def _node(dataset: DatasetConfig, test_set: TestSet) -> Node:
    inputs = [
        names.of_dataset(dataset.name, "samples"),
        f"params:{dataset.name}.shifted.{test_set.name}",
    ]
    if dataset.generator:
        generator = names.of_dataset(dataset.generator.name, "generator")
        inputs += [f"params:{dataset.name}.dataset", generator]
    function = shift_generated if dataset.generator else shift
    output, name = names.of_test_set(dataset.name, test_set.name), f"shift_{test_set.name}"
    tag = f"shift.{test_set.called}"
    return dataset_node(dataset.name, function, inputs, output, name, tag)
