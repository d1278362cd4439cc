"""Adam and stochastic gradient descent: torch's own functions with their state.

Torch's optimiser classes import its compiler at the first step, 1.5 s that nothing here needs; the
functions that they call do not.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd


class Optimiser(ABC):
    """Moves some weights by their gradients; ``lr`` may change between steps.

    Args:
        weights: tensors that are changed in place.
        lr: learning rate.
        weight_decay: factor of the weights in the gradient, or of the decoupled decay.
    """

    def __init__(self, weights: Sequence[Tensor], lr: float, weight_decay: float = 0.0) -> None:
        self.weights, self.lr, self.weight_decay = list(weights), lr, weight_decay
        self.moments: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Move the weights by gradients of their shapes."""
        if not self.moments:
            self.moments = self.initial()
        self.move(list(gradients))

    @abstractmethod
    def initial(self) -> dict[str, list[Tensor]]:
        """The moments before the first step, one tensor per weight, by name."""

    @abstractmethod
    def move(self, gradients: list[Tensor]) -> None:
        """Change weights and moments in place."""

    def state(self) -> dict[str, Tensor]:
        """The moments by the number of the weight and their name; empty before the first step."""
        return {
            f"{number}/{name}": one
            for name, moments in self.moments.items()
            for number, one in enumerate(moments)
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from ``state``."""
        self.moments = self.initial() if state else {}
        for name, moments in self.moments.items():
            for number, one in enumerate(moments):
                one.copy_(state[f"{number}/{name}"])


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

    def initial(self) -> dict[str, list[Tensor]]:
        # the multi-tensor form counts steps on the CPU
        place = [one.device if self.fused else torch.device("cpu") for one in self.weights]
        return {
            "step": [torch.zeros((), dtype=torch.float32, device=device) for device in place],
            "exp_avg": [torch.zeros_like(one) for one in self.weights],
            "exp_avg_sq": [torch.zeros_like(one) for one in self.weights],
        }

    def move(self, gradients: list[Tensor]) -> None:
        adam(
            self.weights,
            gradients,
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

    def initial(self) -> dict[str, list[Tensor]]:
        used = self.weights if self.momentum else []
        return {"momentum_buffer": [torch.zeros_like(one) for one in used]}

    def move(self, gradients: list[Tensor]) -> None:
        sgd(
            self.weights,
            gradients,
            list(self.moments["momentum_buffer"]),
            fused=True,
            weight_decay=self.weight_decay,
            momentum=self.momentum,
            lr=self.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
