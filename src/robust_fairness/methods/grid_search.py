"""The grid search reduction (Agarwal et al. 2018)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from robust_fairness.core.errors import InputError
from robust_fairness.methods._reductions import Reduction, ReductionParameters, moment

MOST_MULTIPLIERS = 4  # fairlearn advises against grids of more axes


class GridSearch(Reduction):
    """The classifier of a grid of multipliers with the best trade-off on training rows.

    The trade-off is ``(1 - constraint_weight)`` times the error plus ``constraint_weight`` times
    the largest violation of the constraint. The grid has an axis for each group but one, and twice
    as many for ``equalized_odds``.

    Fails if there are many groups: the grid is then too coarse.

    Source: "A Reductions Approach to Fair Classification" (ICML 2018), section 3.4.
    """

    class Parameters(ReductionParameters):
        """Size of the grid and weight of the violation, as in fairlearn."""

        constraint_weight: float = Field(0.5, ge=0, le=1, description="of the violation")
        grid_size: int = Field(10, ge=1, description="multipliers, each a fit")
        grid_limit: float = Field(2.0, gt=0, description="largest multiplier")

    def reduced(
        self, oracle: Any, x: np.ndarray, y: np.ndarray, group: np.ndarray
    ) -> Sequence[tuple[float, Any]]:
        from fairlearn.reductions import GridSearch as Fairlearn

        groups = len(np.unique(group))
        axes = (groups - 1) * (2 if self.hparams.constraint == "equalized_odds" else 1)
        if axes > MOST_MULTIPLIERS:
            raise InputError(
                f"method grid_search: {groups} groups make a grid of {axes} axes, allowed: up to "
                f"{MOST_MULTIPLIERS}, or method exponentiated_gradient"
            )
        found = Fairlearn(
            oracle,
            moment(self.hparams.constraint),
            constraint_weight=self.hparams.constraint_weight.item(),
            grid_size=self.hparams.grid_size,
            grid_limit=self.hparams.grid_limit.item(),
        )
        found.fit(x, y, sensitive_features=group)
        return [(1.0, found.predictors_[found.best_idx_])]
