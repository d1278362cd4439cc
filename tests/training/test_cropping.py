"""Random parts and mirror images: torchvision's on single images, its draws, training alone."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, ks_2samp
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional

from robust_fairness import training
from robust_fairness.models.randomness import Randomness
from robust_fairness.training import cropping, data, fitting
from robust_fairness.training.cropping import crop_and_flip, cropped, drawn_boxes, drawn_flips

from .test_images import make_image_cell, make_images

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
    boxes, mirrored = (
        drawn_boxes(randomness(), rows, height, width),
        drawn_flips(randomness(), rows),
    )
    assert 0 < mirrored.sum() < rows
    found = cropped(images, boxes, mirrored)
    for image, box, turned, one in zip(
        images[0], boxes[0].tolist(), mirrored[0].tolist(), found[0], strict=True
    ):
        exact = functional.resized_crop(image.double(), *box, [height, width], antialias=True)
        whole = functional.resized_crop(image, *box, [height, width], antialias=True)
        if turned:
            exact, whole = functional.horizontal_flip(exact), functional.horizontal_flip(whole)
        assert (one - exact).abs().max() <= 0.5 + 1e-3
        assert (one.int() - whole.int()).abs().max() <= 1


def test_every_box_of_a_small_image_is_right():
    """All places and sizes, against torchvision."""
    boxes = torch.tensor(
        [
            (top, left, tall, wide)
            for tall in range(1, 6)
            for wide in range(1, 5)
            for top in range(6 - tall)
            for left in range(5 - wide)
        ]
    )[None]
    images = noise(boxes.shape[1], 3, 5, 4)
    found = cropped(images, boxes, torch.zeros(1, boxes.shape[1], dtype=torch.bool))
    for image, box, one in zip(images[0], boxes[0].tolist(), found[0], strict=True):
        exact = functional.resized_crop(image.double(), *box, [5, 4], antialias=True)
        assert (one - exact).abs().max() <= 0.5 + 1e-3


@pytest.mark.parametrize("shape", [(32, 32), (20, 30), (60, 24)])
def test_parts_are_drawn_as_torchvision_draws_them(shape):
    """Places, sides, area and aspect ratio of 4,000 each have the same distribution."""
    height, width = shape
    rows = 4000
    found = drawn_boxes(randomness(5), rows, height, width)[0].numpy()
    transform, image = v2.RandomResizedCrop(shape), torch.zeros(1, height, width)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        drawn = [transform.make_params([image]) for _ in range(rows)]
    names = ("top", "left", "height", "width")
    expected = np.array([[one[name] for name in names] for one in drawn])
    assert transform.scale == cropping.AREA
    assert transform.ratio == cropping.ASPECT
    for one, other in zip(found.T, expected.T, strict=True):
        assert ks_2samp(one, other).pvalue > 1e-3
    for quantity in (
        lambda boxes: boxes[:, 2] * boxes[:, 3],
        lambda boxes: boxes[:, 2] / boxes[:, 3],
    ):
        assert ks_2samp(quantity(found), quantity(expected)).pvalue > 1e-3
    assert (found[:, :2] >= 0).all()
    assert (found[:, :2] + found[:, 2:] <= shape).all()


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
    found = cropping.flip(images, randomness(1))
    told = drawn_flips(randomness(1), 30)[0]
    assert found[0, told].equal(images[0, told].flip(-1))
    assert found[0, ~told].equal(images[0, ~told])
    whole = torch.tensor([0, 0, 6, 7]).expand(1, 30, 4)
    assert cropped(images, whole, told[None]).equal(found)


def test_a_stack_is_changed_as_its_replicas_alone_and_draws_go_on():
    """Every replica by the numbers of its seed; torch's own generator is not asked."""
    images = torch.cat([noise(20, 3, 9, 9), noise(20, 3, 9, 9).flip(1)])
    before, state = images.clone(), torch.random.get_rng_state()
    drawing = randomness(1, 2)
    together, next_ones = crop_and_flip(images, drawing), crop_and_flip(images, drawing)
    assert torch.equal(state, torch.random.get_rng_state())
    assert images.equal(before)
    assert not together.equal(next_ones)
    for number, seed in enumerate((1, 2)):
        alone = crop_and_flip(images[number : number + 1], randomness(seed))
        assert together[number : number + 1].equal(alone)


@pytest.mark.parametrize("name", ["crop_and_flip", "flip"])
def test_training_batches_alone_are_changed(name, monkeypatch):
    """The method sees changed images, in the order of plain training; nothing else does."""
    samples, seen = make_images(), []
    kept = data.StackData.batch

    def watched(self, rows, epoch=0, augmented=False):
        batch = kept(self, rows, epoch, augmented)
        seen.append((rows, augmented, batch.x))
        return batch

    monkeypatch.setattr(data.StackData, "batch", watched)
    cell = make_image_cell(augmentation=name)
    stack = fitting.Stack(samples, cell, cell.replicas()[:1])
    stack.run_epoch()
    list(stack.data.training_batches())
    assert [augmented for _, augmented, _ in seen] == [True] * 3 + [False]
    drawing, change = randomness(0), getattr(cropping, name)
    for rows, augmented, x in seen:
        images = torch.from_numpy(samples.x)[rows]
        expected = change(images, drawing) if augmented else images
        torch.testing.assert_close(x, expected / 255)
        assert augmented != torch.allclose(x, images / 255)


def test_training_gives_the_same_bits_twice(tmp_path, monkeypatch):
    """Whatever torch's own generator did."""
    samples, cell = make_images(), make_image_cell(augmentation="crop_and_flip")
    first = training.train(samples, cell)[0]
    torch.rand(3)
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "other"))
    second = training.train(samples, cell)[0]
    plain = training.train(samples, make_image_cell())[0]
    weights = "model.top.layers.weight"
    for one, other, without in zip(first, second, plain, strict=True):
        assert np.array_equal(one.state[weights], other.state[weights])
        assert not np.array_equal(one.state[weights], without.state[weights])
