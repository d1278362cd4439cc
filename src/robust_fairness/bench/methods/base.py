"""The base class of training methods, and what the training loop passes to them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from robust_fairness.bench.estimators.base import Estimator
from robust_fairness.bench.methods._parameters import (
    Declaration,
    GroupMethodParameters,
    Information,
    MethodParameters,
    SubgroupMethodParameters,
    Subgroups,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError

__all__ = [
    "Batch", "GroupMethodParameters", "Information", "Method", "MethodParameters", "Problem",
    "Step", "SubgroupMethodParameters", "Subgroups", "TrainingRows", "plain_steps",
    "require_softmax", "row_weights", "shuffled", "weighted_loss",
]  # fmt: skip


@dataclass
class Batch:
    """One batch of every replica of a stack.

    Attributes:
        x: preprocessed inputs ``[replica, row, ...]``.
        y: int64 classes or standardised float outcomes ``[replica, row]``.
        group: int64 group of the mitigated attributes ``[replica, row]``, -1 where missing.
        subgroup: int64 subgroup as the method defines it, ``[replica, row]``; -1 where missing.
        attributes: the mitigated attributes as numbers ``[replica, row, column]``: one column per
            continuous attribute, in standard deviations of the training rows, and one of 0 and 1
            per category; NaN where missing. No columns unless the method ``reads`` them.
        conditioning: the conditioning variable of equalised odds, encoded likewise.
        sample_weight: weights of the rows in the loss ``[replica, row]``; 1 by default.
        rows: int64 row numbers in the dataset ``[replica, row]``.
        noise: dropout masks of this batch.
        epoch: number of the epoch, from 0.
    """

    x: Tensor
    y: Tensor
    group: Tensor
    subgroup: Tensor
    attributes: Tensor
    conditioning: Tensor
    sample_weight: Tensor
    rows: Tensor
    noise: DropoutNoise | None
    epoch: int = 0


@dataclass
class Step:
    """One update: each player descends its own loss, or uses the gradients instead.

    Attributes:
        losses: loss of every player that moves, ``[replica]``.
        gradients: for a player whose direction is not the gradient of a loss, one tensor per
            parameter.
    """

    losses: dict[str, Tensor]
    gradients: dict[str, list[Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingRows:
    """The training rows of one replica, ``[m]`` each, in the order of the dataset.

    ``subgroup`` is -1 where missing, ``rows`` are row numbers in the dataset, ``replica`` is the
    position in the stack.
    """

    y: Tensor
    subgroup: Tensor
    rows: Tensor
    replica: int = 0


@dataclass(frozen=True)
class Problem:
    """The task, as a method knows it before training.

    Attributes:
        classes: number of classes; 0 for a continuous outcome.
        groups: number of groups of the mitigated attributes; 0 where one is continuous.
        attribute_widths: columns of every mitigated attribute; 1 for a continuous one.
        subgroup_counts: training rows of every replica in each subgroup that occurs in the dataset,
            or among the domains that are trained on, int64 ``[replica, subgroup]``.
        rows: number of rows of the dataset.
        batch_size: rows of a batch; the last one of an epoch may be smaller.
        seeds: seed of every replica.
        heads: source of initial weights for further networks.
        new_model: constructs another stack of the same network with fresh weights.
        learning_rate: of the protocol, before its schedule.
        mining: source of random draws from batches during training.
        training_batches: iterates over the training rows of every replica once, in order, in
            blocks and without augmentation.
        group_is_class: whether groups and classes of the dataset correspond one to one.
        epochs: number of epochs, those of the warm-up included.
        target_inputs: preprocessed inputs of all rows out of distribution, ``[m, ...]`` for each
            replica, for a method that ``sees`` target rows.
        target_batch: draws inputs of so many of these rows, ``[replica, row, ...]``.
    """

    classes: int
    groups: int
    attribute_widths: tuple[int, ...]
    subgroup_counts: Tensor
    rows: int
    batch_size: int
    seeds: tuple[int, ...]
    heads: Randomness
    new_model: Callable[[], Model]
    learning_rate: float
    mining: Randomness
    training_batches: Callable[[], Iterable[Batch]] = tuple
    group_is_class: bool = False
    epochs: int = 1
    target_inputs: Callable[[], list[Tensor]] = list
    target_batch: Callable[[int], Tensor] = torch.empty

    def require_classes(self, method: str) -> None:
        """Raise unless the outcome is a class."""
        if not self.classes:
            raise InputError(f"method {method}: not applicable to a continuous outcome")

    def require_attributes(self, method: str) -> None:
        """Raise unless there is an attribute to mitigate."""
        if not self.attribute_widths:
            raise InputError(
                f"method {method}: no attribute to mitigate; choose a dataset with sensitive "
                "attributes, or name some by explicit"
            )

    def require_groups(self, method: str) -> None:
        """Raise unless every replica has a training row of a known group."""
        if not self.groups:
            raise InputError(
                f"method {method}: an attribute to mitigate is continuous and defines no groups, "
                "allowed: categorical or binned attributes"
            )
        if not self.subgroup_counts.sum(1).all():
            raise InputError(
                f"method {method}: no training row has a value of every attribute to mitigate; "
                "choose other sensitive or explicit attributes"
            )

    def require_more_than_class(self, method: str) -> None:
        """Raise if groups and classes correspond one to one."""
        if self.group_is_class:
            raise InputError(f"method {method}: the attribute to mitigate must not be the class")


class Method(Declaration, nn.Module, ABC):
    """A training method: yields the updates of every batch.

    The training loop owns optimisers, schedules, devices, replicas and checkpoints. Networks and
    buffers of a method are attributes of this module; checkpoints contain them, saved models do
    not. State that survives an epoch belongs into buffers.

    Attributes that a method ``reads`` have to be there, and groups that it sees otherwise have to
    occur among the training rows of every replica.

    Attributes:
        trains_head: whether it trains the network's head; otherwise the network must defer its
            classifier until the features are trained, and ``embeddings`` are kept.
        estimators: whether it fits estimators as well as networks: plain training except for the
            rows that it visits and their ``row_weight`` can (``also``). ``only``: it fits a
            classifier many times with other weights of rows, and its predictions are decisions.
        binary_only: whether it needs a target of exactly two classes.
        default_network: name of the network for tables that it takes, or a network with its fields.
        reads: which optional columns of a batch it reads: ``sample_weight`` in the loss (other
            methods reject samples of different weights), ``attributes`` and the conditioning
            variable (not computed for other methods).

    Args:
        hparams: of the class ``Parameters``; float fields hold tensors ``[replica]``.
        model: the stack of networks to train.
        problem: the task.
    """

    trains_head: ClassVar[bool] = True

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__()
        self.hparams = hparams
        self.problem = problem
        if "attributes" in self.reads:
            problem.require_attributes(self.name)
        elif "groups" in hparams.sees:
            problem.require_groups(self.name)

    @abstractmethod
    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        """Yield the updates of one batch; each is applied before the next one is computed."""

    def fit(self, model: Estimator, batch: Batch, weight: Tensor | None) -> None:
        """Fit an estimator to rows ``[1, m]``.

        ``weight`` ``[1, m]`` is that of the method and the samples with mean 1; None for 1.
        """
        model.fit(batch.x, batch.y, weight)

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        """Parameters of every player by name; each has its own optimiser.

        Default: the network, and an adversary of the method's own trainable parameters.
        """
        trainable = [parameter for parameter in self.parameters() if parameter.requires_grad]
        return {"model": model.parameters()} | ({"adversary": trainable} if trainable else {})

    def optimiser_options(self, player: str) -> dict[str, float]:
        """Options of a player's optimiser that differ from the protocol's, such as ``lr``."""
        return {}

    def start_epoch(self, model: Model, epoch: int) -> Iterable[str]:
        """Prepare an epoch after the warm-up, whose first one has the number ``warm_up_epochs``.

        The network is in evaluation mode, and gradients are off.

        Returns:
            Names of the players whose optimisers restart with empty state.
        """
        return ()

    def finish(self, model: Model) -> None:
        """Change the network after the last epoch, in evaluation mode and without gradients."""

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        """Positions in ``rows`` that one replica visits in an epoch, in order, int64.

        Rows may be left out or repeated, differently for every replica; the number of visits must
        be the same for all replicas. ``generator`` is of the replica's seed.
        """
        return shuffled(rows, generator)

    def row_weight(self, batch: Batch) -> Tensor | float:
        """Weights of the rows in the loss ``[replica, row]``, beside ``Batch.sample_weight``."""
        return 1.0

    def embeddings(self, model: Model, batch: Batch) -> dict[str, Tensor]:
        """Embeddings to keep of validation rows, by name, ``[replica, row, d]``."""
        return {}


def shuffled(rows: TrainingRows, generator: torch.Generator) -> Tensor:
    """Every training row once, in random order, int64 ``[m]``."""
    return torch.randperm(len(rows.y), generator=generator, device=generator.device)


def require_softmax(method: str, model: Model) -> None:
    """Raise unless the network's loss is that of a softmax, as the formula of the method needs."""
    if not model.softmax:
        raise InputError(
            f"method {method}: takes the softmax of the outputs, which the network's loss does "
            "not, allowed: loss cross_entropy"
        )


def row_weights(batch: Batch) -> Tensor:
    """``sample_weight`` with mean 1 over the batch, ``[replica, row]``.

    Penalties and statistics of groups beside the loss count every row once.
    """
    mean = batch.sample_weight.mean(-1, keepdim=True)
    return batch.sample_weight / mean.clamp(min=torch.finfo(mean.dtype).tiny)


def weighted_loss(model: Model, batch: Batch, weight: Tensor | float = 1.0) -> Tensor:
    """Mean task loss of the batch by ``sample_weight`` (times ``weight``), ``[replica]``."""
    losses = model.task_loss(model(batch.x, batch.noise), batch.y)
    return (batch.sample_weight * weight * losses).mean(-1)


def plain_steps(model: Model, batch: Batch) -> Iterator[Step]:
    """The one step of plain training."""
    yield Step({"model": weighted_loss(model, batch)})
