"""Reducing unimodal biases (Cadene et al. 2019), on the bias variables themselves."""

from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import nn

from robust_fairness.bench.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    require_softmax,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import Linear, loss_of_rows


class Rubi(Method):
    r"""Mask the logits by what the group alone predicts.

    .. math:: CE(z \, \sigma(b), y) + CE(b, y)

    with b the logits of the bias branch; z alone predicts. Rows of unknown group are not masked.
    Network and bias branch share an optimiser.

    Fails if the group is no bias but a cause of the label.
    """

    class Parameters(GroupMethodParameters):
        """The bias branch and its loss.

        The branch is ``linear`` in the one-hot group, or an ``mlp`` of three layers (the study's
        code for questions), with ``branch_width`` hidden units each. The loss takes the branch's
        ``logits`` (the study's code), or those of one more linear layer (``with_classifier``, the
        original).
        """

        bias_loss: Literal["logits", "with_classifier"] = "logits"
        branch: Literal["linear", "mlp"] = "linear"
        branch_width: int = Field(2048, ge=1, description="hidden units of the branch mlp")

    reads = ("sample_weight",)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        problem.require_more_than_class(self.name)
        require_softmax(self.name, model)
        is_linear = hparams.branch == "linear"
        width = problem.classes if is_linear else hparams.branch_width
        self.bias_branch = Linear(problem.groups, width, problem.heads)
        layers = () if is_linear else (width, problem.classes)
        self.upper_layers = nn.ModuleList(Linear(width, size, problem.heads) for size in layers)
        if hparams.bias_loss == "with_classifier":
            self.classifier: nn.Module = Linear(problem.classes, problem.classes, problem.heads)
        else:
            self.classifier = nn.Identity()

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        outputs = model(batch.x, batch.noise)
        known = batch.group >= 0
        # outputs of the layer for one-hot groups
        group = batch.group.clamp(min=0).unsqueeze(-1)
        weights = self.bias_branch.weight
        bias = weights.gather(1, group.expand(-1, -1, weights.shape[-1])) + self.bias_branch.bias
        for layer in self.upper_layers:
            bias = layer(bias.relu())
        mask = torch.where(known.unsqueeze(-1), bias.sigmoid(), 1)
        masked = loss_of_rows(outputs * mask, batch.y)
        alone = loss_of_rows(self.classifier(bias), batch.y) * known
        yield Step({"model": (row_weights(batch) * (masked + alone)).mean(-1)})

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        return {"model": [*model.parameters(), *self.parameters()]}
