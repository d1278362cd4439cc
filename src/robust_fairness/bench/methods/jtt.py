"""Just Train Twice (Liu et al. 2021)."""

import logging

import torch
from pydantic import Field

from robust_fairness.bench.methods.base import Batch, MethodParameters, Problem
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.models.base import Model

LOGGER = logging.getLogger(__name__)


class Jtt(Erm):
    r"""Train, then retrain from the start with more weight on the rows that were misclassified.

    .. math:: \lambda_{up} \sum_{i \in E} L_i + \sum_{i \notin E} L_i

    E are the rows misclassified by the first training. The paper tunes both hyperparameters on
    validation rows with groups (weights of 6 to 100 where few rows are wrong). Where labels are
    noisy, a large weight inverts them, so that the default is small; a warning says if E outweighs
    the rest.

    Fails if the first training misclassifies noisy labels instead of rare subgroups.

    Source: "Just Train Twice" (ICML 2021), Algorithm 1.
    """

    class Parameters(MethodParameters):
        """Length of the first training and weight of its errors."""

        warm_up_epochs: int = Field(1, ge=1, description="T, epochs of the first training")
        upweight: float = Field(2.0, ge=0, description="lambda_up, weight of the rows in E")

    estimators = "no"  # the weights depend on the first training

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        self.fresh = problem.new_model().requires_grad_(False)
        self.register_buffer("weight", torch.ones(len(problem.seeds), problem.rows))

    def start_epoch(self, model: Model, epoch: int) -> tuple[str, ...]:
        if epoch != self.hparams.warm_up_epochs:
            return ()
        errors, rows = torch.zeros(len(self.problem.seeds)), 0
        for batch in self.problem.training_batches():
            wrong = model(batch.x).argmax(-1) != batch.y
            weight = torch.where(wrong, self.hparams.upweight.unsqueeze(-1), 1)
            self.get_buffer("weight").scatter_(1, batch.rows, weight)
            errors += wrong.sum(1).cpu()
            rows += wrong.shape[1]
        for seed, share, upweight in zip(
            self.problem.seeds,
            (errors / rows).tolist(),
            self.hparams.upweight.tolist(),
            strict=True,
        ):
            if upweight * share > 1 - share:
                LOGGER.warning(
                    "jtt, seed %d: the %.0f %% of rows that the first training misclassified weigh "
                    "more than all others, which can invert labels, allowed: a smaller upweight or "
                    "more warm_up_epochs", seed, 100 * share,
                )  # fmt: skip
        model.load_state_dict(self.fresh.state_dict())
        return ("model",)

    def row_weight(self, batch: Batch) -> torch.Tensor:
        return self.get_buffer("weight").gather(1, batch.rows)
