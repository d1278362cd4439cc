"""Contact sheets."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.report.contact_sheet import GAP, attribute_sheet, contact_sheet, family_sheet


def make(x: np.ndarray, y: list[int], parts: list[str]) -> Samples:
    """Samples of two classes."""
    return Samples(
        x=x,
        y=np.array(y),
        attributes=pd.DataFrame(index=range(len(y))),
        id=np.arange(len(y)),
        splits=pd.DataFrame({"s": pd.Categorical(parts)}),
        classes=("a", "b"),
    )


def test_each_class_has_a_row_of_its_first_training_images():
    """Enlarged without blur, white where a class has too few; test rows are not shown."""
    x = np.random.default_rng(0).integers(0, 256, (5, 3, 40, 48)).astype(np.uint8)
    samples = make(x, [1, 0, 1, 1, 0], ["train", "test", "train", "train", "train"])
    sheet = contact_sheet(samples, columns=2)
    tile_height, tile_width = 2 * 40 + GAP, 2 * 48 + GAP
    assert sheet.shape == (2 * tile_height + GAP, 2 * tile_width + GAP, 3)

    def tile(row: int, column: int) -> np.ndarray:
        top, left = GAP + row * tile_height, GAP + column * tile_width
        return sheet[top : top + 80, left : left + 96]

    for row, column, number in ((0, 0, 4), (1, 0, 0), (1, 1, 2)):
        assert np.array_equal(tile(row, column)[::2, ::2], x[number].transpose(1, 2, 0))
        assert np.array_equal(tile(row, column)[1::2, 1::2], x[number].transpose(1, 2, 0))
    assert (tile(0, 1) == 255).all()


def test_each_value_of_an_attribute_has_a_row():
    """In the order of its values, as the first split sees the attribute."""
    x = np.random.default_rng(2).integers(0, 256, (4, 3, 96, 96)).astype(np.uint8)
    samples = make(x, [0, 0, 1, 1], ["train", "train", "train", "test"])
    tones = pd.Categorical(["VI", "I", "VI", "I"], ["I", "II", "VI"])
    other = pd.Categorical(["II"] * 4, ["I", "II", "VI"])
    samples = replace(
        samples,
        split_attributes={
            "s": pd.DataFrame({"tone": tones}),
            "t": pd.DataFrame({"tone": other}),
        },
    )
    sheet = attribute_sheet(samples, "tone", columns=2)
    step = 96 + GAP

    def tile(row: int, column: int) -> np.ndarray:
        top, left = GAP + row * step, GAP + column * step
        return sheet[top : top + 96, left : left + 96]

    for row, column, number in ((0, 0, 1), (2, 0, 0), (2, 1, 2)):
        assert np.array_equal(tile(row, column), x[number].transpose(1, 2, 0))
    assert (tile(1, 0) == 255).all()
    with pytest.raises(InputError, match="tine"):
        attribute_sheet(samples, "tine")


def test_features_have_no_contact_sheet():
    """And the message says what has one."""
    samples = make(np.zeros((2, 3), np.float32), [0, 1], ["train", "train"])
    with pytest.raises(InputError, match="contact_sheet: the samples are not images"):
        contact_sheet(samples)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_family_has_a_row_a_draw_and_a_column_a_severity(channels):
    """Grey pictures have three equal colours; rows beyond those asked for are left out."""
    rng = np.random.default_rng(1)
    pictures = {
        severity: rng.integers(0, 256, (4, channels, 48, 30)).astype(np.uint8)
        for severity in (0.0, 15.0, 5.0)
    }
    sheet = family_sheet(pictures, rows=2)
    height, width = 96 + GAP, 60 + GAP
    assert sheet.shape == (2 * height + GAP, 3 * width + GAP, 3)
    for row in range(2):
        for column, severity in enumerate((0.0, 15.0, 5.0)):
            top, left = GAP + row * height, GAP + column * width
            tile = sheet[top : top + 96 : 2, left : left + 60 : 2]
            assert (tile == pictures[severity][row].transpose(1, 2, 0)).all()
    assert (sheet[:GAP] == 255).all()


def test_a_family_of_no_images_or_of_different_ones_is_refused():
    """One line each."""
    images = np.zeros((2, 3, 8, 8), np.uint8)
    for wrong in ({}, {0.0: images.astype(np.float32)}, {0.0: images[0]}, {0.0: images[:, :2]}):
        with pytest.raises(InputError, match="family_sheet: no images"):
            family_sheet(wrong)
    with pytest.raises(InputError, match="allowed: one shape"):
        family_sheet({0.0: images, 5.0: images[:1]})
    with pytest.raises(InputError, match="at least one row of images"):
        family_sheet({0.0: images[:0]})
