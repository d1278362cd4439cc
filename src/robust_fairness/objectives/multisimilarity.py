"""Multisimilarity loss (Definition 11)."""

from typing import Literal

import torch
from pydantic import Field
from pytorch_metric_learning.losses import MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows
from robust_fairness.models.randomness import Randomness
from robust_fairness.objectives._cosine import Cosine
from robust_fairness.objectives.base import BatchObjective, Loss


class Multisimilarity(BatchObjective):
    r"""Soft hinges on the similarities of every row's hard positives and hard negatives.

    .. math:: \frac{1}{b} \sum_i \frac{1}{\alpha} \log (1 + \sum_p e^{-\alpha (s_{ip} - \lambda)})
              + \frac{1}{\beta} \log (1 + \sum_n e^{\beta (s_{in} - \lambda)})

    Over positives less similar than the most similar negative plus epsilon, and negatives more
    similar than the least similar positive minus epsilon, as in Wang et al. (CVPR 2019).

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 11, which
    prints these conditions for the wrong pairs; the loss is pytorch-metric-learning's.
    """

    class Parameters(PluginParameters):
        """Values of D.3, and the rows that are averaged.

        ``mean_over``: all ``rows`` of the batch (1 / b, as printed) or those that have a loss
        (``active``, the published code of Roth et al.).
        """

        alpha: float = Field(2.0, gt=0, description="sharpness for positives")
        beta: float = Field(40.0, gt=0, description="sharpness for negatives")
        base: float = Field(0.5, description="lambda: similarity between positives and negatives")
        epsilon: float = Field(0.1, ge=0, description="slack of what is left out")
        mean_over: Literal["rows", "active"] = "rows"

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        reducer = MeanReducer if hparams.mean_over == "rows" else AvgNonZeroReducer
        self.miner = MultiSimilarityMiner(hparams.epsilon, distance=Cosine())
        self.loss = MultiSimilarityLoss(
            hparams.alpha, hparams.beta, hparams.base, distance=Cosine(), reducer=reducer()
        )

    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        # repeated, with the same mean: the library ignores a single pair
        pairs = tuple(torch.cat([places, places]) for places in self.miner(embeddings, labels))
        return self.loss(embeddings, labels, pairs)
