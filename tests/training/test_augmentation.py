"""RandAugment of batches: torchvision's operations, drawn for every image; training alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare
from torchvision.transforms import v2

from robust_fairness.bench import training
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import augmentation, data, fitting
from robust_fairness.bench.training.augmentation import AUGMENTATIONS, DIRECTED, KINDS, OPERATIONS
from robust_fairness.core.errors import InputError

from .conftest import assert_curves_end_at, largest_difference, make_cell, make_samples
from .test_images import make_image_cell, make_images

# What torchvision calls them
NAMES = {name: "".join(part.capitalize() for part in name.split("_")) for name in OPERATIONS}
NAMES["autocontrast"] = "AutoContrast"


class Told(v2.RandAugment):
    """torchvision's transform of one image, told what it draws."""

    def __init__(self, kinds) -> None:
        super().__init__()
        self.told = iter(kinds)

    def _get_random_item(self, space):
        name, direction = KINDS[next(self.told)]
        magnitudes, directed = space[NAMES[name]]
        assert directed or direction == 1
        if direction == 1:
            return NAMES[name], (magnitudes, False)
        return NAMES[name], (lambda *size: -magnitudes(*size), False)


def noise(rows: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Images of any values, of which the second half has but few, so that contrast is low."""
    images = np.random.default_rng(rows).integers(0, 256, (rows, channels, height, width))
    images[rows // 2 :] = 90 + images[rows // 2 :] // 4
    return torch.from_numpy(images.astype(np.uint8))


def test_operations_are_those_of_torchvision():
    """The same names, and the same have a direction."""
    space = v2.RandAugment._AUGMENTATION_SPACE
    assert {NAMES[name] for name in OPERATIONS} == set(space)
    assert {NAMES[name] for name in DIRECTED} == {name for name, entry in space.items() if entry[1]}
    transform = v2.RandAugment()
    defaults = (transform.num_ops, transform.magnitude, transform.num_magnitude_bins)
    assert defaults == (augmentation.AT_ONCE, augmentation.MAGNITUDE, augmentation.MAGNITUDES)


@pytest.mark.parametrize(
    "shape", [(3, 32, 32), (1, 32, 32), (3, 23, 17), (1, 8, 8), (3, 5, 64), (3, 2, 3), (1, 1, 1)]
)
def test_every_pair_of_operations_equals_torchvisions_on_single_images(shape):
    """Bit for bit, whatever else is in the batch, of grey and coloured images of any size."""
    number = len(KINDS)
    kinds = torch.cartesian_prod(torch.arange(number), torch.arange(number))
    kinds = kinds[torch.randperm(number**2, generator=torch.Generator().manual_seed(0))]
    if shape != (3, 32, 32):
        kinds = kinds[:150]
        assert set(kinds.flatten().tolist()) == set(range(number))
    images = noise(len(kinds), *shape)
    before = images.clone()
    augmented = augmentation.changed(images, kinds)
    expected = [Told(told)(image) for image, told in zip(images, kinds.tolist(), strict=True)]
    assert torch.equal(augmented, torch.stack(expected))
    assert torch.equal(images, before)


def test_every_image_draws_its_own_operations_alike():
    """14 operations and two directions, independent within a image and between neighbours."""
    kinds = augmentation.drawn_kinds(Randomness([5], "augmentation"), 60_000)[0]
    names = np.array([OPERATIONS.index(name) for name, _ in KINDS])[kinds]
    directions = np.array([direction for _, direction in KINDS])[kinds]
    for pairs in (names, np.stack([names[:-1, 0], names[1:, 0]], axis=1)):
        joint = np.bincount(pairs[:, 0] * len(OPERATIONS) + pairs[:, 1], minlength=14**2)
        assert len(joint) == 14**2
        assert chisquare(joint).pvalue > 1e-3
    for number, name in enumerate(OPERATIONS):
        signs = directions[names == number]
        backward = int((signs == -1).sum())
        assert (binomtest(backward, len(signs)).pvalue > 1e-3) if name in DIRECTED else not backward


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_stack_is_changed_as_its_replicas_alone_and_draws_go_on(name):
    """Every replica by the numbers of its seed; torch's own generator is not asked."""
    images = torch.stack([noise(40, 3, 9, 9), noise(40, 3, 9, 9).flip(0)])
    before, state = images.clone(), torch.random.get_rng_state()
    change, randomness = AUGMENTATIONS[name], Randomness([1, 2], "augmentation")
    together, later = change(images, randomness), change(images, randomness)
    assert torch.equal(state, torch.random.get_rng_state())
    assert images.equal(before)
    assert not together.equal(later)
    for number, seed in enumerate((1, 2)):
        alone = change(images[number : number + 1], Randomness([seed], "augmentation"))
        assert torch.equal(together[number : number + 1], alone)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_training_batches_alone_are_augmented(name, monkeypatch):
    """The method sees changed images, in the order of plain training; nothing else does."""
    samples, seen = make_images(), []
    kept = data.StackData.batch

    def watched(self, rows, epoch=0, augmented=False):
        batch = kept(self, rows, epoch, augmented)
        seen.append((rows, augmented, batch.x))
        return batch

    monkeypatch.setattr(data.StackData, "batch", watched)
    for cell in (make_image_cell(augmentation=name), make_image_cell()):
        stack = fitting.Stack(samples, cell, cell.replicas()[:1])
        stack.run_epoch()
        list(stack.data.training_batches())
    changed, plain = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert [augmented for _, augmented, _ in changed] == [True] * 3 + [False]
    randomness = Randomness([0], "augmentation")
    for (rows, augmented, x), (same_rows, _, as_is) in zip(changed, plain, strict=True):
        assert torch.equal(rows, same_rows)
        images = torch.from_numpy(samples.x)[rows]
        torch.testing.assert_close(as_is, images / 255)
        expected = AUGMENTATIONS[name](images, randomness) if augmented else images
        torch.testing.assert_close(x, expected / 255)
        assert augmented != torch.equal(x, as_is)


@pytest.mark.parametrize("name", ["randaugment", "crop_and_flip"])
def test_predictions_and_validation_are_of_the_images_as_they_are(name):
    """The curve's last value is that of the predictions, which a network alone makes again."""
    samples, cell = make_images(), make_image_cell(augmentation=name)
    fitted, validation, curves, _ = training.train(samples, cell)
    assert_curves_end_at(validation, curves, samples, epoch=1, tolerance=1e-5)
    plain = training.train(samples, make_image_cell())[0]
    for augmented, without in zip(fitted, plain, strict=True):
        assert largest_difference(augmented, without) > 0


def several_arrays():
    """Rows of a image and of numbers."""
    samples = make_images()
    return replace(samples, x={"image": samples.x, "z": np.ones((len(samples), 2), np.float32)})


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        (make_samples(), r"rows are float32 of shape \(6,\)"),
        (several_arrays(), "rows are several arrays: image, z"),
        (replace(make_images(), x=make_images().x[:, :2]), r"rows are uint8 .*\(2, 16, 16\)"),
        (replace(make_images(), x=make_images().x / np.float32(255)), "rows are float32"),
    ],
)
def test_what_is_no_image_is_not_augmented(samples, told, monkeypatch):
    """In one line that names the trial, before the first replica is trained."""
    monkeypatch.setattr(fitting.Stack, "__init__", lambda *_: pytest.fail("training began"))
    cell = make_cell("erm", ({"augmentation": "randaugment"},))
    message = f"toy.erm: trial augmentation=randaugment: augmentation: randaugment and {told}"
    with pytest.raises(InputError, match=f"{message}.*, allowed: uint8 images of 1 or 3") as error:
        training.train(samples, cell)
    assert "\n" not in str(error.value)
