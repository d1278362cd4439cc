"""Random mining: positives and negatives without a preference (Definition 4)."""

import torch
from jaxtyping import Float, Int64
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from robust_fairness.miners.base import Triplets, alike, anchors, choose


class Parameters(BaseModel):
    """Nothing is left open."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def mine(
    embeddings: Float[Tensor, "row dimension"],
    labels: Int64[Tensor, " row"],
    parameters: Parameters,
    generator: torch.Generator,
) -> Triplets:
    """One triplet for every row that has a positive and a negative; none where no row has.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 4. The text
    above it draws from all triplets of a batch; the definition, followed here, draws one for
    every anchor.

    Args:
        embeddings: of a batch; not looked at.
        labels: class of every row.
        parameters: none.
        generator: source of the draws.
    """
    found = anchors(labels, generator)
    return Triplets(found.anchor, found.positive, choose(alike(found.negatives), generator))
