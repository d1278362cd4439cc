"""The ingestion pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.grid import DatasetGrid, selected_grid
from robust_fairness.parameters import ContactSheetParameters, SourceParameters
from robust_fairness.registry import find


def ingest(source: SourceParameters) -> tuple[Any, Any]:
    """Read a dataset with its named splits; its attributes are a table of their own as well."""
    from robust_fairness.datasets._files import Files, default_root

    module = find("dataset", source.source.name)
    samples = module.load(source.source.parameters, Files(default_root()), source.splits)
    return samples, samples.table()


def generate(source: SourceParameters, generator: Any) -> tuple[Any, Any]:
    """Make a dataset of a generator's pictures."""
    from robust_fairness.datasets import generated

    parameters: Any = source.source.parameters
    name = f"{source.dataset}.samples"
    samples = generated.generate(parameters, generator, source.splits, name)
    return samples, samples.table()


def draw(samples: Any) -> Any:
    """A picture of some rows of every class."""
    from robust_fairness.reporting.contact_sheet import contact_sheet

    return contact_sheet(samples)


def draw_attribute(samples: Any, sheet: ContactSheetParameters) -> Any:
    """A picture of some rows of every value of an attribute."""
    from robust_fairness.reporting.contact_sheet import attribute_sheet

    return attribute_sheet(samples, sheet.attribute)


def create_pipeline() -> Pipeline:
    """One node a dataset of the grid, and one for the pictures of those that ask for it."""
    return Pipeline([_of_dataset(dataset) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    made = ["samples", "attributes"]
    if dataset.generator:
        return Pipeline(
            [Node(generate, ["params:source", "generator"], made, name="generate")],
            namespace=dataset.name,
            inputs={"generator": f"{dataset.generator.name}_generator"},
            tags=[f"dataset.{dataset.name}"],
        )
    nodes = [Node(ingest, "params:source", made, name="ingest")]
    if isinstance(dataset.contact_sheet, str):
        told = ["samples", "params:contact_sheet"]
        nodes.append(Node(draw_attribute, told, "contact_sheet", name="draw_contact_sheet"))
    elif dataset.contact_sheet:
        nodes.append(Node(draw, "samples", "contact_sheet", name="draw_contact_sheet"))
    return Pipeline(
        nodes,
        namespace=dataset.name,
        outputs={"contact_sheet": f"{dataset.name}_contact_sheet"}
        if dataset.contact_sheet
        else None,
        tags=[f"dataset.{dataset.name}"],
    )
