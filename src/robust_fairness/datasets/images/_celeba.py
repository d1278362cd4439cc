"""Files of CelebA that several datasets are made of: tables by image, landmarks, skin tone."""

import io
import logging

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
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
from robust_fairness.datasets.raw.columns import require_distinct

IDENTITIES = "celeba/identity_CelebA.txt"
IMAGES = "celeba/img_align_celeba"
SKIN_TONE = ("skin_tone", "light_or_dark", "ita")

logger = logging.getLogger(__name__)


def counted_table(name: str, text: str) -> pd.DataFrame:
    """Numbers by file name, below a line with their count and one with their names.

    Returns:
        float64 or int64; NaN where a cell is no number.
    """
    count, _, rest = text.partition("\n")
    table = _table(name, rest, header=0)
    if count.strip() != str(len(table)):
        raise InputError(
            f"{name}: {len(table)} rows, but its first line says {count.strip()[:20]!r}"
        )
    return table.apply(pd.to_numeric, errors="coerce")


def whole_numbers(files: Files, name: str) -> pd.Series:
    """The numbers of a file of two columns, int64, by file name."""
    table = _table(name, files.text(name), header=None)
    if len(table.columns) != 1 or not is_integer_dtype(table.iloc[:, 0]):
        raise InputError(f"{name}: every row must have a file name and an integer")
    return table.iloc[:, 0]


def _table(name: str, text: str, header: int | None) -> pd.DataFrame:
    """Rows of a file name and values, by file name."""
    try:
        table = pd.read_csv(io.StringIO(text), sep=r"\s+", header=header, index_col=0)
    except ValueError as error:  # pandas' own errors among them
        raise InputError(f"{name}: not a table: {str(error).strip()}") from error
    require_distinct(table.index, name)
    return table


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
    table = counted_table(name, files.text(name))
    columns = [f"{point}_{axis}" for point in POINTS for axis in "xy"]
    if list(table.columns) != columns:
        raise InputError(
            f"{name}: columns {', '.join(map(str, table))}, expected {', '.join(columns)}"
        )
    wrong = ~np.isfinite(table.to_numpy(np.float64)).all(axis=1)
    if wrong.any():
        raise InputError(f"{name}, {table.index[wrong][0]}: expected {len(columns)} numbers")
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
