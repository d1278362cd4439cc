"""Random mining: positives and negatives without a preference (Definition 4)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Miner, Triplets, alike, anchors, choose


class Random(Miner):
    """One triplet for every row that has a positive and a negative; none where no row has.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 4. The text
    above it draws from all triplets of a batch; the definition, followed here, draws one for
    every anchor.
    """

    class Parameters(PluginParameters):
        """Nothing is left open."""

    def mine(
        self,
        embeddings: Float[Tensor, "row dimension"],
        labels: Int64[Tensor, " row"],
        generator: torch.Generator,
    ) -> Triplets:
        found = anchors(labels, generator)
        return Triplets(found.anchor, found.positive, choose(alike(found.negatives), generator))
