"""Fault-tolerant runners: other cells run although one failed, and the run can be completed."""

from robust_fairness.runs.runners.dask_runner import DaskRunner
from robust_fairness.runs.runners.fault_tolerant import (
    FAN_IN,
    GPU,
    TRAINS,
    FaultTolerantRunner,
    RunFailed,
    SequentialRunner,
    Stopped,
    reason_of,
    remove,
)

__all__ = [
    "FAN_IN",
    "GPU",
    "TRAINS",
    "DaskRunner",
    "FaultTolerantRunner",
    "RunFailed",
    "SequentialRunner",
    "Stopped",
    "reason_of",
    "remove",
]
