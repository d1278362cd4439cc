"""Learning from failure (Nam et al. 2020)."""

from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    require_softmax,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import loss_of_rows

SMALLEST = 1e-8  # keeps the weight defined where both losses are 0


class Lff(Method):
    r"""Weight rows by how much harder they are for a network trained to rely on the bias.

    .. math:: w = \frac{L_b}{L_b + L_d}, \quad w L_d \text{ and } GCE_b

    where the losses L of the biased network b and of the network d are moving averages of every
    training row, divided by the largest of the row's class.

    Fails if the bias is not learned before the class, or labels are noisy: it then weights wrong
    labels.
    """

    class Parameters(MethodParameters):
        """Amplification of the bias (Table A6 for Biased MNIST), and the memory of losses.

        ``amplified_gradient``: of the printed (1 - p^gamma) / gamma (``exact``), or gamma times
        that (``scaled``, the published code).
        """

        amplification: float = Field(0.5, gt=0, le=1, description="gamma of Zhang and Sabuncu 2018")
        memory: float = Field(0.7, ge=0, lt=1, description="share of the old value in a row's loss")
        amplified_gradient: Literal["exact", "scaled"] = "exact"

    reads = ("sample_weight",)
    biased_loss: Tensor
    own_loss: Tensor
    label: Tensor
    visited: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        require_softmax(self.name, model)
        self.biased = problem.new_model()
        memory = (len(problem.subgroup_counts), problem.rows)
        self.register_buffer("biased_loss", torch.zeros(memory))
        self.register_buffer("own_loss", torch.zeros(memory))
        self.register_buffer("label", torch.zeros(memory, dtype=torch.int64))
        self.register_buffer("visited", torch.zeros(memory, dtype=torch.bool))

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        return {"model": model.parameters(), "biased_model": self.biased.parameters()}

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        """The biased network's step first, so that only one graph is held at a time."""
        options = self.hparams
        biased_outputs = self.biased(batch.x, batch.noise)
        biased_losses = loss_of_rows(biased_outputs, batch.y)
        amplified = generalised_cross_entropy(
            biased_losses, options.amplification.unsqueeze(-1), options.amplified_gradient
        )
        yield Step({"biased_model": (row_weights(batch) * amplified).mean(-1)})
        losses = loss_of_rows(model(batch.x, batch.noise), batch.y)
        self._remember(batch, biased_losses.detach(), losses.detach())
        biased, debiased = (
            remembered.gather(1, batch.rows) / self._largest(remembered).gather(1, batch.y)
            for remembered in (self.biased_loss, self.own_loss)
        )
        weight = biased / (biased + debiased + SMALLEST)
        yield Step({"model": (row_weights(batch) * weight * losses).mean(-1)})

    def _remember(self, batch: Batch, biased: Tensor, plain: Tensor) -> None:
        """Move the averages of the batch's rows; a row's first loss is taken as it is."""
        visited = self.visited.gather(1, batch.rows)
        share = torch.where(visited, self.hparams.memory.unsqueeze(-1), 0)
        for remembered, losses in ((self.biased_loss, biased), (self.own_loss, plain)):
            old = remembered.gather(1, batch.rows)
            remembered.scatter_(1, batch.rows, share * old + (1 - share) * losses)
        self.label.scatter_(1, batch.rows, batch.y)
        self.visited.scatter_(1, batch.rows, torch.ones_like(visited))

    def _largest(self, remembered: Tensor) -> Tensor:
        largest = remembered.new_full((len(remembered), self.problem.classes), SMALLEST)
        return largest.scatter_reduce(1, self.label, remembered, "amax")


def generalised_cross_entropy(
    losses: Tensor, amplification: Tensor, gradient: Literal["exact", "scaled"]
) -> Tensor:
    """Generalised cross-entropy (Zhang and Sabuncu 2018, Eq. 6) from cross-entropies -log p.

    ``exact``: (1 - p^gamma) / gamma; ``scaled``: a loss with gamma times its gradient, as in the
    published code. gamma is ``amplification``, broadcast to the losses.
    """
    if gradient == "exact":
        return -torch.expm1(-amplification * losses) / amplification
    return losses * (amplification * torch.exp(-amplification * losses.detach()))
