"""LFW: faces of 5,749 people (Huang et al. 2007), with a race that a classifier read off them.

A race is no label of a person here. It is a score of Kumar et al. (2009), as in *Is Fairness Only
Metric Deep?* (ICLR 2022), D.1, or a prediction of another model, and called so.
"""

import logging
import re
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.read.columns import require_distinct, row_of
from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.auditing.read.schemas import Category, Number, validated
from robust_fairness.bench.datasets.base import ImageDataset
from robust_fairness.bench.datasets.images._class_images import (
    CLASS,
    ClassImageParameters,
    samples_of,
)
from robust_fairness.bench.datasets.images._image_files import ImageSource, opened, present
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, RawPath
from robust_fairness.core.samples import Samples

IMAGE = re.compile(r"(?P<person>[^/]+)/(?P=person)_\d{4}\.jpg")
# Table 22; the first of them where two scores are equal
RACES = ("Asian", "Black", "Indian", "White")
PREDICTIONS = ("asian", "black", "indian", "latino hispanic", "middle eastern", "white")
KUMAR, PREDICTED = "lfw/lfw_attributes.txt", "lfw/lfw_predicted_attributes.csv"
PERSON, NUMBER = "person", "imagenum"
NAME, PREDICTION = "name", "df_race"

logger = logging.getLogger(__name__)


class Lfw(ImageDataset):
    """Faces; the class is the person, ``id`` the folder and the name of the file."""

    class Parameters(ClassImageParameters):
        """Parameters of LFW.

        Attributes:
            images: folder, or zip file of that name, with a folder of JPEG files per person.
            attribute: ``kumar``: the attribute ``race`` is the highest of four scores of the file
                of Kumar et al., if it is over 0; ``predicted``: ``predicted_race`` is the
                prediction of another model (DeepFace). Images of none of the four races, and those
                without a row, are left out.
            attributes: the file of the attribute; that of Kumar et al. has a line of names that
                begins with ``#`` and tabs, the predictions have the columns ``name`` and
                ``df_race``. None for its usual name.
        """

        images: RawPath = "lfw/lfw-deepfunneled"
        attribute: Literal["kumar", "predicted"] = "kumar"
        attributes: RawPath | None = None

    def required_files(self) -> tuple[str, ...]:
        return (self.parameters.images, self._attribute_file())

    def _attribute_file(self) -> str:
        usual = KUMAR if self.parameters.attribute == "kumar" else PREDICTED
        return self.parameters.attributes or usual

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        kumar = parameters.attribute == "kumar"
        attribute = "race" if kumar else "predicted_race"
        name = self._attribute_file()
        races = _kumar(files, name) if kumar else _predicted(files, name)
        with opened(files, parameters.images, depth=2) as source:
            people = _people(source)
            table = pd.DataFrame({attribute: races})
            table = table.loc[present(table.index, source, name, parameters)]
            table = table.assign(**{CLASS: people[table.index]}).sort_index()
            known = table[attribute].notna()
            logger.info(
                "%s: excluded %d of %d images without a row in %s, and %d without one of the races",
                source.place,
                len(people) - len(table),
                len(people),
                name,
                (~known).sum(),
            )
            if not known.any():
                raise InputError(
                    f"{name}: none of the {len(table)} images has one of the races "
                    f"{', '.join(RACES)}"
                )
            return samples_of(table[known], (attribute,), source, files, parameters, splits)


def _people(source: ImageSource) -> pd.Series:
    """Person of every image, by its name; categories in alphabetical order."""
    names = sorted(source.names)
    result = [IMAGE.fullmatch(name) for name in names]
    for name, match in zip(names, result, strict=True):
        if match is None:
            raise InputError(
                f"{source.place}: image {name}; expected names such as Person/Person_0001.jpg"
            )
    people = pd.Categorical([match["person"] for match in result if match is not None])
    return pd.Series(people, index=pd.Index(names, dtype=object))


def _kumar(files: Files, name: str) -> pd.Series:
    """Race of every row of the file of Kumar et al., by the name of the image.

    Lines that begin with ``#`` are comments; the one with ``imagenum`` has the column names.
    """
    lines = [line.rstrip("\t") for line in files.text(name).splitlines()]
    headers = (line.split("\t")[1:] for line in lines if line.startswith("#\t"))
    header = next((names for names in headers if NUMBER in names), [])
    missing = [column for column in (PERSON, NUMBER, *RACES) if column not in header]
    if missing:
        raise InputError(
            f"{name}: no column {missing[0]}; the first row must be preceded by a tab-separated "
            f"line of '#', person, imagenum and the attributes, including {', '.join(RACES)}"
        )
    text = "\n".join(lines).encode()
    cells = read_cells([text], name, header=header, delimiter="\t", comment="#")
    fields = {PERSON: None, NUMBER: Number(1, whole=True), **dict.fromkeys(RACES, Number())}
    typed = validated(cells, fields, name)
    person = typed[PERSON].str.strip().str.replace(" ", "_")
    if (person == "").any():
        row = row_of((person == "").to_numpy())
        raise InputError(f"{name}, row {row}, column person: '', allowed: a person")
    number = typed[NUMBER].map("{:04.0f}".format)
    images = pd.Index(person + "/" + person + "_" + number + ".jpg", dtype=object)
    require_distinct(images, name)
    scores = typed[list(RACES)].to_numpy()
    codes = np.where((scores > 0).any(axis=1), scores.argmax(axis=1), -1)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(RACES, dtype=object)), index=images)


def _predicted(files: Files, name: str) -> pd.Series:
    """Predicted race of every row, by the name of the image; of other races it is missing."""
    table = read_cells(files.blocks(name), name, (NAME, PREDICTION)).astype({NAME: object})
    require_distinct(table[NAME], name)
    named = validated(table, {PREDICTION: Category(PREDICTIONS)}, name)[PREDICTION]
    capital = named.astype(object).str.capitalize()
    races = pd.Categorical(capital.where(capital.isin(RACES)), pd.Index(RACES, dtype=object))
    people = table[NAME].str.rpartition("_")[0]
    return pd.Series(races, index=pd.Index(people + "/" + table[NAME], dtype=object))
