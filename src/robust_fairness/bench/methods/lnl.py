"""Learning not to learn (Kim et al. 2019)."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from robust_fairness.bench.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    row_weights,
)
from robust_fairness.bench.models.base import Model, averaged_over_places
from robust_fairness.bench.models.layers import Linear, TwoLayers, loss_of_rows, mean_where

SMALLEST_PROBABILITY = 1e-8


class Lnl(Method):
    r"""Unlearn features from which a bias head predicts the group.

    .. math:: L_{clf} - \lambda_{ent} H(q(b \mid h)), \quad L_b(h)

    where the bias head q minimises its cross-entropy L_b and the network receives that loss's
    gradient times a negative factor.

    Fails if group and class nearly coincide, since unlearning one then unlearns the other.
    """

    class Parameters(GroupMethodParameters):
        """Weights of both terms (Table A6 for Biased MNIST), and how the bias is unlearnt.

        ``passes``: task and entropy first and then, from a second pass of the same batch, the
        reversed bias loss (``two``, the published code), or one objective (``one``, the text).
        ``layer``: input of the bias head; the published code takes an early layer, averaged over
        the image. The head is ``linear``, or an ``mlp`` with one hidden layer of ``head_width``
        units (the published code for questions).
        """

        gradient_factor: float = Field(
            -0.1, le=0, description="of the bias loss's gradient (reversed)"
        )
        entropy_weight: float = Field(
            0.01, ge=0, description="lambda_ent, of the bias head's entropy"
        )
        passes: Literal["two", "one"] = "two"
        layer: Literal["early", "features"] = "early"
        head: Literal["linear", "mlp"] = "linear"
        head_width: int = Field(1024, ge=1, description="hidden units of the head mlp")

    reads = ("sample_weight",)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_more_than_class(self.name)
        width = model.early_width if hparams.layer == "early" else model.feature_width
        self.bias_head: nn.Module = Linear(width, problem.groups, problem.heads)
        if hparams.head == "mlp":
            self.bias_head = TwoLayers(
                width, hparams.head_width, problem.groups, 0.0, problem.heads
            )

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        factor = self.hparams.gradient_factor
        seen, early = self._seen(model, batch)
        outputs = model.head(model.late(early, batch.noise), batch.noise)
        probability = self.bias_head(seen).softmax(-1) + SMALLEST_PROBABILITY
        negative_entropy = (probability * probability.log()).sum(-1).mean(-1)
        losses = model.task_loss(outputs, batch.y)
        loss = (row_weights(batch) * losses).mean(-1)
        objective = loss + self.hparams.entropy_weight * negative_entropy
        if self.hparams.passes == "one":
            bias_loss = self._bias_loss(seen, batch)
            yield Step({"model": objective + factor * bias_loss, "adversary": bias_loss})
        else:
            yield Step({"model": objective})
            bias_loss = self._bias_loss(self._seen(model, batch)[0], batch)
            yield Step({"model": factor * bias_loss, "adversary": bias_loss})

    def _seen(self, model: Model, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the bias head sees ``[replica, row, width]``, and the early activations."""
        early = model.early(batch.x, batch.noise)
        layer = self.hparams.layer
        seen = early if layer == "early" else model.late(early, batch.noise)
        return averaged_over_places(seen), early

    def _bias_loss(self, seen: Tensor, batch: Batch) -> Tensor:
        """The bias head's mean cross-entropy over the rows whose group is known, ``[replica]``."""
        known = batch.group >= 0
        return mean_where(loss_of_rows(self.bias_head(seen), batch.group.clamp(min=0)), known)
