"""Biased MNIST: the law of its factors, and every pixel against a slow restatement."""

import hashlib
from math import sqrt
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.bench.datasets.images import _biased_mnist_rendering as rendering
from robust_fairness.bench.datasets.images import biased_mnist
from robust_fairness.bench.datasets.images._biased_mnist_factors import VARIABLES, draw_factors
from robust_fairness.bench.datasets.images._biased_mnist_rendering import TEXTURES, render
from robust_fairness.core.samples import PARTS
from robust_fairness.numbers.groups import groups_of
from tests.datasets.images import write_mnist
from tests.datasets.loading import load

DIGIT = [
    (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255),
    (255, 0, 255), (128, 255, 0), (128, 0, 255), (0, 128, 255), (0, 255, 128),
]  # fmt: skip
SHAPES = [
    "circle", "right", "obtuse", "square", "parallelogram",
    "kite", "pentagon", "semicircle", "plus", "arrow",
]  # fmt: skip
CORNERS = {
    "right": [(0, 0), (0, 16), (16, 16)],
    "obtuse": [(0, 0), (5, 16), (16, 16)],
    "square": [(0, 0), (0, 16), (16, 16), (16, 0)],
    "parallelogram": [(5, 0), (0, 16), (10, 16), (16, 0)],
    "kite": [(8, 0), (0, 5), (8, 16), (16, 5)],
    "pentagon": [(8, 0), (0, 5), (5, 16), (10, 16), (16, 5)],
    "arrow": [(0, 4), (0, 12), (10, 12), (16, 8), (10, 4)],
}


FILES = {"images": "mnist/train-images-idx3-ubyte", "labels": "mnist/train-labels-idx1-ubyte"}


def draw(rows: int, p: float, variant: str = "corrected", seed: int = 1):
    """Digits and their factors at one p_bias."""
    y = np.random.default_rng(9).integers(0, 10, rows)
    return y, draw_factors(y, dict.fromkeys(VARIABLES, p), variant, (seed, 0))


def codes(factors: pd.DataFrame, name: str) -> np.ndarray:
    """Value numbers of a variable."""
    return factors[name].cat.codes.to_numpy()


@pytest.mark.parametrize("p", [0.1, 0.5, 0.7, 0.9])
def test_own_value_has_probability_p_and_the_others_share_the_rest(p):
    """Chi-square of every variable of ten values, digit by digit."""
    y, factors = draw(60_000, p)
    for name in set(VARIABLES) - {"digit_position"}:
        for digit in range(10):
            counts = np.bincount(codes(factors, name)[y == digit], minlength=10)
            expected = np.full(10, (1 - p) / 9)
            expected[digit] = p
            assert stats.chisquare(counts, expected * counts.sum()).pvalue > 1e-5


@pytest.mark.parametrize("p", [0.1, 0.7])
def test_corrected_position_has_nine_cells_and_is_unbiased_at_one_tenth(p):
    """No cell twice; each as likely as the others at p = 0.1, whatever the digit."""
    y, factors = draw(60_000, p)
    excess = (p - 0.1) / 0.9
    for digit in range(10):
        counts = np.bincount(codes(factors, "digit_position")[y == digit], minlength=9)
        expected = np.full(9, (1 - excess) / 9)
        expected[4 if digit == 9 else digit] += excess
        assert stats.chisquare(counts, expected * counts.sum()).pvalue > 1e-5


def test_published_position_has_its_defects():
    """Digit 4 never in its majority, digit 9's share .73 at p = .7, a fifth of all in cell 4."""
    y, biased = draw(60_000, 0.7, "as_published")
    position = codes(biased, "digit_position")
    assert (position[y == 4] != 4).all()
    assert np.mean(position[y == 9] == 9) == pytest.approx(0.7 + 0.3 / 9, abs=0.02)
    y, unbiased = draw(60_000, 0.1, "as_published")
    position = codes(unbiased, "digit_position")
    assert np.mean(position == 9) == pytest.approx(0.2, abs=0.01)
    assert np.mean(position[y == 9] == 9) == pytest.approx(0.2, abs=0.02)


def test_factors_are_independent_given_the_digit():
    """Every pair of variables, within one digit."""
    y, factors = draw(60_000, 0.5)
    inside = factors[y == 3]
    names = list(VARIABLES)
    for number, first in enumerate(names):
        for second in names[number + 1 :]:
            table = pd.crosstab(inside[first], inside[second])
            assert stats.chi2_contingency(table).pvalue > 1e-5


def test_variables_have_their_own_bias():
    """One biased, the rest not."""
    y = np.random.default_rng(0).integers(0, 10, 20_000)
    p = dict.fromkeys(VARIABLES, 0.1) | {"texture": 1.0}
    factors = draw_factors(y, p, "corrected", (0, 0))
    assert np.array_equal(codes(factors, "texture"), y)
    assert np.mean(codes(factors, "digit_color") == y) == pytest.approx(0.1, abs=0.01)


def test_number_of_groups_is_that_of_the_reference():
    """60,000 rows at p = .7: groups of attributes with the digit, as measured on published code."""
    y, factors = draw(60_000, 0.7, "as_published")
    order = [
        "distractor_shape", "texture", "digit_color", "background_color",
        "texture_color", "distractor_color", "digit_position",
    ]  # fmt: skip
    frame = factors.assign(y=pd.Categorical(y))
    measured = [100, 998, 4109, 9731, 17137, 25355, 32708]
    for k, reference in enumerate(measured, 1):
        count = len(groups_of(frame, [*order[:k], "y"]).names)
        assert count == pytest.approx(reference, rel=0.02)


def inside(shape: str, x: int, y: int) -> bool:
    """Whether a pixel belongs to a shape, corners and edges included."""
    if shape == "plus":
        return 5 <= x <= 10 or 5 <= y <= 10
    if shape in ("circle", "semicircle"):
        return sqrt((x - 8) ** 2 + (y - 8) ** 2) <= 8 and (shape == "circle" or x <= 8)
    corners = CORNERS[shape]
    turns = set()
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        turns.add(np.sign((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)))
    return not {1, -1} <= turns


def slow_image(mask: np.ndarray, values: dict[str, int], variant: str) -> np.ndarray:
    """Pixel by pixel, painting over in the published order."""
    digit, texture = DIGIT[values["digit_color"]], DIGIT[values["texture_color"]]
    background = [(255 - c) // 4 for c in DIGIT[values["background_color"]]]
    distractor = DIGIT[::-1][values["distractor_color"]]
    texture = [255 - c for c in texture]
    cell = 4 if values["digit_position"] == 9 else values["digit_position"]
    glyph = list(TEXTURES.values())[values["texture"]].split()
    image = np.zeros((96, 96, 3), dtype=np.uint8)
    for row in range(96):
        for column in range(96):
            color = background
            here = 3 * (row // 32) + column // 32
            x, y = column % 32 - 8, row % 32 - 8
            in_frame = here != cell and 0 <= x <= 16 and 0 <= y <= 16
            if in_frame and inside(SHAPES[values["distractor_shape"]], x, y):
                color = distractor
            for bottom in (6, 22, 38, 54, 70, 86):
                for left in (6, 22, 38, 54, 70, 86):
                    up, right = bottom - row, column - left
                    if 0 <= up < 8 and 0 <= right < 8 and glyph[7 - up][right] == "#":
                        color = texture
            if here == cell and mask[row % 32, column % 32]:
                color = digit
            image[row, column] = color
    channels_first = image.transpose(2, 0, 1)
    return channels_first if variant == "as_published" else channels_first[::-1]


@pytest.mark.parametrize("variant", ["corrected", "as_published"])
def test_images_equal_the_slow_restatement(variant):
    """Every shape, texture, colour and cell; every pixel."""
    rng = np.random.default_rng(3)
    masks = rng.random((10, 32, 32)) < 0.3
    cells = 9 if variant == "corrected" else 10
    values = {name: rng.permutation(10) for name in VARIABLES}
    values["digit_position"] = np.minimum(values["digit_position"], cells - 1)
    _, template = draw(10, 0.5, variant)
    factors = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(values[name], template[name].cat.categories)
            for name in VARIABLES
        }
    )
    images = render(masks, factors, variant)
    for row in range(10):
        values_of_row = {name: int(value[row]) for name, value in values.items()}
        assert np.array_equal(images[row], slow_image(masks[row], values_of_row, variant))


@pytest.mark.parametrize("canvas", [48, 32, 24])
def test_small_canvas_is_the_rounded_mean_of_blocks(canvas):
    """In floating point, half up."""
    masks = np.random.default_rng(0).random((300, 32, 32)) < 0.3  # more than a batch
    _, factors = draw(300, 0.5)
    block = 96 // canvas
    whole = render(masks, factors).astype(float)
    means = whole.reshape(300, 3, canvas, block, canvas, block).mean((3, 5))
    assert np.array_equal(render(masks, factors, canvas=canvas), np.floor(means + 0.5))


def test_enlarging_is_exact_resampling_by_area():
    """Against integrals of the image as a step function, for one digit and all ones."""
    image = np.random.default_rng(0).integers(0, 256, (1, 28, 28)).astype(np.uint8)
    fine = image[0].repeat(8, 0).repeat(8, 1).astype(float)  # 224 = 28 * 8 = 32 * 7
    expected = fine.reshape(32, 7, 32, 7).sum((1, 3))
    assert np.array_equal(biased_mnist.enlarged(image)[0], expected)
    assert (biased_mnist.enlarged(np.full((1, 28, 28), 255, np.uint8)) == 255 * 49).all()


def bundled(**options):
    """Samples of the bundled digits."""
    options = {"digits": "scikit_learn", "canvas": 24, **options}
    return load("biased_mnist", Path("nowhere"), 3, **options)


def test_factors_have_a_seed_of_their_own():
    """The same digits in the same places; without it the factors are those of the split's seed."""
    usual, same, other = bundled(), bundled(factors_seed=0), bundled(factors_seed=1)
    assert same.attributes.equals(usual.attributes)
    assert np.array_equal(other.id, usual.id) and np.array_equal(other.y, usual.y)
    shared = (other.attributes["texture"] == usual.attributes["texture"])[
        other.rows("split_0", "test")
    ]
    assert shared.mean() == pytest.approx(0.1, abs=0.06)


def test_bundled_digits_give_samples_with_four_parts():
    """Validation digits twice: with biased factors and with unbiased ones."""
    samples = bundled()
    assert samples.x.shape == (2094, 3, 24, 24)
    assert samples.split_names == ["split_0"]
    rows = {part: samples.rows("split_0", part) for part in PARTS}
    assert {part: len(numbers) for part, numbers in rows.items()} == {
        "train": 1000,
        "val": 297,
        "unbiased_val": 297,
        "test": 500,
    }
    assert np.array_equal(samples.id[rows["val"]], samples.id[rows["unbiased_val"]])
    assert not set(samples.id[rows["train"]]) & set(samples.id[rows["test"]])
    for part, share in {"train": 0.7, "val": 0.7, "unbiased_val": 0.1, "test": 0.1}.items():
        usual = [
            codes(samples.attributes, name)[rows[part]] == samples.y[rows[part]]
            for name in set(VARIABLES) - {"digit_position"}
        ]
        assert np.mean(usual) == pytest.approx(share, abs=0.03)


def sha256(images: np.ndarray) -> str:
    """Of the bytes of images."""
    return hashlib.sha256(images.tobytes()).hexdigest()


def test_samples_are_the_same_on_every_machine():
    """Pixels and factors of a seed, pinned; another seed gives others."""
    samples = bundled()
    pinned = "3e28c939069015e5795e27aceda42666dfa2276d9e5c5d7615b4ad871ee9671f"
    assert sha256(samples.x) == sha256(bundled().x) == pinned
    assert not np.array_equal(samples.x, bundled(seed=1).x)


@pytest.mark.parametrize("batch", [1, 7, 400])
def test_images_do_not_depend_on_the_batch(monkeypatch, batch):
    """One by one, in uneven batches and in a single one."""
    masks = np.random.default_rng(0).random((40, 32, 32)) < 0.3
    _, factors = draw(40, 0.5)
    expected = sha256(render(masks, factors))
    monkeypatch.setattr(rendering, "BATCH", batch)
    assert sha256(render(masks, factors)) == expected


def test_real_digits_fill_the_parts(shared_data):
    """MNIST itself: sizes, labels in order of their file, and pixels, pinned."""
    options = {"train_rows": 700, "val_rows": 200, "test_rows": 100}
    samples = load("biased_mnist", shared_data, canvas=32, **options)
    assert [len(samples.rows("split_0", part)) for part in PARTS] == [700, 200, 200, 100]
    assert samples.y[-100:].tolist()[:10] == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert samples.id[-100:].tolist() == list(range(60_000, 60_100))
    assert sha256(samples.x) == "5cf34e4686187416b596cf859bd93b2a63fd1d7f63d6bf6f9d2c715f11d4be5a"
    assert set(samples.sources) == {
        f"mnist/{name}-ubyte"
        for name in (
            "train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1",
        )
    }  # fmt: skip


def test_a_sixth_of_the_training_file_is_for_validation(tmp_path):
    """As 10,000 of 60,000, whatever the size of the file."""
    _, labels = write_mnist(tmp_path)
    samples = load("biased_mnist", tmp_path, canvas=24)
    assert [len(samples.rows("split_0", part)) for part in PARTS] == [50, 10, 10, 12]
    assert np.array_equal(samples.y, labels[samples.id])
