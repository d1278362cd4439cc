"""Fairness-aware continuous learning (Mary et al. 2019)."""

from torch import Tensor

from robust_fairness.maths.maximal_correlation import (
    chi_squared,
    conditional,
    density_cover,
    joint_distribution,
)
from robust_fairness.methods._dependence import SummedDependenceMethod, Variable
from robust_fairness.models.losses import mean_where

BINARY = 2


class Facl(SummedDependenceMethod):
    r"""Penalise the chi-squared divergence, which bounds the squared maximal correlation.

    .. math:: L + \lambda \sum_a \chi^2(P_{SA}, P_S \times P_A)

    Densities are Gaussian kernel estimates on the mini-batch, on a grid over 2.5 standard
    deviations, with Silverman's bandwidth, as in the source's code; categories need none.
    Conditional notions average over the classes of the batch, or over the grid of a continuous
    condition (the 1-norm of the source's code). ``cal`` is not in the source: it swaps outcome and
    prediction.

    The prediction is the outcome itself, or the probability of class 1; with more than two classes
    the divergences of all probabilities are averaged. Constants have divergence 0.

    Fails if batches are too small for estimates of densities.
    """

    def dependence(self, outputs: Tensor, attribute: Variable, outcome: Variable | None) -> Tensor:
        predicted = scores(outputs, self.problem.classes)
        known = attribute.known.unsqueeze(1)  # one axis for the scores of more than two classes
        densities = 1 + attribute.continuous + (outcome is not None and outcome.continuous)
        prediction = density_cover(predicted, known, densities)
        of_attribute = cover(attribute, known, densities)
        if outcome is None:
            return chi_squared(joint_distribution(known, prediction, of_attribute)).mean(1)
        of_outcome = cover(outcome, known, densities)
        swapped = self.hparams.notion == "cal"
        first, given = (of_outcome, prediction) if swapped else (prediction, of_outcome)
        distributions, present = conditional(joint_distribution(known, first, of_attribute, given))
        return mean_where(chi_squared(distributions), present).mean(1)


def cover(of: Variable, known: Tensor, densities: int) -> Tensor:
    """Cover of a variable ``[replica, 1, bin, row]``: categories as they are, or a density.

    ``known`` are the rows that count ``[replica, 1, row]``, ``densities`` the number of variables
    that need one.
    """
    values = of.values.mT.unsqueeze(1)
    return density_cover(values.squeeze(-2), known, densities) if of.continuous else values


def scores(outputs: Tensor, classes: int) -> Tensor:
    """Predicted numbers ``[replica, score, row]`` from outputs ``[replica, row, output]``.

    The outcome; the probability of class 1 of two; the probabilities of more classes.
    """
    if not classes:
        return outputs.mT
    probabilities = outputs.softmax(-1).mT
    return probabilities[:, 1:] if classes == BINARY else probabilities
