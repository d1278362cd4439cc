"""Devices by name, and the same bits on a GPU as far as cuDNN goes."""

from contextlib import AbstractContextManager

import torch

from robust_fairness.core.errors import InputError


def device_named(name: str, field: str) -> torch.device:
    """The device ``cpu``, ``cuda`` or ``auto``: the GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{field}: no cuda device available; allowed: auto, cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def same_every_time() -> AbstractContextManager[None]:
    """A block in which cuDNN uses deterministic algorithms only; TF32 as torch is set."""
    cudnn = torch.backends.cudnn
    tensor_cores = cudnn.allow_tf32
    return cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=tensor_cores)
