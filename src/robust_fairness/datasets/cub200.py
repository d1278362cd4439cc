"""CUB-200-2011: photographs of 200 species of birds, with their colours (Wah et al. 2011)."""

import logging
from collections.abc import Iterator
from io import BytesIO
from pathlib import PurePosixPath
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator

from robust_fairness.datasets._class_pictures import (
    CLASS,
    ClassPictureParameters,
    present,
    require_annotated,
    samples_of,
)
from robust_fairness.datasets._files import Files
from robust_fairness.datasets._own_tables import below_the_root
from robust_fairness.datasets._pictures import opened
from robust_fairness.errors import InputError
from robust_fairness.samples import Samples

COLOR = "color"
PRIMARY = "has_primary_color"
PART_COLOR = r"^(?P<part>has_\w+_color)::(?P<color>.+)$"
# A row is picture, attribute, whether it is there, how sure the annotator was, and seconds; some
# rows of the official file have a number more.
FIELDS, MOST_FIELDS = ("picture", "attribute", "there"), 9
ROWS_AT_ONCE = 200_000

logger = logging.getLogger(__name__)


class Parameters(ClassPictureParameters, extra="forbid", frozen=True):
    """Parameters of CUB-200-2011.

    Attributes:
        folder: the unpacked official folder below the data root. Its file ``attributes.txt`` may
            be in it, in its folder ``attributes`` or, as in the official archive, beside it.
        color: how one colour is made of the colours that annotators saw. ``species``: the mode
            of the primary colours of all pictures of the species, so that all of them share it.
            ``image``: of the primary colours of the picture, the one that most parts of the bird
            have. Of equal ones the first in ``attributes.txt``. Pictures without a primary colour
            have none in ``image``, and are left out.
        sensitive: attributes that methods mitigate, ``color`` or ``class`` or both. Colours are
            read only where they are wanted.

    The paper (*Is Fairness Only Metric Deep?*, ICLR 2022, D.1) takes the mode over the colours "of
    each image". The shares of its Table 3 differ by at most 0.06 points between training and test
    part, where halves of coloured pictures would differ by up to one point, and three colours of
    its Table 13 have a normalised mutual information of exactly 0, that of a single class. So its
    colours seem to be those of species, which is the default here.
    """

    folder: str = "cub200/CUB_200_2011"
    color: Literal["species", "image"] = "species"
    sensitive: tuple[Literal["color", "class"], ...] = Field((COLOR,), min_length=1)

    @field_validator("folder")
    @classmethod
    def _below_the_root(cls, path: str) -> str:
        return below_the_root(path)

    @field_validator("sensitive")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError(f"{names[0]} is given twice, allowed: once")
        return names


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Photographs of birds; the class is the species, ``id`` the folder and the name of the file.

    Args:
        parameters: folder, colour, sizes and splits.
        files: where pictures and annotations are found.
        splits: number of named splits, each within the species.

    Raises:
        InputError: a file is missing or damaged, annotations and pictures do not match, or less
            than two species or an empty part is left.
    """
    table = _pictures(files, parameters.folder)
    where, index = f"{parameters.folder}/images", f"{parameters.folder}/images.txt"
    with opened(files.root, where, depth=2) as source:
        by_name = table.set_index("name")
        require_annotated(by_name, source, where, index)
        there = present(by_name, source, where, index, parameters.only_present).index
        if COLOR in parameters.sensitive:
            table = _with_colors(table, files, parameters)
        table = table[table["name"].isin(there)].set_index("name")
        return samples_of(table, parameters.sensitive, source, where, files, parameters, splits)


def _pictures(files: Files, folder: str) -> pd.DataFrame:
    """``name`` and ``class`` of every picture, by its number."""
    names = _numbered(files, f"{folder}/images.txt")
    classes = _numbered(files, f"{folder}/classes.txt")
    labels = f"{folder}/image_class_labels.txt"
    numbers = _numbered(files, labels)
    missing = names.index.symmetric_difference(numbers.index)
    if len(missing):
        raise InputError(
            f"{labels}: picture {missing[0]} is there or in images.txt only, allowed: in both"
        )
    of_picture = numbers.loc[names.index].map(
        dict(zip(classes.index.astype(str), classes, strict=True))
    )
    folders = names.map(lambda name: PurePosixPath(name).parent.name)
    wrong = of_picture.isna() | (of_picture != folders)
    if wrong.any():
        first = wrong.index[wrong][0]
        raise InputError(
            f"{labels}, picture {first}: class {numbers[first]} ({of_picture[first]}), allowed: "
            f"the class of classes.txt that its folder is called by, {folders[first]}"
        )
    twice = names[names.duplicated()]
    if len(twice):
        raise InputError(f"{folder}/images.txt: two rows of {twice.iloc[0]}, allowed: one")
    categories = pd.Index(classes.drop_duplicates(), dtype=object)
    return pd.DataFrame(
        {"name": names, CLASS: pd.Categorical(of_picture, categories)}, index=names.index
    ).rename_axis("number")


def _numbered(files: Files, name: str) -> pd.Series:
    """Texts by number, of a file of lines ``number text``."""
    found: dict[int, str] = {}
    for line, text in enumerate(files.text(name).splitlines(), start=1):
        number, _, value = text.strip().partition(" ")
        if not text.strip():
            continue
        if not number.isdecimal() or not value.strip():
            raise InputError(f"{name}, line {line}: {text[:40]!r}, allowed: a number and a text")
        if int(number) in found:
            raise InputError(f"{name}, line {line}: a second row of {number}, allowed: one")
        found[int(number)] = value.strip()
    if not found:
        raise InputError(f"{name}: no row, allowed: one or several of a number and a text")
    return pd.Series(found, dtype=object)


def _with_colors(table: pd.DataFrame, files: Files, parameters: Parameters) -> pd.DataFrame:
    """The pictures that have a colour, with it."""
    name = _attributes_file(files, parameters.folder)
    attributes = _numbered(files, name)
    parts = attributes.str.extract(PART_COLOR).dropna()
    primary = parts["color"][parts["part"] == PRIMARY]
    if primary.empty or primary.duplicated().any():
        raise InputError(f"{name}: allowed: rows {PRIMARY}::<color>, one a colour")
    labels = f"{parameters.folder}/attributes/image_attribute_labels.txt"
    seen = _seen(files, labels, name, attributes.index, parts.index, table.index)
    # [picture, primary colour]: whether the bird has it, and how many of its parts
    whole = seen[:, parts.index.get_indexer(primary.index)].astype(np.int64)
    of_part = parts["part"] != PRIMARY
    count = [seen[:, of_part & (parts["color"] == color)].sum(axis=1) for color in primary]
    if parameters.color == "species":
        species = table[CLASS].cat.codes.to_numpy()
        votes = np.zeros((len(table[CLASS].cat.categories), len(primary)), dtype=np.int64)
        np.add.at(votes, species, whole)
        votes = votes[species]
    else:
        votes = np.where(whole, 1 + np.stack(count, axis=1), 0)
    known = votes.any(axis=1)
    if not known.any():
        raise InputError(f"{labels}: no picture has a primary colour, allowed: some have")
    if not known.all():
        logger.info("%s: %d pictures without a colour are left out", labels, (~known).sum())
    colors = pd.Categorical.from_codes(votes.argmax(axis=1), pd.Index(primary, dtype=object))
    return table.assign(**{COLOR: colors})[known]


def _attributes_file(files: Files, folder: str) -> str:
    """Where the names of the attributes are: beside the folder, in it or in its ``attributes``."""
    places = [
        PurePosixPath(folder).parent,
        PurePosixPath(folder),
        PurePosixPath(folder, "attributes"),
    ]
    candidates = [str(place / "attributes.txt") for place in places]
    return next(filter(files.has, candidates), candidates[0])


def _seen(
    files: Files,
    name: str,
    attributes_name: str,
    attributes: pd.Index,
    wanted: pd.Index,
    pictures: pd.Index,
) -> np.ndarray:
    """Whether an attribute was seen in a picture, bool ``[picture, wanted attribute]``.

    The file has 312 rows a picture: it is parsed in blocks, and only what is wanted is kept.

    Args:
        files: where the file is found.
        name: the file of labels.
        attributes_name: the file of the names of attributes.
        attributes: numbers of all attributes.
        wanted: numbers of those that are looked for.
        pictures: numbers of all pictures.

    Raises:
        InputError: a row is damaged, names a picture or an attribute that does not exist, or a
            picture has no row.
    """
    seen = np.zeros((len(pictures), len(wanted)), dtype=bool)
    labelled = np.zeros(len(pictures), dtype=bool)
    allowed = {"picture": pictures, "attribute": attributes, "there": pd.Index([0, 1])}
    meaning = {
        "picture": "the numbers of images.txt",
        "attribute": f"the numbers of {attributes_name}",
        "there": "0 or 1",
    }
    for block in _blocks(files.content(name), name):
        for field in FIELDS:
            wrong = ~block[field].isin(allowed[field]).to_numpy()
            if wrong.any():
                first = int(wrong.argmax())
                raise InputError(
                    f"{name}, line {block.index[first] + 1}: {field} {block[field].iloc[first]}, "
                    f"allowed: {meaning[field]}"
                )
        rows = pictures.get_indexer(block["picture"])
        labelled[rows] = True
        columns = wanted.get_indexer(block["attribute"])
        true = (block["there"] == 1).to_numpy() & (columns >= 0)
        seen[rows[true], columns[true]] = True
    if not labelled.all():
        raise InputError(
            f"{name}: no row of {(~labelled).sum()} pictures, first number "
            f"{pictures[~labelled][0]}, allowed: labels of every picture"
        )
    return seen


def _blocks(content: bytes, name: str) -> Iterator[pd.DataFrame]:
    """Rows of the file of labels as numbers, missing where there is none, a block at a time."""
    try:
        blocks = pd.read_csv(
            BytesIO(content),
            sep=r"\s+",
            header=None,
            names=[*FIELDS, *map(str, range(len(FIELDS), MOST_FIELDS))],
            usecols=list(FIELDS),
            index_col=False,
            low_memory=False,  # one type a column, in all of a block
            chunksize=ROWS_AT_ONCE,
        )
        for block in blocks:
            yield block.apply(pd.to_numeric, errors="coerce")
    except ValueError as error:  # pandas' own errors among them
        raise InputError(f"{name}: no table: {str(error).strip()}") from error
