"""The factors of Biased MNIST: which value each bias variable has in each image."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

DIGITS = 10
CELLS = 9  # of a grid of 3 x 3, numbered row by row
UNBIASED = 0.1

_DRAWN = yaml.safe_load(Path(__file__).with_name("_biased_mnist.yml").read_text(encoding="utf-8"))
SHAPES: dict[str, list[list[int]] | None] = _DRAWN["shapes"]
TEXTURES: dict[str, str] = _DRAWN["textures"]
DIGIT_COLORS = np.array(_DRAWN["digit_colors"], dtype=np.uint8)
# Blue, green, red by value, of every variable that is a colour.
COLORS = {
    "background_color": ((255 - DIGIT_COLORS.astype(int)) // 4).astype(np.uint8),
    "digit_color": DIGIT_COLORS,
    "distractor_color": DIGIT_COLORS[::-1],
    "texture_color": 255 - DIGIT_COLORS,
}


@dataclass(frozen=True)
class BiasVariable:
    """A bias variable.

    Attributes:
        values: names of its values.
        usual: for every digit, the value that it has most often.
    """

    values: tuple[str, ...]
    usual: tuple[int, ...]


def _named(values: Iterable[str]) -> BiasVariable:
    """A variable of ten values, one a digit."""
    return BiasVariable(tuple(values), tuple(range(DIGITS)))


def _hexadecimal(colors: np.ndarray) -> list[str]:
    return [f"#{red:02x}{green:02x}{blue:02x}" for blue, green, red in colors.tolist()]


# Ten digits have nine cells: digit 9 shares the cell of digit 4.
CORRECTED_POSITION = BiasVariable(
    tuple(f"cell {cell}" for cell in range(CELLS)), (0, 1, 2, 3, 4, 5, 6, 7, 8, 4)
)
# The published list has cell 4 twice, and both count as the last entry: see ``draw_factors``.
PUBLISHED_POSITION = _named([*CORRECTED_POSITION.values, "cell 4 again"])
VARIABLES: dict[str, BiasVariable] = {
    "background_color": _named(_hexadecimal(COLORS["background_color"])),
    "digit_color": _named(_hexadecimal(COLORS["digit_color"])),
    "digit_position": CORRECTED_POSITION,
    "distractor_shape": _named(SHAPES),
    "distractor_color": _named(_hexadecimal(COLORS["distractor_color"])),
    "texture": _named(TEXTURES),
    "texture_color": _named(_hexadecimal(COLORS["texture_color"])),
}
POSITIONS = {"corrected": CORRECTED_POSITION, "as_published": PUBLISHED_POSITION}


def draw_factors(
    digits: np.ndarray, p_bias: Mapping[str, float], variant: str, seed: Sequence[int]
) -> pd.DataFrame:
    """Values of every variable, drawn independently given the digit: one row per digit.

    A variable of K values has the digit's own value with probability e, and else any value with
    equal probability; for K = 10 and e = (p - 0.1) / 0.9 the own value then has probability p and
    the others (1 - p) / 9 each, as the paper says (4.1). With the nine cells of the corrected
    position p = 0.1 is exactly uniform as well, and p = 0.7 makes 0.704.

    ``as_published`` counts cell 4 as the last entry of the position list, whichever entry was
    drawn: a fifth of all digits are in cell 4, and by the published rule digit 4 is never in its
    majority. ``metrics.bias_resistance`` takes the most frequent value of a class as its majority:
    digit 4 then has one, that last entry, with a share of .735 of its training rows.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    columns = {}
    for name, corrected in VARIABLES.items():
        variable = POSITIONS[variant] if name == "digit_position" else corrected
        excess = (p_bias[name] - UNBIASED) / (1 - UNBIASED)
        biased = generator.random(len(digits)) < excess
        anything = generator.integers(len(variable.values), size=len(digits))
        codes = np.where(biased, np.asarray(variable.usual)[digits], anything)
        if variable is PUBLISHED_POSITION:
            codes = np.where(codes == CELLS // 2, len(variable.values) - 1, codes)
        columns[name] = pd.Categorical.from_codes(codes, pd.Index(variable.values))
    return pd.DataFrame(columns)
