"""The ingestion pipeline."""

from collections.abc import Sequence
from functools import partial

from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import DatasetConfig
from robust_fairness.catalog import names
from robust_fairness.core import registry
from robust_fairness.pipelines.builders import dataset_node
from robust_fairness.pipelines.ingestion.nodes import (
    derive,
    describe_splits,
    draw,
    generate,
    ingest,
    originals,
    read,
    within_domains,
)
from robust_fairness.runs.configuration import loader


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
    inputs = [names.of_dataset(base, "raw"), settings]
    return dataset_node(base, read, inputs, names.of_dataset(base, "rows"), "ingest", *tags)


def _nodes(dataset: DatasetConfig) -> list[Node]:
    named, node = partial(names.of_dataset, dataset.name), partial(dataset_node, dataset.name)
    settings, samples = f"params:{dataset.name}.dataset", named("samples")
    inputs, nodes = [samples, settings], []
    stated = registry.stated("dataset", dataset.source.name)  # of a ``DerivedDataset``
    condition = stated.get("derived_if")
    derivation = stated.get("derivation", "")  # the second step by which the samples are made
    if dataset.generator:
        generator = names.of_dataset(dataset.generator.name, "generator")
        source = node(generate, [settings, generator], samples, "generate")
    elif dataset.name != dataset.base:
        shared = names.of_dataset(dataset.base, "rows")
        source = node(within_domains, [shared, settings], samples, "hold_out_domains")
    elif derivation and (not condition or dataset.source.options.get(condition)):
        source = node(originals, [named("raw"), settings], named("originals"), "ingest")
        nodes.append(node(derive, [named("originals"), settings], samples, derivation))
    else:
        source = node(ingest, [named("raw"), settings], samples, "ingest")
    nodes += [source, node(describe_splits, inputs, named("splits"), "describe_splits")]
    if dataset.contact_sheet and not dataset.generator:
        nodes.append(node(draw, inputs, named("contact_sheet"), "draw_contact_sheet"))
    return nodes
