"""Plug-ins by name: each is the file of that name in the packages of its kind.

Adding one is adding a file: ``methods/cuma.py`` is the method ``cuma``. Listing the names
reads the folders only, so that no heavy library is imported until a plug-in is used.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from robust_fairness.core.errors import unknown_name

Thing = TypeVar("Thing")

PACKAGES = {
    "method": ("methods",),
    "dataset": (
        "datasets.tables",
        "datasets.images",
        "datasets.questions",
        "datasets.generated",
    ),
    "shift": ("shifts",),
    "network": ("models.tables", "models.images", "models.questions", "models.embeddings"),
    "objective": ("objectives",),
    "miner": ("miners",),
}
NO_PLUGINS = ("base", "own_tables", "streamed")


def _found(kind: str) -> dict[str, str]:
    """Modules of one kind by name."""
    packages = [import_module(f"robust_fairness.{name}") for name in PACKAGES[kind]]
    return {
        module.name: f"{package.__name__}.{module.name}"
        for package in packages
        for module in iter_modules(package.__path__)
        if module.name[0] != "_" and module.name not in NO_PLUGINS
    }


def names(kind: str) -> list[str]:
    """Names of all plug-ins of one kind, sorted.

    Args:
        kind: key of ``PACKAGES``, such as "method".
    """
    return sorted(_found(kind))


def find(kind: str, name: str) -> ModuleType:
    """Import the module that holds the plug-in ``name``.

    Raises:
        InputError: no such name; the message gives the nearest ones.
    """
    found = _found(kind)
    if name not in found:
        raise unknown_name(kind, name, found)
    return import_module(found[name])


def find_class(kind: str, name: str, base: type[Thing]) -> type[Thing]:
    """The one subclass of ``base`` that the file of the plug-in ``name`` defines.

    Raises:
        InputError: no such name; the message gives the nearest ones.
    """
    module = find(kind, name)
    (found,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == module.__name__
    )
    return found


def find_metric(name: str) -> Any:
    """The metric ``name``; metrics are functions, several to a file, found by their own registry.

    Raises:
        InputError: no such name; the message gives the nearest ones.
    """
    return import_module("robust_fairness.metrics").find_metric(name)
