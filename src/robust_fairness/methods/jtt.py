"""Just Train Twice (Liu et al. 2021)."""

from collections.abc import Iterable, Iterator

import torch
from pydantic import Field

from robust_fairness.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    weighted_loss,
)  # fmt: skip
from robust_fairness.models.base import Model


class Jtt(Method):
    r"""Train, then train again from scratch with more weight on the misclassified rows E.

    .. math:: \lambda_{up} \sum_{i \in E} L_i + \sum_{i \notin E} L_i

    Source: "Just Train Twice: Improving Group Robustness without Training Group Information"
    (ICML 2021), Algorithm 1, with its upsampling written as a weight.
    """

    class Parameters(MethodParameters):
        """Epochs of the first training (T) and weight of the rows that it misclassifies."""

        warm_up_epochs: int = Field(1, ge=1, description="T, epochs of the first training")
        upweight: float = Field(20.0, ge=0, description="lambda_up, weight of the rows in E")

    supports_sample_weight = True

    weight: torch.Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        self.fresh = problem.new_model().requires_grad_(False)
        self.register_buffer("weight", torch.ones(len(problem.seeds), problem.rows))

    @torch.no_grad()
    def start_epoch(self, model: Model, epoch: int) -> Iterable[str]:
        if epoch != self.hparams.warm_up_epochs:
            return ()
        model.eval()
        for batch in self.problem.training_batches():
            wrong = model(batch.x).argmax(-1) != batch.y
            weight = torch.where(wrong, self.hparams.upweight.unsqueeze(-1), 1)
            self.weight.scatter_(1, batch.rows, weight)
        model.load_state_dict(self.fresh.state_dict())
        return ("model",)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        yield Step({"model": weighted_loss(model, batch, self.weight.gather(1, batch.rows))})
