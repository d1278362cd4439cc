"""The shifts pipeline."""

from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import DatasetConfig, TestSet
from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import dataset_node
from robust_fairness.pipelines.shifts.nodes import shift, shift_generated
from robust_fairness.runs.configuration import loader


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
