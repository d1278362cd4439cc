"""The base class of miners, triplets, and draws of one row for every anchor."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from robust_fairness.core.registry import Plugin

Rows = Float[Tensor, "row dimension"]
Labels = Int64[Tensor, " row"]


class Triplets(NamedTuple):
    """Positions in a batch of anchors, of rows of the same class, and of rows of other classes."""

    anchor: Int64[Tensor, " triplet"]
    positive: Int64[Tensor, " triplet"]
    negative: Int64[Tensor, " triplet"]


class Miner(Plugin, ABC):
    """Selects the triplets of a batch that an objective is computed from."""

    def __init__(self, hparams: Any) -> None:
        self.hparams = hparams

    @abstractmethod
    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        """One triplet for every row that has a positive and a negative; may be empty.

        The embeddings are without gradients; all draws come from ``generator``.
        """


class Anchors(NamedTuple):
    """Positions of anchors (ascending) and positives, and which rows are negatives."""

    anchor: Int64[Tensor, " triplet"]
    positive: Int64[Tensor, " triplet"]
    negatives: Bool[Tensor, "triplet row"]


def anchors(labels: Labels, generator: torch.Generator) -> Anchors:
    """Every row that has a positive and a negative, with one of its positives drawn.

    Positives are drawn uniformly from the other rows of the class (Definitions 4 to 6).
    """
    different = labels[:, None] != labels
    same = ~different
    same.fill_diagonal_(False)
    anchor = (same.any(1) & different.any(1)).nonzero()[:, 0]
    return Anchors(anchor, choose(alike(same[anchor]), generator), different[anchor])


def alike(allowed: Bool[Tensor, "triplet row"]) -> Float[Tensor, "triplet row"]:
    """Logarithms of equal weights for the rows that are allowed: 0, and minus infinity."""
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill_(~allowed, -torch.inf)


def choose(
    log_weights: Float[Tensor, "triplet row"], generator: torch.Generator
) -> Int64[Tensor, " triplet"]:
    """Draw a row for every anchor, with probability proportional to its weight.

    The maximum of logarithm plus Gumbel noise has exactly that distribution, without leaving the
    logarithm. Minus infinity is never drawn; every anchor needs a finite logarithm.
    """
    if not log_weights.numel():
        return log_weights.new_zeros(len(log_weights), dtype=torch.int64)
    device, dtype = generator.device, log_weights.dtype
    noise = torch.rand(log_weights.shape, generator=generator, device=device, dtype=dtype)
    noise.clamp_(min=torch.finfo(noise.dtype).tiny)
    return (log_weights - (-noise.log()).log().to(log_weights.device)).argmax(1)


def distances(embeddings: Rows) -> Float[Tensor, "row row"]:
    """Euclidean distance of every two rows, from products in float64, so that digits are kept."""
    x = embeddings.double()
    squares = x.square().sum(1)
    square = (squares[:, None] + squares).addmm_(x, x.T, alpha=-2)
    return square.clamp_(min=0).sqrt_().to(embeddings.dtype)
