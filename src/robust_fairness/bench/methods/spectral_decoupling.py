"""Spectral decoupling (Pezeshki et al. 2020)."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field
from torch import Tensor

from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.core.errors import InputError


class SpectralDecoupling(Method):
    r"""Penalise the squared distance of the outputs from a constant.

    .. math:: L_{clf} + \frac{\lambda}{2} \|z - \gamma\|^2

    Fails if the penalty outweighs the loss, so that outputs are nearly constant.
    """

    class Parameters(MethodParameters):
        """Weight and shift of the output decay; default: Table A6 for Biased MNIST.

        ``penalised``: all outputs (as printed), or the logit of the true class (the study's code).
        ``weight_by_class`` and ``shift_by_class`` replace ``weight`` and ``shift`` by one number
        per class, as the original does for CelebA (10, 10 and 0.44, 2.5).
        """

        weight: float = Field(1e-3, ge=0, description="lambda, weight of the output decay")
        shift: float = Field(1e-3, description="gamma, where the outputs are drawn to")
        penalised: Literal["all_logits", "target_logit"] = "all_logits"
        weight_by_class: tuple[float, ...] = ()
        shift_by_class: tuple[float, ...] = ()

    reads = ("sample_weight",)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        by_class = {
            "weight_by_class": hparams.weight_by_class,
            "shift_by_class": hparams.shift_by_class,
        }
        for name, values in by_class.items():
            if len(values) not in (0, problem.classes):
                raise InputError(
                    f"method spectral_decoupling: {name} has {len(values)} values, "
                    f"allowed: none or one for each of {problem.classes} classes"
                )

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        outputs = model(batch.x, batch.noise)
        options = self.hparams
        weight = self._of_rows(options.weight_by_class, options.weight, batch.y, outputs)
        shift = self._of_rows(options.shift_by_class, options.shift, batch.y, outputs)
        decay = (outputs - shift.unsqueeze(-1)).square()
        if options.penalised == "all_logits":
            decay = decay.sum(-1)
        else:
            decay = decay.gather(-1, batch.y.unsqueeze(-1)).squeeze(-1)
        losses = model.task_loss(outputs, batch.y) + weight / 2 * decay
        yield Step({"model": (row_weights(batch) * losses).mean(-1)})

    def _of_rows(
        self, by_class: tuple[float, ...], of_all: Tensor, y: Tensor, outputs: Tensor
    ) -> Tensor:
        """The hyperparameter of every row: that of its class, or the replica's."""
        if by_class:
            return outputs.new_tensor(by_class)[y]
        return of_all.unsqueeze(-1).expand(y.shape)
