"""The generation pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.core.errors import InputError
from robust_fairness.experiment.grid import DatasetGrid, Generator
from robust_fairness.experiment.parameters import (
    CellParameters,
    FamilyParameters,
    GeneratorSettings,
)
from robust_fairness.pipelines._cells import shifted_inputs
from robust_fairness.pipelines.ingestion.pipeline import ingest
from robust_fairness.runs.configuration import selected_grid

COLUMNS = 10  # images of every class that are shown
IMAGE_AXES = 4


def fit(samples: Any, generator: GeneratorSettings) -> tuple[Any, Any]:
    """Train a generator on the training rows of real images.

    Raises:
        InputError: the dataset has no images or no classes, or see ``generation.fitting.fit``.
    """
    import torch

    from robust_fairness.generation import fitting

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


def read(generator: GeneratorSettings, real: Any = None) -> Any:
    """A generator that was trained elsewhere.

    Args:
        generator: names its file.
        real: the real images, where there are any; their classifier judges its own.

    Raises:
        InputError: no such file, no generator, or other classes or sizes than the real images.
    """
    from robust_fairness.generation.generator import load

    file: Any = generator.file
    if real is None:
        return load(file)
    _require_images(real, generator.name)
    found = load(file, classes=real.classes)
    if found.shape != real.x.shape[1:]:
        raise InputError(
            f"{file}: images of {found.shape}, allowed: {real.x.shape[1:]}, as the real ones"
        )
    return found


def _require_images(samples: Any, generator: str) -> None:
    """Check that a source has what a generator makes.

    Raises:
        InputError: it has no images, or no classes.
    """
    x = samples.arrays.get("x")
    if x is None or x.dtype != "uint8" or x.ndim != IMAGE_AXES or not samples.classes:
        raise InputError(
            f"generator {generator}: its source has no images of classes, allowed: a dataset "
            "of uint8 (n, channels, height, width)"
        )


def draw(generator: Any) -> Any:
    """Images of every class, a class a row."""
    from robust_fairness.core.checkpoints import threads
    from robust_fairness.reporting.contact_sheet import sheet

    with threads(1):
        return sheet(generator.grid(COLUMNS).numpy(), COLUMNS)


def train_referee(samples: Any, cell: CellParameters) -> Any:
    """A classifier of real images, which tells what generated ones are worth."""
    from robust_fairness import training

    return training.train(samples, cell)[0]


def measure(
    samples: Any, family: FamilyParameters, referee: Any = None, real: Any = None, **shifted: Any
) -> tuple[Any, Any]:
    """How far test sets are from the training images, and what a referee makes of them.

    Args:
        samples: the generated dataset.
        family: what it is and which test sets it has.
        referee: a classifier of real images, where there are any.
        real: the real images.
        shifted: shifted test sets by name.
    """
    from robust_fairness.core import tables
    from robust_fairness.core.checkpoints import threads
    from robust_fairness.training.referee import Referee, distances, quality

    named = {place: shifted[name] for name, place in family.test_sets.items()}
    name, cell = family.source.dataset, family.referee
    if cell is None:
        return distances(name, samples, named, None), tables.table(tables.GENERATOR_QUALITY, [])
    with threads(cell.protocol.threads):
        judge = Referee(referee[0], real, cell)
        scored = quality(family.generator, samples, judge)
        return distances(name, samples, named, judge), scored


def draw_family(samples: Any, family: FamilyParameters, **shifted: Any) -> Any:
    """The same draws at every severity of the dataset's own shift, a draw a row."""
    from robust_fairness.reporting.contact_sheet import family_sheet

    subset = family.made.subset
    test = samples.rows(samples.split_names[0], "test")
    images = {subset.severity: samples.x[test]}
    images |= {
        severity: shifted[name].x
        for name, (shift, severity) in family.test_sets.items()
        if shift == subset.shift.name
    }
    return family_sheet(images)


def create_pipeline() -> Pipeline:
    """Every generator of the grid, and what its images are like in every dataset of them."""
    grid = selected_grid()
    generated = [dataset for dataset in grid.datasets if dataset.generator]
    return Pipeline([*map(_of_generator, grid.generators), *map(_of_dataset, generated)])


def _of_generator(generator: Generator) -> Pipeline:
    settings = "params:generator"
    if generator.trained:
        made = Node(fit, ["real", settings], ["generator", "loss"], name="fit")
    else:
        real = ["real"] if generator.source else []
        made = Node(read, [settings, *real], "generator", name="read")
    nodes = [made, Node(draw, "generator", "sample_grid", name="draw_sample_grid")]
    if generator.source:
        nodes += [
            Node(ingest, "params:source", ["real", "attributes"], name="ingest"),
            Node(train_referee, ["real", "params:referee"], "referee", name="train_referee"),
        ]
    # what other namespaces read has no dot in its name
    shared = {"real", "generator", "referee", "sample_grid"}
    shared &= {one for node in nodes for one in node.outputs}
    return Pipeline(
        nodes,
        namespace=generator.name,
        outputs={one: f"{generator.name}_{one}" for one in sorted(shared)},
        tags=[f"generator.{generator.name}"],
    )


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    name, generator = dataset.name, dataset.generator
    own = {"samples": "samples", "family": "params:family", **shifted_inputs(dataset)}
    outside = {one: f"{name}.shifted.{one}" for one in shifted_inputs(dataset)}
    judged = {}
    if generator and generator.source:
        judged = {"referee": "referee", "real": "real"}
        outside |= {one: f"{generator.name}_{one}" for one in judged}
    nodes = [Node(measure, own | judged, ["distances", "generator_quality"], name="measure")]
    if dataset.contact_sheet:
        nodes.append(Node(draw_family, own, "contact_sheet", name="draw_contact_sheet"))
    return Pipeline(
        nodes,
        namespace=name,
        inputs=outside,
        outputs={one: f"{name}_{one}" for node in nodes for one in node.outputs},
        tags=[f"dataset.{name}"],
    )
