"""Deep feature reweighting on training rows (DFR-Tr-Tr of Kirichenko et al. 2023)."""

from collections.abc import Iterable, Iterator

import torch
from pydantic import Field
from torch import nn

from robust_fairness.bench.methods.base import Batch, Problem, Step, SubgroupMethodParameters
from robust_fairness.bench.methods.subsampling import Subsampling
from robust_fairness.bench.models.base import Model
from robust_fairness.core.errors import InputError


class DfrTrain(Subsampling):
    r"""Train a new head on frozen features of balanced training rows (Kirichenko et al. 2023).

    DFR-Tr-Tr, after plain training of the features.

    .. math:: \frac{1}{m} \sum_{i \in S} L_i + \lambda \|\theta_{head}\|_1

    S has equally many training rows of every subgroup, drawn once by the seed. The head is that of
    the network, which for ``mlp`` has two layers; it is trained in steps, where the source fits
    logistic regressions and averages ten of them. ``dfr`` is the source's own form.

    Fails if the network fits its training rows, from which the head then learns nothing new.

    Source: "Last Layer Re-Training is Sufficient for Robustness to Spurious Correlations" (ICLR
    2023), section 5.
    """

    class Parameters(SubgroupMethodParameters):
        """Length of the training of the features, and penalty of the head."""

        warm_up_epochs: int = Field(10, ge=1, description="epochs of plain training")
        penalty: float = Field(0.0, ge=0, description="lambda, weight of the head's l1 norm")

    estimators = "no"

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        if hparams.warm_up_epochs >= problem.epochs:
            raise InputError(
                f"method dfr_train: warm_up_epochs {hparams.warm_up_epochs} of {problem.epochs} "
                "epochs leave none for the head, allowed: fewer"
            )
        self.fresh = problem.new_model().requires_grad_(False)

    def players(self, model: Model) -> dict[str, Iterable[nn.Parameter]]:
        return {"model": model.parameters(), "head": model.top.parameters()}

    def start_epoch(self, model: Model, epoch: int) -> tuple[str, ...]:
        if epoch != self.hparams.warm_up_epochs:
            return ()
        model.top.load_state_dict(self.fresh.top.state_dict())
        return ("head",)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        model.eval()  # batch statistics of the features are frozen as well
        with torch.no_grad():
            features = model.features(batch.x)
        outputs = model.head(features, batch.noise)
        losses = batch.sample_weight * model.task_loss(outputs, batch.y)
        # weights of networks that do not stack have no replica axis
        weights = [weight.view(len(losses), -1) for weight in model.top.parameters()]
        norm = torch.cat(weights, dim=1).abs().sum(1)
        yield Step({"head": losses.mean(-1) + self.hparams.penalty * norm})
