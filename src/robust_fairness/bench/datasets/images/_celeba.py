"""Files of CelebA that several datasets are made of: tables by image, landmarks, skin tone."""

import io
import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.bench.datasets.images._skin_tone import (
    ALIGNED,
    HEIGHT,
    PLACES,
    POINTS,
    WIDTH,
    Patches,
    SkinToneParameters,
    measure,
    skin_tones,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, as_official
from robust_fairness.core.samples import Samples

IDENTITIES = "celeba/identity_CelebA.txt"
IMAGES = "celeba/img_align_celeba"
SKIN_TONE = ("skin_tone", "light_or_dark", "ita")
# Columns of what is measured while images are decoded.
OF_PATCH = ("lightness", "yellow", "skin", "pixels")
WHOLE, OWN_LANDMARKS = "pixels of a whole patch", "own_landmarks"

logger = logging.getLogger(__name__)


def numbers_of(text: str, name: str, kind: type, **form: Any) -> pd.DataFrame:
    """Rows of a file name and numbers of a ``kind``, by file name.

    ``form`` is how ``pandas.read_csv`` reads them.
    """
    with as_official(name):
        return pd.read_csv(io.StringIO(text), sep=r"\s+", index_col=0, **form).astype(kind)


def whole_numbers(files: Files, name: str, rows: pd.Index | None = None) -> pd.Series:
    """The numbers of a file of two columns, int64, by file name; those of ``rows`` if given."""
    table = numbers_of(files.text(name), name, np.int64, header=None)
    with as_official(name):
        return table[1] if rows is None else table.loc[rows, 1]


def named(column: pd.Series) -> pd.Categorical:
    """An attribute of -1 and 1, or of truth values, as "not Name" and "Name"."""
    names = pd.Index([f"not {column.name}", str(column.name)], dtype=object)
    return pd.Categorical.from_codes((column.to_numpy() > 0).astype(int), names)


class Colours:
    """Measures the skin tone of the images called ``rows`` while they are decoded."""

    def __init__(self, files: Files, rows: pd.Index, parameters: SkinToneParameters) -> None:
        self.landmarks, self.own = _landmarks_of(files, rows, parameters)
        self.parameters = parameters
        self.blocks: list[Patches] = []

    def __call__(self, start: int, images: np.ndarray) -> None:
        """Take the next block of rows, uint8 ``[block, 3, height, width]``."""
        height, width = images.shape[2:]
        if abs(width - height * WIDTH / HEIGHT) > 1:
            raise InputError(
                f"skin_tone: images of {width} x {height} pixels, allowed: the aligned crop of "
                f"{WIDTH} x {HEIGHT}, or a rescaled version of it"
            )
        rows = slice(start, start + len(images))
        self.blocks.append(measure(images, self.landmarks[rows]))

    def measured(self) -> pd.DataFrame:
        """What was measured of all images: a column for each number of each patch."""
        patches = Patches(*map(np.concatenate, zip(*self.blocks, strict=True)))
        columns = {WHOLE: patches.whole, OWN_LANDMARKS: self.own}
        for name in OF_PATCH:
            columns |= zip(_of_places(name), getattr(patches, name).T, strict=True)
        return pd.DataFrame(columns)


def labelled_with_skin_tone(
    faces: Samples, parameters: SkinToneParameters, sensitive: tuple[str, ...]
) -> Samples:
    """The faces with their skin tones instead of what ``Colours`` measured; flags as categories."""
    measured = faces.attributes
    of_patches = {name: measured[_of_places(name)].to_numpy() for name in OF_PATCH}
    table = skin_tones(Patches(**of_patches, whole=measured[WHOLE].to_numpy()), parameters)
    missing = int(table["ita"].isna().sum())
    if missing:
        logger.warning("skin_tone: missing for %d of %d images", missing, len(table))
    table[OWN_LANDMARKS] = measured[OWN_LANDMARKS]
    for name, flag in table.select_dtypes(bool).items():
        table[name] = named(flag)
    used = [WHOLE, OWN_LANDMARKS, *(column for name in OF_PATCH for column in _of_places(name))]
    shown = table if parameters.details else table[list(SKIN_TONE)]
    attributes = pd.concat([measured.drop(columns=used), shown], axis=1)
    return replace(faces, attributes=attributes, sensitive=sensitive)


def _of_places(name: str) -> list[str]:
    """Columns of what was measured of each patch."""
    return [f"{name} of {place}" for place in PLACES]


def _landmarks_of(
    files: Files, rows: pd.Index, parameters: SkinToneParameters
) -> tuple[np.ndarray, np.ndarray]:
    """Landmarks of the images ``[n, 5, 2]``, and which of them are their own ``[n]``."""
    landmarks = np.tile(np.array(ALIGNED), (len(rows), 1, 1))
    if parameters.positions == "aligned":
        return landmarks, np.zeros(len(rows), dtype=bool)
    name = parameters.landmarks
    table = numbers_of(files.text(name), name, np.float64, skiprows=1)
    with as_official(name):
        table = table[[f"{point}_{axis}" for point in POINTS for axis in "xy"]]
    wrong = table.isna().any(axis=1)
    if wrong.any():
        raise InputError(f"{name}, {table.index[wrong][0]}: expected {2 * len(POINTS)} numbers")
    mask = rows.isin(table.index)
    if not mask.any():
        raise InputError(
            f"{name}: has none of the {len(rows)} images; skin_tone: aligned uses fixed positions "
            "instead"
        )
    landmarks[mask] = table.loc[rows[mask]].to_numpy(np.float64).reshape(-1, len(POINTS), 2)
    if not mask.all():
        logger.warning(
            "%s: %d of %d images are missing; their skin tone is measured at the fixed positions",
            name,
            (~mask).sum(),
            len(rows),
        )
    return landmarks, mask
