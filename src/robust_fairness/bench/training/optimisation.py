"""Optimisers and learning rate schedules of the players of a stack."""

from collections.abc import Callable, Iterable
from functools import partial
from math import cos, pi

import torch
from torch import Tensor

from robust_fairness.bench.compute.optimisers import Adam, Descent, Optimiser
from robust_fairness.bench.experiment.experiment import Protocol
from robust_fairness.bench.methods.base import Method, Step
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.training.records import with_prefix

OPTIMISERS: dict[str, Callable[..., Optimiser]] = {
    "adam": Adam,
    "adamw": partial(Adam, decoupled=True),
    "sgd": Descent,
}
SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: (1 + cos(pi * done)) / 2,
    "constant": lambda done: 1.0,
    "two_steps": lambda done: 0.3 ** ((done >= 0.4) + (done >= 0.8)),
}


class Optimisation:
    """One optimiser for every player of a method; ``players`` are their parameters."""

    def __init__(self, method: Method, model: Model, protocol: Protocol) -> None:
        self.protocol = protocol
        self.players = {name: list(owned) for name, owned in method.players(model).items()}
        options = {"lr": protocol.learning_rate, "weight_decay": protocol.weight_decay}
        if protocol.optimiser == "sgd":
            options["momentum"] = protocol.momentum
        self.options = {name: options | method.optimiser_options(name) for name in self.players}
        self.optimisers: dict[str, Optimiser] = {}
        self.restart([name for name, owned in self.players.items() if owned])

    def restart(self, players: Iterable[str]) -> None:
        """Give players new optimisers, with empty state."""
        for name in players:
            make = OPTIMISERS[self.protocol.optimiser]
            self.optimisers[name] = make(self.players[name], **self.options[name])

    def schedule(self, done: float) -> None:
        share = SCHEDULES[self.protocol.schedule](done)
        for player, optimiser in self.optimisers.items():
            optimiser.lr = self.options[player]["lr"] * share

    def apply(self, step: Step) -> None:
        """Move every player of the step by its gradients, all of the same forward pass."""
        gradients = {
            player: step.gradients.get(player)
            or torch.autograd.grad(
                loss.sum(),
                self.players[player],
                retain_graph=len(step.losses) > 1,
                materialize_grads=True,  # a loss may not depend on all layers of its player
            )
            for player, loss in step.losses.items()
        }
        for player, of_player in gradients.items():
            # fused Adam reads memory in order, whatever the strides of the gradient
            self.optimisers[player].step([gradient.contiguous() for gradient in of_player])

    def state(self) -> dict[str, Tensor]:
        """States of the optimisers, by name."""
        return {
            f"{player}/{name}": value
            for player, optimiser in self.optimisers.items()
            for name, value in optimiser.state().items()
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        for player, optimiser in self.optimisers.items():
            optimiser.restore(with_prefix(f"{player}/", state))
