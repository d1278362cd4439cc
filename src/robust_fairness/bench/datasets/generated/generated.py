"""Images of a generator, whose training rows come from a subset of its latent space.

Its rows are places in a family of latents, so that a test row keeps its draw z and its label at
every severity of a shift (Control+Shift, 3.2).
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
import torch
from pydantic import BaseModel, Field, model_validator
from torch import Tensor

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.datasets.base import Dataset
from robust_fairness.bench.datasets.images.coloured_digits import nearest_colors
from robust_fairness.bench.experiment.experiment import TestSet
from robust_fairness.bench.generation.chunks import Chunks, Decoder
from robust_fairness.bench.generation.families import Family
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

# Parts begin at places of their own, so that the test rows are the same however many rows are
# trained on.
FIRST_PLACES = {"test": 0, "val": 2**24, "train": 2**25}


class OfClasses:
    """A generator of some of its classes, such as ten of ImageNet's thousand."""

    def __init__(self, generator: Decoder, classes: tuple[str, ...]) -> None:
        for label in classes:
            if label not in generator.classes:
                raise unknown_name("class of the generator", label, generator.classes)
        if len(set(classes)) < len(classes):
            raise InputError(f"classes: {', '.join(classes)}; each class must be listed once")
        self.generator, self.classes = generator, classes
        self.shape, self.fingerprint = generator.shape, generator.fingerprint
        self.device = generator.device
        self.labels = torch.tensor([generator.classes.index(label) for label in classes])

    def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
        """Images of latents; labels are places in ``classes``."""
        return self.generator.decode(latents, self.labels[labels])


class Generated(Dataset):
    """Images of a generator, whose training rows come from a subset of its latent space."""

    data_kind = "generated"

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """The training subset and the numbers of images, by default those of CIFAR-10 (4.1).

        Attributes:
            seed: seed of draws and labels.
            target_seed: seed of t1 and t2, the same throughout a study.
            classes: classes of the generator that are used; all by default.
            attribute: the sensitive attribute: the class, or the color of the ink as measured on
                every image, also of shifted ones, of a generator of ``coloured_digits``.
            batch: images decoded at once; it and the CPU ``threads`` affect the last bits.
        """

        generator: str
        subset: TestSet
        seed: int = Field(0, ge=0)
        target_seed: int = Field(0, ge=0)
        train_rows: int = Field(50_000, ge=1, le=2**24)
        val_rows: int = Field(5_000, ge=1, le=2**24)
        test_rows: int = Field(10_000, ge=1, le=2**24)
        classes: tuple[str, ...] = ()
        attribute: Literal["class", "color"] = "class"
        batch: int = Field(64, ge=1)
        threads: int = Field(1, ge=1)
        chunk: int = Field(1024, ge=1)

        @model_validator(mode="after")
        def _can_be_made(self) -> "Generated.Parameters":
            """Refuse now what would fail once the generator is trained."""
            shift = self.subset.shift
            Family(shift.name, self.subset.severity, shift.parameters)
            if self.chunk % self.batch:
                raise InputError(
                    f"chunk: {self.chunk} places, allowed: a multiple of the batch ({self.batch})"
                )
            return self

    def load(self, files: Files, splits: int) -> Samples:
        """Refuse: these images are made by ``generate``, not read from files."""
        raise InputError(
            f"dataset generated: made by {self.parameters.generator}, not read from files; use the "
            "generation pipeline or generate(generator, ...)"
        )

    def generate(self, generator: Decoder, splits: int, name: str) -> Samples:
        """All parts of the dataset, from the training subset.

        All named splits are the same: replicas differ in their other seeds only. ``id`` is the
        place of a row in its family, and ``name`` the folder of the chunks, which
        ``checkpoints.drop`` deletes once the samples are saved.
        """
        parameters = self.parameters
        rows = [parameters.train_rows, parameters.val_rows, parameters.test_rows]
        places = np.concatenate(
            [
                FIRST_PLACES[part] + np.arange(n)
                for part, n in zip(REQUIRED_PARTS, rows, strict=True)
            ]
        )
        parts = pd.Categorical(np.repeat(REQUIRED_PARTS, rows), REQUIRED_PARTS)
        chunks = _chunks(parameters, parameters.subset, generator, name)
        y = chunks.labels(places)
        classes = tuple(chunks.decoder.classes)
        with checkpoints.threads(parameters.threads):
            images = chunks.images(places)
        return Samples(
            x=images,
            y=y,
            attributes=_attributes(parameters.attribute, images, y, classes),
            id=places,
            splits=pd.DataFrame({f"split_{number}": parts for number in range(splits)}),
            classes=classes,
            sensitive=(parameters.attribute,),
            sources={parameters.generator: generator.fingerprint},
        )

    def shifted(
        self, samples: Samples, test_set: TestSet, generator: Decoder, name: str
    ) -> Samples:
        """The same draws and labels, from another subset of latent space.

        A color is read off the new images: a shift may change it.
        """
        chunks = _chunks(self.parameters, test_set, generator, name)
        with checkpoints.threads(self.parameters.threads):
            images = chunks.images(samples.id)
        attribute = self.parameters.attribute
        attributes = _attributes(attribute, images, samples.y, samples.classes)
        return replace(samples, x=images, attributes=attributes)


def _attributes(
    attribute: str, images: np.ndarray, y: np.ndarray, classes: tuple[str, ...]
) -> pd.DataFrame:
    """The attribute of every row: known by its label, or read off its image."""
    if attribute == "class":
        return pd.DataFrame({"class": pd.Categorical.from_codes(y, pd.Index(classes))})
    return pd.DataFrame({"color": nearest_colors(images)})


def _chunks(
    parameters: Generated.Parameters, subset: TestSet, generator: Decoder, name: str
) -> Chunks:
    family = Family(
        subset.shift.name,
        subset.severity,
        subset.shift.parameters,
        parameters.seed,
        parameters.target_seed,
    )
    device = generator.device.type
    if device == "cuda":
        device = f"cuda {torch.cuda.get_device_name(generator.device)}"
    chunks = Chunks(
        OfClasses(generator, parameters.classes) if parameters.classes else generator,
        family,
        checkpoints.root() / name,
        batch=parameters.batch,
        chunk=parameters.chunk,
        device=f"{device}, {parameters.threads} threads",
    )
    checkpoints.use(name, chunks.content)
    return chunks
