"""FairCOCCO regularisation: training whose predictions do not depend on any attribute."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods._dependence import DependenceMethod, DependenceParameters
from robust_fairness.methods.base import Batch
from robust_fairness.metrics.cross_covariance import evenly, low_rank_score
from robust_fairness.metrics.faircocco import probabilities, variables_of

WIDTH_ROWS = 32  # of a batch: their 496 distances tell the median well enough


class Faircocco(DependenceMethod):
    r"""Penalise the FairCOCCO score of the batch.

    .. math:: L + \lambda \, FairCOCCO(\hat Y, A \mid Y)

    The kernels' widths follow the batch but are not differentiated. Rows with a missing attribute
    count for the loss only.
    """

    class Parameters(DependenceParameters):
        """Weight and notion of the penalty, and how closely it follows the exact score.

        The attributes may be categorical and continuous, one or many: they are one variable. Kernel
        matrices are spanned by ``pivots`` rows of the batch: to choose the best ones, row after
        row, would cost more than it saves. As many as the batch has rows make the penalty exact but
        for ``cross_covariance.JITTER``, which keeps equal rows apart. ``extended`` and
        ``standardise``: see ``variables_of``.
        """

        extended: Literal["attribute", "both"] = "attribute"
        standardise: bool = True
        pivots: int = Field(32, ge=1, description="rows of a batch that span the kernel matrices")

    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        options = self.hparams
        columns = (
            probabilities(outputs, self.problem.classes),
            batch.attributes,
            batch.conditioning,
        )
        known = complete_rows(torch.cat([batch.attributes, batch.conditioning], dim=-1))
        prediction, attribute, outcome = (
            one.gather(1, known.unsqueeze(-1).expand(-1, -1, one.shape[-1])) for one in columns
        )
        variables = variables_of(
            options.notion,
            prediction,
            attribute.nan_to_num(),
            outcome.nan_to_num(),
            options.extended,
            options.standardise,
            WIDTH_ROWS,
        )
        score = low_rank_score(variables, [evenly(one, options.pivots) for one in variables])
        return score.to(outputs.dtype)


def complete_rows(columns: Tensor) -> Tensor:
    """Row numbers of the rows without missing values, again and again until there are n of them.

    Args:
        columns: values ``[replica, n, column]``, NaN where missing.

    Returns:
        int64 ``[replica, n]``; all rows in their order where none is complete.
    """
    missing = columns.isnan().any(-1)
    complete_first = missing.to(torch.int8).argsort(dim=-1, stable=True)
    count = (~missing).sum(-1, keepdim=True)
    place = torch.arange(columns.shape[1], device=columns.device)
    return complete_first.gather(1, place % torch.where(count > 0, count, columns.shape[1]))
