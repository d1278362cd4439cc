"""ProxyNCA loss (Definition 12)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows
from robust_fairness.models.base import initialised
from robust_fairness.models.layers import unit_length
from robust_fairness.models.randomness import Randomness
from robust_fairness.objectives.base import BatchObjective, Loss

DEVIATION = 1 / 8  # initial standard deviation of the proxies' entries


class ProxyNca(BatchObjective):
    r"""An embedding has to be nearer to the proxy of its class than to those of other classes.

    .. math:: \frac{1}{b} \sum_i d(x_i, \psi_{y_i}) + \log \sum_{c \ne y_i} \exp(-d(x_i, \psi_c))

    The sum excludes the proxy of the own class, unlike pytorch-metric-learning's ProxyNCALoss.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 12.
    """

    class Parameters(PluginParameters):
        """Choices that the paper leaves open; defaults: the published code of Roth et al.

        ``distance: euclidean`` with ``scale: 1`` is the loss as printed.
        """

        scale: float = Field(3.0, gt=0, description="length of embeddings and proxies")
        distance: Literal["squared", "euclidean"] = "squared"
        learning_rate_factor: float = Field(
            50.0, ge=0, description="learning rate of proxies by the network's"
        )

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        drawn = initialised(lambda: nn.Embedding(classes, dimensions), randomness)
        self.proxies = nn.Parameter(drawn.weight.detach() * DEVIATION)

    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        distance = self._distance(unit_length(embeddings), unit_length(self.proxies))
        own = nn.functional.one_hot(labels, len(self.proxies)).bool()
        others = (-distance).masked_fill(own, -torch.inf).logsumexp(1)
        return (distance[own] + others).mean()

    def _distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances ``[row, proxy]`` of rows from proxies, both scaled to length ``scale``."""
        options = self.hparams
        if options.distance == "squared":
            squares = x.square().sum(1, keepdim=True) + y.square().sum(1) - 2 * x @ y.T
            return options.scale**2 * squares
        return options.scale * torch.cdist(x, y)

    def learning_rate(self, protocol_rate: float) -> float:
        return float(self.hparams.learning_rate_factor * protocol_rate)
