"""The base classes of networks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import torch
from pydantic import BaseModel, PlainSerializer
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.bench.models.layers import SingleHead, loss_of_rows
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import QuestionShape, RowShape
from robust_fairness.core.registry import Plugin

IMAGE_AXES = 3  # channels, height, width
POOLED_AXES = 3  # replica, row, feature

Module = TypeVar("Module", bound=nn.Module)
WeightsFile = Annotated[Path, PlainSerializer(str)]


@dataclass(frozen=True)
class LabelledRows:
    """Rows of a stack that a classifier is fitted on after training.

    ``x`` are preprocessed inputs in blocks ``[replica, row, ...]``; ``y`` and ``group`` (-1 where
    missing) are ``[replica, row]``.
    """

    x: Iterable[Tensor]
    y: Tensor
    group: Tensor


class Model(Plugin, nn.Module, ABC):
    """A stack of networks, each the features (f_s) of the inputs and a head (h_t) on them.

    Inputs, features, outputs and weights have a leading replica axis, and replicas never mix: a
    stack computes what its replicas compute alone.

    Attributes:
        reads_questions: whether rows are questions on images.
        piecewise_linear: whether the outputs are piecewise linear in the inputs without dropout,
            which gives the curvature of the loss in closed form; None without derivatives.
        early_width: channels of the early layer.
        feature_width: channels of the features.
        softmax: whether the loss is the cross-entropy of a softmax, or a squared error.
        trained_in_steps: whether a method trains it step by step; otherwise one call fits it.
        top: the module of the head, called with features and noise.

    Args:
        hparams: sizes and options, of the class ``Parameters``.
        inputs: shape of one row.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights, with one seed per replica.
    """

    reads_questions: ClassVar[bool] = False
    trained_in_steps: ClassVar[bool] = True
    piecewise_linear: bool | None
    early_width: int
    feature_width: int
    softmax: bool = True
    top: Any

    def __init__(
        self, hparams: Any, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__()
        if self.reads_questions != isinstance(inputs, QuestionShape):
            rows = "other rows" if self.reads_questions else "questions on images"
            needs = "questions on images" if self.reads_questions else "a network that reads them"
            raise InputError(f"network {self.name}: rows are {rows}, allowed: {needs}")
        self.hparams = hparams

    @classmethod
    def describe(cls, hparams: Any) -> str:
        """Name of the network in tables."""
        return cls.name

    @classmethod
    def files(cls, hparams: Any) -> tuple[Path, ...]:
        """Files that the initial weights are read from."""
        return ()

    @classmethod
    def trained_as(cls, hparams: Any) -> BaseModel:
        """The hyperparameters that training depends on: networks equal in these share one."""
        return hparams

    @classmethod
    def takes_sample_weight(cls, hparams: Any) -> bool:
        """Whether its training can weight rows."""
        return True

    @classmethod
    def takes_missing(cls, hparams: Any) -> bool:
        """Whether inputs may be missing (NaN)."""
        return False

    @classmethod
    def defers_classifier(cls, hparams: Any) -> bool:
        """Whether the head is fitted after training, by ``finished_states``."""
        return False

    @abstractmethod
    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Activations of an early layer, ``[replica, row, channel, ...]``.

        ``x`` are preprocessed inputs ``[replica, row, ...]``; without ``noise`` dropout is off.
        """

    @abstractmethod
    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, ...]`` of the early layer's activations."""

    def features(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, ...]`` of inputs ``[replica, row, ...]``."""
        return self.late(self.early(x, noise), noise)

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of features: logits, or the predicted outcome."""
        return self.top(features, noise)

    @abstractmethod
    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        """A head of the same structure for another target, such as an adversary (h_a).

        ``inputs`` is the width of its input; default: that of the features.
        """

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of inputs ``[replica, row, ...]``."""
        return self.head(self.features(x, noise), noise)

    def embedding(self, x: Tensor) -> Tensor:
        """What metrics of embeddings read: features averaged over places, ``[replica, row, d]``.

        They have length 1, except those that are all 0.
        """
        return functional.normalize(averaged_over_places(self.features(x)), dim=-1)

    def task_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Loss of every row ``[..., row]``, see ``models.layers.loss_of_rows``."""
        return loss_of_rows(outputs, y)

    @property
    def has_outputs(self) -> bool:
        """Whether outputs exist before ``finished_states`` is called."""
        return True

    def finished_states(
        self, replicas: Sequence[BaseModel], rows: LabelledRows
    ) -> list[dict[str, Tensor]]:
        """Weights and buffers of every trained replica.

        ``replicas`` are the hyperparameters of those of the stack, or of all that share it;
        ``rows`` are those to fit a classifier on after training.
        """
        return self.replica_states()

    def replica_states(self) -> list[dict[str, Tensor]]:
        """Weights and buffers of every replica."""
        state = self.state_dict()
        count = len(next(iter(state.values())))
        return [{name: value[number] for name, value in state.items()} for number in range(count)]

    def load_replica_states(self, states: Sequence[dict[str, Tensor]]) -> None:
        """Load the result of ``replica_states``; the network takes on its dtype."""
        together = {name: torch.stack([state[name] for state in states]) for name in states[0]}
        self.load_state_dict(together, assign=True)


class SingleModel(Model):
    """A network of torch's own layers with the head ``top``, whose replica axis has length 1.

    Convolving many replicas together is slower on every device than one after the other.
    """

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        linear = partial(nn.Linear, inputs or self.feature_width, outputs)
        return SingleHead(initialised(linear, randomness))

    def finished_states(
        self, replicas: Sequence[BaseModel], rows: LabelledRows
    ) -> list[dict[str, Tensor]]:
        return self.replica_states() * len(replicas)

    def replica_states(self) -> list[dict[str, Tensor]]:
        return [dict(self.state_dict())]

    def load_replica_states(self, states: Sequence[dict[str, Tensor]]) -> None:
        (state,) = states
        self.load_state_dict(state, assign=True)


def averaged_over_places(features: Tensor) -> Tensor:
    """Features ``[replica, row, feature]`` of ``[replica, row, feature, ...]``."""
    return features.flatten(POOLED_AXES).mean(-1) if features.ndim > POOLED_AXES else features


def initialised(build: Callable[[], Module], randomness: Randomness) -> Module:
    """A module of torch's own layers with weights drawn from ``randomness`` (one replica) alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(randomness.integer())
        return build()


def images(x: Tensor) -> Tensor:
    """The images ``[row, channel, height, width]`` of a stack of one, in channels-last memory.

    Convolutions on the CPU are about a quarter faster in that order.
    """
    return x[0].contiguous(memory_format=torch.channels_last)


def require_images(network: str, inputs: Any) -> tuple[int, int, int]:
    """Channels, height and width of images."""
    if len(inputs) != IMAGE_AXES:
        raise InputError(
            f"network {network}: rows have shape {inputs}, allowed: channels, height and width"
        )
    channels, height, width = inputs
    return channels, height, width


def require_features(network: str, inputs: RowShape) -> int:
    """Number of features of a row."""
    if len(inputs) != 1:
        raise InputError(
            f"network {network}: rows have shape {inputs}, allowed: one axis of features"
        )
    return inputs[0]


def require_classes(network: str, outputs: int) -> None:
    """Raise unless the outcome is a class."""
    if outputs == 1:
        raise InputError(f"network {network}: not applicable to a continuous outcome")
