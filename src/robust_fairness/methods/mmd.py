"""Maximum mean discrepancy between the features of domains (Li et al. 2018)."""

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.maths.kernels import indicators, mean_over_pairs
from robust_fairness.methods._alignment import AlignmentMethod, AlignmentParameters
from robust_fairness.methods.base import Batch, Step


class Mmd(AlignmentMethod):
    r"""Penalise the squared MMD between the features of environments.

    .. math:: L + \lambda \| \mu_s - \mu_t \|_H^2, \quad
        k(a, b) = \sum_\gamma e^{-\gamma \|a - b\|^2}

    as the biased V-statistic, averaged over the pairs of environments with two rows or more in
    the batch.

    Fails if shares of classes differ between environments, or no kernel width fits the features.

    Source: "Domain Generalization with Adversarial Feature Learning" (CVPR 2018), Eq. 4, without
    its adversarial autoencoder, as in DomainBed and WILDS, whose kernel widths are the default.
    """

    class Parameters(AlignmentParameters):
        """Widths of the kernel."""

        gammas: tuple[float, ...] = Field(
            (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), min_length=1
        )

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        members = indicators(environment, self.environments, features.dtype)
        distances = mmd_distances(features.flatten(2), members, self.hparams.gammas)
        penalty = mean_over_pairs(distances, members.sum(1))
        return Step({"model": loss + self.hparams.weight * penalty})


def mmd_distances(features: Tensor, members: Tensor, gammas: tuple[float, ...]) -> Tensor:
    """Squared MMD of every two environments, ``[replica, environment, environment]``.

    ``features`` are ``[replica, row, d]``, ``members`` 1 where a row is of an environment and 0
    elsewhere ``[replica, row, environment]``.
    """
    squares = features.square().sum(-1)
    products = features @ features.mT
    square = (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * products).clamp(min=0)
    kernel = torch.stack([torch.exp(-gamma * square) for gamma in gammas]).sum(0)
    weights = members / members.sum(1, keepdim=True).clamp(min=1)
    means = weights.mT @ kernel @ weights
    within = means.diagonal(dim1=-2, dim2=-1)
    return within.unsqueeze(-1) - 2 * means + within.unsqueeze(-2)
