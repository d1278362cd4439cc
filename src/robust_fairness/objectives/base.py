"""The interface between an objective of deep metric learning and the methods that train with it."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float, Int64
from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import Plugin, names
from robust_fairness.miners.base import Triplets
from robust_fairness.models.randomness import Randomness

FEWEST_CLASSES = 2


class Objective(Plugin, nn.Module, ABC):
    """The loss of a batch of embeddings.

    What it learns itself (boundaries, proxies) are parameters of this module; a method moves
    them with ``learning_rate`` and without weight decay, and they are no part of the saved model.

    Args:
        hparams: of the class ``Parameters``.
        classes: number of classes.
        dimensions: of an embedding.
        randomness: source of the initial values of its own parameters, of one replica.

    Attributes:
        mined: whether it is a loss of triplets, which a miner has to find.
        normalised: whether it is defined on embeddings of unit norm.

    Raises:
        InputError: fewer than two classes.
    """

    mined: ClassVar[bool] = False
    normalised: ClassVar[bool] = True

    def __init__(self, hparams: Any, classes: int, dimensions: int, randomness: Randomness) -> None:
        super().__init__()
        if classes < FEWEST_CLASSES:
            raise InputError(
                f"objective {self.name}: classes {classes}, "
                "allowed: two or more, else there is nothing to tell apart"
            )
        self.hparams = hparams

    @abstractmethod
    def forward(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        triplets: Triplets | None = None,
    ) -> Float[Tensor, ""]:
        """The loss, differentiable.

        Args:
            embeddings: of the batch.
            labels: classes 0 to ``classes`` - 1.
            triplets: what a miner found; only objectives that are ``mined`` look at it.
        """

    def learning_rate(self, protocol_rate: float) -> float:
        """Learning rate of the objective's own parameters.

        Args:
            protocol_rate: that of the network.
        """
        return protocol_rate


class BatchObjective(Objective):
    """A loss of all rows of a batch; 0, with gradients of 0, where there are none."""

    def forward(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        triplets: Triplets | None = None,
    ) -> Float[Tensor, ""]:
        """The loss of the batch.

        Args:
            embeddings: of the batch.
            labels: classes of its rows.
            triplets: not looked at.
        """
        if not len(embeddings):
            return (embeddings * 0).sum()
        return self.of_batch(embeddings, labels)

    @abstractmethod
    def of_batch(
        self, embeddings: Float[Tensor, "row dimension"], labels: Int64[Tensor, " row"]
    ) -> Float[Tensor, ""]:
        """The loss of one row or more."""


class MinedObjective(Objective):
    """A loss of triplets; 0, with gradients of 0, where there are none."""

    mined = True

    def forward(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        triplets: Triplets | None = None,
    ) -> Float[Tensor, ""]:
        """The loss of the triplets.

        Args:
            embeddings: of the batch.
            labels: classes of its rows.
            triplets: what a miner found.

        Raises:
            InputError: there was no miner.
        """
        if triplets is None:
            raise InputError(
                f"objective {self.name}: no miner, allowed: {', '.join(names('miner'))}"
            )
        if not len(triplets.anchor):
            return (embeddings * 0).sum()
        return self.of_triplets(embeddings, labels, triplets)

    @abstractmethod
    def of_triplets(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        triplets: Triplets,
    ) -> Float[Tensor, ""]:
        """The loss of one triplet or more."""
