"""FairCOCCO regularisation, against any dependence on attributes (Liu et al. 2022)."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.maths.cross_covariance import evenly, low_rank_score
from robust_fairness.maths.faircocco import probabilities, variables_of
from robust_fairness.methods._dependence import DependenceMethod, DependenceParameters
from robust_fairness.methods.base import Batch

WIDTH_ROWS = 32  # rows whose 496 distances estimate the median


class Faircocco(DependenceMethod):
    r"""Penalise the FairCOCCO score of the batch.

    .. math:: L + \lambda \, FairCOCCO(\hat Y, A \mid Y)

    The kernels' widths follow the batch but are not differentiated. Rows with a missing attribute
    count for the loss only.

    Fails if batches have few rows of a group and class.
    """

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
            one.gather(1, known.unsqueeze(-1).expand(-1, -1, one.shape[-1]))
            for one in (predicted, batch.attributes, batch.conditioning)
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
        return low_rank_score(variables, [evenly(one, options.pivots) for one in variables])


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
