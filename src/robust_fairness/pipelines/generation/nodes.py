"""The nodes of the generation pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig, GeneratorConfig
from robust_fairness.core.errors import InputError
from robust_fairness.pipelines.builders import source_of

COLUMNS = 10  # images per class of a sample grid
IMAGE_AXES = 4


def fit(samples: Any, generator: GeneratorConfig) -> tuple[Any, Any]:
    """Train a generator on the training rows of real images."""
    import torch

    from robust_fairness.bench.generation import fitting

    _require_images(samples, generator.name)
    training: Any = generator.training
    rows = samples.rows(samples.split_names[0], "train")
    return fitting.fit(
        training,
        torch.from_numpy(samples.x[rows]),
        torch.from_numpy(samples.y[rows]),
        samples.classes,
        f"{generator.name}_generator",
    )


def read(generator: GeneratorConfig, real: Any = None) -> Any:
    """A generator that was trained elsewhere."""
    from robust_fairness.bench.generation.generator import load

    file: Any = generator.file
    if real is None:
        return load(file)
    _require_images(real, generator.name)
    made = load(file, classes=real.classes)
    if made.shape != real.x.shape[1:]:
        raise InputError(
            f"{file}: images of {made.shape}, allowed: {real.x.shape[1:]}, as the real ones"
        )
    return made


def _require_images(samples: Any, generator: str) -> None:
    x = samples.arrays.get("x")
    if x is None or x.dtype != "uint8" or x.ndim != IMAGE_AXES or not samples.classes:
        raise InputError(
            f"generator {generator}: its source has no images of classes, allowed: a dataset "
            "of uint8 (n, channels, height, width)"
        )


def draw(generator: Any) -> Any:
    """Images of every class, one row per class."""
    from robust_fairness.bench.compute.checkpoints import threads
    from robust_fairness.report.contact_sheet import sheet

    with threads(1):
        return sheet(generator.grid(COLUMNS).numpy(), COLUMNS)


def ingest(raw: Any, generator: GeneratorConfig) -> Any:
    """The real images of a generator with one split, from their raw files."""
    source: Any = generator.source
    return source_of(source).load(raw, 1)


def train_reference(samples: Any, cell: Cell) -> Any:
    """A classifier of real images, used to assess generated images."""
    from robust_fairness.bench import training

    return training.train(samples, cell)[0]


def measure(
    samples: Any, dataset: DatasetConfig, reference: Any = None, real: Any = None, **shifted: Any
) -> Any:
    """Distances of test sets from the training images, and accuracy of a classifier if given."""
    from robust_fairness.bench.compute.checkpoints import threads
    from robust_fairness.bench.training.reference import (
        UNSHIFTED,
        ReferenceClassifier,
        distances,
        quality,
    )

    named = {
        (test_set.called, test_set.severity): shifted[test_set.name]
        for test_set in dataset.test_sets
    }
    generator: Any = dataset.generator
    cell = generator.reference
    if cell is None:
        return [distances(dataset.name, samples, named, None)]
    with threads(cell.protocol.threads):
        classifier = ReferenceClassifier(reference[0], real, cell)
        test_sets = {UNSHIFTED: samples, **named}
        scored = quality(generator.name, dataset.name, test_sets, classifier)
        return distances(dataset.name, samples, named, classifier), scored


def draw_family(samples: Any, dataset: DatasetConfig, **shifted: Any) -> Any:
    """The same draws at every severity of the dataset's own shift, one row per draw."""
    from robust_fairness.report.contact_sheet import family_sheet

    subset = dataset.source.parameters.subset
    test = samples.rows(samples.split_names[0], "test")
    images = {subset.severity: samples.x[test]}
    images |= {
        test_set.severity: shifted[test_set.name].x
        for test_set in dataset.test_sets
        if test_set.called == subset.shift.name
    }
    return family_sheet(images)
