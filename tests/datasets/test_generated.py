"""Generated datasets: rows at their places, the same draws and labels at every severity."""

from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.datasets.generated import generated
from robust_fairness.bench.experiment.experiment import TestSet
from robust_fairness.bench.generation import latents
from robust_fairness.bench.shifts.latent import Extend
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from tests.datasets.loading import one_line

SHAPE = (1, 4, 4)
ROWS = {"train": 11, "val": 5, "test": 7}
# Where the parts begin; numbers of rows shift none of them.
PLACES = {"train": 2**25 + np.arange(11), "val": 2**24 + np.arange(5), "test": np.arange(7)}


@dataclass
class Plain:
    """A decoder of each row on its own that keeps what it was asked for."""

    fingerprint: str = "made up"
    classes: tuple[str, ...] = ("cat", "dog", "ant")
    shape: tuple[int, int, int] = SHAPE
    asked: list[int] = field(default_factory=list)
    device = torch.device("cpu")

    def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
        self.asked.append(len(latents))
        return images_of(latents, labels)


class OnDevice(Plain):
    """The same on a device of its own."""

    device = torch.device("meta")


def images_of(latents: Tensor, labels: Tensor) -> Tensor:
    """Images that tell latents and labels apart."""
    return (40 * latents + 128 + labels[:, None, None, None]).clamp(0, 255).to(torch.uint8)


def parameters(
    name: str = "extend", severity: float = 0.0, **changes
) -> generated.Generated.Parameters:
    rows = {f"{part}_rows": count for part, count in ROWS.items()}
    values = {"generator": "g", "subset": subset(name, severity), "batch": 3, "chunk": 6, "seed": 5}
    return generated.Generated.Parameters.model_validate(values | rows | changes)


def subset(name: str, severity: float) -> TestSet:
    return TestSet.model_validate({"shift": {"name": name}, "severity": severity})


def generate(splits: int = 2, decoder: Plain | None = None, **changes):
    dataset = generated.Generated(parameters(**changes))
    return dataset.generate(decoder or Plain(), splits, "d.samples")


def expected(places: np.ndarray, name: str, severity: float, seed: int = 5) -> np.ndarray:
    """Restated: every image from the draw and the label of its place."""
    z = latents.draws(seed, places, prod(SHAPE))
    moved = find("shift", name)().subset(z, severity, latents.targets(0, prod(SHAPE)))
    labels = torch.from_numpy(latents.labels(seed, places, 3))
    return images_of(torch.from_numpy(moved).reshape(-1, *SHAPE), labels).numpy()


@pytest.mark.parametrize(("name", "severity"), [("extend", 0), ("overlap", 20), ("truncation", 1)])
def test_every_part_holds_the_images_of_its_places(name, severity):
    """And labels, and class as the only attribute, in every split alike."""
    samples = generate(name=name, severity=severity, splits=3)
    assert samples.split_names == ["split_0", "split_1", "split_2"]
    for split in samples.split_names:
        for part, places in PLACES.items():
            rows = samples.rows(split, part)
            np.testing.assert_array_equal(samples.id[rows], places)
            np.testing.assert_array_equal(samples.x[rows], expected(places, name, severity))
            np.testing.assert_array_equal(samples.y[rows], latents.labels(5, places, 3))
    assert len(samples) == sum(ROWS.values())
    assert samples.classes == ("cat", "dog", "ant")
    assert samples.sensitive == ("class",)
    assert samples.sources == {"g": "made up"}  # the generator's fingerprint
    named = [samples.classes[label] for label in samples.y]
    assert samples.attributes["class"].tolist() == named
    assert samples.attributes["class"].cat.categories.tolist() == ["cat", "dog", "ant"]


def test_a_class_without_a_row_is_still_one():
    """Names of the generator's classes, not of those that happened to be drawn."""
    samples = generate(train_rows=1, val_rows=1, test_rows=1)
    assert len(np.unique(samples.y)) < 3
    assert samples.attributes["class"].cat.categories.tolist() == ["cat", "dog", "ant"]


def test_a_larger_training_set_begins_with_the_smaller_one_and_leaves_the_others():
    """Twice as many rows, no multiple of batch or chunk: the study of dataset sizes."""
    small, large = generate(), generate(train_rows=2 * ROWS["train"])
    for part in ("val", "test"):
        ours, theirs = (samples.rows("split_0", part) for samples in (small, large))
        np.testing.assert_array_equal(small.x[ours], large.x[theirs])
        np.testing.assert_array_equal(small.y[ours], large.y[theirs])
        np.testing.assert_array_equal(small.id[ours], large.id[theirs])
    ours, theirs = small.rows("split_0", "train"), large.rows("split_0", "train")
    assert len(theirs) == 22
    np.testing.assert_array_equal(small.x[ours], large.x[theirs[:11]])
    np.testing.assert_array_equal(small.y[ours], large.y[theirs[:11]])
    assert len(np.unique(large.id)) == len(large)


@pytest.mark.parametrize(("name", "severity"), [("extend", 45), ("overlap", 45), ("truncation", 1)])
def test_shifted_rows_keep_draw_and_label_and_change_the_image(name, severity):
    """Also those of another subset than the trained one."""
    samples = generate()
    test = samples.take(samples.rows("split_0", "test"))
    shifted = generated.Generated(parameters()).shifted(
        test, subset(name, severity), Plain(), "d.shifted.s"
    )
    np.testing.assert_array_equal(shifted.id, PLACES["test"])
    np.testing.assert_array_equal(shifted.y, test.y)
    np.testing.assert_array_equal(shifted.x, expected(PLACES["test"], name, severity))
    assert (shifted.x != test.x).any(axis=(1, 2, 3)).all()
    assert shifted.rows("split_1", "test").tolist() == list(range(7))


def test_colors_are_read_off_every_image_also_off_shifted_ones():
    """A red dog may become a blue one; the label stays."""

    @dataclass
    class Inked(Plain):
        shape: tuple[int, int, int] = (3, 4, 4)

        def decode(self, latents: Tensor, labels: Tensor) -> Tensor:
            red = latents[:, 0, 0, 0] > 0  # what the draw decides
            images = torch.zeros(len(latents), 3, 4, 4, dtype=torch.uint8)
            images[torch.arange(len(latents)), torch.where(red, 0, 2)] = 200
            return images

    samples = generate(decoder=Inked(), attribute="color", test_rows=40)
    assert samples.sensitive == ("color",) and list(samples.attributes) == ["color"]
    test = samples.take(samples.rows("split_0", "test"))
    given = parameters(attribute="color")
    shifted = generated.Generated(given).shifted(test, subset("extend", 90), Inked(), "d.shifted.s")
    for rows in (test, shifted):
        expected = np.where(rows.x[:, 0, 0, 0] > 0, "red", "blue")
        assert set(expected) == {"red", "blue"}
        assert rows.attributes["color"].tolist() == expected.tolist()
    assert (test.attributes["color"] != shifted.attributes["color"]).any()
    np.testing.assert_array_equal(test.y, shifted.y)
    with pytest.raises(InputError, match="color: images of 1 channels, allowed: 3"):
        generate(attribute="color")


def test_seeds_of_draws_and_of_targets_reach_the_images():
    plain, drawn, aimed = generate(), generate(seed=6), generate(target_seed=1)
    np.testing.assert_array_equal(
        drawn.x[drawn.rows("split_0", "val")], expected(PLACES["val"], "extend", 0, seed=6)
    )
    np.testing.assert_array_equal(aimed.y, plain.y)
    assert not np.array_equal(aimed.x, plain.x)


def test_batches_are_of_one_size_and_chunks_lie_below_the_name_until_dropped():
    """A second attempt decodes nothing."""
    decoder = Plain()
    first = generate(decoder=decoder)
    assert set(decoder.asked) == {3}
    # 2^24 and 2^25 are 1 and 2 more than multiples of 3: parts begin within a batch
    assert len(decoder.asked) == 3 + 2 + 5
    again = generate(decoder=decoder)
    assert len(decoder.asked) == 3 + 2 + 5
    np.testing.assert_array_equal(again.x, first.x)
    kept = sorted((checkpoints.root() / "d.samples").rglob("*.safetensors"))
    # and 4 and 2 more than multiples of 6: within a chunk
    assert len(kept) == 2 + 2 + 3
    checkpoints.drop("d.samples")
    assert not list(checkpoints.root().rglob("*.safetensors"))


def test_chunks_of_another_device_are_not_taken():
    """It rounds otherwise."""
    decoder = OnDevice()
    generate()
    generate(decoder=decoder)
    assert decoder.asked
    assert len(list((checkpoints.root() / "d.samples").iterdir())) == 2


def test_nothing_is_read():
    with one_line("dataset generated: made by g, not read from files"):
        generated.Generated(parameters()).load(Files(Path("nowhere")), 1)


def test_some_classes_of_a_generator_are_labelled_anew_and_drawn_as_themselves():
    """Label 0 is the first class asked for, whatever its place in the generator."""
    samples = generate(classes=("ant", "cat"), train_rows=40)
    assert samples.classes == ("ant", "cat")
    assert set(samples.y) == {0, 1}
    z = latents.draws(5, samples.id, prod(SHAPE))
    moved = Extend().subset(z, 0.0, latents.targets(0, prod(SHAPE)))
    labels = torch.from_numpy(np.array([2, 0])[samples.y])
    drawn = images_of(torch.from_numpy(moved).reshape(-1, *SHAPE), labels)
    np.testing.assert_array_equal(samples.x, drawn.numpy())


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("cat", "dgo"), "unknown class of the generator 'dgo': did you mean 'dog'"),
        (("cat", "cat"), "classes: cat, cat; each class must be listed once"),
    ],
)
def test_classes_that_a_generator_does_not_have_are_refused(classes, message):
    with pytest.raises(InputError, match=message):
        generate(classes=classes)
