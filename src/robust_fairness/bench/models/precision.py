"""Passes of a network in bfloat16 while it trains."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from robust_fairness.bench.models.base import Model

Pass = Callable[..., Tensor]

PASSES = ("early", "late", "features", "head", "forward")


def in_bfloat16(network: Model, device: torch.device) -> Model:
    """Let a network compute in bfloat16 in training mode, and in float32 otherwise.

    torch's autocast decides which operations do. Weights, gradients and all results are float32,
    and so are the losses and penalties that methods compute from them.
    """
    for module in network.modules():
        if isinstance(module, Model):  # a backbone is one, too
            for name in PASSES:
                setattr(module, name, _mixed(module, getattr(module, name), device.type))
    return network


def _mixed(network: Model, one_pass: Pass, device: str) -> Pass:
    def run(*args: Any, **options: Any) -> Tensor:
        if not network.training or torch.is_autocast_enabled(device):
            return one_pass(*args, **options)
        with torch.autocast(device, torch.bfloat16):
            return one_pass(*args, **options).float()

    return run
