"""Empirical risk minimisation: plain training (the papers' Normal, StdM and NN)."""

from collections.abc import Iterator

from torch import Tensor

from robust_fairness.methods.base import Batch, Method, Step, weighted_loss
from robust_fairness.models.base import Model


class Erm(Method):
    """Minimise the mean loss of the batch, weighted by ``sample_weight`` and ``row_weight``."""

    supports_sample_weight = True

    def row_weight(self, batch: Batch) -> Tensor | float:
        """Further weights of the rows, ``[replica, row]``."""
        return 1.0

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        yield Step({"model": weighted_loss(model, batch, self.row_weight(batch))})
