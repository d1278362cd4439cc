"""Names of methods, datasets, shifts and networks: each is the file of that name in its room.

Adding one is adding a file: ``methods/cuma.py`` is the method ``cuma``. Listing the names
reads the folder only, so that no heavy library is imported until a thing is used.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from robust_fairness.errors import unknown_name

Thing = TypeVar("Thing")

ROOMS = {
    "method": "methods",
    "dataset": "datasets",
    "shift": "shifts",
    "network": "models",
    "objective": "objectives",
    "miner": "miners",
}


def names(kind: str) -> list[str]:
    """Names of all things of one kind, sorted.

    Args:
        kind: key of ``ROOMS``, such as "method".
    """
    room = import_module(f"robust_fairness.{ROOMS[kind]}")
    return sorted(module.name for module in iter_modules(room.__path__) if module.name[0] != "_")


def find(kind: str, name: str) -> ModuleType:
    """Import the module that holds the thing ``name``.

    Raises:
        InputError: no such name; the message gives the nearest ones.
    """
    if name not in names(kind):
        raise unknown_name(kind, name, names(kind))
    return import_module(f"robust_fairness.{ROOMS[kind]}.{name}")


def find_class(kind: str, name: str, base: type[Thing]) -> type[Thing]:
    """The one subclass of ``base`` that the file of the thing ``name`` defines.

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
