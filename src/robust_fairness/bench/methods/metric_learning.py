"""Deep metric learning: rows of a class are near one another (Roth et al. 2020)."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Int64
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from robust_fairness.bench.experiment.plugins import Named, named
from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    TrainingRows,
)
from robust_fairness.bench.miners.base import Miner
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.embeddings.embedding import Embedding
from robust_fairness.bench.objectives.base import Objective
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find

ObjectiveName = Annotated[SerializeAsAny[Named], named("objective")]
MinerName = Annotated[SerializeAsAny[Named], named("miner")]


class Mined(nn.Module):
    """An objective together with the miner of its triplets.

    The miner has no effect where the objective takes all pairs.
    """

    def __init__(
        self, objective: Named, miner: Named, classes: int, model: Embedding, problem: Problem
    ) -> None:
        super().__init__()
        kind: type[Objective] = find("objective", objective.name)
        if model.normalised != kind.normalised:
            told = "of length 1" if kind.normalised else "as they come"
            raise InputError(
                f"objective {objective.name}: takes embeddings {told}, allowed: network "
                f"embedding with normalised {str(kind.normalised).lower()}"
            )
        self.objective = kind(objective.parameters, classes, model.feature_width, problem.heads)
        self.miner: Miner = find("miner", miner.name)(miner.parameters)
        self.mining = problem.mining
        self.learning_rate = self.objective.learning_rate(problem.learning_rate)

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        """Loss of embeddings ``[row, d]`` with int64 labels ``[row]``, a scalar."""
        triplets = None
        if self.objective.mined:
            (generator,) = self.mining.generators
            triplets = self.miner.mine(embeddings.detach(), labels, generator)
        return self.objective(embeddings, labels, triplets)


class MetricLearning(Method):
    """Train the embedding by an objective; the classifier on it is fitted afterwards.

    Fails if classes have few rows, or groups few rows of a class.

    Source: "Is Fairness Only Metric Deep?" (ICLR 2022), A.1 and D.3.
    """

    class Parameters(MethodParameters):
        """Objective and miner, and the batches they see.

        ``objective`` and ``miner`` are names, or a name with its own fields: ``{name: margin, beta:
        1.2}``. ``per_class``: rows of a class in a batch (SPC-n, A.1; n is 2, 4 or 8 usually).
        ``embedding_learning_rate``: of the last layer where it is not the protocol's (1e-4 for LFW,
        D.3), also of the last layers of attributes.
        """

        objective: ObjectiveName = Field("margin", validate_default=True)
        miner: MinerName = Field("distance_weighted", validate_default=True)
        per_class: int = Field(2, ge=2)
        embedding_learning_rate: float | None = Field(None, gt=0)

    trains_head = False
    default_network: ClassVar = {
        "name": "embedding",
        "backbone": "mlp",
        "classifier": "logistic_regression",
    }

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        p = self.hparams
        if p.warm_up_epochs:
            raise InputError(
                f"warm_up_epochs {p.warm_up_epochs}: metric learning has no head to warm up, "
                "allowed: 0"
            )
        network = require_embedding(model)
        self.target = Mined(p.objective, p.miner, problem.classes, network, problem)

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        """The network, its last layer where it learns at a rate of its own, and the proxies."""
        model = require_embedding(model)
        optional: dict[str, list[nn.Parameter]] = {"objective": list(self.target.parameters())}
        if self.hparams.embedding_learning_rate:
            optional["embedding"] = list(model.projection.parameters())
        apart = {id(item) for item in optional.get("embedding", ())}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in apart]
        result: dict[str, Iterable[nn.Parameter]] = {"model": rest}
        return result | {name: some for name, some in optional.items() if some}

    def optimiser_options(self, player: str) -> dict[str, float]:
        """Learning rates of proxies and boundaries, which have no weight decay (D.3)."""
        if player == "objective":
            return {"lr": self.target.learning_rate, "weight_decay": 0.0}
        if player == "embedding":
            return {"lr": self.hparams.embedding_learning_rate}
        return {}

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        per_class = self.hparams.per_class
        return class_batches(rows.y, self.problem.batch_size, per_class, generator)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        loss = self.target(model.features(batch.x, batch.noise)[0], batch.y[0])[None]
        yield Step(dict.fromkeys(self.players(model), loss))

    def embeddings(self, model: Model, batch: Batch) -> dict[str, Tensor]:
        return {"embedding": model.features(batch.x)}


def require_embedding(model: Model) -> Embedding:
    """The network as one that embeds; an error if it does not."""
    if not isinstance(model, Embedding):
        raise InputError(
            "method: metric learning trains an embedding, allowed: network embedding, with any "
            "backbone"
        )
    return model


def class_batches(
    labels: Int64[Tensor, " row"], batch_size: int, per_class: int, generator: torch.Generator
) -> Int64[Tensor, " place"]:
    """Positions of rows, batch after batch: ``per_class`` rows of each of some classes (SPC-n).

    There are as many whole batches as rows allow, at least one. The classes of a batch are drawn
    uniformly, and repeated evenly only where there are too few; the rows of a class are shuffled
    once and then taken in turn. A class of one row is thus that row ``per_class`` times.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), A.1.
    """
    if batch_size % per_class:
        raise InputError(f"per_class {per_class}: must divide batch_size, which is {batch_size}")
    device = generator.device
    _, label, counts = labels.to(device).unique(return_inverse=True, return_counts=True)
    batches, needed = max(1, len(labels) // batch_size), batch_size // per_class

    order = torch.rand(batches, len(counts), generator=generator, device=device).argsort(1)
    dealt = torch.arange(needed, device=device) % len(counts)
    classes = order[:, dealt].flatten()

    shuffled = torch.randperm(len(label), generator=generator, device=device)
    pack = shuffled[label[shuffled].argsort(stable=True)]
    first = counts.cumsum(0) - counts
    card = occurrences(classes)[:, None] * per_class + torch.arange(per_class, device=device)
    return pack[first[classes, None] + card % counts[classes, None]].flatten()


def occurrences(values: Int64[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """How often each value occurred before, in order.

    >>> occurrences(torch.tensor([7, 5, 7, 7, 5])).tolist()
    [0, 0, 1, 2, 1]
    """
    _, inverse, counts = values.unique(return_inverse=True, return_counts=True)
    order = inverse.argsort(stable=True)
    begun = (counts.cumsum(0) - counts)[inverse[order]]
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(values), device=values.device) - begun
    return ranks
