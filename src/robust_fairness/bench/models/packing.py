"""Questions on images packed into one vector per row."""

import torch
from torch import Tensor

from robust_fairness.core.questions import QuestionShape


def packed(tokens: Tensor, counts: Tensor, features: Tensor, dtype: torch.dtype) -> Tensor:
    """Pack questions and their images into one vector per row, ``[..., number]``.

    ``tokens`` are int ``[..., word]``, ``counts`` the numbers of boxes ``[...]`` (both represented
    exactly in float32), and ``features`` ``[..., box, feature]``.
    """
    boxes = features.shape[-2] * features.shape[-1]
    width = tokens.shape[-1] + 1 + boxes
    row = torch.empty((*tokens.shape[:-1], width), dtype=dtype, device=features.device)
    row[..., : tokens.shape[-1]] = tokens
    row[..., tokens.shape[-1]] = counts
    row[..., -boxes:].view(features.shape).copy_(features)
    return row


def unpacked(x: Tensor, shape: QuestionShape) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens int64 ``[..., word]``, numbers of boxes int64 ``[...]`` and their features."""
    tokens = x[..., : shape.tokens].long()
    features = x[..., shape.tokens + 1 :].unflatten(-1, (shape.boxes, shape.features))
    return tokens, x[..., shape.tokens].long(), features
