"""One replica at a time: the papers' equations with torch's own layers and optimiser.

The loop that the stacks of ``training.py`` are compared with: batches of rows that are in memory,
no loader, nothing that a careful reader of the papers would call wasteful.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

BANDWIDTHS = (1, 2, 4, 8, 16)
Loss = Callable[["Replica", Tensor, Tensor, Tensor], Tensor]


def layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Linear, ReLU, dropout, linear."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(0.25), nn.Linear(hidden, outputs)
    )


class Replica:
    """A network with two heads and what trains it: ``optimiser`` and ``adversary_optimiser``."""

    def __init__(self, features: int, method: str) -> None:
        self.encoder, self.head = layers(features, 100, 64), layers(64, 32, 2)
        self.adversary = layers(64, 32, 2)
        weights = [*self.encoder.parameters(), *self.head.parameters()]
        self.optimiser = torch.optim.Adam(weights, lr=1e-3, weight_decay=1e-5)
        self.adversary_optimiser = torch.optim.Adam(self.adversary.parameters(), lr=1e-3)
        self.audit = AUDITS.get(method)
        self.penalty = curvature_distance if method == "cuma" else None

    def epoch(self, x: Tensor, y: Tensor, group: Tensor, batch_size: int) -> None:
        """Train on all rows once."""
        for rows in torch.randperm(len(x)).split(batch_size):
            self.step(x[rows], y[rows], group[rows])

    def step(self, x: Tensor, y: Tensor, group: Tensor) -> None:
        """One step of the adversary, if there is one, and one of the network."""
        features = self.encoder(x)
        loss = functional.cross_entropy(self.head(features), y)
        if self.audit:
            self.descend(self.adversary_optimiser, self.audit(self, features.detach(), group))
            loss = loss - self.audit(self, features, group)
        if self.penalty:
            loss = loss + self.penalty(self, x, y, group)
        self.descend(self.optimiser, loss)

    def descend(self, optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
        """One step of an optimiser."""
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def adversary_cross_entropy(replica: Replica, features: Tensor, group: Tensor) -> Tensor:
    """Cross-entropy of the group (AdvDebias and CUMA)."""
    return functional.cross_entropy(replica.adversary(features), group)


def normalised_l1(replica: Replica, features: Tensor, group: Tensor) -> Tensor:
    """Distance to the group, every group counting equally (LAFTR)."""
    distance = 1 - replica.adversary(features).softmax(1)[torch.arange(len(group)), group]
    return distance[group == 0].mean() + distance[group == 1].mean()


def curvature_distance(replica: Replica, x: Tensor, y: Tensor, group: Tensor) -> Tensor:
    """Squared MMD between the curvatures of two groups (Equalized Robustness, Eqs. 7 and 8)."""

    def gradient(inputs: Tensor) -> Tensor:
        loss = functional.cross_entropy(replica.head(replica.encoder(inputs)), y, reduction="sum")
        return torch.autograd.grad(loss, inputs, create_graph=True)[0]

    x = x.requires_grad_()
    first = gradient(x)
    direction = functional.normalize(first.detach().sign(), dim=1)
    curvature = (gradient(x + direction) - first).norm(dim=1)
    first_group, other = curvature[group == 0], curvature[group == 1]
    return (
        kernel_mean(first_group, first_group)
        - 2 * kernel_mean(first_group, other)
        + kernel_mean(other, other)
    )


def kernel_mean(a: Tensor, b: Tensor) -> Tensor:
    """Mean of the sum of Gaussian kernels over all pairs (Eq. 7)."""
    square = (a[:, None] - b[None]).square()
    return sum((torch.exp(-square / (2 * width**2)) for width in BANDWIDTHS), 0 * square).mean()


AUDITS = {
    "adv_debias": adversary_cross_entropy,
    "laftr": normalised_l1,
    "cuma": adversary_cross_entropy,
}
