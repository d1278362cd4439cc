"""Just Train Twice (Liu et al. 2021)."""

import torch
from pydantic import Field

from robust_fairness.methods.base import Batch, MethodParameters, Problem
from robust_fairness.methods.erm import Erm
from robust_fairness.models.base import Model


class Jtt(Erm):
    r"""Train, then retrain on :math:`\lambda_{up} \sum_{i \in E} L_i + \sum_{i \notin E} L_i`.

    E are the rows misclassified by the first. Source: "Just Train Twice" (ICML 2021), Algorithm 1.
    """

    class Parameters(MethodParameters):
        """Length of the first training and weight of its errors."""

        warm_up_epochs: int = Field(1, ge=1, description="T, epochs of the first training")
        upweight: float = Field(20.0, ge=0, description="lambda_up, weight of the rows in E")

    estimators = "no"  # the weights depend on the first training

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        self.fresh = problem.new_model().requires_grad_(False)
        self.register_buffer("weight", torch.ones(len(problem.seeds), problem.rows))

    def start_epoch(self, model: Model, epoch: int) -> tuple[str, ...]:
        if epoch != self.hparams.warm_up_epochs:
            return ()
        for batch in self.problem.training_batches():
            wrong = model(batch.x).argmax(-1) != batch.y
            weight = torch.where(wrong, self.hparams.upweight.unsqueeze(-1), 1)
            self.get_buffer("weight").scatter_(1, batch.rows, weight)
        model.load_state_dict(self.fresh.state_dict())
        return ("model",)

    def row_weight(self, batch: Batch) -> torch.Tensor:
        return self.get_buffer("weight").gather(1, batch.rows)
