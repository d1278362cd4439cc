"""Semi-hard mining: negatives that are little farther away than the positive (Definition 5)."""

import torch
from pydantic import Field

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import (
    Labels,
    Miner,
    Rows,
    Triplets,
    alike,
    anchors,
    choose,
    distances,
)


class SemiHard(Miner):
    r"""Negatives that are a little farther than the positive, which is any other row of the class.

    A negative is drawn uniformly from those with

    .. math:: d(a, p) < d(a, n) < d(a, p) + \gamma

    or from all where there is none, as in the published code of Roth et al. (ICML 2020).

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 5, whose
    condition is misprinted.
    """

    class Parameters(PluginParameters):
        """The slack of Definition 5; its value is that of D.3."""

        margin: float = Field(0.2, gt=0, description="gamma: how much farther than the positive")

    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        found = anchors(labels, generator)
        distance = distances(embeddings)[found.anchor]
        positive = distance.gather(1, found.positive[:, None])
        near = (positive < distance) & (distance < positive + self.hparams.margin) & found.negatives
        allowed = torch.where(near.any(1, keepdim=True), near, found.negatives)
        return Triplets(found.anchor, found.positive, choose(alike(allowed), generator))
