"""PARADE: de-correlating an embedding from attributes (Dullerud et al. 2022)."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.bench.methods.base import Batch, GroupMethodParameters, Problem, Step
from robust_fairness.bench.methods.metric_learning import MetricLearning, Mined, require_embedding
from robust_fairness.bench.models.base import Model, initialised


class Parade(MetricLearning):
    r"""Learn the classes and each attribute in embeddings of their own, and de-correlate them.

    .. math:: L_{targ} + \alpha L_{SA} + \rho\, c(\phi^{targ}, \phi^{SA}), \quad
        c = \| \phi^{targ} \odot \hat\xi(\phi^{SA}) \|^2

    An adversary :math:`\xi` raises c, both embeddings and the network below them lower it: the
    gradient reversal of the paper, written as two players with losses of opposite sign. All
    embeddings and the adversary's outputs have length 1. The embeddings of attributes lie on heads
    of this method, which are not saved with the network. Several attributes are averaged.

    Fails if attribute and class nearly coincide.

    Source: "Is Fairness Only Metric Deep?" (ICLR 2022), section 4; Milbich et al., "DiVA" (ECCV
    2020), for the separation.
    """

    class Parameters(MetricLearning.Parameters, GroupMethodParameters):
        """Weights of both further terms, and how the attributes are learnt.

        The defaults are those for CUB200 (D.3); for CelebA they are 0.1 and 1000, for LFW 0.3 and
        100. ``separation``: the correlation over dimensions is printed as ``sum``; DiVA's code
        takes the ``mean``, which fits the printed values of rho. ``separation_learning_rate``: of
        the adversary (DiVA). Attributes are learnt by objective and miner of the classes.
        """

        alpha: float = Field(0.3, ge=0, description="weight of the attributes' objective")
        rho: float = Field(1500.0, ge=0, description="weight of the de-correlation")
        separation: Literal["mean", "sum"] = "mean"
        hidden: int = Field(
            512, ge=1, description="width of the network that looks for correlation"
        )
        separation_learning_rate: float | None = Field(1e-5, gt=0)

    reads = ("attributes",)

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        p, network = self.hparams, require_embedding(model)
        problem.require_groups(self.name)
        width = network.feature_width
        self.widths = problem.attribute_widths

        def adversary() -> nn.Module:
            return nn.Sequential(nn.Linear(width, p.hidden), nn.ReLU(), nn.Linear(p.hidden, width))

        self.attribute_heads = nn.ModuleList(
            network.new_projection(problem.heads) for _ in self.widths
        )
        self.adversaries = initialised(
            lambda: nn.ModuleList(adversary() for _ in self.widths), problem.heads
        )
        objectives = [
            Mined(p.objective, p.miner, values, network, problem) for values in self.widths
        ]
        self.attribute_learning_rate = objectives[0].learning_rate
        self.attribute_objectives = nn.ModuleList(objectives)

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        of_attributes = {
            "attribute_heads": list(self.attribute_heads.parameters()),
            "attribute_objectives": list(self.attribute_objectives.parameters()),
            "adversary": list(self.adversaries.parameters()),
        }
        return super().players(model) | {name: some for name, some in of_attributes.items() if some}

    def optimiser_options(self, player: str) -> dict[str, float]:
        """No weight decay where DiVA has none; all last layers learn at the same rate."""
        if player == "attribute_heads":
            rate = self.hparams.embedding_learning_rate
            return {"lr": rate} if rate else {}
        if player == "attribute_objectives":
            return super().optimiser_options("objective") | {"lr": self.attribute_learning_rate}
        if player == "adversary":
            rate = self.hparams.separation_learning_rate
            return {"weight_decay": 0.0} | ({"lr": rate} if rate else {})
        return super().optimiser_options(player)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        network, p = require_embedding(model), self.hparams
        shared = network.shared(batch.x, batch.noise)
        embedding = network.embed(shared)[0]
        target = self.target(embedding, batch.y[0])
        attributes = [network.embed(shared, head)[0] for head in self.attribute_heads]
        labels = attribute_labels(batch.attributes[0], self.widths)
        attribute_loss = torch.stack(
            [
                mined(item[known], values[known])
                for mined, item, (values, known) in zip(
                    self.attribute_objectives, attributes, labels, strict=True
                )
            ]
        ).mean()
        correlation = torch.stack(
            [
                separation(embedding, item, adversary, p.separation)
                for item, adversary in zip(attributes, self.adversaries, strict=True)
            ]
        ).mean()
        of_attributes = p.alpha * attribute_loss
        total = target + of_attributes + p.rho * correlation
        # each player has its own terms: the same gradients, and curves that tell them apart
        losses = {
            "model": total,
            "embedding": total,
            "objective": target,
            "attribute_heads": of_attributes + p.rho * correlation,
            "attribute_objectives": of_attributes,
            "adversary": -p.rho * correlation,
        }
        yield Step({name: losses[name].view(1) for name in self.players(model)})

    def embeddings(self, model: Model, batch: Batch) -> dict[str, Tensor]:
        network = require_embedding(model)
        shared = network.shared(batch.x)
        attributes = [network.embed(shared, head) for head in self.attribute_heads]
        return {
            "embedding": network.embed(shared),
            "attribute_embedding": torch.cat(attributes, dim=-1),
        }


def separation(embedding: Tensor, attribute: Tensor, adversary: nn.Module, over: str) -> Tensor:
    """Correlation :math:`c` of two embeddings ``[row, d]`` as an adversary finds it, a scalar.

    ``adversary`` maps the second to the space of the first; ``over`` is ``mean`` or ``sum`` over
    dimensions, and rows are averaged.
    """
    first = functional.normalize(embedding, dim=-1)
    second = functional.normalize(adversary(functional.normalize(attribute, dim=-1)), dim=-1)
    products = (first * second).square()
    return (products.mean(-1) if over == "mean" else products.sum(-1)).mean()


def attribute_labels(columns: Tensor, widths: tuple[int, ...]) -> list[tuple[Tensor, Tensor]]:
    """Value of each attribute ``[row]``, and whether it is known, from columns of 0 and 1."""
    return [
        (column.nan_to_num(0).argmax(-1), ~column.isnan().any(-1))
        for column in columns.split(list(widths), dim=-1)
    ]
