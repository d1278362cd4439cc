"""Datasets: raw files to samples, one dataset per file."""

from robust_fairness.core.callable_package import make_callable

make_callable(__name__, "robust_fairness.bench.listing", "datasets")
