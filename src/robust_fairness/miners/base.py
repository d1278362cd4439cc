"""The base class of miners, triplets, and draws of one row for every anchor."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from robust_fairness.core.registry import Plugin


class Triplets(NamedTuple):
    """Places of rows of a batch, three at a time.

    Attributes:
        anchor: places int64 ``[triplet]``.
        positive: other rows of the anchors' classes, int64 ``[triplet]``.
        negative: rows of other classes, int64 ``[triplet]``.
    """

    anchor: Int64[Tensor, " triplet"]
    positive: Int64[Tensor, " triplet"]
    negative: Int64[Tensor, " triplet"]


class Miner(Plugin, ABC):
    """Chooses the triplets of a batch that an objective is computed from.

    Args:
        hparams: of the class ``Parameters``.
    """

    def __init__(self, hparams: Any) -> None:
        self.hparams = hparams

    @abstractmethod
    def mine(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        generator: torch.Generator,
    ) -> Triplets:
        """One triplet for every row that has a positive and a negative; may be empty.

        Args:
            embeddings: of a batch, without gradients.
            labels: class of every row.
            generator: source of the draws.
        """


class Anchors(NamedTuple):
    """Anchors with their positives, and what a negative may be drawn from.

    Attributes:
        anchor: places int64 ``[triplet]``, rising.
        positive: places int64 ``[triplet]``.
        negatives: which rows are of another class than the anchor, bool ``[triplet, row]``.
    """

    anchor: Int64[Tensor, " triplet"]
    positive: Int64[Tensor, " triplet"]
    negatives: Bool[Tensor, "triplet row"]


def anchors(labels: Int64[Tensor, " row"], generator: torch.Generator) -> Anchors:
    """Every row that has a positive and a negative, with one of its positives drawn.

    Positives are drawn alike from the other rows of the class (Definitions 4 to 6).

    Args:
        labels: class of every row.
        generator: source of the draws.
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

    The largest of logarithm plus Gumbel noise is drawn so exactly; weights are compared within
    an anchor only and never leave the logarithm, so that none is lost to rounding.

    Args:
        log_weights: natural logarithms of weights; minus infinity is never drawn. Every anchor
            needs a finite one.
        generator: source of the draws, which are made on its device.
    """
    if not log_weights.numel():
        return log_weights.new_zeros(len(log_weights), dtype=torch.int64)
    noise = torch.rand(
        log_weights.shape,
        generator=generator,
        device=generator.device,
        dtype=log_weights.dtype,
    )
    noise.clamp_(min=torch.finfo(noise.dtype).tiny)
    return (log_weights - (-noise.log()).log().to(log_weights.device)).argmax(1)


def distances(embeddings: Float[Tensor, "row dimension"]) -> Float[Tensor, "row row"]:
    """Euclidean distance of every two rows.

    From products, which is fastest, in float64: in float32 those of nearby rows would lose half
    of their digits.
    """
    x = embeddings.double()
    squares = x.square().sum(1)
    square = (squares[:, None] + squares).addmm_(x, x.T, alpha=-2)
    return square.clamp_(min=0).sqrt_().to(embeddings.dtype)
