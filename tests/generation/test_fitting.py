"""Training of generators: what it learns, averages, resuming."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from robust_fairness.bench.compute.checkpoints import Checkpoint
from robust_fairness.bench.generation.fitting import (
    GeneratorParameters,
    Training,
    fit,
    training_key,
)
from robust_fairness.core.errors import InputError
from tests.forking import killed
from tests.generation.conftest import CLASSES, make_images, make_parameters, recognised


def make_training(**changes) -> Training:
    return Training(make_parameters(**changes), *make_images(), CLASSES)


def equal_states(first: Training, other: Training) -> bool:
    a, b = first.state(), other.state()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_generated_images_are_those_of_their_class():
    """Nearest class mean of the real images, after some seconds of training."""
    images, labels = make_images()
    parameters = make_parameters(images=4_800, batch_size=40, learning_rate=8e-3)
    generator, curve = fit(parameters, images, labels, CLASSES, "toy")
    generated = generator.grid(20).float()
    means = torch.stack([images[labels == label].float().mean(0) for label in range(3)])
    distances = (generated[:, :, None] - means).square().sum((-3, -2, -1))
    correct = distances.argmin(-1) == torch.arange(3)[:, None]
    assert correct.float().mean() > 0.9
    assert list(curve["step"]) == list(range(120))
    assert curve["images"].iloc[-1] == 4_800
    assert curve["loss"].tail(20).mean() < 0.5 * curve["loss"].head(5).mean()


def test_averages_have_the_half_life_that_is_asked_for():
    """Restated in float64 from the weights after every step."""
    training = make_training(half_life=70, half_life_share=0.5)
    names = [name for name, _ in training.average.named_parameters()]
    expected = [tensor.double().clone() for tensor in training.average.parameters()]
    for step in range(12):
        training.run_step()
        half_life = min(70, (step + 1) * 20 * 0.5)
        kept = 2 ** (-20 / half_life)
        expected = [
            kept * old + (1 - kept) * new.detach().double()
            for old, new in zip(expected, training.weights, strict=True)
        ]
    averages = dict(training.average.named_parameters())
    for name, tensor in zip(names, expected, strict=True):
        torch.testing.assert_close(averages[name].double(), tensor, atol=1e-6, rtol=1e-5)


def test_averages_of_a_short_training_hold_nothing_of_its_first_weights():
    """Half of the weight lies on the last twentieth of the steps, whatever the half-life."""
    parameters = GeneratorParameters(images=300 * 64, batch_size=64)
    kept = np.array([parameters.averaging(step) for step in range(300)])
    shares = (1 - kept) * np.append(np.cumprod(kept[::-1])[-2::-1], 1.0)
    assert shares[:100].sum() < 1e-6
    assert shares[-16:].sum() > 0.5


def test_a_step_is_adams_on_the_loss():
    """torch's own Adam on the same gradients; the learning rate rises, then falls to nothing."""
    parameters = make_parameters(images=2_000, ramp_up=400)
    rates = [parameters.rate(step) for step in range(parameters.steps)]
    assert rates[0] == pytest.approx(parameters.learning_rate / 20)
    assert np.argmax(rates) in range(10, 20)
    assert rates[-1] < 1e-3 * parameters.learning_rate
    training = make_training(ramp_up=0, schedule="constant")
    before = [tensor.detach().clone() for tensor in training.weights]
    training.run_step()
    means = training.optimiser.moments["exp_avg"]  # a tenth of the first gradient
    for old, new, mean in zip(before, training.weights, means, strict=True):
        # The first step of Adam is the learning rate in the direction of the gradient's sign.
        moved = (mean.abs() > 1e-5).nonzero(as_tuple=True)
        wanted = old - 4e-3 * mean.sign()
        torch.testing.assert_close(new.detach()[moved], wanted[moved], atol=2e-6, rtol=0)


def test_every_round_sees_every_image_once_in_another_order():
    training = make_training(batch_size=35)
    seen = []
    for step in range(18):
        training.step = step
        seen.append(training.rows())
    rounds = torch.cat(seen).reshape(7, 90)
    assert torch.equal(rounds.sort(1).values, torch.arange(90).expand(7, -1))
    assert len({tuple(order) for order in rounds.tolist()}) == 7


def test_batch_may_be_larger_than_the_set():
    training = make_training(batch_size=200)
    rows = training.rows()
    assert len(rows) == 200
    assert set(torch.bincount(rows).tolist()) <= {2, 3}
    training.run_step()
    assert training.losses[0] > 0


def test_training_leaves_the_random_numbers_of_others_alone():
    training = make_training(network={"channels": (8, 16), "groups": 4, "dropout": 0.3})
    torch.manual_seed(4)
    before = torch.random.get_rng_state()
    training.run_step()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_mirrored_images_are_an_option():
    plain, mirrored = make_training(), make_training(mirrored=True)
    plain.run_step()
    mirrored.run_step()
    assert plain.losses[0] != mirrored.losses[0]


def test_bfloat16_training_stays_close():
    exact, short = make_training(), make_training(precision="bfloat16")
    for _ in range(3):
        exact.run_step()
        short.run_step()
    assert short.weights[0].dtype == torch.float32
    torch.testing.assert_close(exact.losses[:3], short.losses[:3], rtol=0.05, atol=0)


def test_resumed_training_ends_with_the_same_bits():
    """Dropout included; every step is a place to go on from."""
    changes = {"images": 120, "network": {"channels": (8, 16), "groups": 4, "dropout": 0.2}}
    undisturbed = make_training(**changes)
    undisturbed.train_to_end(Checkpoint("a", "whole"), "a")
    assert undisturbed.step == 6
    for stop in (1, 4):
        first = make_training(**changes)
        for _ in range(stop):
            first.run_step()
        Checkpoint("b", f"stopped {stop}").save(first.state())
        second = make_training(**changes)
        second.train_to_end(Checkpoint("b", f"stopped {stop}"), "b")
        assert equal_states(undisturbed, second)
    assert not equal_states(undisturbed, first)


CHILD = """
from robust_fairness.bench.generation.fitting import fit
from tests.generation.conftest import CLASSES, make_parameters, make_images
fit(make_parameters(**{changes!r}), *make_images(), CLASSES, "toy")
"""


def test_training_survives_sigkill(tmp_path, monkeypatch):
    """A process killed in the middle of training is gone on with, to the same bits."""
    changes = {"images": 800, "checkpoint_seconds": 0}
    folder = tmp_path / "checkpoints"
    code = CHILD.format(changes=changes)
    killed(code, tmp_path, lambda: any(folder.rglob("state.safetensors")))
    parameters, given = make_parameters(**changes), (*make_images(), CLASSES)
    state = Checkpoint("toy", training_key(parameters, *given)).load()
    assert 0 < len(state["losses"]) < parameters.steps
    resumed, curve = fit(parameters, *given, "toy")
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "other"))
    undisturbed, whole = fit(parameters, *given, "toy")
    assert resumed.fingerprint == undisturbed.fingerprint
    assert curve.equals(whole)


def test_checkpoint_of_another_training_is_not_found():
    images, labels = make_images()
    parameters = make_parameters()
    other = images.clone()
    other[0, 0, 0, 0] += 1
    keys = {
        training_key(parameters, images, labels, CLASSES),
        training_key(parameters, other, labels, CLASSES),
        training_key(parameters, images, labels.flip(0), CLASSES),
        training_key(parameters, images, labels, ("a", "b", "c")),
        training_key(make_parameters(seed=1), images, labels, CLASSES),
        training_key(make_parameters(learning_rate=1e-4), images, labels, CLASSES),
    }
    assert len(keys) == 6
    often = make_parameters(checkpoint_seconds=1, sampler={"steps": 3})
    assert training_key(often, images, labels, CLASSES) in keys


def test_a_loss_that_is_not_finite_ends_the_training():
    training = make_training(checkpoint_seconds=0)
    training.run_step()
    torch.nn.init.constant_(training.weights[0], float("nan"))
    checkpoint = Checkpoint("toy", "broken")
    with pytest.raises(InputError, match="loss is not finite in step 1, allowed: a learning_rate"):
        training.train_to_end(checkpoint, "toy")
    assert checkpoint.load() is None


@pytest.mark.parametrize(
    ("count", "labels", "message"),
    [
        (0, [], "0 images and 0 labels"),
        (2, [0, 1, 2], "2 images and 3 labels"),
        (3, [0, 1, 3], "labels 0 to 3, allowed: 0 to 2"),
        (3, [0, 1, 1], "no image of class 'striped'"),
    ],
)
def test_images_and_labels_that_do_not_fit_are_refused(count, labels, message):
    images = torch.zeros(count, 1, 4, 4, dtype=torch.uint8)
    given = torch.tensor(labels, dtype=torch.int64)
    with pytest.raises(InputError, match=message):
        training = Training(make_parameters(), images, given, CLASSES)
        training.run_step()


@pytest.mark.slow
def test_generated_digits_are_recognised_by_a_classifier_of_real_ones():
    """The default training; the classifier has seen no generated digit."""
    digits = load_digits()
    pixels = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    given = torch.from_numpy(pixels)[:, None], torch.from_numpy(digits.target)
    names = [str(digit) for digit in range(10)]
    generator, _ = fit(GeneratorParameters(device="cpu"), *given, names, "digits")
    assert recognised(generator) > 0.85
