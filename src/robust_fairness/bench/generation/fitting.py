"""Training of a generator: Adam, averaged weights, resumable at any moment."""

import copy
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int, UInt8
from pydantic import BaseModel, Field
from torch import Tensor

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.compute.checkpoints import Checkpoint, threads
from robust_fairness.bench.compute.optimisers import Adam
from robust_fairness.bench.compute.process import device_named, progress, same_every_time
from robust_fairness.bench.generation import edm, unet
from robust_fairness.bench.generation.generator import Device, Generator, GeneratorSettings, Network
from robust_fairness.core.errors import InputError
from robust_fairness.core.tables import table

HISTORY = {"step": "int64", "images": "int64", "loss": "float64"}


class GeneratorParameters(BaseModel, extra="forbid", frozen=True):
    """How a generator is trained.

    Noise levels, Adam's constants and the averaging are those of Karras et al. (Tables 1 and 7);
    the sizes are for 8 x 8 digits on a CPU, see docs/generation.md. Averages of weights have a
    half-life of ``half_life`` images, but at most ``half_life_share`` of the images seen so far:
    otherwise the averages of a short training would still contain its initial weights.
    """

    network: Network = unet.UNetParameters()
    preconditioning: edm.Preconditioning = edm.Preconditioning()
    sampler: edm.Sampler = edm.Sampler()
    noise_mean: float = Field(-1.2, description="P_mean, of ln(sigma)")
    noise_deviation: float = Field(1.2, ge=0, description="P_std, of ln(sigma)")
    images: int = Field(20_480, ge=1, description="seen in training, each as often as it comes")
    batch_size: int = Field(32, ge=1)
    learning_rate: float = Field(4e-3, gt=0)
    ramp_up: int = Field(1_000, ge=0, description="images until the learning rate is reached")
    schedule: Literal["constant", "cosine"] = "cosine"
    half_life: int = Field(500_000, ge=1)
    half_life_share: float = Field(0.05, gt=0)
    mirrored: bool = Field(False, description="whether images are flipped horizontally at random")
    seed: int = Field(0, ge=0)
    device: Device = "auto"
    precision: Literal["float32", "bfloat16"] = "float32"
    threads: int = Field(1, ge=1, description="CPU threads")
    checkpoint_seconds: float = Field(30, ge=0, description="least time between two checkpoints")

    @property
    def steps(self) -> int:
        """Steps of the optimiser: as many as it takes to see the images."""
        return -(-self.images // self.batch_size)

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        ramp = min(1.0, (step + 1) * self.batch_size / max(1, self.ramp_up))
        done = step / self.steps if self.schedule == "cosine" else 0.0
        return self.learning_rate * ramp * (1 + float(np.cos(np.pi * done))) / 2

    def averaging(self, step: int) -> float:
        """Share of the old average that a step, counted from 0, keeps."""
        seen = (step + 1) * self.batch_size
        return float(0.5 ** (self.batch_size / min(self.half_life, seen * self.half_life_share)))


class Training:
    """A generator in training: network, averages, optimiser and losses.

    Random numbers of a step depend on the seed and the step's number only, so that checkpoints
    contain no state of random number generators.
    """

    def __init__(
        self,
        parameters: GeneratorParameters,
        images: UInt8[Tensor, "n c h w"],
        labels: Int[Tensor, " rows"],
        classes: Sequence[str],
    ) -> None:
        _require_images(images, labels, classes)
        self.parameters = p = parameters
        self.settings = GeneratorSettings(
            classes=tuple(classes),
            shape=tuple(images.shape[1:]),
            network=p.network,
            preconditioning=p.preconditioning,
            sampler=p.sampler,
        )
        self.device = device_named(p.device, "generator")
        network = self.settings.build(p.seed).to(self.device)
        self.denoiser = edm.Denoiser(network, p.preconditioning)
        self.average = copy.deepcopy(network).requires_grad_(False)
        self.weights: list[Tensor] = list(network.parameters())
        self.averages: list[Tensor] = list(self.average.parameters())
        self.optimiser = Adam(self.weights, p.learning_rate, fused=False)
        self.images, self.labels = images.to(self.device), labels.to(self.device)
        self.losses = torch.zeros(p.steps, device=self.device)
        self.step = 0

    def run_step(self) -> None:
        """One batch: loss, gradient, Adam, average."""
        p = self.parameters
        rows = self.rows()
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), same_every_time():
            torch.manual_seed(stream(p.seed, "step", self.step))
            x = edm.from_pixels(self.images[rows])
            if p.mirrored:
                flipped = torch.rand(len(x), 1, 1, 1, device=self.device) < 0.5
                x = torch.where(flipped, x.flip(3), x)
            normal = torch.randn(len(x), device=self.device)
            sigmas = edm.training_sigmas(normal, p.noise_mean, p.noise_deviation)
            with torch.autocast(
                self.device.type, torch.bfloat16, enabled=p.precision == "bfloat16"
            ):
                loss = edm.loss(self.denoiser, x, self.labels[rows], sigmas, torch.randn_like(x))
            gradients = torch.autograd.grad(loss, self.weights)
        self.optimiser.lr = p.rate(self.step)
        self.optimiser.step(gradients)
        with torch.no_grad():
            torch._foreach_lerp_(self.averages, self.weights, 1 - p.averaging(self.step))
        self.losses[self.step] = loss.detach()
        self.step += 1

    def rows(self) -> Tensor:
        """Row numbers of the next batch, int64; the order is drawn anew in each round."""
        count, size = len(self.images), self.parameters.batch_size
        first = self.step * size
        rounds = range(first // count, (first + size - 1) // count + 1)
        orders = []
        for number in rounds:
            draws = torch.Generator().manual_seed(stream(self.parameters.seed, "order", number))
            orders.append(torch.randperm(count, generator=draws))
        start = first - rounds[0] * count
        return torch.cat(orders)[start : start + size].to(self.device)

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by name."""
        tensors = {
            f"weights/{name}": item for name, item in self.denoiser.network.state_dict().items()
        }
        tensors |= {f"average/{name}": item for name, item in self.average.state_dict().items()}
        tensors |= {f"adam/{name}": item for name, item in self.optimiser.state().items()}
        return tensors | {"losses": self.losses[: self.step]}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from ``state``."""
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "average": {}, "adam": {}}
        for name, value in state.items():
            part, _, rest = name.partition("/")
            parts.get(part, {})[rest] = value
        self.denoiser.network.load_state_dict(parts["weights"])
        self.average.load_state_dict(parts["average"])
        self.optimiser.restore(parts["adam"])
        self.step = len(state["losses"])
        self.losses[: self.step] = state["losses"].to(self.device)

    def train_to_end(self, checkpoint: Checkpoint, name: str) -> None:
        """Train all steps, going on from the checkpoint where there is one."""
        state = checkpoint.load()
        if state is not None:
            self.restore(state)
        p, saved = self.parameters, time.monotonic()
        for step in progress(range(self.step, p.steps), name, p.steps, self.step):
            self.run_step()
            last = step == p.steps - 1
            if last or time.monotonic() - saved >= p.checkpoint_seconds:
                self._require_finite()
                checkpoint.save(self.state())
                saved = time.monotonic()

    def _require_finite(self) -> None:
        broken = (~self.losses[: self.step].isfinite()).nonzero()
        if len(broken):
            raise InputError(
                f"generator: the loss is not finite in step {int(broken[0])}, "
                f"allowed: a learning_rate below {self.parameters.learning_rate}"
            )

    def generator(self) -> Generator:
        """The generator of the averaged weights."""
        weights = {name: item.clone() for name, item in self.average.unet.state_dict().items()}
        return Generator(self.settings, weights, self.parameters.device)

    def curve(self) -> pd.DataFrame:
        """Loss of every step so far, ``HISTORY``; ``images`` are those seen after it."""
        losses = self.losses[: self.step].double().tolist()
        size = self.parameters.batch_size
        return table(
            HISTORY,
            [
                {"step": step, "images": (step + 1) * size, "loss": loss}
                for step, loss in enumerate(losses)
            ],
        )


def fit(
    parameters: GeneratorParameters,
    images: UInt8[Tensor, "n c h w"],
    labels: Int[Tensor, " rows"],
    classes: Sequence[str],
    name: str,
) -> tuple[Generator, pd.DataFrame]:
    """Train a generator, or continue an interrupted training; returns it and ``HISTORY``.

    On the CPU a resumed training ends with the same bits as an uninterrupted one. ``name`` is the
    folder of its checkpoints, for ``checkpoints.drop``, and the label of its progress bar.
    """
    with threads(parameters.threads):
        training = Training(parameters, images, labels, classes)
        checkpoint = Checkpoint(name, training_key(parameters, images, labels, classes))
        training.train_to_end(checkpoint, name)
        return training.generator(), training.curve()


def training_key(
    parameters: GeneratorParameters, images: Tensor, labels: Tensor, classes: Sequence[str]
) -> str:
    """Name of the checkpoint of a training: everything that its numbers depend on."""
    arrays = {"images": images.cpu().numpy(), "labels": labels.cpu().numpy()}
    settings = parameters.model_dump(exclude={"checkpoint_seconds", "sampler"})
    settings |= {
        "classes": list(classes),
        "device": str(device_named(parameters.device, "generator")),
    }
    return checkpoints.key(arrays, settings)


def stream(seed: int, purpose: Literal["step", "order"], number: int) -> int:
    """Seed, below 2^63, of the random numbers of a step or of the order of a round."""
    sequence = np.random.SeedSequence([seed, ("step", "order").index(purpose), number])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def _require_images(images: Tensor, labels: Tensor, classes: Sequence[str]) -> None:
    """Raise an error unless every image has a label and every class an image."""
    if not len(images) or len(images) != len(labels):
        raise InputError(
            f"generator: {len(images)} images and {len(labels)} labels; at least one image and one "
            "label per image are needed"
        )
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= len(classes):
        raise InputError(
            f"generator: labels {low} to {high}, allowed: 0 to {len(classes) - 1}, the classes"
        )
    counts = torch.bincount(labels.cpu(), minlength=len(classes))
    if not counts.all():
        without = classes[int((counts == 0).nonzero()[0])]
        raise InputError(f"generator: no image of class {without!r}; every class needs images")
