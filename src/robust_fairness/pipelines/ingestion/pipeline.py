"""The ingestion pipeline."""

from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.core.registry import find
from robust_fairness.experiment.experiment import Dataset
from robust_fairness.runs.configuration import selected_experiment


def ingest(dataset: Dataset) -> tuple[Any, Any]:
    """Samples of a dataset with its named splits, and their attributes as a table."""
    from robust_fairness.datasets.files import Files, default_root

    source = find("dataset", dataset.source.name)(dataset.source.parameters)
    samples = source.load(Files(default_root()), dataset.seeds)
    return samples, samples.table()


def generate(dataset: Dataset, generator: Any) -> tuple[Any, Any]:
    """Samples of a dataset of generated images, and their attributes as a table."""
    source = find("dataset", dataset.source.name)(dataset.source.parameters)
    samples = source.generate(generator, dataset.seeds, names.of_dataset(dataset.name, "samples"))
    return samples, samples.table()


def describe_splits(samples: Any, dataset: Dataset) -> Any:
    """Sizes of the named splits of a dataset, and how much they share."""
    from robust_fairness.samples.splits import described

    return described(dataset.name, samples.splits)


def draw(samples: Any, dataset: Dataset) -> Any:
    """Images of some rows of every class, or of every value of an attribute."""
    from robust_fairness.reporting import contact_sheet

    if isinstance(dataset.contact_sheet, str):
        return contact_sheet.attribute_sheet(samples, dataset.contact_sheet)
    return contact_sheet.contact_sheet(samples)


def create_pipeline() -> Pipeline:
    """Read or generate and describe every dataset, draw those with a contact sheet."""
    datasets = selected_experiment().datasets
    return Pipeline([node for dataset in datasets for node in _nodes(dataset)])


def _nodes(dataset: Dataset) -> list[Node]:
    own = partial(names.of_dataset, dataset.name)
    place: Any = {"namespace": dataset.name, "tags": [f"dataset.{dataset.name}"]}
    settings, samples = f"params:{dataset.name}.dataset", own("samples")
    made = [samples, own("attributes")]
    if dataset.generator:
        generator = names.of_dataset(dataset.generator.name, "generator")
        source = Node(generate, [settings, generator], made, name="generate", **place)
    else:
        source = Node(ingest, settings, made, name="ingest", **place)
    inputs = [samples, settings]
    nodes = [source, Node(describe_splits, inputs, own("splits"), name="describe_splits", **place)]
    if dataset.contact_sheet and not dataset.generator:
        sheet = own("contact_sheet")
        nodes.append(Node(draw, inputs, sheet, name="draw_contact_sheet", **place))
    return nodes
