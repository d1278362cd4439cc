"""The interface between a method and the training loop."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import Model
from robust_fairness.models.randomness import DropoutNoise, Randomness


class MethodParameters(BaseModel):
    """Hyperparameters of a method.

    Float fields may differ between the replicas of a stack: the loop hands them to the method as
    tensors ``[replica]``. Replicas that differ in any other field train in stacks of their own.

    ``warm_up_epochs``: so many of the epochs train plainly first, with a learning rate schedule
    of their own; the method then goes on with the trained network.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    warm_up_epochs: int = Field(0, ge=0)


class GroupMethodParameters(MethodParameters):
    """Hyperparameters of a method that is told the groups.

    ``explicit`` names the attributes that define them (b_expl of the study of bias mitigation);
    the dataset's own ``sensitive`` ones unless given.
    """

    explicit: tuple[str, ...] = ()


class CellMethodParameters(GroupMethodParameters):
    """Hyperparameters of a method that weighs or draws rows by their cell.

    ``cells``: whether a cell is a group and a class together, or the group alone.
    """

    cells: Literal["group_and_class", "group"] = "group_and_class"


@dataclass
class Batch:
    """One batch of every replica of a stack.

    Attributes:
        x: preprocessed inputs ``[replica, row, ...]``.
        y: int64 classes or standardised float outcomes ``[replica, row]``.
        group: int64 group of the mitigated attributes ``[replica, row]``, -1 where missing.
        cell: int64 group and class together, or the group alone (``CellMethodParameters``),
            ``[replica, row]``; -1 where the group is missing.
        attributes: the mitigated attributes as numbers ``[replica, row, column]``: one column a
            continuous attribute, in standard deviations of the training rows, and one of 0 and 1
            a category; NaN where missing. Without columns for a method that does not read them.
        given: what equalised odds conditions on, in the same way: classes, the outcome, or the
            attribute in its place.
        rows: int64 row numbers in the dataset ``[replica, row]``, for memories of single rows.
        noise: dropout masks of this batch.
    """

    x: Tensor
    y: Tensor
    group: Tensor
    cell: Tensor
    attributes: Tensor
    given: Tensor
    rows: Tensor
    noise: DropoutNoise | None


@dataclass
class Step:
    """One update: each player descends its own loss, or the gradients given for it.

    Attributes:
        losses: loss of every player that moves, ``[replica]``.
        gradients: for a player whose direction is no gradient of a loss, one tensor for each of
            its parameters.
    """

    losses: dict[str, Tensor]
    gradients: dict[str, list[Tensor]] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingRows:
    """The training rows of one replica, in the order of the dataset.

    Attributes:
        y: labels ``[m]``.
        group: groups ``[m]``, -1 where missing.
        cell: cells of group and class ``[m]``, -1 where missing.
    """

    y: Tensor
    group: Tensor
    cell: Tensor


@dataclass(frozen=True)
class Problem:
    """What a method is told of the task before training.

    Attributes:
        classes: number of classes; 0 for a continuous outcome.
        groups: number of groups of the mitigated attributes; 0 where one is continuous.
        attribute_widths: columns of every mitigated attribute; 1 tells of a continuous one.
        cell_counts: training rows of every replica in each cell of group and class, int64
            ``[replica, cell]``. Cells are those that occur in the dataset, never enumerated.
        group_is_class: whether each group of the dataset has one class and each class one group,
            so that the group tells nothing but the class.
        rows: number of rows of the dataset.
        batch_size: rows of a batch; the last one of an epoch may be smaller.
        heads: source of initial weights for further networks.
        new_model: builds one more stack of the same network, for methods that train two.
        learning_rate: of the protocol, before its schedule.
        mining: source of what is drawn from batches during training.
        training_batches: gives the training rows of every replica once, in order, in blocks, for
            methods that need them all before the first step.
    """

    classes: int
    groups: int
    attribute_widths: tuple[int, ...]
    cell_counts: Tensor
    rows: int
    batch_size: int
    heads: Randomness
    new_model: Callable[[], Model]
    learning_rate: float
    mining: Randomness
    training_batches: Callable[[], Iterable[Batch]] = tuple
    group_is_class: bool = False

    def require_classes(self, method: str) -> None:
        """Check that the outcome is a class.

        Raises:
            InputError: it is continuous, for which the method is not defined.
        """
        if not self.classes:
            raise InputError(f"method {method}: not applicable to a continuous outcome")

    def require_attributes(self, method: str) -> None:
        """Check that there is an attribute to mitigate.

        Raises:
            InputError: there is none: the method would train plainly.
        """
        if not self.attribute_widths:
            raise InputError(
                f"method {method}: no attribute to mitigate, "
                "allowed: datasets with sensitive attributes, or some named by explicit"
            )

    def require_groups(self, method: str) -> None:
        """Check that every replica has a training row whose group is known.

        Raises:
            InputError: one has none: the method would have nothing to work on.
        """
        if not self.groups:
            raise InputError(
                f"method {method}: an attribute to mitigate is continuous and defines no groups, "
                "allowed: categorical attributes, or one that was cut into bins"
            )
        if not self.cell_counts.sum(1).all():
            raise InputError(
                f"method {method}: no training row has a value of every attribute to mitigate, "
                "allowed: sensitive or explicit attributes that are known for some"
            )

    def require_more_than_class(self, method: str) -> None:
        """Check that the groups are not the classes by another name.

        Raises:
            InputError: they are: there is no bias to tell apart from what is to be predicted.
        """
        if self.group_is_class:
            raise InputError(
                f"method {method}: not applicable where the attribute to mitigate is the class "
                "itself, allowed: other attributes"
            )


class Method(nn.Module, ABC):
    """How a network is trained: yields the steps of one batch.

    ``TRAINS_HEAD``: whether it trains the network's head; otherwise the network must be one whose
    head is fitted once its features are trained. ``READS_ATTRIBUTES``: whether it reads
    ``Batch.attributes`` and ``Batch.given``; columns of all categories are made for such alone.

    Networks and buffers that a method owns are attributes of this module, so that a checkpoint
    holds them. They are never part of the saved model.

    Args:
        parameters: hyperparameters; float fields hold tensors ``[replica]``.
        model: the stack of networks to train.
        problem: the task.
    """

    TRAINS_HEAD: ClassVar[bool] = True
    READS_ATTRIBUTES: ClassVar[bool] = False

    def __init__(self, parameters: Any, model: Model, problem: Problem) -> None:
        super().__init__()
        self.parameters_of_method = parameters
        self.problem = problem

    @abstractmethod
    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        """Yield the updates of one batch; each is applied before the next is asked for."""

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        """Parameters of every player by name; one optimiser each."""
        own = list(self.parameters())
        return {"model": model.parameters()} | ({"adversary": own} if own else {})

    def optimiser_options(self, player: str) -> dict[str, float]:
        """Options of a player's optimiser that are other than the protocol's, such as ``lr``."""
        return {}

    def spaces(self, model: Model, batch: Batch) -> dict[str, Tensor]:
        """Embeddings of the rows that are kept of validation rows, by name ``[replica, row, d]``.

        Those of networks that are not saved can be had while it trains only.
        """
        return {}

    def epoch(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        """Places in ``rows`` that one replica visits in an epoch, in order, int64.

        All replicas must visit equally many. Rows may be left out or visited again.

        Args:
            rows: its training rows.
            generator: source of the order.
        """
        return shuffled(rows, generator)


def shuffled(rows: TrainingRows, generator: torch.Generator) -> Tensor:
    """Every training row once, in random order, int64 ``[m]``."""
    return torch.randperm(len(rows.y), generator=generator, device=generator.device)


def require_softmax(method: str, model: Model) -> None:
    """Check that the network's loss is the one that the method's formula is of.

    Raises:
        InputError: the network minimises another one, whose probabilities are no softmax.
    """
    if not model.softmax:
        raise InputError(
            f"method {method}: takes the softmax of the outputs, which the network's loss does "
            "not, allowed: loss cross_entropy"
        )


def plain_steps(model: Model, batch: Batch) -> Iterator[Step]:
    """The one step of plain training: down the batch's mean loss."""
    yield Step({"model": model.task_loss(model(batch.x, batch.noise), batch.y).mean(-1)})
