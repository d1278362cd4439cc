"""What ``import robust_fairness as rf`` offers: the library without Kedro."""

from robust_fairness.library.listing import datasets, methods, networks, shifts
from robust_fairness.library.training import Trained, evaluate, load, train

__all__ = ["Trained", "datasets", "evaluate", "load", "methods", "networks", "shifts", "train"]
