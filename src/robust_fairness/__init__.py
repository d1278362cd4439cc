"""Robust fairness: the benchmark of fairness that survives distribution shift."""

__version__ = "0.1.0"
