"""Devices by name."""

import torch

from robust_fairness.core.errors import InputError


def device_named(name: str, field: str) -> torch.device:
    """The device of a name; ``auto`` takes the GPU where there is one.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        field: where the name was given, for the message.

    Raises:
        InputError: cuda is asked for and there is none.
    """
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{field}: no cuda device here; allowed: auto, cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)
