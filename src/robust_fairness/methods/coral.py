"""Correlation alignment, deep CORAL (Sun and Saenko 2016)."""

from typing import Literal

from torch import Tensor

from robust_fairness.maths.kernels import indicators, mean_over_pairs
from robust_fairness.methods._alignment import AlignmentMethod, AlignmentParameters
from robust_fairness.methods.base import Batch, Step


class Coral(AlignmentMethod):
    r"""Penalise differences between the covariances of the features of environments.

    .. math:: L + \lambda \frac{1}{4 d^2} \| C_s - C_t \|_F^2

    averaged over the pairs of environments with two rows or more in the batch.

    Fails if labels depend on inputs in another way in every environment, or shares of classes
    differ.

    Source: "Deep CORAL: Correlation Alignment for Deep Domain Adaptation" (ECCV 2016), Eq. 1.
    """

    class Parameters(AlignmentParameters):
        """What is compared.

        ``moments``: ``covariance`` as printed, or ``mean_and_covariance``, the mean squared
        differences of the entries of both, as in DomainBed, WILDS and TableShift.
        """

        moments: Literal["covariance", "mean_and_covariance"] = "covariance"

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        members = indicators(environment, self.environments, features.dtype)
        both = self.hparams.moments == "mean_and_covariance"
        flat = features.flatten(2)
        distances = (moment_distances if both else covariance_distances)(flat, members)
        penalty = mean_over_pairs(distances, members.sum(1))
        return Step({"model": loss + self.hparams.weight * penalty})


def means_and_covariances(features: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """Means ``[replica, environment, d]`` and covariances ``[replica, environment, d, d]``.

    ``features`` are ``[replica, row, d]``, ``members`` 1 where a row is of an environment and 0
    elsewhere ``[replica, row, environment]``. Covariances divide by the number of rows minus 1.
    """
    weights = members.mT  # [replica, environment, row]
    rows = weights.sum(-1, keepdim=True)
    means = weights @ features / rows.clamp(min=1)
    centred = (features.unsqueeze(1) - means.unsqueeze(2)) * weights.unsqueeze(-1)
    return means, centred.mT @ centred / (rows - 1).clamp(min=1).unsqueeze(-1)


def covariance_distances(features: Tensor, members: Tensor) -> Tensor:
    """Squared Frobenius distances of covariances over 4 d^2, ``[replica, env., env.]``."""
    return _mean_square_differences(means_and_covariances(features, members)[1]) / 4


def moment_distances(features: Tensor, members: Tensor) -> Tensor:
    """Mean squared differences of means plus those of covariances, ``[replica, env., env.]``."""
    means, covariances = means_and_covariances(features, members)
    return _mean_square_differences(means) + _mean_square_differences(covariances)


def _mean_square_differences(values: Tensor) -> Tensor:
    """Of every two environments, over entries ``[replica, environment, ...]``."""
    flat = values.flatten(2)
    return (flat.unsqueeze(2) - flat.unsqueeze(1)).square().mean(-1)
