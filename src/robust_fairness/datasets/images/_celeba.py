"""Files of CelebA that several datasets are made of: tables by image, landmarks, skin tone."""

import io
import logging
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, as_official
from robust_fairness.datasets.images._skin_tone import (
    ALIGNED,
    HEIGHT,
    POINTS,
    WIDTH,
    Patches,
    SkinToneParameters,
    measure,
    skin_tones,
)

IDENTITIES = "celeba/identity_CelebA.txt"
IMAGES = "celeba/img_align_celeba"
SKIN_TONE = ("skin_tone", "light_or_dark", "ita")

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

    def attributes(self) -> pd.DataFrame:
        """Skin tone of all images, as attributes; flags as categories."""
        patches = Patches(*map(np.concatenate, zip(*self.blocks, strict=True)))
        table = skin_tones(patches, self.parameters)
        missing = int(table["ita"].isna().sum())
        if missing:
            logger.warning("skin_tone: missing for %d of %d images", missing, len(table))
        if not self.parameters.details:
            return table[list(SKIN_TONE)]
        table["own_landmarks"] = self.own
        for name, flag in table.select_dtypes(bool).items():
            names = pd.Index([f"not {name}", str(name)], dtype=object)
            table[name] = pd.Categorical.from_codes(flag.to_numpy().astype(int), names)
        return table


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
