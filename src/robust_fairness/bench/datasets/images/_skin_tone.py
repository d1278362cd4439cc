"""Skin tone of faces by the individual typology angle (ITA) of patches on cheeks and nose.

What is measured is the colour of pixels: light, camera and make-up are in it as much as skin.

Source: "Is Fairness Only Metric Deep?" (ICLR 2022), appendix D.2 and Table 23, which cites
V. Cheng et al., "Can You Fake It Until You Make It?" (FAccT 2021) for the cuts.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, model_validator

HEIGHT, WIDTH = 218, 178  # of the aligned crop of CelebA, whose coordinates landmarks have
PATCH = 20  # height and width of a patch there
CHANNELS = 3
LEFT_EYE, RIGHT_EYE, NOSE = range(3)  # among the points; left and right are the image's
POINTS = ("lefteye", "righteye", "nose", "leftmouth", "rightmouth")
# Means of 39,829 aligned faces (CelebA's validation and test images) as whole numbers: (69.32,
# 111.20), (107.67, 111.19), (88.02, 135.13), (71.16, 152.09), (105.69, 152.16).
ALIGNED = ((69.0, 111.0), (108.0, 111.0), (88.0, 135.0), (71.0, 152.0), (106.0, 152.0))
PLACES = ("left_cheek", "right_cheek", "nose")
CATEGORIES = ("I", "II", "III", "IV", "V", "VI")
CUTS = (10.0, 20.0, 30.0, 40.0, 50.0)  # of Table 23; a value at a cut is in the lighter category
LIGHT_CATEGORIES = 3
MIDDLE_LIGHTNESS = 50
LIGHTNESS_CODES, YELLOW_OFFSET = 255, 128  # of CIELAB in 8 bits

LEVELS = 256
# ITU-R BT.601, 8 bits: Cb and Cr of red, green and blue from 0 to 255.
LUMA = np.array([0.299, 0.587, 0.114])
CHROMA_RANGE, CHROMA_ZERO = 224, 128
SKIN_CB, SKIN_CR = (77, 127), (133, 173)

Encoding = Literal["cielab", "eight_bits"]


class SkinToneParameters(BaseModel, extra="forbid", frozen=True):
    """How skin tone is measured; a single word is ``positions``.

    Attributes:
        positions: ``landmarks`` of each image where the file has them and the fixed ones of the
            aligned crop elsewhere, or the fixed ones (``aligned``) for all.
        landmarks: the file of landmarks, in the official format.
        ita: ``mean_of_patches`` (the source's), or that of all patches' ``mean_colour``.
        encoding: ``cielab``, or ``eight_bits``: L* of 0 to 255 and b* + 128, put into the formula
            as they are. That is a mistake, but with it the shares of the source's Table 4 come out.
        least_skin: smallest share of skin-like pixels that a patch may have without a flag.
        most_disagreement: largest difference between the angles of two patches without a flag,
            degrees; 20 are two whole categories.
        flagged: ``keep`` the skin tone of flagged faces, or make it ``missing``.
        details: give all columns of the table as attributes, not only the three.
    """

    positions: Literal["landmarks", "aligned"] = "landmarks"
    landmarks: str = "celeba/list_landmarks_align_celeba.txt"
    ita: Literal["mean_of_patches", "mean_colour"] = "mean_of_patches"
    encoding: Encoding = "cielab"
    least_skin: Annotated[float, Field(ge=0, le=1)] = 0.5
    most_disagreement: Annotated[float, Field(ge=0, le=360)] = 20.0
    flagged: Literal["keep", "missing"] = "keep"
    details: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_a_word(cls, given: object) -> object:
        return {"positions": given} if isinstance(given, str) else given


class Patches(NamedTuple):
    """Colours of the patches of some faces, each ``[n, 3]`` in the order of ``PLACES``.

    Attributes:
        lightness: float64 mean of L*; NaN where the patch has no pixel.
        yellow: float64 mean of b*, likewise.
        skin: float64 share of skin-like pixels, likewise.
        pixels: int64 number of pixels of the patch that are in the image.
        whole: int64 ``[n]`` number of pixels that a whole patch has.
    """

    lightness: np.ndarray
    yellow: np.ndarray
    skin: np.ndarray
    pixels: np.ndarray
    whole: np.ndarray


def measure(images: np.ndarray, landmarks: np.ndarray) -> Patches:
    """Colours of the patches of faces.

    A patch is ``PATCH`` pixels wide and high in the aligned crop, at least one, and scaled with the
    image. It lies around (x of the left eye, y of the nose), (x of the right eye, y of the nose)
    or the nose, on the nearest whole pixels, and ends where the image does.

    Args:
        images: the aligned crops in any size, uint8 ``[n, 3, height, width]`` RGB.
        landmarks: x and y of ``POINTS``, float64 ``[n, 5, 2]``, in pixels of the aligned crop of
            178 x 218; they may lie outside.

    Source: appendix D.2.
    """
    height, width = images.shape[2:]
    x = landmarks[:, [LEFT_EYE, RIGHT_EYE, NOSE], 0]
    y = landmarks[:, [NOSE, NOSE, NOSE], 1]
    rows, columns = _span(y, height, HEIGHT), _span(x, width, WIDTH)
    inside = (
        ((rows >= 0) & (rows < height))[..., :, None]
        & ((columns >= 0) & (columns < width))[..., None, :]
    ).reshape(*x.shape, rows.shape[-1] * columns.shape[-1])
    result = images[
        np.arange(len(images))[:, None, None, None],
        :,
        rows.clip(0, height - 1)[..., :, None],
        columns.clip(0, width - 1)[..., None, :],
    ].reshape(*inside.shape, CHANNELS)
    colours = lab(result)
    return Patches(
        lightness=_mean(colours[..., 0], inside),
        yellow=_mean(colours[..., 2], inside),
        skin=_mean(skin_like(result).astype(np.float64), inside),
        pixels=inside.sum(axis=-1),
        whole=np.full(len(images), inside.shape[-1]),
    )


def _span(centre: np.ndarray, size: int, reference: int) -> np.ndarray:
    """Pixels of patches along one axis, int64 ``[n, 3, patch]``; some may be outside."""
    scale = size / reference
    patch = max(1, round(PATCH * scale))
    # Coordinates far outside would not fit into whole numbers, and one patch away is far enough.
    start = np.floor(centre * scale - patch / 2 + 0.5).clip(-patch, size).astype(np.int64)
    return start[..., None] + np.arange(patch)


def _mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted mean over the last axis; NaN where all weights are 0."""
    count = weights.sum(axis=-1)
    total = np.where(weights > 0, values * weights, 0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def lab(pixels: np.ndarray) -> np.ndarray:
    """CIELAB (CIE 1976) of uint8 sRGB colours ``[n, ..., 3]``, relative to D65 and 2 degrees.

    L* is from 0 to 100. Greys have a* and b* of exactly 0; scikit-image's have up to 0.005, since
    it rounds matrix and white apart.

    Source: CIE 15:2004, 8.2.1; IEC 61966-2-1 for the light of the channels.
    """
    from skimage.color import rgb2lab  # only faces whose skin tone is measured need it

    red, green, blue = np.moveaxis(pixels, -1, 0)
    result: np.ndarray = rgb2lab(pixels)
    result[(red == green) & (green == blue), 1:] = 0
    return result


def skin_like(pixels: np.ndarray) -> np.ndarray:
    """Whether Cb is from 77 to 127 and Cr from 133 to 173, of uint8 RGB ``[n, ..., 3]``.

    The rule ignores luminance. Near black every colour is close to grey, so that dark skin in poor
    light fails it: a reason to look at an image, never to leave a person out.

    Source: D. Chai and K. Ngan, "Face Segmentation Using Skin-Color Map in Videophone
    Applications", IEEE Transactions on Circuits and Systems for Video Technology 9 (1999).
    """
    luma = pixels @ LUMA
    cb, cr = (
        CHROMA_ZERO + CHROMA_RANGE / (LEVELS - 1) * (pixels[..., of] - luma) / (2 * (1 - LUMA[of]))
        for of in (2, 0)
    )
    return _within(cb, SKIN_CB) & _within(cr, SKIN_CR)


def _within(values: np.ndarray, limits: tuple[int, int]) -> np.ndarray:
    """Which values are between two limits, both included, rounded as codes of 8 bits are."""
    codes = np.rint(values)
    return (codes >= limits[0]) & (codes <= limits[1])


def typology_angle(
    lightness: np.ndarray, yellow: np.ndarray, encoding: Encoding = "cielab"
) -> np.ndarray:
    """Individual typology angle of L* and b*, in degrees.

    Where b* is positive it is arctan((L* - 50) / b*), as printed. Where b* is negative it goes on
    beyond 90 degrees (lighter) or below -90 (darker), while the printed form would exchange light
    and dark. It is 90 or -90 for b* = 0, and 0 for b* = 0 and L* = 50.

    Source: appendix D.2.
    """
    if encoding == "eight_bits":
        lightness, yellow = lightness * LIGHTNESS_CODES / 100, yellow + YELLOW_OFFSET
    # A zero of b* has no sign that could matter.
    return np.degrees(np.arctan2(lightness - MIDDLE_LIGHTNESS, yellow + 0.0))


def category(ita: np.ndarray) -> pd.Categorical:
    """Fitzpatrick category of angles in degrees, by the cuts of Table 23; missing where NaN."""
    codes = len(CUTS) - np.searchsorted(np.array(CUTS), ita, side="right")
    names = pd.Index(CATEGORIES, dtype=object)
    return pd.Categorical.from_codes(np.where(np.isnan(ita), -1, codes), names)


def light_or_dark(categories: pd.Categorical) -> pd.Categorical:
    """``light`` (I to III) or ``dark`` (IV to VI); missing where the category is."""
    codes = np.asarray(categories.codes)
    halves = np.where(codes < 0, -1, codes >= LIGHT_CATEGORIES)
    return pd.Categorical.from_codes(halves, pd.Index(["light", "dark"], dtype=object))


def skin_tones(patches: Patches, parameters: SkinToneParameters) -> pd.DataFrame:
    """Table of the skin tone of faces, one row per face.

    Columns: ``skin_tone`` (I to VI), ``light_or_dark`` and ``ita``, missing for a face without a
    pixel; ``ita_left_cheek``, ``ita_right_cheek``, ``ita_nose`` (NaN without a pixel),
    ``ita_mean_of_patches``, ``ita_mean_colour``, ``ita_disagreement`` (range of the angles of the
    patches), ``least_skin`` (smallest share of skin-like pixels of a patch). Flags, bool:
    ``few_skin_pixels``, ``patches_disagree``, ``not_yellow`` (b* of a patch is not positive),
    ``no_pixels`` (all patches are outside) and ``clipped`` (part of a patch is outside), which
    alone makes no skin tone ``missing``.

    Angles are averaged as plain numbers, which is wrong only near 180 degrees: bluish patches of
    middle lightness, which have a flag.
    """
    known = patches.pixels > 0
    angles = typology_angle(patches.lightness, patches.yellow, parameters.encoding)
    lightness, yellow = (
        _mean(mean, patches.pixels) for mean in (patches.lightness, patches.yellow)
    )
    ita = {
        "mean_of_patches": _mean(angles, known),
        "mean_colour": typology_angle(lightness, yellow, parameters.encoding),
    }
    # Patches without a pixel are NaN, which fmax and fmin leave out.
    disagreement = np.fmax.reduce(angles, axis=1) - np.fmin.reduce(angles, axis=1)
    table = pd.DataFrame(
        {f"ita_{place}": angles[:, column] for column, place in enumerate(PLACES)}
        | {f"ita_{name}": values for name, values in ita.items()}
        | {"ita_disagreement": disagreement, "least_skin": np.fmin.reduce(patches.skin, axis=1)}
    )
    flags = pd.DataFrame(
        {
            "few_skin_pixels": table["least_skin"] < parameters.least_skin,
            "patches_disagree": table["ita_disagreement"] > parameters.most_disagreement,
            "not_yellow": (patches.yellow <= 0).any(axis=1),
            "clipped": (patches.pixels < patches.whole[:, None]).any(axis=1),
            "no_pixels": ~known.any(axis=1),
        }
    )
    used = ita[parameters.ita]
    if parameters.flagged == "missing":
        used = np.where(flags.drop(columns="clipped").any(axis=1), np.nan, used)
    tones = category(used)
    result = pd.DataFrame({"skin_tone": tones, "light_or_dark": light_or_dark(tones), "ita": used})
    return pd.concat([result, table, flags], axis=1)
