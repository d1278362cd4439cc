"""Images of Biased MNIST from the table of factors, in batches and in whole numbers only.

An image is composed at 96 x 96 pixels: background, distractors in the eight cells without the
digit, texture over everything, and the digit last (as published code draws them).
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd

from robust_fairness.bench.datasets.images._biased_mnist_factors import (
    CELLS,
    COLORS,
    SHAPES,
    TEXTURES,
)

CANVAS = 96
CELL = 32
GRID = CANVAS // CELL
SHAPE, PADDING = 16, 8  # of a distractor in its cell
BASELINES = (6, 22, 38, 54, 70, 86)
BATCH = 256
CHANNELS = 3
THREADS = 2
BLACK, WHITE = np.uint8(0), np.uint8(255)


def shape_mask(name: str) -> np.ndarray:
    """Which pixels of a cell a distractor covers, bool ``[32, 32]``."""
    y, x = np.mgrid[: SHAPE + 1, : SHAPE + 1]
    middle = SHAPE // 2
    corners = SHAPES[name]
    if corners is not None:
        sides = [
            (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
            for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True)
        ]
        inside = np.all(np.stack(sides) >= 0, axis=0) | np.all(np.stack(sides) <= 0, axis=0)
    elif name == "plus":
        inside = ((x >= 5) & (x <= 10)) | ((y >= 5) & (y <= 10))  # its two bars
    else:
        inside = (x - middle) ** 2 + (y - middle) ** 2 <= middle**2
        if name == "semicircle":
            inside &= x <= middle
    mask = np.zeros((CELL, CELL), dtype=bool)
    mask[PADDING : PADDING + SHAPE + 1, PADDING : PADDING + SHAPE + 1] = inside
    return mask


def texture_mask(name: str) -> np.ndarray:
    """Which pixels of the canvas a texture covers, bool ``[96, 96]``: 36 times its glyph."""
    glyph = np.array([[stroke == "#" for stroke in row] for row in TEXTURES[name].split()])
    mask = np.zeros((CANVAS, CANVAS), dtype=bool)
    for bottom in BASELINES:
        for left in BASELINES:
            top = max(0, bottom + 1 - len(glyph))
            rows = glyph[len(glyph) - (bottom + 1 - top) :]
            mask[top : bottom + 1, left : left + rows.shape[1]] |= rows
    return mask


@cache
def _layers() -> tuple[np.ndarray, np.ndarray]:
    """Masks of 0 and 255, uint8: ``[shape, cell, 96 * 96]`` and ``[texture, 96 * 96]``."""
    distractors = np.zeros((len(SHAPES), CELLS, CANVAS, CANVAS), dtype=np.uint8)
    for shape, name in enumerate(SHAPES):
        everywhere = np.tile(shape_mask(name), (GRID, GRID))
        for cell in range(CELLS):
            distractors[shape, cell] = np.where(everywhere, WHITE, BLACK)
            distractors[shape, cell][_place(cell)] = BLACK
    textures = np.stack([np.where(texture_mask(name), WHITE, BLACK) for name in TEXTURES])
    return (distractors.reshape(len(SHAPES), CELLS, -1), textures.reshape(len(TEXTURES), -1))


def _place(cell: int) -> tuple[slice, slice]:
    """Rows and columns of a cell."""
    top, left = CELL * (cell // GRID), CELL * (cell % GRID)
    return slice(top, top + CELL), slice(left, left + CELL)


def render(
    masks: np.ndarray, factors: pd.DataFrame, variant: str = "corrected", canvas: int = CANVAS
) -> np.ndarray:
    """Images of digits with the given factors, uint8 ``[n, 3, canvas, canvas]``.

    Args:
        masks: which pixels of its cell each digit covers, bool ``[n, 32, 32]``.
        factors: values of the variables, ``n`` rows.
        variant: ``corrected`` gives red, green, blue; ``as_published`` blue, green, red, the
            order in which the published network sees them.
        canvas: height and width, a divisor of 96: each pixel is the mean of a block.
    """
    codes = {str(name): column.cat.codes.to_numpy() for name, column in factors.items()}
    position = codes["digit_position"]  # the published list ends with cell 4 again
    codes["digit_position"] = np.where(position == CELLS, CELLS // 2, position)
    images = np.empty((len(masks), CHANNELS, canvas, canvas), dtype=np.uint8)
    starts = range(0, len(masks), BATCH)

    def draw(start: int) -> None:
        rows = slice(start, start + BATCH)
        drawn = _compose(masks[rows], {name: code[rows] for name, code in codes.items()}, variant)
        images[rows] = block_means(drawn, canvas)

    with ThreadPoolExecutor(THREADS) as pool:  # numpy lets other threads run while it works
        for _ in pool.map(draw, starts):
            pass
    return images


def _compose(masks: np.ndarray, codes: dict[str, np.ndarray], variant: str) -> np.ndarray:
    """One batch at full size, uint8 ``[n, 3, 96, 96]``."""
    colors = {
        name: (table if variant == "as_published" else table[:, ::-1])[codes[name], :, None]
        for name, table in COLORS.items()
    }
    distractors, textures = _layers()
    flat = np.empty((len(masks), CHANNELS, CANVAS * CANVAS), dtype=np.uint8)
    flat[:] = colors["background_color"]
    distractor = distractors[codes["distractor_shape"], codes["digit_position"], None]
    _paint(flat, distractor, colors["distractor_color"])
    _paint(flat, textures[codes["texture"], None], colors["texture_color"])
    drawn = flat.reshape(len(masks), CHANNELS, CANVAS, CANVAS)
    digit = np.where(masks, WHITE, BLACK)[:, None]
    for cell in range(CELLS):
        rows = np.flatnonzero(codes["digit_position"] == cell)
        place = (rows, slice(None), *_place(cell))
        inside = drawn[place]
        _paint(inside, digit[rows], colors["digit_color"][rows, :, :, None])
        drawn[place] = inside
    return drawn


def _paint(drawn: np.ndarray, mask: np.ndarray, color: np.ndarray) -> None:
    """Set the pixels where the mask is 255 to the colour, in place and without branches."""
    change = drawn ^ color
    change &= mask
    drawn ^= change


def block_means(images: np.ndarray, size: int) -> np.ndarray:
    """Images ``[..., h, h]`` of fewer pixels, uint8 ``[..., size, size]``.

    Each is the mean of a square block, rounded half up; ``size`` divides ``h``.

    >>> block_means(np.full((1, 28, 28), 7, np.uint8), 14).shape
    (1, 14, 14)
    """
    block = images.shape[-1] // size
    if block == 1:
        return images
    total = np.zeros((*images.shape[:-2], size, size), dtype=np.uint32)
    for row in range(block):
        for column in range(block):
            total += images[..., row::block, column::block]
    return ((total + block**2 // 2) // block**2).astype(np.uint8)
