"""Losses of single rows, over leading axes."""

from torch import Tensor
from torch.nn import functional

ABSENT = -1e15  # logit of a class without training rows: its square is finite in float32


def mean_where(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``[..., row]`` over the rows where ``mask`` holds; 0 where it holds for none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)


def task_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, or squared error of a continuous outcome, of every row, ``[..., row]``.

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


def binary_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Sum over classes of the binary cross-entropy of each, of every row ``[..., row]``.

    The target is 1 for the class ``[..., row]`` and 0 for the others, of logits ``[..., row,
    class]``.
    """
    return functional.softplus(logits).sum(-1) - logits.gather(-1, y.unsqueeze(-1)).squeeze(-1)
