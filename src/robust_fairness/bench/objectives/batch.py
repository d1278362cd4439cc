"""Objectives of all rows of a batch."""

from functools import partial
from math import degrees, pi
from typing import Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ArcFaceLoss, MultiSimilarityLoss
from pytorch_metric_learning.miners import MultiSimilarityMiner
from pytorch_metric_learning.reducers import AvgNonZeroReducer, MeanReducer
from torch import Tensor, nn
from torch.nn.functional import softplus

from robust_fairness.bench.miners.base import Labels, Rows
from robust_fairness.bench.models.base import initialised
from robust_fairness.bench.models.layers import unit_length
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.objectives.base import BatchObjective, Loss
from robust_fairness.core.registry import PluginParameters

DEVIATION = 1 / 8  # initial standard deviation of the proxies' entries


class Cosine(CosineSimilarity):
    """Cosine similarity; that of a row of zeros is 0, with finite gradients."""

    def normalize(
        self, embeddings: Float[Tensor, "row dimension"], dim: int = 1, **options: Any
    ) -> Float[Tensor, "row dimension"]:
        return unit_length(embeddings)


class FiniteArcFaceLoss(ArcFaceLoss):
    """The library's, with a finite gradient for an embedding that equals its centre."""

    def get_angles(self, cosine_of_target_classes: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """Angles in radians; without a gradient at 0 and pi, whatever torch's clamp does there."""
        end = 1 - torch.finfo(cosine_of_target_classes.dtype).eps
        return torch.acos(cosine_of_target_classes.clamp(-end, end))


class ArcFace(BatchObjective):
    r"""ArcFace loss (Definition 13).

    Cross-entropy of cosines to class centres, with the own angle enlarged by a margin.

    .. math:: -\frac{1}{b} \sum_i \log \frac{e^{s \cos(\theta_{iy} + \gamma)}}
              {e^{s \cos(\theta_{iy} + \gamma)} + \sum_{c \ne y_i} e^{s \cos \theta_{ic}}}

    Where angle and margin exceed pi, the library continues with
    :math:`\cos \theta - \gamma \sin \gamma`. Initial centres are those of the published code.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 13, as in
    Deng et al. (CVPR 2019); the loss is pytorch-metric-learning's.
    """

    name = "arcface"

    class Parameters(PluginParameters):
        """Values of D.3."""

        margin: float = Field(0.5, ge=0, lt=pi, description="gamma: of the angle, in radians")
        scale: float = Field(16.0, gt=0, description="s: radius of the sphere")
        learning_rate: float = Field(5e-4, ge=0, description="of the class centres")

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        bound = dimensions**-0.5
        self.loss = initialised(
            lambda: FiniteArcFaceLoss(
                classes,
                dimensions,
                margin=degrees(hparams.margin),
                scale=hparams.scale,
                weight_init_func=partial(nn.init.uniform_, a=-bound, b=bound),
                distance=Cosine(),
            ),
            randomness,
        )

    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        return self.loss(embeddings, labels)


class Multisimilarity(BatchObjective):
    r"""Multisimilarity loss (Definition 11).

    Soft hinges on the similarities of every row's hard positives and hard negatives.

    .. math:: \frac{1}{b} \sum_i \frac{1}{\alpha} \log (1 + \sum_p e^{-\alpha (s_{ip} - \lambda)})
              + \frac{1}{\beta} \log (1 + \sum_n e^{\beta (s_{in} - \lambda)})

    Over positives less similar than the most similar negative plus epsilon, and negatives more
    similar than the least similar positive minus epsilon, as in Wang et al. (CVPR 2019).

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 11, which
    prints these conditions for the wrong pairs; the loss is pytorch-metric-learning's.
    """

    name = "multisimilarity"

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


class NPair(BatchObjective):
    r"""N-pair loss (Definition 10).

    A positive has to be more similar than all negatives of a batch together.

    .. math:: \frac{1}{b} \sum_{(a, p)} \log (1 + \sum_n \exp(a^T n - a^T p))
              + \frac{\nu}{b} \sum_i |x_i|^2

    Over all pairs of a class; embeddings are not normalised. pytorch-metric-learning's NTXentLoss
    at temperature 1 has the same value with two rows per class, but is slower and has no gradient
    for very similar negatives.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 10.
    """

    name = "n_pair"

    class Parameters(PluginParameters):
        """The regularisation of D.3.

        ``regularised``: squared norms of the embeddings (``squared_norm``, as printed) or the norms
        themselves (``norm``, the published code of Roth et al.).
        """

        regularisation: float = Field(0.005, ge=0, description="nu")
        regularised: Literal["squared_norm", "norm"] = "squared_norm"

    normalised = False

    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        similarity = embeddings @ embeddings.T
        different = labels[:, None] != labels
        same = ~different
        same.fill_diagonal_(False)
        negatives = similarity.masked_fill(~different, -torch.inf).logsumexp(1, keepdim=True)
        excess = (negatives - similarity).masked_fill(~same, -torch.inf)
        loss = softplus(excess).sum() / len(embeddings)
        squared = self.hparams.regularised == "squared_norm"
        sizes = (
            embeddings.square().sum(1) if squared else torch.linalg.vector_norm(embeddings, dim=1)
        )
        return loss + self.hparams.regularisation * sizes.mean()


class ProxyNca(BatchObjective):
    r"""ProxyNCA loss (Definition 12).

    An embedding has to be nearer to the proxy of its class than to those of other classes.

    .. math:: \frac{1}{b} \sum_i d(x_i, \psi_{y_i}) + \log \sum_{c \ne y_i} \exp(-d(x_i, \psi_c))

    The sum excludes the proxy of the own class, unlike pytorch-metric-learning's ProxyNCALoss.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 12.
    """

    name = "proxy_nca"

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
        is_class = nn.functional.one_hot(labels, len(self.proxies)).bool()
        others = (-distance).masked_fill(is_class, -torch.inf).logsumexp(1)
        return (distance[is_class] + others).mean()

    def _distance(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances ``[row, proxy]`` of rows from proxies, both scaled to length ``scale``."""
        options = self.hparams
        if options.distance == "squared":
            squares = x.square().sum(1, keepdim=True) + y.square().sum(1) - 2 * x @ y.T
            return options.scale**2 * squares
        return options.scale * torch.cdist(x, y)

    def learning_rate(self, protocol_rate: float) -> float:
        return float(self.hparams.learning_rate_factor * protocol_rate)
