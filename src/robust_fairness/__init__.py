"""Robust fairness: does a model stay fair when the data change?

``import robust_fairness as rf`` imports nothing further until a name is used:

- ``rf.audit(frame, y_true=..., y_pred=..., sensitive_features=[...])`` audits predictions;
- ``rf.metrics.equalized_odds_difference(y_true, y_pred, sensitive_features=...)`` and all other
  metrics are functions of arrays;
- ``rf.datasets()``, ``rf.methods()``, ``rf.networks()``, ``rf.shifts()`` list what there is;
- ``rf.load("adult")`` reads a dataset, ``rf.train`` trains a method on it, ``rf.evaluate`` scores
  it under shifts;
- ``rf.Thresholds(model)`` repairs any classifier of scikit-learn's interface: Thresholds by group,
  so that rates of groups differ by a tolerance at most;
- ``rf.Cuma()`` and every other method is a scikit-learn classifier; ``help(rf.Cuma)`` documents its
  hyperparameters: AdvDebias, ChiSquareDro, Coral, Cuma, CvarDro, Dann, Dfr, DfrTrain, Donini, Erm,
  ExponentiatedGradient, Facl, Faircocco, Farmi, GridSearch, GroupDro, GroupUpweighting,
  ImportanceWeighting, Irmv1, Jtt, Laftr, Lff, Lisa, Lnl, MetricLearning, Mixup, Mmd, Parade, Rubi,
  SpectralDecoupling, Subsampling and Vrex.

The audit and the metrics need no extra, the repair ``pip install "robust-fairness[features]"``, the
others ``pip install "robust-fairness[train]"``.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; see __getattr__
    from robust_fairness import metrics as metrics
    from robust_fairness.auditing.library import audit as audit
    from robust_fairness.auditing.thresholds import Thresholds as Thresholds
    from robust_fairness.bench.classifiers import FairClassifier
    from robust_fairness.bench.library import evaluate as evaluate
    from robust_fairness.bench.library import load as load
    from robust_fairness.bench.library import train as train
    from robust_fairness.bench.listing import datasets as datasets
    from robust_fairness.bench.listing import methods as methods
    from robust_fairness.bench.listing import networks as networks
    from robust_fairness.bench.listing import shifts as shifts

    AdvDebias = ChiSquareDro = Coral = Cuma = CvarDro = Dann = Dfr = DfrTrain = FairClassifier
    Donini = Erm = ExponentiatedGradient = Facl = Faircocco = Farmi = GridSearch = FairClassifier
    GroupDro = GroupUpweighting = ImportanceWeighting = Irmv1 = Jtt = Laftr = Lff = FairClassifier
    Lisa = Lnl = MetricLearning = Mixup = Mmd = Parade = Rubi = FairClassifier
    SpectralDecoupling = Subsampling = Vrex = FairClassifier

__version__ = "2.0.0"

# Threads of OpenMP sleep while they wait for each other. By default they spin, which takes several
# times the CPU time where other processes use the cores. Read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Where the public names are, except the classes of methods; "" is a package.
_PLACES = {
    "Thresholds": "auditing.thresholds",
    "audit": "auditing.library",
    "datasets": "bench.listing",
    "evaluate": "bench.library",
    "load": "bench.library",
    "methods": "bench.listing",
    "metrics": "",
    "networks": "bench.listing",
    "shifts": "bench.listing",
    "train": "bench.library",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first used."""
    if name not in _PLACES and not name[:1].isupper():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors = import_module(f"{__name__}.core.errors")
    extras = import_module(f"{__name__}.core.extras")
    what, module = f"{__name__}.{name}", _PLACES.get(name, "bench.classifiers")
    try:
        extra = "train" if module in ("bench.classifiers", "bench.library") else None
        with extras.needed_by(what, extra):
            if extra is not None:
                extras.require_versions(what, extra)
            imported = import_module(f"{__name__}.{module or name}")
            return getattr(imported, name) if module else imported
    except errors.InputError as error:
        raise AttributeError(str(error)) from None


def __dir__() -> list[str]:
    classes = import_module(f"{__name__}.bench.listing").class_names()
    return sorted(["__version__", *_PLACES, *classes])
