"""Fair regression by mutual information (Steinberg et al. 2020)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from robust_fairness.methods._dependence import (
    DependenceParameters,
    SummedDependenceMethod,
    Variable,
)
from robust_fairness.models.losses import mean_where

SHARPNESS = 30  # of the softplus instead of max(., 0), as in the published code
SMALLEST = 1e-10  # share of a category
SMALLEST_VARIANCE = 1e-6  # of an attribute that is explained entirely


class Farmi(SummedDependenceMethod):
    r"""Penalise the mutual information of prediction and attribute.

    .. math:: L + \lambda \sum_a I, \quad
        I(S; A) \approx \frac{1}{n} \sum_i \log \frac{q(a_i | s_i)}{q(a_i)}

    where q is a probabilistic classifier of the attribute, fitted to the mini-batch by least
    squares, through which the gradient runs. ``eo`` is I(S; A | Y), with q(a | s, y) over
    q(a | y); ``cal`` is I(Y; A | S), with q(a | s, y) over q(a | s).

    Fails if least squares cannot predict the attribute although other classifiers can.

    Source: "Fast Fair Regression via Efficient Approximations of Mutual Information" (2020) and the
    authors' code, except that the intercept of q is not penalised, that a continuous attribute is
    Gaussian, :math:`-\frac{1}{2} \log(1 - R^2)`, and that a categorical outcome has one classifier
    per class. The estimate may be slightly negative.
    """

    class Parameters(DependenceParameters):
        """Options of the classifier; its defaults are those of the authors' published code.

        ``quadratic`` adds all products of its inputs. ``score`` is the prediction of classes, which
        the source (on regression) does not treat: probabilities, bounded as its standardised
        outcomes nearly are, or log-odds against class 0.
        """

        ridge: float = Field(1.0, gt=0, description="weight of the squared coefficients")
        quadratic: bool = False
        score: Literal["probability", "log_odds"] = "probability"

    def dependence(self, outputs: Tensor, attribute: Variable, outcome: Variable | None) -> Tensor:
        prediction = self.scores(outputs)
        full = self.likelihood(prediction, outcome, attribute)
        if self.hparams.notion == "cal":
            return full - self.likelihood(prediction, None, attribute)
        return full - self.likelihood(prediction[..., :0], outcome, attribute)

    def scores(self, outputs: Tensor) -> Tensor:
        """Predicted numbers ``[replica, row, score]``: the outcome, or all classes but class 0."""
        if not self.problem.classes:
            return outputs
        if self.hparams.score == "log_odds":
            return outputs[..., 1:] - outputs[..., :1]
        return outputs.softmax(-1)[..., 1:]

    def likelihood(self, scores: Tensor, outcome: Variable | None, attribute: Variable) -> Tensor:
        """Mean log-likelihood of the attribute given scores and outcome, ``[replica]``."""
        options = self.hparams
        of_class = torch.ones_like(attribute.values[..., :1])
        if outcome is not None and outcome.continuous:
            scores = torch.cat([scores, outcome.values], dim=-1)
        elif outcome is not None:
            of_class = outcome.values
        if options.quadratic:
            products = (scores.unsqueeze(-1) * scores.unsqueeze(-2)).flatten(-2)
            scores = torch.cat([scores, products], dim=-1)
        return log_likelihood(scores, of_class, attribute, options.ridge)


def log_likelihood(inputs: Tensor, of_class: Tensor, attribute: Variable, ridge: Tensor) -> Tensor:
    """Mean log-likelihood of an attribute under the model fitted to it, ``[replica]``.

    ``inputs`` are ``[replica, row, input]``; ``of_class`` has a column of 0 and 1 for each class
    with a model of its own ``[replica, row, class]``; ``ridge`` is ``[replica]``.
    """
    fitted = least_squares(inputs, of_class, attribute, ridge)
    if attribute.continuous:
        square = (attribute.values - fitted).square().squeeze(-1)
        return -(mean_where(square, attribute.known) + SMALLEST_VARIANCE).log() / 2
    shares = functional.softplus(SHARPNESS * fitted) / SHARPNESS + SMALLEST
    logarithms = (shares / shares.sum(-1, keepdim=True)).log()
    return mean_where((attribute.values * logarithms).sum(-1), attribute.known)


def least_squares(inputs: Tensor, of_class: Tensor, attribute: Variable, ridge: Tensor) -> Tensor:
    """Ridge regression of the attribute's columns in every class, ``[replica, row, column]``.

    Each class has an unpenalised intercept: inputs and target are centred. Rows where the attribute
    is missing do not count. Arguments are those of ``log_likelihood``.
    """
    counted = of_class * attribute.known.unsqueeze(-1)
    shares = (counted / counted.sum(1, keepdim=True).clamp(min=1)).mT
    means = of_class @ (shares @ attribute.values)
    centred = inputs - of_class @ (shares @ inputs)
    # the inputs of other classes are 0: one system holds the regressions of all
    columns = (counted.unsqueeze(-1) * centred.unsqueeze(-2)).flatten(-2)
    one = torch.eye(columns.shape[-1], dtype=inputs.dtype, device=inputs.device)
    gram = columns.mT @ columns + ridge[:, None, None] * one
    return means + columns @ torch.linalg.solve(gram, columns.mT @ (attribute.values - means))
