"""The ingestion pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.core.registry import find
from robust_fairness.experiment.grid import DatasetGrid
from robust_fairness.experiment.parameters import ContactSheetParameters, SourceParameters
from robust_fairness.runs.configuration import selected_grid


def ingest(source: SourceParameters) -> tuple[Any, Any]:
    """Read a dataset with its named splits; its attributes are a table of their own as well."""
    from robust_fairness.datasets.files import Files, default_root

    dataset = find("dataset", source.source.name)(source.source.parameters)
    samples = dataset.load(Files(default_root()), source.splits)
    return samples, samples.table()


def generate(source: SourceParameters, generator: Any) -> tuple[Any, Any]:
    """Make a dataset of a generator's pictures."""
    dataset = find("dataset", source.source.name)(source.source.parameters)
    samples = dataset.generate(generator, source.splits, f"{source.dataset}.samples")
    return samples, samples.table()


def describe_splits(samples: Any, source: SourceParameters) -> Any:
    """How large the named splits of a dataset are, and how much they share."""
    from robust_fairness.samples.splits import described

    return described(source.dataset, samples.splits)


def draw(samples: Any) -> Any:
    """A picture of some rows of every class."""
    from robust_fairness.reporting.contact_sheet import contact_sheet

    return contact_sheet(samples)


def draw_attribute(samples: Any, sheet: ContactSheetParameters) -> Any:
    """A picture of some rows of every value of an attribute."""
    from robust_fairness.reporting.contact_sheet import attribute_sheet

    return attribute_sheet(samples, sheet.attribute)


def create_pipeline() -> Pipeline:
    """Read or generate and describe every dataset of the grid, draw those that ask for it."""
    return Pipeline([_of_dataset(dataset) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    made = ["samples", "attributes"]
    describing = Node(
        describe_splits, ["samples", "params:source"], "splits", name="describe_splits"
    )
    if dataset.generator:
        generating = Node(generate, ["params:source", "generator"], made, name="generate")
        return Pipeline(
            [generating, describing],
            namespace=dataset.name,
            inputs={"generator": f"{dataset.generator.name}_generator"},
            outputs={"splits": f"{dataset.name}_splits"},
            tags=[f"dataset.{dataset.name}"],
        )
    nodes = [Node(ingest, "params:source", made, name="ingest"), describing]
    if isinstance(dataset.contact_sheet, str):
        told = ["samples", "params:contact_sheet"]
        nodes.append(Node(draw_attribute, told, "contact_sheet", name="draw_contact_sheet"))
    elif dataset.contact_sheet:
        nodes.append(Node(draw, "samples", "contact_sheet", name="draw_contact_sheet"))
    outputs = ["splits", "contact_sheet"] if dataset.contact_sheet else ["splits"]
    return Pipeline(
        nodes,
        namespace=dataset.name,
        outputs={name: f"{dataset.name}_{name}" for name in outputs},
        tags=[f"dataset.{dataset.name}"],
    )
