"""Contrastive loss (Definition 7)."""

import torch
from pydantic import Field
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss
from pytorch_metric_learning.reducers import MeanReducer

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows, Triplets
from robust_fairness.models.randomness import Randomness
from robust_fairness.objectives.base import Loss, MinedObjective


class Contrastive(MinedObjective):
    r"""Positives attract, and negatives repel up to a margin.

    .. math:: \frac{1}{t} \sum_{(a, p, n)} d(a, p) + [\gamma - d(a, n)]_+

    over the pairs of t triplets: anchor and positive, anchor and negative.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 7; the loss
    is pytorch-metric-learning's.
    """

    class Parameters(PluginParameters):
        """The margin, which the paper does not give; 1 as in the published code of Roth et al."""

        margin: float = Field(
            1.0, gt=0, description="gamma: distance at which negatives stop mattering"
        )

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        self.loss = ContrastiveLoss(
            pos_margin=0,
            neg_margin=hparams.margin,
            distance=LpDistance(normalize_embeddings=False),
            reducer=MeanReducer(),
        )

    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        # repeated, with the same mean: the library ignores a single pair
        indices = tuple(torch.cat([places, places]) for places in triplets)
        return self.loss(embeddings, labels, indices)
