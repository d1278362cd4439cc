"""Triplet loss (Definition 8)."""

from typing import Literal

from pydantic import Field
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.reducers import MeanReducer

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows, Triplets
from robust_fairness.models.randomness import Randomness
from robust_fairness.objectives.base import Loss, MinedObjective


class Triplet(MinedObjective):
    r"""A negative has to be farther from the anchor than the positive, by a margin.

    .. math:: \frac{1}{t} \sum_{(a, p, n)} [d(a, p) - d(a, n) + \gamma]_+

    over t triplets, including those without a loss.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 8; the loss
    is pytorch-metric-learning's.
    """

    class Parameters(PluginParameters):
        """The margin of D.3, and the distance.

        ``distance``: as printed (``euclidean``), or its square (``squared``, Schroff et al.).
        """

        margin: float = Field(0.2, gt=0, description="gamma: how much farther a negative has to be")
        distance: Literal["euclidean", "squared"] = "euclidean"

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        power = 2 if hparams.distance == "squared" else 1
        self.loss = TripletMarginLoss(
            hparams.margin,
            distance=LpDistance(normalize_embeddings=False, power=power),
            reducer=MeanReducer(),
        )

    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        return self.loss(embeddings, labels, tuple(triplets))
