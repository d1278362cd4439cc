"""Adam and stochastic gradient descent: torch's own functions with their state.

Torch's optimiser classes import its compiler at the first step, 1.5 s that nothing here needs; the
functions that they call do not.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd


class Optimiser:
    """Moves some weights by their gradients; ``lr`` may change between steps.

    Args:
        weights: tensors that are changed in place.
        lr: learning rate.
        weight_decay: factor of the weights in the gradient, or of the decoupled decay.
    """

    moments: dict[str, list[Tensor]]

    def __init__(self, weights: Sequence[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        self.weights, self.lr, self.weight_decay = list(weights), lr, weight_decay

    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the weights by gradients of their shapes."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """The moments by the number of the weight and their name."""
        return {
            f"{number}/{name}": moment
            for name, moments in self.moments.items()
            for number, moment in enumerate(moments)
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``."""
        for name, moment in self.state().items():
            moment.copy_(state[name])


class Adam(Optimiser):
    """Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015, with torch's constants.

    Args:
        weights: as of ``Optimiser``.
        lr: as of ``Optimiser``.
        weight_decay: as of ``Optimiser``.
        decoupled: whether weight decay is decoupled (AdamW, Loshchilov and Hutter 2019).
        fused: whether one kernel updates all weights, or else one per operation.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        lr: float,
        weight_decay: float = 0.0,
        decoupled: bool = False,
        fused: bool = True,
    ) -> None:
        super().__init__(weights, lr, weight_decay)
        self.decoupled, self.fused = decoupled, fused
        # the multi-tensor form counts steps on the CPU
        devices = [weight.device if fused else torch.device("cpu") for weight in self.weights]
        self.moments = {
            "step": [torch.zeros((), dtype=torch.float32, device=device) for device in devices],
            "exp_avg": [torch.zeros_like(weight) for weight in self.weights],
            "exp_avg_sq": [torch.zeros_like(weight) for weight in self.weights],
        }

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        adam(
            self.weights,
            list(gradients),
            self.moments["exp_avg"],
            self.moments["exp_avg_sq"],
            [],
            self.moments["step"],
            fused=self.fused,
            foreach=not self.fused,
            decoupled_weight_decay=self.decoupled,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )


class Descent(Optimiser):
    """Stochastic gradient descent with momentum.

    Args:
        weights: as of ``Optimiser``.
        lr: as of ``Optimiser``.
        weight_decay: as of ``Optimiser``.
        momentum: share of the previous move that is kept.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(weights, lr, weight_decay)
        self.momentum = momentum
        used = self.weights if momentum else []
        self.moments = {"momentum_buffer": [torch.zeros_like(weight) for weight in used]}

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        sgd(
            self.weights,
            list(gradients),
            list(self.moments["momentum_buffer"]),
            fused=True,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
