"""Runners that keep going: a failed cell fails alone, and the run can be completed later."""

from robust_fairness.runs.runners._dask import DaskRunner
from robust_fairness.runs.runners._keeps_going import (
    FAN_IN,
    KeepsGoing,
    Ledger,
    RunFailed,
    SequentialRunner,
    Stopped,
    WithFailures,
    completion,
    first_line,
)

__all__ = [
    "FAN_IN",
    "DaskRunner",
    "KeepsGoing",
    "Ledger",
    "RunFailed",
    "SequentialRunner",
    "Stopped",
    "WithFailures",
    "completion",
    "first_line",
]
