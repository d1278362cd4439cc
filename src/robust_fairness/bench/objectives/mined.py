"""Objectives of triplets that a miner finds."""

from typing import Literal

import torch
from pydantic import Field
from torch import nn

from robust_fairness.bench.miners.base import Labels, Rows, Triplets
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.objectives.base import Loss, MinedObjective
from robust_fairness.core.registry import PluginParameters


class Contrastive(MinedObjective):
    r"""Contrastive loss (Definition 7).

    Positives attract, and negatives repel up to a margin.

    .. math:: \frac{1}{t} \sum_{(a, p, n)} d(a, p) + [\gamma - d(a, n)]_+

    over the pairs of t triplets: anchor and positive, anchor and negative.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 7; the loss
    is pytorch-metric-learning's.
    """

    name = "contrastive"

    class Parameters(PluginParameters):
        """The margin, which the paper does not give; 1 as in the published code of Roth et al."""

        margin: float = Field(
            1.0, gt=0, description="gamma: distance at which negatives stop mattering"
        )

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        from pytorch_metric_learning import distances, losses, reducers

        super().__init__(hparams, classes, dimensions, randomness)
        self.loss = losses.ContrastiveLoss(
            pos_margin=0,
            neg_margin=hparams.margin,
            distance=distances.LpDistance(normalize_embeddings=False),
            reducer=reducers.MeanReducer(),
        )

    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        # repeated, with the same mean: the library ignores a single pair
        indices = tuple(torch.cat([places, places]) for places in triplets)
        return self.loss(embeddings, labels, indices)


class Margin(MinedObjective):
    r"""Margin loss with learnt boundaries (Definition 9).

    Positives belong within a learnt boundary, negatives outside, both by a margin.

    .. math:: \frac{1}{m} \sum_{(a, p, n)} [d(a, p) - \beta + \gamma]_+
              + [\beta - d(a, n) + \gamma]_+

    The boundaries ``beta`` are ``[classes]`` or ``[1]``.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 9, which lacks
    the hinges and m, after Wu et al., "Sampling Matters in Deep Embedding Learning" (ICCV 2017),
    without their penalty of large boundaries (nu = 0).
    """

    name = "margin"

    class Parameters(PluginParameters):
        """Values of D.3, and two choices that the paper leaves open.

        ``boundaries``: one per class (of the anchor, as in the published code of Roth et al.) or
        one ``shared`` by all (as printed). ``divisor`` m: the number of ``triplets`` of which a
        pair has a loss (the published code), or of such ``pairs`` (Wu et al.).
        """

        margin: float = Field(0.2, ge=0, description="gamma: width of the boundary, on either side")
        beta: float = Field(1.2, gt=0, description="distance of the boundary at first")
        learning_rate: float = Field(5e-4, ge=0, description="of the boundaries; 0 fixes them")
        boundaries: Literal["class", "shared"] = "class"
        divisor: Literal["triplets", "pairs"] = "triplets"

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, classes, dimensions, randomness)
        count = classes if hparams.boundaries == "class" else 1
        self.beta = nn.Parameter(torch.full((count,), hparams.beta))

    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        anchor, positive, negative = (embeddings[places] for places in triplets)
        shared = len(self.beta) == 1
        beta = self.beta if shared else self.beta[labels[triplets.anchor]]
        margin = self.hparams.margin
        near = torch.linalg.vector_norm(anchor - positive, dim=1)
        far = torch.linalg.vector_norm(anchor - negative, dim=1)
        too_far = (near - beta + margin).relu()
        too_near = (beta - far + margin).relu()
        if self.hparams.divisor == "triplets":
            active = ((too_far > 0) | (too_near > 0)).sum()
        else:
            active = (too_far > 0).sum() + (too_near > 0).sum()
        return (too_far + too_near).sum() / active.clamp(min=1)


class Triplet(MinedObjective):
    r"""Triplet loss (Definition 8).

    A negative has to be farther from the anchor than the positive, by a margin.

    .. math:: \frac{1}{t} \sum_{(a, p, n)} [d(a, p) - d(a, n) + \gamma]_+

    over t triplets, including those without a loss.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 8; the loss
    is pytorch-metric-learning's.
    """

    name = "triplet"

    class Parameters(PluginParameters):
        """The margin of D.3, and the distance.

        ``distance``: as printed (``euclidean``), or its square (``squared``, Schroff et al.).
        """

        margin: float = Field(0.2, gt=0, description="gamma: how much farther a negative has to be")
        distance: Literal["euclidean", "squared"] = "euclidean"

    def __init__(
        self, hparams: Parameters, classes: int, dimensions: int, randomness: Randomness
    ) -> None:
        from pytorch_metric_learning import distances, losses, reducers

        super().__init__(hparams, classes, dimensions, randomness)
        power = 2 if hparams.distance == "squared" else 1
        self.loss = losses.TripletMarginLoss(
            hparams.margin,
            distance=distances.LpDistance(normalize_embeddings=False, power=power),
            reducer=reducers.MeanReducer(),
        )

    def of_triplets(self, embeddings: Rows, labels: Labels, triplets: Triplets) -> Loss:
        return self.loss(embeddings, labels, tuple(triplets))
