"""CelebA: faces with forty attributes (Liu et al. 2015).

Any attribute is the target and any others are sensitive; the annotation files are the official
ones. Images are decoded once.
"""

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from robust_fairness.bench.datasets.base import DerivedDataset, labelled
from robust_fairness.bench.datasets.images import _celeba
from robust_fairness.bench.datasets.images._image_files import (
    ImageFileParameters,
    decode,
    opened,
    with_images,
)
from robust_fairness.bench.datasets.images._skin_tone import SkinToneParameters
from robust_fairness.bench.samples.splits import require_at_most, require_every_class
from robust_fairness.core.errors import unknown_name
from robust_fairness.core.raw_files import Files, unzipped
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

ATTRIBUTES = "celeba/list_attr_celeba.txt"
PARTITION = "celeba/list_eval_partition.txt"
SPLIT = "split_0"

Share = Annotated[float, Field(gt=0, lt=1)]


class Celeba(DerivedDataset):
    """Faces with their target, sensitive attributes and one split, ``split_0``.

    All seeds share the split, as in the papers.
    """

    derivation = "label_skin_tone"
    derived_if = "skin_tone"

    class Parameters(ImageFileParameters):
        """Parameters of CelebA.

        Attributes:
            target: the attribute to predict.
            sensitive: the attributes that methods mitigate; with ``skin_tone`` also ``skin_tone``,
                ``light_or_dark`` or ``ita``.
            images: folder, or zip file of that name, of the aligned JPEG files.
            crop: skin tone is measured on the whole image, whatever is cropped.
            split: ``official`` (the published partition), ``identity`` (no person in two parts), or
                ``random`` (Equalized Robustness, 5.1).
            train_rows: number of training rows, chosen at random; all if None, as for the others.
            val_share: share of all rows for validation, unless the split is official.
            test_share: share of all rows for the test, unless the split is official.
            seed: seed of the split.
            skin_tone: how ``skin_tone`` (I to VI), ``light_or_dark`` (I to III, IV to VI) and
                ``ita`` (degrees, continuous) are measured; None: not at all.
        """

        target: str = "Blond_Hair"
        sensitive: Annotated[tuple[str, ...], Field(min_length=1)] = ("Male",)
        images: str = _celeba.IMAGES
        split: Literal["official", "identity", "random"] = "official"
        train_rows: PositiveInt | None = None
        val_rows: PositiveInt | None = None
        test_rows: PositiveInt | None = None
        val_share: Share = 0.1
        test_share: Share = 0.2
        seed: NonNegativeInt = 0
        skin_tone: SkinToneParameters | None = None

        @model_validator(mode="after")
        def _attributes_differ(self) -> "Celeba.Parameters":
            names = (self.target, *self.sensitive)
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(
                        f"{name} is listed twice; list it once, as target or sensitive"
                    )
            return self

    def required_files(self) -> tuple[str, ...]:
        of_split = {"official": (PARTITION,), "identity": (_celeba.IDENTITIES,), "random": ()}
        return (self.parameters.images, ATTRIBUTES, *of_split[self.parameters.split])

    def originals(self, files: Files, splits: int) -> Samples:
        """Faces with what is measured of their colours, if skin tone is asked for."""
        parameters = self.parameters
        table = _celeba.numbers_of(_attribute_text(files), ATTRIBUTES, np.int8, skiprows=1)
        measured = () if parameters.skin_tone is None else _celeba.SKIN_TONE
        annotated = [name for name in parameters.sensitive if name not in measured]
        for name in (parameters.target, *annotated):
            if name not in table:
                raise unknown_name("attribute of CelebA", name, [*table.columns, *measured])
        with opened(files, parameters.images) as source:
            table = with_images(table, source, ATTRIBUTES, parameters)
            parts = _limited(_parts(table, files, parameters), parameters)
            used = parts[parts.notna()]
            table = table.loc[used.index]
            labels = pd.Series(_celeba.named(table[parameters.target]))
            frame = pd.DataFrame({SPLIT: pd.Categorical(used, list(REQUIRED_PARTS))})
            require_every_class(frame, labels)
            colours = None
            if parameters.skin_tone is not None:
                colours = _celeba.Colours(files, table.index, parameters.skin_tone)
            x = decode(source, list(table.index), parameters, files, colours)
        attributes = pd.DataFrame({name: _celeba.named(table[name]) for name in annotated})
        if colours is not None:
            attributes = pd.concat([attributes, colours.measured()], axis=1)
        names = table.index.to_numpy(dtype=np.str_)
        return labelled(x, labels, attributes, frame, annotated, files, id=names)

    def derive(self, originals: Samples) -> Samples:
        """The faces with their skin tones, if they are asked for."""
        skin_tone, sensitive = self.parameters.skin_tone, self.parameters.sensitive
        if skin_tone is None:
            return originals
        return _celeba.labelled_with_skin_tone(originals, skin_tone, sensitive)


def _attribute_text(files: Files) -> str:
    """The attribute file, plain, gzipped, or in the zip file of the same name."""
    archive = (files.root / ATTRIBUTES).with_suffix(".zip")
    if (files.root / ATTRIBUTES).exists() or not archive.exists():
        return files.text(ATTRIBUTES)
    result = unzipped(archive.read_bytes(), str(archive), ATTRIBUTES.rpartition("/")[2])
    files.note(ATTRIBUTES, result)
    return result.decode()


def _parts(table: pd.DataFrame, files: Files, parameters: Celeba.Parameters) -> pd.Series:
    if parameters.split == "official":
        number = _celeba.whole_numbers(files, PARTITION, table.index)
        return number.map(dict(enumerate(REQUIRED_PARTS)))
    unit = table.index.to_series()
    if parameters.split == "identity":
        unit = _celeba.whole_numbers(files, _celeba.IDENTITIES, table.index)
    generator = np.random.Generator(np.random.PCG64(parameters.seed))
    order = pd.Series(generator.permutation(unit.nunique()), index=unit.unique())
    # whole units, in random order, until a part has its share of the rows
    before = unit.groupby(unit.map(order)).size().cumsum() / len(unit)
    position = unit.map(order).map(before)
    test, val = parameters.test_share, parameters.test_share + parameters.val_share
    return pd.Series(
        np.select([position <= test, position <= val], ["test", "val"], "train"), index=table.index
    )


def _limited(parts: pd.Series, parameters: Celeba.Parameters) -> pd.Series:
    """At most so many rows of each part, chosen at random; the others have none."""
    generator = np.random.Generator(np.random.PCG64([parameters.seed, 1]))
    limited = parts.astype(object)
    for part in REQUIRED_PARTS:
        rows = parts.index[parts == part]
        asked = getattr(parameters, f"{part}_rows")
        if asked is not None:
            kept = require_at_most(f"{part}_rows", asked, len(rows))
            limited[generator.permutation(rows)[kept:]] = None
    return limited
