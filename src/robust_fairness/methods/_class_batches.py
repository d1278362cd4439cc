"""Batches of some rows each of some classes (SPC-n), so that miners find positives."""

import torch
from jaxtyping import Int64
from torch import Tensor

from robust_fairness.core.errors import InputError


def class_batches(
    labels: Int64[Tensor, " row"], batch_size: int, per_class: int, generator: torch.Generator
) -> Int64[Tensor, " place"]:
    """Places of rows, batch after batch: ``per_class`` rows of each of some classes.

    There are as many whole batches as rows allow, at least one. Classes of a batch are drawn
    alike, whatever their size, and without replacement; where there are fewer than a batch needs,
    each stands equally often, up to one. Rows of a class are dealt from a pack that is shuffled
    once for all of these batches and begins anew when it ends: those of one batch are different
    as far as the class has enough, and else each stands equally often, up to one. So a class
    of one row is that row ``per_class`` times: a pair of copies (of different crops where
    training augments), as with the published code of Roth et al., which draws classes and rows
    with replacement throughout. A pack that is used up within an epoch deals in the same
    order again.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), A.1 (SPC-n).

    Args:
        labels: class of every row.
        batch_size: rows of a batch; a multiple of ``per_class``.
        per_class: rows of a class.
        generator: source of the order; places are on its device.

    Raises:
        InputError: batches cannot be made up of ``per_class`` rows, or there is no row.
    """
    if per_class < 1 or batch_size % per_class:
        raise InputError(
            f"per_class {per_class}, allowed: what divides batch_size, which is {batch_size}"
        )
    if not len(labels):
        raise InputError("batches of classes: no training row, allowed: one or more")
    device = generator.device
    _, label, counts = labels.to(device).unique(return_inverse=True, return_counts=True)
    batches, needed = max(1, len(labels) // batch_size), batch_size // per_class

    order = torch.rand(batches, len(counts), generator=generator, device=device).argsort(1)
    dealt = torch.arange(needed, device=device) % len(counts)
    classes = order[:, dealt].flatten()

    shuffled = torch.randperm(len(label), generator=generator, device=device)
    pack = shuffled[label[shuffled].argsort(stable=True)]
    first = counts.cumsum(0) - counts
    card = occurrences(classes)[:, None] * per_class + torch.arange(per_class, device=device)
    return pack[first[classes, None] + card % counts[classes, None]].flatten()


def occurrences(values: Int64[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """How often each value stood before, in order.

    >>> occurrences(torch.tensor([7, 5, 7, 7, 5])).tolist()
    [0, 0, 1, 2, 1]
    """
    _, inverse, counts = values.unique(return_inverse=True, return_counts=True)
    order = inverse.argsort(stable=True)
    begun = (counts.cumsum(0) - counts)[inverse[order]]
    ranks = torch.empty_like(order)
    ranks[order] = torch.arange(len(values), device=values.device) - begun
    return ranks
