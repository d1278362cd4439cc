"""The base class of objectives of deep metric learning, and its two kinds."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from robust_fairness.bench.miners.base import Labels, Rows, Triplets
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import Plugin, names

Loss = Float[Tensor, ""]


class Objective(Plugin, nn.Module, ABC):
    """The loss of a batch of embeddings.

    What it learns itself (boundaries, proxies) are parameters of this module; a method moves
    them with ``learning_rate`` and without weight decay, and they are no part of the saved model.

    Args:
        hparams: of the class ``Parameters``.
        classes: number of classes, at least two.
        dimensions: of an embedding.
        randomness: source of the initial values of its own parameters, of one replica.

    Attributes:
        mined: whether it is a loss of triplets, which a miner has to find.
        normalised: whether it is defined on embeddings of unit norm.
    """

    mined: ClassVar[bool] = False
    normalised: ClassVar[bool] = True

    def __init__(self, hparams: Any, classes: int, dimensions: int, randomness: Randomness) -> None:
        super().__init__()
        if classes < 2:
            raise InputError(
                f"objective {self.name}: classes {classes}, "
                "allowed: two or more, else there is nothing to tell apart"
            )
        self.hparams = hparams

    @abstractmethod
    def forward(self, embeddings: Rows, labels: Labels, triplets: Triplets | None = None) -> Loss:
        """The loss; 0, with gradients of 0, where there is nothing to learn from.

        Labels are 0 to ``classes`` - 1; ``triplets`` are for objectives that are ``mined``.
        """

    def learning_rate(self, protocol_rate: float) -> float:
        """Learning rate of the objective's own parameters.

        Default: the hyperparameter ``learning_rate``; that of the network if there is none.
        """
        return float(getattr(self.hparams, "learning_rate", protocol_rate))


class BatchObjective(Objective):
    """A loss of all rows of a batch."""

    def forward(self, embeddings: Rows, labels: Labels, triplets: Triplets | None = None) -> Loss:
        return self.of_batch(embeddings, labels) if len(embeddings) else (embeddings * 0).sum()

    @abstractmethod
    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        """The loss of one row or more."""


class MinedObjective(Objective):
    """A loss of triplets."""

    mined = True

    def forward(self, embeddings: Rows, labels: Labels, triplets: Triplets | None = None) -> Loss:
        if triplets is None:
            allowed = ", ".join(names("miner"))
            raise InputError(f"objective {self.name}: no miner, allowed: {allowed}")
        if not len(triplets.anchor):
            return (embeddings * 0).sum()
        return self.of_triplets(embeddings, labels, triplets)

    @abstractmethod
    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        """The loss of one triplet or more."""
