"""Biased MNIST: digits among seven bias variables (study of bias mitigation, 4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import (
    AfterValidator,
    BaseModel,
    Discriminator,
    Field,
    NonNegativeInt,
    PositiveInt,
    Tag,
    field_validator,
)

from robust_fairness.bench.datasets.base import DerivedDataset
from robust_fairness.bench.datasets.images import digits
from robust_fairness.bench.datasets.images._biased_mnist_factors import (
    DIGITS,
    UNBIASED,
    VARIABLES,
    draw_factors,
)
from robust_fairness.bench.datasets.images._biased_mnist_rendering import CANVAS, CELL, render
from robust_fairness.bench.samples.splits import require_at_most
from robust_fairness.core.errors import unknown_name
from robust_fairness.core.raw_files import Files, as_official
from robust_fairness.core.samples import PARTS, Samples

PAPER_BIAS = 0.7
SPLIT, UNBIASED_VAL = "split_0", "unbiased_val"
BIASED, REDRAWN, TEST = range(3)  # draws of factors: training and validation, the latter again
MNIST_FILES = tuple(
    f"mnist/{part}-{kind}-ubyte"
    for part in ("train", "t10k")
    for kind in ("images-idx3", "labels-idx1")
)
MNIST_HALF = 127  # brighter pixels belong to the digit
MNIST_SIZE = 28
OVERLAP = 8  # a new pixel is 28 / 32 = 7 / 8 of an old one
AREA = (OVERLAP * MNIST_SIZE // CELL) ** 2
ENLARGED_AT_ONCE = 4096
BUNDLED_ROWS = {"train": 1000, "val": 297, "test": 500}

Probability = Annotated[float, Field(ge=UNBIASED, le=1)]


def _known_variable(name: str) -> str:
    if name not in VARIABLES:
        raise unknown_name("bias variable", name, VARIABLES)
    return name


VariableName = Annotated[str, AfterValidator(_known_variable)]

# One probability for all, or one each; a discriminated union reports one mistake, not two.
Bias = Annotated[
    Annotated[Probability, Tag("all")] | Annotated[dict[VariableName, Probability], Tag("each")],
    Discriminator(lambda given: "each" if isinstance(given, Mapping) else "all"),
]


@dataclass(frozen=True)
class _Digits:
    """Digits of one source.

    Attributes:
        masks: pixels of its cell that each digit covers, bool ``[n, 32, 32]``.
        y: int64 digits ``[n]``.
        rows: row numbers of the training, validation and test digits.
    """

    masks: np.ndarray
    y: np.ndarray
    rows: dict[str, np.ndarray]


class BiasedMnist(DerivedDataset):
    """Digits with factors drawn and rendered.

    Validation digits are there twice: with factors drawn as for training (``val``) and with
    unbiased ones, p = 0.1, as for the test (``unbiased_val``), as in the published data. All
    seeds share one draw and one split, ``split_0``.
    """

    derivation = "synthesise_images"

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of Biased MNIST.

        Attributes:
            digits: MNIST, from its four files, or the 1,797 digits bundled with scikit-learn.
            canvas: height and width of the images, a divisor of 96.
            variant: ``corrected``, or ``as_published`` with its position list (cell 4 twice) and
                channels in the order blue, green, red.
            p_bias: probability of a digit's own value in training and validation rows, of all
                variables or by variable; the paper's 0.7 where one is left out.
            train_rows: number of training rows; all (MNIST: 50,000, 10,000 and 10,000) if None, as
                for the others.
            draws: images of every training digit, each with factors of its own; 1 as published.
            seed: seed of the split.
            factors_seed: seed of the factors. If None it is ``seed``, with which training factors
                and the permutation of the split come from the same random numbers; another one
                gives another draw of factors for the same digits.
        """

        digits: Literal["mnist", "scikit_learn"] = "mnist"
        canvas: int = CANVAS
        variant: Literal["corrected", "as_published"] = "corrected"
        p_bias: Bias = PAPER_BIAS
        sensitive: tuple[VariableName, ...] = ("distractor_shape",)
        train_rows: PositiveInt | None = None
        val_rows: PositiveInt | None = None
        test_rows: PositiveInt | None = None
        draws: PositiveInt = 1
        seed: NonNegativeInt = 0
        factors_seed: NonNegativeInt | None = None

        @field_validator("canvas")
        @classmethod
        def _divides(cls, canvas: int) -> int:
            if canvas < 1 or CANVAS % canvas:
                raise ValueError(f"allowed: divisors of {CANVAS}")
            return canvas

        @property
        def p_bias_by_variable(self) -> Mapping[str, float]:
            """Probability of the own value of every variable."""
            if isinstance(self.p_bias, dict):
                return dict.fromkeys(VARIABLES, PAPER_BIAS) | self.p_bias
            return dict.fromkeys(VARIABLES, self.p_bias)

    def required_files(self) -> tuple[str, ...]:
        return MNIST_FILES if self.parameters.digits == "mnist" else ()

    def originals(self, files: Files, splits: int) -> Samples:
        """Masks of the digits, bool ``[n, 32, 32]``, in one row for each image."""
        parameters = self.parameters
        read = {"mnist": _mnist, "scikit_learn": _bundled}[parameters.digits]
        source = read(files, parameters)
        of_part = {
            "train": np.tile(source.rows["train"], parameters.draws),
            "val": source.rows["val"],
            UNBIASED_VAL: source.rows["val"],
            "test": source.rows["test"],
        }
        rows = np.concatenate([of_part[part] for part in PARTS])
        part = np.repeat(PARTS, [len(of_part[part]) for part in PARTS])
        return Samples(
            x=source.masks[rows],
            y=source.y[rows],
            attributes=pd.DataFrame(index=range(len(rows))),
            id=rows,
            splits=pd.DataFrame({SPLIT: pd.Categorical(part, list(PARTS))}),
            classes=tuple(map(str, range(DIGITS))),
            sources=files.sources,
        )

    def derive(self, originals: Samples) -> Samples:
        """Images of the digits with factors drawn for each part."""
        parameters, part = self.parameters, originals.splits[SPLIT]
        unbiased = dict.fromkeys(VARIABLES, UNBIASED)
        seed = parameters.seed if parameters.factors_seed is None else parameters.factors_seed
        draws = [
            (part.isin(["train", "val"]), parameters.p_bias_by_variable, BIASED),
            (part == UNBIASED_VAL, unbiased, REDRAWN),
            (part == "test", unbiased, TEST),
        ]
        factors = pd.concat(
            [
                draw_factors(originals.y[rows], p_bias, parameters.variant, (seed, draw))
                for rows, p_bias, draw in draws
            ],
            ignore_index=True,
        )
        images = render(originals.arrays["x"], factors, parameters.variant, parameters.canvas)
        return replace(originals, x=images, attributes=factors, sensitive=parameters.sensitive)


def _mnist(files: Files, parameters: BiasedMnist.Parameters) -> _Digits:
    """MNIST: training digits are shuffled into training and validation rows."""
    images, y = zip(*(read_mnist(files, name) for name in ("train", "t10k")), strict=True)
    first, second = map(len, y)
    shuffled = _shuffled(first, parameters)
    validation = first // 6
    rows = {
        "train": shuffled[: first - validation],
        "val": shuffled[first - validation :],
        "test": first + np.arange(second),
    }
    masks = digit_masks(np.concatenate(images))
    return _Digits(masks, np.concatenate(y).astype(np.int64), _limited(rows, parameters))


def read_mnist(files: Files, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 ``[n, 28, 28]`` and digits ``[n]`` of a pair of files."""
    images = read_idx(files, f"mnist/{name}-images-idx3-ubyte", MNIST_SIZE, MNIST_SIZE)
    labels = read_idx(files, f"mnist/{name}-labels-idx1-ubyte")
    with as_official(f"mnist/{name}-labels-idx1-ubyte"):
        return images, np.arange(DIGITS)[labels]


def read_idx(files: Files, name: str, *shape: int) -> np.ndarray:
    """Content of an official idx file of unsigned bytes, uint8 ``[n, *shape]``, read-only."""
    content = files.content(name)
    with as_official(name):
        rows = int.from_bytes(content[4:8], "big")
        return np.frombuffer(content, np.uint8, offset=8 + 4 * len(shape)).reshape(rows, *shape)


def _bundled(files: Files, parameters: BiasedMnist.Parameters) -> _Digits:
    """The digits of scikit-learn, 8 x 8 pixels of 0 to 16, each pixel enlarged to 4 x 4."""
    images, y = digits.bundled_counts(files)
    scale = CELL // images.shape[1]
    masks = (images >= images.max() // 2).repeat(scale, axis=1).repeat(scale, axis=2)
    ends = np.cumsum(list(BUNDLED_ROWS.values()))
    parts = np.split(_shuffled(len(images), parameters), ends[:-1])
    rows = dict(zip(BUNDLED_ROWS, parts, strict=True))
    return _Digits(masks, y, _limited(rows, parameters))


def _shuffled(count: int, parameters: BiasedMnist.Parameters) -> np.ndarray:
    return np.random.Generator(np.random.PCG64(parameters.seed)).permutation(count)


def _limited(
    rows: dict[str, np.ndarray], parameters: BiasedMnist.Parameters
) -> dict[str, np.ndarray]:
    limited = {}
    for part, available in rows.items():
        asked = getattr(parameters, f"{part}_rows") or len(available)
        limited[part] = available[: require_at_most(f"{part}_rows", asked, len(available))]
    return limited


def digit_masks(images: np.ndarray) -> np.ndarray:
    """Which pixels of its cell each digit, uint8 ``[n, 28, 28]``, covers: bool ``[n, 32, 32]``."""
    masks = np.empty((len(images), CELL, CELL), dtype=bool)
    for start in range(0, len(images), ENLARGED_AT_ONCE):
        rows = slice(start, start + ENLARGED_AT_ONCE)
        masks[rows] = enlarged(images[rows]) > MNIST_HALF * AREA
    return masks


def enlarged(images: np.ndarray) -> np.ndarray:
    """Images uint8 ``[n, 28, 28]`` at 32 x 32 by area, times ``AREA``, exact: float32.

    Each new pixel covers 7/8 of an old one in both directions; sums of whole numbers below 2^24
    are exact in float32. OpenCV's INTER_AREA, which the published code uses, interpolates when it
    enlarges: edges may differ by a pixel.
    """
    width = OVERLAP * MNIST_SIZE // CELL
    fine = np.repeat(np.eye(MNIST_SIZE, dtype=np.float32), OVERLAP, axis=1)
    weight = fine.reshape(MNIST_SIZE, CELL, width).sum(-1).T
    return weight @ images.astype(np.float32) @ weight.T
