"""The exponentiated gradient reduction (Agarwal et al. 2018)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from robust_fairness.methods._reductions import Reduction, ReductionParameters, moment


class ExponentiatedGradient(Reduction):
    r"""The mixture of classifiers with the least error subject to the constraint.

    .. math:: \min_Q \max_{\|\lambda\|_1 \le 1/\epsilon}
              err(Q) + \lambda^\top (\gamma(Q) - bound)

    A row is decided by a member that is drawn at random, and is scored by the expectation.
    ``difference_bound`` is on the difference between a group and all rows: two groups may differ
    by up to twice as much. It holds on training rows.

    Fails if the classifier overfits: the constraint then holds on training rows alone.

    Source: "A Reductions Approach to Fair Classification" (ICML 2018), Algorithm 1.
    """

    class Parameters(ReductionParameters):
        """Bound of the constraint and end of the iteration, as in fairlearn."""

        difference_bound: float = Field(0.01, gt=0, le=1, description="of a group to all rows")
        eps: float = Field(0.01, gt=0, description="inverse bound of the multipliers")
        iterations: int = Field(50, ge=1, description="at most")

    def reduced(
        self, oracle: Any, x: np.ndarray, y: np.ndarray, group: np.ndarray
    ) -> Sequence[tuple[float, Any]]:
        from fairlearn.reductions import ExponentiatedGradient as Fairlearn

        bound = self.hparams.difference_bound.item()
        constraint = moment(self.hparams.constraint, difference_bound=bound)
        eps, most = self.hparams.eps.item(), self.hparams.iterations
        found = Fairlearn(oracle, constraint, eps=eps, max_iter=most)
        found.fit(x, y, sensitive_features=group)
        return list(zip(found.weights_.tolist(), found.predictors_, strict=True))
