"""What a plug-in imports: base classes and what they take, by one name each (docs/adding).

``from robust_fairness.plugins import Method, Step`` imports the module that defines them, and
nothing further.
"""

from importlib import import_module
from typing import Any

_MODULES = {
    "auditing.repair.base": ("Decisions", "PostProcessing", "PostProcessingParameters"),
    "bench.datasets.base": (
        "Dataset", "ImageDataset", "TableDataset", "TableParameters", "TypedTable",
    ),
    "bench.estimators.base": ("Estimator",),
    "bench.methods.base": (
        "Batch", "GroupMethodParameters", "Method", "MethodParameters", "Problem", "Step",
        "require_softmax",
    ),
    "bench.miners.base": ("Miner",),
    "bench.models.base": ("Model", "SingleModel", "require_features", "require_images"),
    "bench.models.fixed_features": ("FixedFeatures",),
    "bench.models.randomness": ("DropoutNoise", "Randomness"),
    "bench.objectives.base": ("BatchObjective", "MinedObjective", "Objective"),
    "bench.shifts.base": ("ImageShift", "LatentShift", "SampleShift"),
    "core.errors": ("InputError",),
    "core.raw_files": ("Files",),
    "core.registry": ("PluginParameters",),
    "core.samples": ("Samples",),
    "metrics": ("Undefined", "gap", "measure", "quantity"),
}  # fmt: skip
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A name of ``__all__``, imported when it is first used."""
    if name == "__all__":
        return sorted(_PLACES)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_PLACES)
