"""Means of losses of single rows."""

from torch import Tensor


def mean_where(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``[..., row]`` over the rows where ``mask`` holds; 0 where it holds for none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)
