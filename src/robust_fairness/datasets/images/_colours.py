"""Colours of pixels: CIELAB, and whether a colour is like skin."""

import numpy as np

LEVELS = 256
# ITU-R BT.601, 8 bits: Cb and Cr of red, green and blue from 0 to 255.
LUMA = np.array([0.299, 0.587, 0.114])
CHROMA_RANGE, CHROMA_ZERO = 224, 128
SKIN_CB, SKIN_CR = (77, 127), (133, 173)


def lab(pixels: np.ndarray) -> np.ndarray:
    """CIELAB (CIE 1976) of uint8 sRGB colours ``[n, ..., 3]``, relative to D65 and 2 degrees.

    L* is from 0 to 100. Greys have a* and b* of exactly 0; scikit-image's have up to 0.005, since
    it rounds matrix and white apart.

    Source: CIE 15:2004, 8.2.1; IEC 61966-2-1 for the light of the channels.
    """
    from skimage.color import rgb2lab  # only faces whose skin tone is measured need it

    red, green, blue = np.moveaxis(pixels, -1, 0)
    found: np.ndarray = rgb2lab(pixels)
    found[(red == green) & (green == blue), 1:] = 0
    return found


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
