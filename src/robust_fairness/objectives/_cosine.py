"""The cosine similarity that the library's losses are given."""

from typing import Any

from jaxtyping import Float
from pytorch_metric_learning.distances import CosineSimilarity
from torch import Tensor

from robust_fairness.models.layers import unit_length


class Cosine(CosineSimilarity):
    """Cosine similarity; that of a row of zeros is 0, with finite gradients."""

    def normalize(
        self, embeddings: Float[Tensor, "row dimension"], dim: int = 1, **options: Any
    ) -> Float[Tensor, "row dimension"]:
        return unit_length(embeddings)
