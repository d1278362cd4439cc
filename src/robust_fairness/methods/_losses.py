"""Losses of single rows, over leading axes."""

from torch import Tensor
from torch.nn import functional


def task_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Loss of every row, ``[..., row]``: cross-entropy, or the squared error of an outcome.

    Args:
        outputs: logits ``[..., row, class]``, or predictions ``[..., row, 1]``.
        y: int64 classes, or float outcomes, ``[..., row]``.
    """
    if y.is_floating_point():
        return (outputs.squeeze(-1) - y).square()
    return cross_entropy(outputs, y)


def cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of every row ``[..., row]`` from logits ``[..., row, class]``."""
    losses = functional.cross_entropy(logits.flatten(0, -2), y.flatten(), reduction="none")
    return losses.view(y.shape)


def mean_where(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``[..., row]`` over the rows where ``mask`` holds; 0 where it holds for none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)
