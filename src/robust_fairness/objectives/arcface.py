"""ArcFace loss (Definition 13)."""

from functools import partial
from math import degrees, pi

import torch
from jaxtyping import Float
from pydantic import Field
from pytorch_metric_learning.losses import ArcFaceLoss
from torch import Tensor, nn

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows
from robust_fairness.models.base import initialised
from robust_fairness.models.randomness import Randomness
from robust_fairness.objectives._cosine import Cosine
from robust_fairness.objectives.base import BatchObjective, Loss


class FiniteArcFaceLoss(ArcFaceLoss):
    """The library's, with a finite gradient for an embedding that equals its centre."""

    def get_angles(self, cosine_of_target_classes: Float[Tensor, " row"]) -> Float[Tensor, " row"]:
        """Angles in radians; without a gradient at 0 and pi, whatever torch's clamp does there."""
        end = 1 - torch.finfo(cosine_of_target_classes.dtype).eps
        return torch.acos(cosine_of_target_classes.clamp(-end, end))


class ArcFace(BatchObjective):
    r"""Cross-entropy of cosines to class centres, with the own angle enlarged by a margin.

    .. math:: -\frac{1}{b} \sum_i \log \frac{e^{s \cos(\theta_{iy} + \gamma)}}
              {e^{s \cos(\theta_{iy} + \gamma)} + \sum_{c \ne y_i} e^{s \cos \theta_{ic}}}

    Where angle and margin exceed pi, the library continues with
    :math:`\cos \theta - \gamma \sin \gamma`. Initial centres are those of the published code.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 13, as in
    Deng et al. (CVPR 2019); the loss is pytorch-metric-learning's.
    """

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

    def learning_rate(self, protocol_rate: float) -> float:
        return float(self.hparams.learning_rate)
