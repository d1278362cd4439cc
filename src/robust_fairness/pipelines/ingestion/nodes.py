"""The nodes of the ingestion pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import DatasetConfig
from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import source_of


def ingest(raw: Any, dataset: DatasetConfig) -> Any:
    """Samples of a dataset with its named splits, from its raw files."""
    return within_domains(read(raw, dataset), dataset)


def read(raw: Any, dataset: DatasetConfig) -> Any:
    """Samples of a dataset, all domains alike."""
    return source_of(dataset.source).load(raw, dataset.seeds)


def originals(raw: Any, dataset: DatasetConfig) -> Any:
    """What the samples of a dataset are derived from, from its raw files."""
    return source_of(dataset.source).originals(raw, dataset.seeds)


def derive(originals: Any, dataset: DatasetConfig) -> Any:
    """Samples of a dataset: its images made, or attributes measured, from the originals."""
    return within_domains(source_of(dataset.source).derive(originals), dataset)


def within_domains(samples: Any, dataset: DatasetConfig) -> Any:
    """The samples with those domains held out that the dataset is not trained on."""
    from robust_fairness.bench.samples.domains import hold_out_domains

    if dataset.domains is None:
        return samples
    return hold_out_domains(samples, **dataset.domains.model_dump())


def generate(dataset: DatasetConfig, generator: Any) -> Any:
    """Samples of a dataset of generated images."""
    folder = names.of_dataset(dataset.name, "samples")
    return source_of(dataset.source).generate(generator, dataset.seeds, folder)


def describe_splits(samples: Any, dataset: DatasetConfig) -> Any:
    """Sizes of the named splits of a dataset, and how much they share."""
    from robust_fairness.bench.samples.splits import described

    return described(dataset.name, samples.splits)


def draw(samples: Any, dataset: DatasetConfig) -> Any:
    """Images of some rows of every class, or of every value of an attribute."""
    from robust_fairness.report import contact_sheet

    if isinstance(dataset.contact_sheet, str):
        return contact_sheet.attribute_sheet(samples, dataset.contact_sheet)
    return contact_sheet.contact_sheet(samples)
