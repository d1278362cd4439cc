"""Domain-adversarial training, DANN (Ganin et al. 2016)."""

from math import exp

from pydantic import Field
from torch import Tensor

from robust_fairness.methods._alignment import AlignmentMethod, AlignmentParameters
from robust_fairness.methods.base import Batch, Problem, Step
from robust_fairness.models.base import Model
from robust_fairness.models.losses import cross_entropy, mean_where

STEEPNESS = 10  # gamma of the source


class Dann(AlignmentMethod):
    r"""Train features from which an adversary cannot tell the environment.

    .. math:: \min_{s,t} \max_a L_{clf} - \lambda \lambda_p L_{adv}, \quad
        \lambda_p = \frac{2}{1 + e^{-10 p}} - 1

    with p the share of the epochs that are done; both players move from one pass, as a gradient
    reversal layer does.

    Fails if shares of the classes differ between environments: aligned features cannot be right in
    all of them.

    Source: "Domain-Adversarial Training of Neural Networks" (JMLR 2016), section 5.2.2.
    """

    class Parameters(AlignmentParameters):
        """Weight of the adversary's loss."""

        weight: float = Field(1.0, ge=0, description="lambda, weight of the adversary's loss")

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        self.adversary = model.new_head(self.environments, problem.heads)

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        losses = cross_entropy(self.adversary(features, batch.noise), environment.clamp(min=0))
        audit = mean_where(losses, environment >= 0)
        weight = self.hparams.weight * reversal(self.progress(batch.epoch))
        return Step({"model": loss - weight * audit, "adversary": audit})

    def progress(self, epoch: int) -> float:
        """Share of the epochs after the warm-up that are done."""
        warm_up = self.hparams.warm_up_epochs
        return (epoch - warm_up) / (self.problem.epochs - warm_up)


def reversal(progress: float) -> float:
    """Factor of the reversed gradient by progress in [0, 1]."""
    return 2 / (1 + exp(-STEEPNESS * progress)) - 1
