"""Empirical risk minimisation: plain training (the papers' Normal, StdM and NN)."""

from collections.abc import Iterator

from robust_fairness.bench.methods._parameters import ErmDeclaration
from robust_fairness.bench.methods.base import Batch, Method, Step, weighted_loss
from robust_fairness.bench.models.base import Model


class Erm(ErmDeclaration, Method):  # noqa: D101
    __doc__ = ErmDeclaration.__doc__

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        yield Step({"model": weighted_loss(model, batch, self.row_weight(batch))})
