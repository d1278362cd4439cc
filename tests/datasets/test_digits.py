"""The bundled digits: the published counts, no bit of ink lost, splits of every class."""

import csv
import gzip
from importlib.resources import files as resources

import numpy as np
import pytest

from robust_fairness.bench.datasets.images import digits
from tests.datasets.loading import load

# Rows of each digit in the test file of the UCI repository, as its codebook counts them.
ROWS = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory):
    return load("digits", tmp_path_factory.mktemp("none"), 2)


def raw() -> np.ndarray:
    """The bundled file read by other means: 64 counts and a digit a row."""
    packed = resources("sklearn.datasets.data").joinpath("digits.csv.gz").read_bytes()
    rows = csv.reader(gzip.decompress(packed).decode().splitlines())
    return np.array([[int(float(cell)) for cell in row] for row in rows])


def test_images_are_those_of_the_file_with_every_count_told_apart(loaded) -> None:
    rows = raw()
    assert loaded.x.shape == (1797, 1, 8, 8)
    assert loaded.x.dtype == np.uint8
    assert np.array_equal(loaded.y, rows[:, 64])
    assert np.bincount(loaded.y).tolist() == ROWS
    nearest = {count: min(range(256), key=lambda b: abs(b * 16 - count * 255)) for count in (0, 5)}
    assert digits.brightness(np.array([0, 5, 8, 16], np.uint8)).tolist() == [
        nearest[0],
        nearest[5],
        128,
        255,
    ]
    # what was counted comes back from the bytes
    assert np.array_equal(np.rint(loaded.x.reshape(1797, 64) / 255 * 16), rows[:, :64])
    assert loaded.x.min() == 0
    assert loaded.x.max() == 255


def test_class_is_the_only_attribute_and_the_sensitive_one(loaded) -> None:
    assert list(loaded.attributes) == ["class"]
    assert loaded.sensitive == ("class",)
    assert loaded.attributes["class"].tolist() == [str(digit) for digit in loaded.y]
    assert loaded.classes == tuple("0123456789")
    assert loaded.id.tolist() == list(range(1797))
    assert list(loaded.sources) == ["scikit-learn/digits"]


def test_parts_are_shares(loaded) -> None:
    sizes = {part: len(loaded.rows("split_1", part)) for part in ("train", "val", "test")}
    assert sizes == {"train": 1150, "val": 288, "test": 359}
