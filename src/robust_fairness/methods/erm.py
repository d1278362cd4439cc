"""Empirical risk minimisation: plain training (the papers' Normal, StdM and NN)."""

from collections.abc import Iterator

from robust_fairness.methods.base import Batch, Method, MethodParameters, Step, plain_steps
from robust_fairness.models.base import Model


class Erm(Method):
    """Minimise the mean loss of the batch."""

    class Parameters(MethodParameters):
        """None: the loss is the mean over the batch."""

    supports_sample_weight = True

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        yield from plain_steps(model, batch)
