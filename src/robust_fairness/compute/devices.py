"""Devices by name."""

import torch

from robust_fairness.core.errors import InputError


def device_named(name: str, field: str) -> torch.device:
    """The device ``cpu``, ``cuda`` or ``auto``: the GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{field}: no cuda device available; allowed: auto, cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)
