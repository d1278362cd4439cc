"""Miners of triplets."""

from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from robust_fairness.bench.miners.base import (
    Labels,
    Miner,
    Rows,
    Triplets,
    alike,
    anchors,
    choose,
    distances,
)
from robust_fairness.core.registry import PluginParameters

DIAMETER = 2.0  # of the unit sphere: no two points are farther apart


class Random(Miner):
    """Random mining: positives and negatives without a preference (Definition 4).

    Positives and negatives drawn uniformly, one triplet for every anchor.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 4.
    """

    name = "random"

    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        result = anchors(labels, generator)
        return Triplets(result.anchor, result.positive, choose(alike(result.negatives), generator))


class SemiHard(Miner):
    r"""Semi-hard mining: negatives that are little farther away than the positive (Definition 5).

    Negatives that are a little farther than the positive, which is any other row of the class.

    A negative is drawn uniformly from those with

    .. math:: d(a, p) < d(a, n) < d(a, p) + \gamma

    or from all where there is none, as in the published code of Roth et al. (ICML 2020).

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 5, whose
    condition is misprinted.
    """

    name = "semi_hard"

    class Parameters(PluginParameters):
        """The slack of Definition 5; its value is that of D.3."""

        margin: float = Field(0.2, gt=0, description="gamma: how much farther than the positive")

    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        result = anchors(labels, generator)
        distance = distances(embeddings)[result.anchor]
        positive = distance.gather(1, result.positive[:, None])
        near = (
            (positive < distance) & (distance < positive + self.hparams.margin) & result.negatives
        )
        allowed = torch.where(near.any(1, keepdim=True), near, result.negatives)
        return Triplets(result.anchor, result.positive, choose(alike(allowed), generator))


def log_inverse_density(distance: Float[Tensor, "..."], dimensions: int) -> Float[Tensor, "..."]:
    r"""Logarithm of 1 / q for the distance of two random points of a unit sphere.

    .. math:: q(d) \propto d^{D - 2} (1 - d^2 / 4)^{(D - 3) / 2}

    Finite for every distance above 0, by clipping at the diameter. D is ``dimensions``.
    """
    within = (1 - distance.square() / 4).clamp(min=torch.finfo(distance.dtype).eps)
    return (2 - dimensions) * distance.log() - (dimensions - 3) / 2 * within.log()


class DistanceWeighted(Miner):
    """Distance-weighted mining: negatives of all distances alike (Definition 6).

    Negatives drawn in proportion to 1 / q of their distance from the anchor.

    The positive is any other row of the class.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 6, after
    Wu et al., "Sampling Matters in Deep Embedding Learning" (ICCV 2017).
    """

    name = "distance_weighted"

    class Parameters(PluginParameters):
        """Cuts of the inverse density; the values are those of D.3.

        Negatives nearer than ``smallest_distance`` (lambda) have the weight of this distance. Those
        farther than ``largest_distance``, where the margin objective's loss of a negative ends,
        have the weight of that distance (``clipped``), or are drawn only where an anchor has no
        others (``left_out``); with ``null`` there is no limit, as in the published code of Roth et
        al.
        """

        smallest_distance: float = Field(0.5, gt=0, lt=DIAMETER)
        largest_distance: float | None = Field(1.4, gt=0, le=DIAMETER)
        farther: Literal["clipped", "left_out"] = "clipped"

        @model_validator(mode="after")
        def _in_order(self) -> "DistanceWeighted.Parameters":
            largest = self.largest_distance
            if largest is not None and largest <= self.smallest_distance:
                raise ValueError(
                    f"largest_distance {largest:g}, "
                    f"allowed: above smallest_distance, which is {self.smallest_distance:g}"
                )
            return self

    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        result = anchors(labels, generator)
        distance, largest = distances(embeddings)[result.anchor], self.hparams.largest_distance
        kept = distance.clamp(self.hparams.smallest_distance, largest)
        log_weights = log_inverse_density(kept, embeddings.shape[1])
        allowed = result.negatives
        if largest is not None and self.hparams.farther == "left_out":
            near = allowed & (distance <= largest)
            # where all are too far, clipping has made their weights equal
            allowed = torch.where(near.any(1, keepdim=True), near, allowed)
        negative = choose(log_weights.masked_fill(~allowed, -torch.inf), generator)
        return Triplets(result.anchor, result.positive, negative)
