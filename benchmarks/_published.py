"""The published way to train on images, with torch's layers: the standard model, LfF and LNL.

Channels-first memory, a ReLU before the maximum, averages of the losses of every row for LfF, two
passes for LNL: what the study's code does in a step.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.core.samples import Samples

Step = Callable[[Tensor, Tensor, Tensor, Tensor], None]  # of images, classes, groups, row numbers
SMALLEST = 1e-8


class Network(nn.Module):
    """Four convolutions, global average pooling and a linear head."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm2d(3)
        sizes = [(3, 32, 5, 1), (32, 32, 3, 1), (32, 64, 3, 2), (64, 64, 3, 2)]
        self.layers = nn.ModuleList(
            [nn.Conv2d(i, o, k, stride=s, padding=k // 2) for i, o, k, s in sizes]
        )
        self.top = nn.Linear(64, classes)

    def early(self, x: Tensor) -> Tensor:
        """Activations of the second convolution."""
        x = functional.relu(self.layers[0](self.normalise(x)))
        return functional.relu(self.layers[1](functional.max_pool2d(x, 3, stride=2, padding=1)))

    def late(self, early: Tensor) -> Tensor:
        """Logits ``[row, class]``."""
        for layer in self.layers[2:]:
            early = functional.relu(layer(early))
        return self.top(early.mean((2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits ``[row, class]``."""
        return self.late(self.early(x))


def adam(*modules: nn.Module) -> torch.optim.Adam:
    """The study's optimiser of some modules."""
    weights = [weight for module in modules for weight in module.parameters()]
    return torch.optim.Adam(weights, lr=1e-3, weight_decay=1e-5)


def descend(loss: Tensor, *optimisers: torch.optim.Adam) -> None:
    """One step of optimisers."""
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()


def standard(classes: int, rows: int) -> Step:
    """The standard model."""
    network = Network(classes)
    optimiser = adam(network)

    def step(x: Tensor, y: Tensor, group: Tensor, numbers: Tensor) -> None:
        descend(functional.cross_entropy(network(x), y), optimiser)

    return step


def lff(classes: int, rows: int) -> Step:
    """A network that is trained to be biased, and one on rows that are hard for it."""
    networks = [Network(classes), Network(classes)]
    optimisers = [adam(network) for network in networks]
    averages, seen = torch.zeros(2, rows), torch.zeros(rows, dtype=torch.long) - 1

    def step(x: Tensor, y: Tensor, group: Tensor, numbers: Tensor) -> None:
        outputs = [network(x) for network in networks]
        losses = [functional.cross_entropy(logits, y, reduction="none") for logits in outputs]
        for average, loss in zip(averages, losses, strict=True):
            moved = 0.7 * average[numbers] + 0.3 * loss.detach()
            average[numbers] = torch.where(seen[numbers] >= 0, moved, loss.detach())
        seen[numbers] = y
        biased, debiased = averages[:, numbers].clone()
        for label in range(classes):
            for relative, average in ((biased, averages[0]), (debiased, averages[1])):
                if (seen == label).any():
                    relative[y == label] /= average[seen == label].max()
        weight = biased / (biased + debiased + SMALLEST)
        right = outputs[0].softmax(1).gather(1, y[:, None])[:, 0].detach()
        amplified = (losses[0] * 0.5 * right**0.5).mean()
        descend(amplified + (weight * losses[1]).mean(), *optimisers)

    return step


def lnl(classes: int, rows: int) -> Step:
    """The task and the bias head's entropy in one pass, its reversed loss in another."""
    network, head = Network(classes), nn.Linear(32, classes)
    optimiser, head_optimiser = adam(network), adam(head)

    def step(x: Tensor, y: Tensor, group: Tensor, numbers: Tensor) -> None:
        early = network.early(x)
        probability = head(early.mean((2, 3))).softmax(1) + SMALLEST
        entropy = -(probability * probability.log()).sum(1).mean()
        descend(functional.cross_entropy(network.late(early), y) - 0.01 * entropy, optimiser)
        early = network.early(x)
        network.late(early)
        pooled = early.mean((2, 3))
        reversed_ = -0.1 * pooled + (1.1 * pooled).detach()  # the gradient times -0.1
        descend(functional.cross_entropy(head(reversed_), group), optimiser, head_optimiser)

    return step


STEPS = {"lff": lff, "lnl": lnl}


def epoch_of(method: str, samples: Samples, batch_size: int) -> Callable[[], None]:
    """One epoch of a method, of the standard model where the study's loop adds little to it."""
    x, y = torch.from_numpy(samples.x), torch.from_numpy(samples.y)
    group = torch.from_numpy(samples.attributes.iloc[:, 0].cat.codes.to_numpy().astype(int))
    step = STEPS.get(method, standard)(len(samples.classes), len(x))
    rows = torch.from_numpy(samples.rows("split_0", "train"))

    def epoch() -> None:
        for batch in rows[torch.randperm(len(rows))].split(batch_size):
            step(x[batch].float(), y[batch], group[batch], batch)

    return epoch
