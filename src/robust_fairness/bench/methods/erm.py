"""Empirical risk minimisation: plain training (the papers' Normal, StdM and NN)."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from robust_fairness.bench.methods.base import Batch, Method, Step, weighted_loss
from robust_fairness.bench.models.base import Model


class Erm(Method):
    """Minimise the mean loss of the batch, weighted by ``sample_weight`` and ``row_weight``.

    Fails for rare subgroups, whose losses hardly count, if they contradict the others.
    """

    estimators: ClassVar[Literal["no", "also", "only"]] = "also"
    reads = ("sample_weight",)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        yield Step({"model": weighted_loss(model, batch, self.row_weight(batch))})
