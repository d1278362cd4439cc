"""Skin tone of CelebA's faces by encoding and place of the patches: shares, light, people.

The first 10,000 aligned faces at half size, with the fixed landmarks. A row of
``docs/results/fair_metric_learning_skin_tone.csv`` is a way of measuring; the page shows it.

    python benchmarks/skin_tone_places.py ../shared/data/celeba
"""

import argparse
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from robust_fairness.datasets.images._skin_tone import (
    ALIGNED,
    CATEGORIES,
    NOSE,
    Patches,
    SkinToneParameters,
    measure,
    skin_tones,
)

RESULTS = Path(__file__).resolve().parents[1] / "docs/results/fair_metric_learning_skin_tone.csv"
FACES = "img_align_celeba_half_10k.zip"
PEOPLE = "identity_CelebA.txt.gz"
# Pixels of the aligned crop by which all three patches are moved; down is positive.
PLACES = {"as printed": 0, "12 pixels higher": -12, "forehead": -55}
BLOCK = 500


def main() -> None:
    """Write a row for every encoding and place."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    names, images = faces(folder / FACES)
    with gzip.open(folder / PEOPLE, "rt") as file:
        people = dict(line.split() for line in file)
    person = np.array([people[name] for name in names])
    rows = []
    for place, down in PLACES.items():
        patches = measured(images, down)
        for encoding in ("cielab", "eight_bits"):
            for used in ("three patches", "both cheeks"):
                chosen = patches if used == "three patches" else without_nose(patches)
                row = described(chosen, SkinToneParameters(encoding=encoding), person)
                rows.append({"encoding": encoding, "place": place, "patches": used} | row)
    pd.DataFrame(rows).to_csv(RESULTS, index=False, float_format="%.4f")


def faces(path: Path) -> tuple[list[str], np.ndarray]:
    """Names and pictures, uint8 ``[n, 3, height, width]``, of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = [one for one in archive.namelist() if one.endswith(".jpg")]
        pictures = [np.asarray(Image.open(io.BytesIO(archive.read(one)))) for one in members]
    return [Path(one).name for one in members], np.stack(pictures).transpose(0, 3, 1, 2)


def measured(images: np.ndarray, down: float) -> Patches:
    """Patches at the height of the nose, moved down by some pixels of the aligned crop."""
    points = np.array(ALIGNED)
    points[NOSE, 1] += down
    blocks = [images[first : first + BLOCK] for first in range(0, len(images), BLOCK)]
    parts = [measure(block, np.tile(points, (len(block), 1, 1))) for block in blocks]
    return Patches(*map(np.concatenate, zip(*parts, strict=True)))


def without_nose(patches: Patches) -> Patches:
    """The nose counts as outside of the image."""
    pixels = patches.pixels.copy()
    pixels[:, NOSE] = 0
    missing = np.where(pixels > 0, 1.0, np.nan)
    return patches._replace(
        lightness=patches.lightness * missing,
        yellow=patches.yellow * missing,
        skin=patches.skin * missing,
        pixels=pixels,
    )


def described(patches: Patches, parameters: SkinToneParameters, person: np.ndarray) -> dict:
    """Shares of the categories, and what the angle follows."""
    tones = skin_tones(patches, parameters)
    ita = tones["ita"].to_numpy()
    shares = tones["skin_tone"].value_counts(normalize=True)
    cheeks = (tones["ita_left_cheek"] - tones["ita_right_cheek"]).abs()
    lightness = np.nanmean(patches.lightness, axis=1)
    between, within = spread_of_people(ita, person)
    return {
        **{name: shares[name] for name in CATEGORIES},
        "correlation with lightness": np.corrcoef(ita, lightness)[0, 1],
        "median difference of cheeks": cheeks.median(),
        "intraclass correlation": between / (between + within),
        "deviation within people": np.sqrt(within),
    }


def spread_of_people(ita: np.ndarray, person: np.ndarray) -> tuple[float, float]:
    """Variances between and within people with several images: one-way analysis of variance.

    Source: K. McGraw and S. Wong, "Forming Inferences About Some Intraclass Correlation
    Coefficients", Psychological Methods 1 (1996), for groups of different sizes.
    """
    frame = pd.DataFrame({"ita": ita, "person": person})
    groups = frame.groupby("person")["ita"]
    frame = frame.assign(mean=groups.transform("mean"), size=groups.transform("size"))
    frame = frame[frame["size"] > 1]
    sizes = frame.groupby("person")["size"].first().to_numpy(np.float64)
    rows, count = sizes.sum(), len(sizes)
    within = ((frame["ita"] - frame["mean"]) ** 2).sum() / (rows - count)
    among = ((frame["mean"] - frame["ita"].mean()) ** 2).sum() / (count - 1)
    usual = (rows - (sizes**2).sum() / rows) / (count - 1)
    return float((among - within) / usual), float(within)


if __name__ == "__main__":
    main()
