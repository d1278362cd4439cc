"""CUB-200-2011: photographs of 200 species of birds, with their colours (Wah et al. 2011)."""

import csv
import logging
from io import BytesIO
from pathlib import PurePosixPath
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.read.columns import require_distinct
from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Number, validated
from robust_fairness.bench.datasets.base import ImageDataset, Listed
from robust_fairness.bench.datasets.images._class_images import (
    CLASS,
    ClassImageParameters,
    samples_of,
)
from robust_fairness.bench.datasets.images._image_files import opened, with_images
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, RawPath, as_official
from robust_fairness.core.samples import Samples

COLOR = "color"
PRIMARY = "has_primary_color"
PART_COLOR = r"^(?P<part>has_\w+_color)::(?P<color>.+)$"
# A row is image, attribute, whether it was seen, how sure the annotator was, and seconds; some
# rows of the official file have more numbers.
FIELDS = ("image", "attribute", "seen")

logger = logging.getLogger(__name__)


class Cub200(ImageDataset):
    """Photographs of birds; the class is the species, ``id`` folder and file name."""

    class Parameters(ClassImageParameters):
        """Parameters of CUB-200-2011.

        Attributes:
            folder: the unpacked official folder. Its file ``attributes.txt`` may be in it, in its
                folder ``attributes`` or, as in the official archive, beside it.
            color: how one colour is made of the colours that annotators saw. ``species``: the mode
                of the primary colours of all images of the species. ``image``: of the primary
                colours of the image, the one that most parts of the bird have; images without one
                are left out. Of equal ones the first in ``attributes.txt``.

        The paper (*Is Fairness Only Metric Deep?*, ICLR 2022, D.1) takes the mode over the colours
        "of each image". Its numbers are those of species, hence the default: the shares of Table 3
        differ by at most 0.06 points between training and test half, there are twelve of the
        fifteen colours, and three of them have the number of images of one species and, in Table
        13, the normalised mutual information of a single class.
        """

        folder: RawPath = "cub200/CUB_200_2011"
        color: Literal["species", "image"] = "species"
        sensitive: Listed[Literal["color", "class"]] = ("color",)

    def required_files(self) -> tuple[str, ...]:
        names = ("images", "images.txt", "classes.txt", "image_class_labels.txt")
        return tuple(f"{self.parameters.folder}/{name}" for name in names)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        table = _images(files, parameters.folder)
        with opened(files, f"{parameters.folder}/images", depth=2) as source:
            by_name = table.set_index("name")
            index = f"{parameters.folder}/images.txt"
            there = with_images(by_name, source, index, parameters).index
            if COLOR in parameters.sensitive:
                table = _with_colors(table, files, parameters)
            table = table[table["name"].isin(there)].set_index("name")
            return samples_of(table, parameters.sensitive, source, files, parameters, splits)


def _images(files: Files, folder: str) -> pd.DataFrame:
    """``name`` and ``class`` of every image, by its number."""
    names = _numbered(files, f"{folder}/images.txt")
    classes = _numbered(files, f"{folder}/classes.txt")
    labels = f"{folder}/image_class_labels.txt"
    numbers = _numbered(files, labels)
    missing = names.index.symmetric_difference(numbers.index)
    if len(missing):
        raise InputError(
            f"{labels}: image {missing[0]} is in only one of {labels} and images.txt; it must be "
            "in both"
        )
    require_distinct(classes, f"{folder}/classes.txt")
    require_distinct(names, f"{folder}/images.txt")
    number = pd.to_numeric(numbers.loc[names.index], errors="coerce")
    of_image = number.map(classes)
    wrong = of_image != names.map(lambda name: PurePosixPath(name).parent.name)
    for image in names.index[wrong]:
        raise InputError(
            f"{labels}, image {image}: class {numbers[image]} ({of_image[image]}) is not that of "
            f"its folder in {names[image]}"
        )
    species = pd.Categorical(of_image, pd.Index(classes, dtype=object))
    return pd.DataFrame({"name": names, CLASS: species}, index=names.index)


def _numbered(files: Files, name: str) -> pd.Series:
    """Texts by number, of a file of lines ``number text``."""
    cells = read_cells(files.blocks(name), name, header=("number", "text"), delimiter=" ")
    table = validated(cells, {"number": Number(0, whole=True), "text": None}, name)
    table["number"] = table["number"].astype(np.int64)
    require_distinct(table["number"], name)
    return table.set_index("number")["text"]


def _with_colors(table: pd.DataFrame, files: Files, parameters: Cub200.Parameters) -> pd.DataFrame:
    """The images that have a colour, with it."""
    folder = PurePosixPath(parameters.folder)
    places = [
        str(place / "attributes.txt") for place in (folder.parent, folder, folder / "attributes")
    ]
    name = next(filter(files.has, places), places[0])
    attributes = _numbered(files, name)
    parts = attributes.str.extract(PART_COLOR).dropna()
    primary = parts["color"][parts["part"] == PRIMARY]
    if primary.empty or primary.duplicated().any():
        raise InputError(f"{name}: expected one row {PRIMARY}::<color> per colour")
    labels = f"{parameters.folder}/attributes/image_attribute_labels.txt"
    seen = _seen(files, labels, name, attributes.index, parts.index, table.index)
    # [image, primary colour]: whether the bird has it, and how many of its parts
    whole = seen[:, parts.index.get_indexer(primary.index)].astype(np.int64)
    of_part = parts["part"] != PRIMARY
    count = [
        seen[:, (of_part & (parts["color"] == color)).to_numpy()].sum(axis=1) for color in primary
    ]
    if parameters.color == "species":
        species = table[CLASS].cat.codes.to_numpy()
        votes = np.zeros((len(table[CLASS].cat.categories), len(primary)), dtype=np.int64)
        np.add.at(votes, species, whole)
        votes = votes[species]
    else:
        votes = np.where(whole, 1 + np.stack(count, axis=1), 0)
    known = votes.max(axis=1) > 0
    if not known.any():
        raise InputError(f"{labels}: no image has a primary colour")
    if not known.all():
        logger.info("%s: %d images without a colour are excluded", labels, (~known).sum())
    colors = pd.Categorical.from_codes(votes.argmax(axis=1), pd.Index(primary, dtype=object))
    return table.assign(**{COLOR: colors}).loc[table.index[known]]


def _seen(
    files: Files,
    name: str,
    attributes_name: str,
    attributes: pd.Index,
    wanted: pd.Index,
    images: pd.Index,
) -> np.ndarray:
    """Whether an attribute was seen in an image, bool ``[image, wanted attribute]``."""
    content = BytesIO(files.content(name))
    with as_official(name):
        labels = pd.read_csv(
            content, sep=r"\s+", quoting=csv.QUOTE_NONE, dtype=str, names=list(FIELDS),
            usecols=list(FIELDS), index_col=False,
        )  # fmt: skip
    places = {}
    for field, index, allowed in (
        ("image", images, "the numbers of images.txt"),
        ("attribute", attributes, f"the numbers of {attributes_name}"),
        ("seen", pd.Index([0, 1]), "0 or 1"),
    ):
        numbers = pd.to_numeric(labels[field], errors="coerce")
        places[field] = index.get_indexer(pd.Index(numbers))
        for row in np.flatnonzero(places[field] < 0):
            raise InputError(
                f"{name}, row {row + 1}, {field}: {labels[field][row]}, allowed: {allowed}"
            )
    labelled = np.isin(np.arange(len(images)), places["image"])
    if not labelled.all():
        raise InputError(
            f"{name}: {(~labelled).sum()} images have no row, first number {images[~labelled][0]}; "
            "every image needs one"
        )
    columns = wanted.get_indexer(attributes)[places["attribute"]]
    true = (places["seen"] == 1) & (columns >= 0)
    seen = np.zeros((len(images), len(wanted)), dtype=bool)
    seen[places["image"][true], columns[true]] = True
    return seen
