"""MNIST: pixels and labels of the files, means of squares by another library, splits, colours."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from robust_fairness.bench.datasets.images.coloured_digits import COLORS
from robust_fairness.core.errors import InputError
from tests.datasets import loading
from tests.datasets.images import write_mnist

load = partial(loading.load, "mnist")
ROWS = {"train": 300, "t10k": 100}
SIZES = {"train_rows": 120, "val_rows": 60, "test_rows": 80}


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """A data root, the images ``[400, 28, 28]`` of its files and their digits."""
    return tmp_path, *write_mnist(tmp_path, **ROWS)


@pytest.mark.parametrize("size", [28, 14, 7])
def test_images_are_means_of_squares(written, size):
    """Within half a byte of torch's average pooling; labels and order are those of the files."""
    root, images, labels = written
    samples = load(root, size=size, **SIZES)
    pooled = torch.nn.functional.avg_pool2d(torch.from_numpy(images[:380]).double(), 28 // size)
    assert samples.x.shape == (380, 1, size, size) and samples.x.dtype == np.uint8
    assert abs(samples.x[:, 0] - pooled.numpy()).max() <= 0.5
    assert np.array_equal(samples.y, labels[:380])
    assert samples.attributes["class"].astype(int).tolist() == samples.y.tolist()


def test_splits_draw_training_rows_of_their_own(written):
    """Of the sizes asked for, apart, and with the same test rows; the seed gives other ones."""
    root, *_ = written
    samples = load(root, splits=3, **SIZES)
    trained = []
    for split in samples.split_names:
        rows = {part: set(samples.rows(split, part)) for part in ("train", "val", "test")}
        assert [len(part) for part in rows.values()] == [120, 60, 80]
        assert rows["test"] == set(range(300, 380))
        assert max(rows["train"] | rows["val"]) < 300 and not rows["train"] & rows["val"]
        trained.append(rows["train"])
    assert trained[0] != trained[1] != trained[2]
    assert set(load(root, seed=1, **SIZES).rows("split_0", "train")) != trained[0]


def test_colours_are_ink(written):
    """The brightest channel is the grey image, the others are the colour's share of it."""
    root, *_ = written
    grey = load(root, size=14, **SIZES)
    samples = load(root, size=14, colors={"correlation": 0.7}, sensitive=["color"], **SIZES)
    ink = np.array([COLORS[name] for name in samples.attributes["color"]]) / 255
    assert list(samples.attributes) == ["color"] and samples.sensitive == ("color",)
    assert abs(samples.x - grey.x * ink[:, :, None, None]).max() <= 0.5
    assert np.array_equal(samples.y, grey.y)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"test_rows": 101}, "test_rows: 101, allowed: up to 100"),
        ({"train_rows": 250}, "train_rows and val_rows: 310, allowed: up to 300"),
    ],
)
def test_more_rows_than_there_are_is_an_error(written, wrong, says):
    with pytest.raises(InputError, match=says):
        load(written[0], **{**SIZES, **wrong})
