"""Penalties on the dependence of predictions on attributes: FairCOCCO, FACL and FARMI."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from robust_fairness.bench.maths.cross_covariance import evenly, low_rank_score
from robust_fairness.bench.maths.faircocco import probabilities, variables_of
from robust_fairness.bench.maths.maximal_correlation import (
    chi_squared,
    conditional,
    density_cover,
    joint_distribution,
)
from robust_fairness.bench.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    require_softmax,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import mean_where

WIDTH_ROWS = 32  # rows whose 496 distances estimate the median
SHARPNESS = 30  # of the softplus instead of max(., 0), as in the published code
SMALLEST = 1e-10  # share of a category
SMALLEST_VARIANCE = 1e-6  # of an attribute that is explained entirely


class DependenceParameters(GroupMethodParameters):
    """Weight of the penalty and what must not depend on the attributes.

    ``notion``: with prediction S, outcome Y and attribute A, ``dp`` (demographic parity,
    independence) asks for S independent of A, ``eo`` (equalised odds, separation) for the same
    given Y, ``cal`` (calibration, sufficiency) for Y independent of A given S. A dataset may name
    an attribute instead of Y.
    """

    weight: float = Field(1.0, ge=0, description="lambda, weight of the penalty")
    notion: Literal["dp", "eo", "cal"] = "eo"


@dataclass(frozen=True)
class BatchVariable:
    """An attribute or outcome of the rows of a batch.

    Attributes:
        values: one column with a number, or one column of 0 and 1 per category; all 0 where it is
            missing. ``[replica, row, column]``.
        known: bool, where it is not missing ``[replica, row]``.
    """

    values: Tensor
    known: Tensor

    @property
    def continuous(self) -> bool:
        return self.values.shape[-1] == 1

    def where(self, other: "BatchVariable") -> "BatchVariable":
        """The same, but known only where the other is."""
        known = self.known & other.known
        return BatchVariable(torch.where(known.unsqueeze(-1), self.values, 0), known)


def variable(numbers: Tensor) -> BatchVariable:
    """The variable of these columns ``[replica, row, column]``, NaN where it is missing."""
    known = numbers.isfinite().all(-1)
    return BatchVariable(torch.where(known.unsqueeze(-1), numbers, 0), known)


class DependenceMethod(Method):
    r"""Add a measure of dependence D to the task's loss, :math:`L + \lambda D`."""

    Parameters = DependenceParameters
    reads = ("attributes", "sample_weight")

    def __init__(self, hparams: DependenceParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        require_softmax(self.name, model)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        outputs = model(batch.x, batch.noise)
        losses = model.task_loss(outputs, batch.y)
        penalty = self.penalty(outputs, batch)
        loss = (row_weights(batch) * losses).mean(-1)
        yield Step({"model": loss + self.hparams.weight * penalty})

    @abstractmethod
    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Dependence of outputs ``[replica, row, output]`` on the attributes, ``[replica]``."""


class SummedDependenceMethod(DependenceMethod):
    """A measure of one attribute at a time, summed over them.

    Rows where an attribute, or the outcome that the notion names, is missing do not count for it.
    """

    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        attributes = map(variable, batch.attributes.split(self.problem.attribute_widths, dim=-1))
        outcome = None if self.hparams.notion == "dp" else variable(batch.conditioning)
        result = [
            self.dependence(outputs, attribute.where(outcome) if outcome else attribute, outcome)
            for attribute in attributes
        ]
        return torch.stack(result).sum(0)

    @abstractmethod
    def dependence(
        self, outputs: Tensor, attribute: BatchVariable, outcome: BatchVariable | None
    ) -> Tensor:
        """The dependence of outputs ``[replica, row, output]`` on an attribute, ``[replica]``.

        The attribute is known where ``outcome`` is, on which the notion conditions (not ``dp``).
        """


class Faircocco(DependenceMethod):
    r"""FairCOCCO regularisation, against any dependence on attributes (Liu et al. 2022).

    Penalise the FairCOCCO score of the batch.

    .. math:: L + \lambda \, FairCOCCO(\hat Y, A \mid Y)

    The kernels' widths follow the batch but are not differentiated. Rows with a missing attribute
    count for the loss only.

    Fails if batches have few rows of a group and class.
    """

    name = "faircocco"

    class Parameters(DependenceParameters):
        """Weight and notion of the penalty, and how closely it follows the exact score.

        All attributes are one variable. Kernel matrices are spanned by ``pivots`` evenly spaced
        rows; as many as the batch has make the penalty exact up to ``cross_covariance.JITTER``.
        The score of a batch is above 0 without any dependence. ``debiased`` subtracts the score of
        the same batch with the attributes of neighbours exchanged, where rows are in the order of
        what the notion conditions on: it has the bias of the score, and no dependence beyond it.
        ``extended`` and ``standardise``: see ``variables_of``.
        """

        extended: Literal["attribute", "both"] = "attribute"
        standardise: bool = True
        pivots: int = Field(32, ge=1, description="rows of a batch that span the kernel matrices")
        debiased: bool = Field(False, description="subtract the score of exchanged attributes")

    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        options = self.hparams
        predicted = probabilities(outputs, self.problem.classes)
        known = complete_rows(torch.cat([batch.attributes, batch.conditioning], dim=-1))
        prediction, attribute, outcome = (
            item.gather(1, known.unsqueeze(-1).expand(-1, -1, item.shape[-1]))
            for item in (predicted, batch.attributes, batch.conditioning)
        )
        attribute, outcome = attribute.nan_to_num(), outcome.nan_to_num()
        score = self._score(prediction, attribute, outcome)
        if options.debiased:
            given = {"dp": prediction[..., :0], "eo": outcome, "cal": prediction}[options.notion]
            places = exchanged(given.detach()).unsqueeze(-1).expand_as(attribute)
            score = score - self._score(prediction, attribute.gather(1, places), outcome)
        return score.to(outputs.dtype)

    def _score(self, prediction: Tensor, attribute: Tensor, outcome: Tensor) -> Tensor:
        options = self.hparams
        variables = variables_of(
            options.notion, prediction, attribute, outcome,
            options.extended, options.standardise, WIDTH_ROWS,
        )  # fmt: skip
        return low_rank_score(variables, [evenly(item, options.pivots) for item in variables])


def exchanged(given: Tensor) -> Tensor:
    """Row numbers ``[replica, n]`` in which every two neighbours are exchanged.

    Neighbours have equal or near values ``[replica, n, column]``; without columns they are any two
    of a shuffled batch. Of an odd number of rows one stays.
    """
    replicas, count, columns = given.shape
    order = torch.arange(count, device=given.device).expand(replicas, -1)
    for column in reversed(range(columns)):  # by the first column, then by the second, ...
        values = given[..., column].gather(1, order)
        order = order.gather(1, values.argsort(dim=1, stable=True))
    paired = torch.arange(count, device=given.device) ^ 1
    partner = order[:, paired.where(paired < count, count - 1)]
    return torch.empty_like(order).scatter_(1, order, partner)


def complete_rows(columns: Tensor) -> Tensor:
    """Row numbers ``[replica, n]`` of the rows without NaN, repeated up to n.

    All rows in their order where none is complete.
    """
    missing = columns.isnan().any(-1)
    complete_first = missing.to(torch.int8).argsort(dim=-1, stable=True)
    count = (~missing).sum(-1, keepdim=True)
    place = torch.arange(columns.shape[1], device=columns.device)
    return complete_first.gather(1, place % torch.where(count > 0, count, columns.shape[1]))


class Facl(SummedDependenceMethod):
    r"""Fairness-aware continuous learning (Mary et al. 2019).

    Penalise the chi-squared divergence, which bounds the squared maximal correlation.

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

    name = "facl"

    def dependence(
        self, outputs: Tensor, attribute: BatchVariable, outcome: BatchVariable | None
    ) -> Tensor:
        predicted = probabilities(outputs, self.problem.classes).mT
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


def cover(of: BatchVariable, known: Tensor, densities: int) -> Tensor:
    """Cover of a variable ``[replica, 1, bin, row]``: categories as they are, or a density.

    ``known`` are the rows that count ``[replica, 1, row]``, ``densities`` the number of variables
    that need one.
    """
    values = of.values.mT.unsqueeze(1)
    return density_cover(values.squeeze(-2), known, densities) if of.continuous else values


class Farmi(SummedDependenceMethod):
    r"""Fair regression by mutual information (Steinberg et al. 2020).

    Penalise the mutual information of prediction and attribute.

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

    name = "farmi"

    class Parameters(DependenceParameters):
        """Options of the classifier; its defaults are those of the authors' published code.

        ``quadratic`` adds all products of its inputs. ``scale`` is that of predicted classes, which
        the source (on regression) does not treat: probabilities, bounded as its standardised
        outcomes nearly are, or log-odds against class 0.
        """

        ridge: float = Field(1.0, gt=0, description="weight of the squared coefficients")
        quadratic: bool = False
        scale: Literal["probability", "log_odds"] = "probability"

    def dependence(
        self, outputs: Tensor, attribute: BatchVariable, outcome: BatchVariable | None
    ) -> Tensor:
        prediction = self.scores(outputs)
        full = self.likelihood(prediction, outcome, attribute)
        if self.hparams.notion == "cal":
            return full - self.likelihood(prediction, None, attribute)
        return full - self.likelihood(prediction[..., :0], outcome, attribute)

    def scores(self, outputs: Tensor) -> Tensor:
        """Predicted numbers ``[replica, row, score]``: the outcome, or all classes but class 0."""
        if not self.problem.classes:
            return outputs
        if self.hparams.scale == "log_odds":
            return outputs[..., 1:] - outputs[..., :1]
        return outputs.softmax(-1)[..., 1:]

    def likelihood(
        self, scores: Tensor, outcome: BatchVariable | None, attribute: BatchVariable
    ) -> Tensor:
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


def log_likelihood(
    inputs: Tensor, of_class: Tensor, attribute: BatchVariable, ridge: Tensor
) -> Tensor:
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


def least_squares(
    inputs: Tensor, of_class: Tensor, attribute: BatchVariable, ridge: Tensor
) -> Tensor:
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
    identity = torch.eye(columns.shape[-1], dtype=inputs.dtype, device=inputs.device)
    gram = columns.mT @ columns + ridge[:, None, None] * identity
    return means + columns @ torch.linalg.solve(gram, columns.mT @ (attribute.values - means))
