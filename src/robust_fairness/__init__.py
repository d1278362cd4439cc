"""Robust fairness: does a model stay fair when the data change?

``import robust_fairness as rf`` imports nothing further until a name is used:

- ``rf.audit(frame, y_true=..., y_pred=..., sensitive_features=[...])`` audits predictions;
- ``rf.metrics.equalized_odds_difference(y_true, y_pred, sensitive_features=...)`` and all other
  metrics are functions of arrays;
- ``rf.datasets()``, ``rf.methods()``, ``rf.networks()``, ``rf.shifts()`` list what there is;
- ``rf.load("adult")`` reads a dataset, ``rf.train`` trains a method on it, ``rf.evaluate`` scores
  it under shifts;
- ``rf.Cuma()`` and every other method is a scikit-learn classifier.
"""

from typing import Any

__version__ = "0.1.0"

_LIBRARY = "robust_fairness.library"
_PACKAGES = ("datasets", "methods", "metrics", "shifts")
_FUNCTIONS = {
    "audit": "auditing",
    "evaluate": "training",
    "load": "training",
    "networks": "listing",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used."""
    from importlib import import_module

    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return vars(import_module(f"{_LIBRARY}.{_FUNCTIONS[name]}"))[name]
    if name[:1].isupper():
        return import_module(f"{_LIBRARY}.estimators").estimator_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from importlib import import_module

    classes = import_module(f"{_LIBRARY}.estimators").class_names()
    return sorted(["__version__", *_PACKAGES, *_FUNCTIONS, *classes])
