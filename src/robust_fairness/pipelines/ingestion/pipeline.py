"""The ingestion pipeline; the trainings of a design share what one node reads."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.experiment.experiment import DatasetConfig
from robust_fairness.pipelines.nodes import dataset_node, source_of
from robust_fairness.runs.configuration import loader


def ingest(dataset: DatasetConfig) -> Any:
    """Samples of a dataset with its named splits."""
    return within_domains(read(dataset), dataset)


def read(dataset: DatasetConfig) -> Any:
    """Samples of a dataset, all domains alike."""
    from robust_fairness.datasets.files import dataset_files

    return source_of(dataset.source).load(dataset_files(), dataset.seeds)


def within_domains(samples: Any, dataset: DatasetConfig) -> Any:
    """The samples with those domains held out that the dataset is not trained on."""
    from robust_fairness.samples.domains import hold_out_domains

    if dataset.domains is None:
        return samples
    return hold_out_domains(samples, **dataset.domains.model_dump())


def generate(dataset: DatasetConfig, generator: Any) -> Any:
    """Samples of a dataset of generated images."""
    folder = names.of_dataset(dataset.name, "samples")
    return source_of(dataset.source).generate(generator, dataset.seeds, folder)


def describe_splits(samples: Any, dataset: DatasetConfig) -> Any:
    """Sizes of the named splits of a dataset, and how much they share."""
    from robust_fairness.samples.splits import described

    return described(dataset.name, samples.splits)


def draw(samples: Any, dataset: DatasetConfig) -> Any:
    """Images of some rows of every class, or of every value of an attribute."""
    from robust_fairness.reporting import contact_sheet

    if isinstance(dataset.contact_sheet, str):
        return contact_sheet.attribute_sheet(samples, dataset.contact_sheet)
    return contact_sheet.contact_sheet(samples)


def create_pipeline() -> Pipeline:
    """Read or generate and describe every dataset, draw those with a contact sheet."""
    datasets = loader().selected_experiment.datasets
    designs: dict[str, list[DatasetConfig]] = {}
    for dataset in datasets:
        if dataset.name != dataset.base:
            designs.setdefault(dataset.base, []).append(dataset)
    return Pipeline(
        [
            *(_reading(base, trainings) for base, trainings in designs.items()),
            *(node for dataset in datasets for node in _nodes(dataset)),
        ]
    )


def _reading(base: str, trainings: Sequence[DatasetConfig]) -> Node:
    """The node that reads a table once for all trainings of a design."""
    settings = f"params:{trainings[0].name}.dataset"
    tags = (f"dataset.{training.name}" for training in trainings)
    return dataset_node(base, read, settings, names.of_dataset(base, "rows"), "ingest", *tags)


def _nodes(dataset: DatasetConfig) -> list[Node]:
    named, node = partial(names.of_dataset, dataset.name), partial(dataset_node, dataset.name)
    settings, samples = f"params:{dataset.name}.dataset", named("samples")
    inputs = [samples, settings]
    if dataset.generator:
        generator = names.of_dataset(dataset.generator.name, "generator")
        source = node(generate, [settings, generator], samples, "generate")
    elif dataset.name != dataset.base:
        shared = names.of_dataset(dataset.base, "rows")
        source = node(within_domains, [shared, settings], samples, "hold_out_domains")
    else:
        source = node(ingest, settings, samples, "ingest")
    nodes = [source, node(describe_splits, inputs, named("splits"), "describe_splits")]
    if dataset.contact_sheet and not dataset.generator:
        nodes.append(node(draw, inputs, named("contact_sheet"), "draw_contact_sheet"))
    return nodes
