r"""Maximal correlation of Hirschfeld, Gebelein and Renyi, and the chi-squared divergence above it.

Source: Mary, Calauzenes, El Karoui, "Fairness-Aware Learning for Continuous Attributes and
Treatments" (ICML 2019). With the kernel :math:`Q(u, v) = P(u, v) / \sqrt{P(u) P(v)}` the maximal
correlation is the second singular value of Q (Witsenhausen 1975; the first is 1), and

.. math:: HGR^2 \le \sum_{u, v} Q(u, v)^2 - 1 = \chi^2(P_{UV}, P_U \times P_V)

Numbers enter by a Gaussian kernel density on a grid, categories as they are: every variable is
given by its *cover* ``[..., cell, row]``, how much of each row lies in each cell. ``known`` marks
the rows that count, bool ``[..., row]``. Everything is differentiable and works over leading axes.
"""

import torch
from torch import Tensor

REACH = 2.5  # standard deviations that the grid spans on either side of the mean
MOST_CELLS = 50  # of a grid
SMALLEST_VARIANCE = 1e-8  # a number that varies less counts as constant
NOTHING = 1e-30  # products of marginals below it count as no mass; a float32


def grid_cells(rows: int, numbers: int) -> int:
    """Points of the grid: about one per bandwidth, at most 50.

    Missing rows count, so that replicas share a grid.
    """
    width = bandwidth(torch.tensor(rows, dtype=torch.float64), numbers)
    return int(min(MOST_CELLS, 2 * REACH / width.item()))


def bandwidth(rows: Tensor, numbers: int) -> Tensor:
    r"""Silverman's rule for d standardised numbers, :math:`(n (d + 2) / 4)^{-1 / (d + 4)}`."""
    return (rows.clamp(min=1) * ((numbers + 2) / 4)) ** (-1 / (numbers + 4))


def standardised(values: Tensor, known: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1 over the known rows, ``[..., row]``; constants become 0."""
    weights = known.to(values.dtype)
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1)
    centred = values - (weights * values).sum(-1, keepdim=True)
    variance = (weights * centred.square()).sum(-1, keepdim=True)
    return centred / (variance + SMALLEST_VARIANCE).sqrt()


def density_cover(values: Tensor, known: Tensor, numbers: int) -> Tensor:
    """Cover of a number: a Gaussian of every row at the points of a grid, ``[..., cell, row]``.

    The grid spans 2.5 standard deviations on either side of the mean, as in the source.
    """
    cells = grid_cells(values.shape[-1], numbers)
    points = torch.linspace(-REACH, REACH, cells, dtype=values.dtype, device=values.device)
    width = bandwidth(known.sum(-1).to(values.dtype), numbers)[..., None, None]
    away = points.unsqueeze(-1) - standardised(values, known).unsqueeze(-2)
    return torch.exp(-(away / width).square() / 2)


def joint_distribution(known: Tensor, *covers: Tensor) -> Tensor:
    """Joint distribution of two or three covers, ``[..., cell, cell]`` or with one axis more.

    Sums to 1; all 0 where no row is known.
    """
    first, *others = covers
    letters = "abc"[: len(covers)]
    inputs = ",".join(f"...{letter}r" for letter in letters)
    counted = first * known.unsqueeze(-2).to(first.dtype)
    mass = torch.einsum(f"{inputs}->...{letters}", counted, *others)
    axes = tuple(range(-len(covers), 0))
    return mass / mass.sum(axes, keepdim=True).clamp(min=torch.finfo(mass.dtype).tiny)


def chi_squared(joint: Tensor) -> Tensor:
    """Chi-squared divergence of joint distributions ``[..., u, v]`` from independence, ``[...]``.

    0 for a distribution without mass.
    """
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    return (joint.square() / product.clamp(min=NOTHING)).sum((-2, -1)) - joint.sum((-2, -1))


def conditional(joint: Tensor) -> tuple[Tensor, Tensor]:
    """Distributions given the third variable ``[..., w, u, v]``, and whether it has mass there.

    The joint distribution is ``[..., u, v, w]``, the mass ``[..., w]``.
    """
    given = joint.movedim(-1, -3)
    mass = given.sum((-2, -1))
    smallest = torch.finfo(mass.dtype).tiny
    return given / mass[..., None, None].clamp(min=smallest), mass > smallest
