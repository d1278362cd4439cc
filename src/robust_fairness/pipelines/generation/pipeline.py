"""The generation pipeline."""

from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import DatasetConfig, GeneratorConfig
from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import dataset_node
from robust_fairness.pipelines.evaluation.pipeline import shifted_inputs
from robust_fairness.pipelines.generation.nodes import (
    draw,
    draw_family,
    fit,
    ingest,
    measure,
    read,
    train_reference,
)
from robust_fairness.runs.configuration import loader
from robust_fairness.runs.runners import GPU


def create_pipeline() -> Pipeline:
    """Every generator, and measures of its images in every dataset of them."""
    experiment = loader().selected_experiment
    generators = [node for generator in experiment.generators for node in _of_generator(generator)]
    generated = [dataset for dataset in experiment.datasets if dataset.generator]
    return Pipeline(
        [*generators, *(node for dataset in generated for node in _of_dataset(dataset))]
    )


def _of_generator(generator: GeneratorConfig) -> list[Node]:
    named = partial(names.of_dataset, generator.name)
    tag = f"generator.{generator.name}"
    place: Any = {"namespace": generator.name, "tags": [tag]}
    trained: Any = {"namespace": generator.name, "tags": [tag, GPU]}
    settings, real, made = f"params:{generator.name}.generator", named("real"), named("generator")
    if generator.file is None:
        source = Node(fit, [real, settings], [made, named("loss")], name="fit", **trained)
    else:
        inputs = [settings, real] if generator.source else settings
        source = Node(read, inputs, made, name="read", **place)
    nodes = [source, Node(draw, made, named("sample_grid"), name="draw_sample_grid", **place)]
    if generator.source:
        inputs = [real, f"params:{generator.name}.reference"]
        nodes += [
            Node(ingest, [named("raw"), settings], real, name="ingest", **place),
            Node(train_reference, inputs, named("reference"), name="train_reference", **trained),
        ]
    return nodes


def _of_dataset(dataset: DatasetConfig) -> list[Node]:
    generator: Any = dataset.generator
    named, node = partial(names.of_dataset, dataset.name), partial(dataset_node, dataset.name)
    inputs = {
        "samples": named("samples"),
        "dataset": f"params:{dataset.name}.dataset",
        **shifted_inputs(dataset),
    }
    parts = ("reference", "real") if generator.source else ()
    real = {part: names.of_dataset(generator.name, part) for part in parts}
    tables = ("distances", "generator_quality") if generator.source else ("distances",)
    measured = [named(table) for table in tables]
    nodes = [node(measure, inputs | real, measured, "measure")]
    if dataset.contact_sheet:
        nodes.append(node(draw_family, inputs, named("contact_sheet"), "draw_contact_sheet"))
    return nodes
