"""Random parts and mirror images: torchvision's on single images, its draws, training alone."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import cropping
from robust_fairness.bench.training.cropping import cropped, drawn_boxes, drawn_flips

SHAPES = [(3, 32, 32), (1, 8, 8), (3, 23, 17), (3, 5, 64), (2, 64, 9), (1, 1, 1), (3, 50, 50)]


def noise(rows: int, *shape: int) -> torch.Tensor:
    """Images of any values in a stack of one."""
    drawn = np.random.default_rng(rows).integers(0, 256, (1, rows, *shape))
    return torch.from_numpy(drawn.astype(np.uint8))


def randomness(*seeds: int) -> Randomness:
    """Of augmentation."""
    return Randomness(seeds or (0,), "augmentation")


@pytest.mark.parametrize("shape", SHAPES)
def test_parts_equal_torchvisions_on_single_images(shape):
    """In floating point, rounded; its own arithmetic for uint8 may differ by one."""
    rows, (height, width) = 60, shape[1:]
    images = noise(rows, *shape)
    boxes = drawn_boxes(randomness(), rows, height, width)
    mirrored = drawn_flips(randomness(), rows)
    assert 0 < mirrored.sum() < rows
    crops = cropped(images, boxes, mirrored)
    for image, box, turned, crop in zip(
        images[0], boxes[0].tolist(), mirrored[0].tolist(), crops[0], strict=True
    ):
        exact = functional.resized_crop(image.double(), *box, [height, width], antialias=True)
        whole = functional.resized_crop(image, *box, [height, width], antialias=True)
        if turned:
            exact, whole = functional.horizontal_flip(exact), functional.horizontal_flip(whole)
        assert (crop - exact).abs().max() <= 0.5 + 1e-3
        assert (crop.int() - whole.int()).abs().max() <= 1


@pytest.mark.parametrize("shape", [(32, 32), (20, 30), (60, 24)])
def test_parts_are_drawn_as_torchvision_draws_them(shape):
    """Places, sides, area and aspect ratio of 4,000 each have the same distribution."""
    height, width = shape
    rows = 4000
    boxes = drawn_boxes(randomness(5), rows, height, width)[0].numpy()
    transform, image = v2.RandomResizedCrop(shape), torch.zeros(1, height, width)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = [transform.make_params([image]) for _ in range(rows)]
    names = ("top", "left", "height", "width")
    expected = np.array([[box[name] for name in names] for box in drawn])
    assert transform.scale == cropping.AREA
    assert transform.ratio == cropping.ASPECT
    for ours, theirs in zip(boxes.T, expected.T, strict=True):
        assert ks_2samp(ours, theirs).pvalue > 1e-3
    for quantity in (
        lambda boxes: boxes[:, 2] * boxes[:, 3],
        lambda boxes: boxes[:, 2] / boxes[:, 3],
    ):
        assert ks_2samp(quantity(boxes), quantity(expected)).pvalue > 1e-3
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= shape).all()


@pytest.mark.parametrize("shape", [(3, 90), (90, 3), (30, 31), (1, 1)])
def test_where_no_part_fits_the_middle_is_taken(shape):
    """The one of torchvision, whose attempts all fail on a image of no width."""
    height, width = shape
    transform = v2.RandomResizedCrop(shape, scale=(9.0, 9.0))
    expected = transform.make_params([torch.zeros(1, height, width)])
    box = cropping.central_box(height, width).tolist()
    assert box == [expected[name] for name in ("top", "left", "height", "width")]


def test_very_long_images_take_the_middle_where_it_must_be():
    """An area of 8 % of 3 x 900 with a ratio of at most 4/3 is higher than the image."""
    boxes = drawn_boxes(randomness(), 50, 3, 900)[0]
    assert (boxes == cropping.central_box(3, 900)).all()


def test_half_of_the_images_are_mirrored():
    """Independently of the parts; exactly mirrored where only that is asked for."""
    mirrored = drawn_flips(randomness(1), 4000)[0]
    assert binomtest(int(mirrored.sum()), 4000).pvalue > 1e-3
    images = noise(30, 3, 6, 7)
    flipped = cropping.flip(images, randomness(1))
    told = drawn_flips(randomness(1), 30)[0]
    assert flipped[0, told].equal(images[0, told].flip(-1))
    assert flipped[0, ~told].equal(images[0, ~told])
    whole = torch.tensor([0, 0, 6, 7]).expand(1, 30, 4)
    assert cropped(images, whole, told[None]).equal(flipped)
