"""What the training loop and the methods know of a network."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from pydantic import BaseModel
from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find_module
from robust_fairness.models import losses as _losses
from robust_fairness.models.randomness import DropoutNoise, Randomness

PICTURE_AXES = 3  # channels, height, width

Module = TypeVar("Module", bound=nn.Module)


class Model(nn.Module, ABC):
    """A stack of networks: features (f_s) and a head on them (h_t).

    Attributes:
        piecewise_linear: whether outputs are piecewise linear in the inputs when dropout is
            off, which gives loss curvature in closed form.
        early_width: channels of the early layer.
        feature_width: channels of the features.
        softmax: whether its loss is that of a softmax, which then tells probabilities.
    """

    piecewise_linear: bool
    early_width: int
    feature_width: int
    softmax: bool = True

    @abstractmethod
    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Activations of an early layer, ``[replica, row, channel, ...]``.

        Args:
            x: inputs ``[replica, row, ...]``, preprocessed.
            noise: dropout masks of the batch; None turns dropout off.
        """

    @abstractmethod
    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, ...]`` of the early layer's activations."""

    def features(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, ...]`` of inputs ``[replica, row, ...]``."""
        return self.late(self.early(x, noise), noise)

    @abstractmethod
    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of features: logits, or the predicted outcome."""

    @abstractmethod
    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        """A head of the same structure for another target, for example an adversary (h_a).

        Args:
            outputs: number of outputs.
            randomness: source of its initial weights.
            inputs: width of its input; that of the features unless given.
        """

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of inputs ``[replica, row, ...]``."""
        return self.head(self.features(x, noise), noise)

    def task_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss of every row ``[..., row]``: what every method minimises, and what is validated.

        Args:
            outputs: logits ``[..., row, class]``, or predictions ``[..., row, 1]``.
            y: int64 classes, or float outcomes, ``[..., row]``.
        """
        return _losses.task_loss(outputs, y)

    def replica_states(self) -> list[dict[str, Tensor]]:
        """Weights and buffers of every replica on its own."""
        state = self.state_dict()
        count = len(next(iter(state.values())))
        return [{name: value[number] for name, value in state.items()} for number in range(count)]

    def load_replica_states(self, states: Sequence[dict[str, Tensor]]) -> None:
        """Take the weights that ``replica_states`` gave; their dtype becomes the network's."""
        together = {name: torch.stack([one[name] for one in states]) for name in states[0]}
        self.load_state_dict(together, assign=True)


class SingleModel(Model):
    """A network of torch's own layers: a stack of one replica.

    Convolutions of many replicas at once are slower on every device than one replica after the
    other; the leading axis of inputs and outputs has length 1.

    Attributes:
        top: the head.
    """

    top: nn.Module

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[1, row, output]``."""
        outputs: Tensor = self.top(features)
        return outputs

    def replica_states(self) -> list[dict[str, Tensor]]:
        """The one state."""
        return [dict(self.state_dict())]

    def load_replica_states(self, states: Sequence[dict[str, Tensor]]) -> None:
        """Take the one state."""
        (state,) = states
        self.load_state_dict(state, assign=True)


class FittedAtOnce(SingleModel):
    """A network that one call fits on training rows: there are no steps and no epochs."""

    @abstractmethod
    def rows_to_fit(self, count: int) -> Tensor:
        """Places of the training rows that it is to be fitted on, int64 ``[m]``.

        Args:
            count: number of training rows.
        """

    @abstractmethod
    def fit_at_once(self, x: Tensor, y: Tensor) -> None:
        """Fit on these training rows.

        Args:
            x: preprocessed inputs ``[1, m, ...]``.
            y: int64 classes ``[1, m]``.

        Raises:
            InputError: the rows cannot be fitted.
        """


def description(name: str, parameters: BaseModel) -> str:
    """What a network is called in a table: what its file's ``describe`` says, else its name.

    Args:
        name: of the network.
        parameters: its parameters.
    """
    describe = getattr(find_module("network", name), "describe", None)
    return name if describe is None else str(describe(parameters))


def weight_files(name: str, parameters: BaseModel) -> tuple[Path, ...]:
    """The files that a network's initial weights are read from: what its ``files`` says, or none.

    Args:
        name: of the network.
        parameters: its parameters.
    """
    told = getattr(find_module("network", name), "files", None)
    return () if told is None else tuple(told(parameters))


def initialised(build: Callable[[], Module], randomness: Randomness) -> Module:
    """A module of torch's own layers with weights drawn from ``randomness`` alone.

    Args:
        build: makes the module.
        randomness: of a stack of one replica.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(randomness.integer())
        return build()


def pictures(x: Tensor) -> Tensor:
    """The pictures ``[row, channel, height, width]`` of a stack of one, channels last in memory.

    Convolutions on the CPU are about a quarter faster in that order.
    """
    return x[0].contiguous(memory_format=torch.channels_last)


def require_pictures(network: str, inputs: tuple[int, ...]) -> None:
    """Check that rows are pictures.

    Raises:
        InputError: they are not channels x height x width.
    """
    if len(inputs) != PICTURE_AXES:
        raise InputError(
            f"network {network}: rows have shape {inputs}, allowed: channels, height and width"
        )


def require_features(network: str, inputs: tuple[int, ...]) -> int:
    """Check that rows are feature vectors; how many features they have.

    Raises:
        InputError: rows have other than one axis.
    """
    if len(inputs) != 1:
        raise InputError(
            f"network {network}: rows have shape {inputs}, allowed: one axis of features"
        )
    return inputs[0]
