"""N-pair loss (Definition 10)."""

from typing import Literal

import torch
from pydantic import Field
from torch.nn.functional import softplus

from robust_fairness.core.registry import PluginParameters
from robust_fairness.miners.base import Labels, Rows
from robust_fairness.objectives.base import BatchObjective, Loss


class NPair(BatchObjective):
    r"""A positive has to be more similar than all negatives of a batch together.

    .. math:: \frac{1}{b} \sum_{(a, p)} \log (1 + \sum_n \exp(a^T n - a^T p))
              + \frac{\nu}{b} \sum_i |x_i|^2

    Over all pairs of a class; embeddings are not normalised. pytorch-metric-learning's NTXentLoss
    at temperature 1 has the same value with two rows per class, but is slower and has no gradient
    for very similar negatives.

    Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), Definition 10.
    """

    class Parameters(PluginParameters):
        """The regularisation of D.3.

        ``regularised``: squared norms of the embeddings (``squared_norm``, as printed) or the norms
        themselves (``norm``, the published code of Roth et al.).
        """

        regularisation: float = Field(0.005, ge=0, description="nu")
        regularised: Literal["squared_norm", "norm"] = "squared_norm"

    normalised = False

    def of_batch(self, embeddings: Rows, labels: Labels) -> Loss:
        similarity = embeddings @ embeddings.T
        different = labels[:, None] != labels
        same = ~different
        same.fill_diagonal_(False)
        negatives = similarity.masked_fill(~different, -torch.inf).logsumexp(1, keepdim=True)
        excess = (negatives - similarity).masked_fill(~same, -torch.inf)
        loss = softplus(excess).sum() / len(embeddings)
        squared = self.hparams.regularised == "squared_norm"
        sizes = (
            embeddings.square().sum(1) if squared else torch.linalg.vector_norm(embeddings, dim=1)
        )
        return loss + self.hparams.regularisation * sizes.mean()
