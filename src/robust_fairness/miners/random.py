"""Random mining: positives and negatives without a preference (Definition 4)."""

import torch

from robust_fairness.miners.base import Labels, Miner, Rows, Triplets, alike, anchors, choose


class Random(Miner):
    """Positives and negatives drawn uniformly, one triplet for every anchor.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 4.
    """

    def mine(self, embeddings: Rows, labels: Labels, generator: torch.Generator) -> Triplets:
        found = anchors(labels, generator)
        return Triplets(found.anchor, found.positive, choose(alike(found.negatives), generator))
