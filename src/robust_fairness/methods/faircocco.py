"""FairCOCCO regularisation: training whose predictions do not depend on any attribute."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods._dependence import DependenceMethod, DependenceParameters
from robust_fairness.methods.base import Batch
from robust_fairness.metrics.cross_covariance import evenly, low_rank_score
from robust_fairness.metrics.faircocco import probabilities, variables_of

WIDTH_ROWS = 32  # rows whose 496 distances estimate the median


class Faircocco(DependenceMethod):
    r"""Penalise the FairCOCCO score of the batch.

    .. math:: L + \lambda \, FairCOCCO(\hat Y, A \mid Y)

    The kernels' widths follow the batch but are not differentiated. Rows with a missing attribute
    count for the loss only.
    """

    class Parameters(DependenceParameters):
        """Weight and notion of the penalty, and how closely it follows the exact score.

        All attributes are one variable. Kernel matrices are spanned by ``pivots`` evenly spaced
        rows; as many as the batch has make the penalty exact up to ``cross_covariance.JITTER``.
        ``extended`` and ``standardise``: see ``variables_of``.
        """

        extended: Literal["attribute", "both"] = "attribute"
        standardise: bool = True
        pivots: int = Field(32, ge=1, description="rows of a batch that span the kernel matrices")

    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        options = self.hparams
        predicted = probabilities(outputs, self.problem.classes)
        known = complete_rows(torch.cat([batch.attributes, batch.conditioning], dim=-1))
        prediction, attribute, outcome = (
            one.gather(1, known.unsqueeze(-1).expand(-1, -1, one.shape[-1]))
            for one in (predicted, batch.attributes, batch.conditioning)
        )
        variables = variables_of(
            options.notion, prediction, attribute.nan_to_num(), outcome.nan_to_num(),
            options.extended, options.standardise, WIDTH_ROWS,
        )  # fmt: skip
        score = low_rank_score(variables, [evenly(one, options.pivots) for one in variables])
        return score.to(outputs.dtype)


def complete_rows(columns: Tensor) -> Tensor:
    """Row numbers ``[replica, n]`` of the rows without NaN, repeated up to n.

    All rows in their order where none is complete.
    """
    missing = columns.isnan().any(-1)
    complete_first = missing.to(torch.int8).argsort(dim=-1, stable=True)
    count = (~missing).sum(-1, keepdim=True)
    place = torch.arange(columns.shape[1], device=columns.device)
    return complete_first.gather(1, place % torch.where(count > 0, count, columns.shape[1]))
