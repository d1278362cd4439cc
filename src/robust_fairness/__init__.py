"""Robust fairness: does a model stay fair when the data change?

``import robust_fairness as rf`` imports nothing further until a name is used:

- ``rf.audit(frame, y_true=..., y_pred=..., sensitive_features=[...])`` audits predictions;
- ``rf.metrics.equalized_odds_difference(y_true, y_pred, sensitive_features=...)`` and all other
  metrics are functions of arrays;
- ``rf.datasets()``, ``rf.methods()``, ``rf.networks()``, ``rf.shifts()`` list what there is;
- ``rf.load("adult")`` reads a dataset, ``rf.train`` trains a method on it, ``rf.evaluate`` scores
  it under shifts;
- ``rf.Cuma()`` and every other method is a scikit-learn classifier.

The audit and the metrics need no extra, the others ``pip install "robust-fairness[train]"``.
"""

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

# Where the public names are, except the classes of methods; "" are packages.
_PLACES = {
    "audit": "library.auditing",
    "datasets": "",
    "evaluate": "library.training",
    "load": "library.training",
    "methods": "",
    "metrics": "",
    "networks": "library.listing",
    "shifts": "",
    "train": "library.training",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used; ``__init__.pyi`` describes them."""
    if name not in _PLACES and not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors = import_module(f"{__name__}.core.errors")
    extras = import_module(f"{__name__}.core.extras")
    what, module = f"{__name__}.{name}", _PLACES.get(name, "library.estimators")
    try:
        with extras.needed_by(what):
            if module in ("library.estimators", "library.training"):
                extras.require_versions(what, "train")
            imported = import_module(f"{__name__}.{module or name}")
            return getattr(imported, name) if module else imported
    except errors.InputError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    classes = import_module(f"{__name__}.library.listing").class_names()
    return sorted(["__version__", *_PLACES, *classes])


try:
    with open(f"{__file__}i", encoding="utf-8") as _stub:
        __doc__ = f"{__doc__}\n{_stub.read()}"
except FileNotFoundError:  # an incomplete installation
    pass
