"""Plug-ins by name: of the package, of a project's ``plugins/`` folder, of installed packages.

A plug-in of the package is the file of that name in the packages of its kind:
``bench/methods/jtt.py`` is the method ``jtt``; a file whose classes state a ``name`` holds several.
One of a project is a file below its ``plugins/`` folder (``plugins/methods/mine.py``), one of an
installed package an entry point of the group ``robust_fairness.methods``. Listing the names imports
nothing.
"""

import ast
import re
import sys
from contextlib import chdir
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from inspect import isabstract
from os import environ
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.files import ROOT

PACKAGES = {
    "method": ("bench/methods",),
    "dataset": (
        "bench/datasets/tables",
        "bench/datasets/images",
        "bench/datasets/questions",
        "bench/datasets/generated",
    ),
    "shift": ("bench/shifts",),
    "network": (
        "bench/models/tables",
        "bench/models/images",
        "bench/models/questions",
        "bench/models/embeddings",
        "bench/estimators",
    ),
    "objective": ("bench/objectives",),
    "miner": ("bench/miners",),
    "metric": ("metrics", "bench/metrics"),
    "postprocessing": ("auditing/repair",),
}
# The folder of a kind in ``plugins/``, and its group of entry points. Users have written them: they
# stay, wherever the package keeps its own.
GROUPS = {
    "method": "methods",
    "dataset": "datasets",
    "shift": "shifts",
    "network": "models",
    "objective": "objectives",
    "miner": "miners",
    "metric": "metrics",
    "postprocessing": "postprocessing",
}
BASE = "base"
Place = tuple[Path, str] | EntryPoint  # a file and its module, or an entry point
PLUGINS = "robust_fairness_plugins"  # package of a project's plug-ins
PROJECT_FOLDER = "ROBUST_FAIRNESS_PLUGINS"
STATED = re.compile(r'^    name = "(\w+)"$', re.MULTILINE)  # name of a class, where it states one


class Hyperparameters(BaseModel):
    """Fields that trials change: immutable, finite, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @property
    def searched(self) -> set[str]:
        """Names that trials may change."""
        return set(type(self).model_fields)

    def changed(self, name: str, value: Any) -> Any:
        """The same with another value of one of ``searched``."""
        return type(self).model_validate(self.model_dump() | {name: value})


class PluginParameters(Hyperparameters):
    """Parameters of a plug-in."""


class Plugin:
    """What every kind of plug-in shares; the base class of the kind says what else it does.

    Attributes:
        name: what configuration calls it: the name of its file unless the class says otherwise.
        Parameters: its parameters, all with defaults where it can be named without any; default:
            none.
    """

    name: ClassVar[str]
    Parameters: ClassVar[type[BaseModel]] = PluginParameters

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            cls.name = cls.__module__.rpartition(".")[2]


def plugins_folder() -> Path:
    """The folder of a project's own plug-ins: ``ROBUST_FAIRNESS_PLUGINS``, or ``plugins``."""
    return Path(environ.get(PROJECT_FOLDER) or "plugins")


def _files(folder: Path, package: str) -> dict[str, tuple[Path, str]]:
    """The files of a folder that are plug-ins with their modules, by name."""
    return {
        path.stem: (path, f"{package}.{path.stem}")
        for path in sorted(folder.glob("*.py"))
        if path.stem[0] != "_" and path.stem != BASE
    }


@cache
def _own(kind: str) -> dict[str, tuple[Path, str]]:
    """The package's own plug-ins of a kind; they do not change."""
    return {
        name: place
        for package in PACKAGES[kind]
        for place in _files(ROOT / package, f"{ROOT.name}.{package.replace('/', '.')}").values()
        for name in STATED.findall(place[0].read_text(encoding="utf-8")) or [place[0].stem]
    }


@cache
def _installed(kind: str) -> tuple[EntryPoint, ...]:
    """The plug-ins of installed packages; reading their metadata is slow."""
    return tuple(entry_points(group=f"{ROOT.name}.{GROUPS[kind]}"))


def _found(kind: str) -> dict[str, Place]:
    """Where the plug-ins of a kind are, by name."""
    group = GROUPS[kind]
    offered: list[tuple[str, Place]] = [
        *_files(plugins_folder() / group, f"{PLUGINS}.{group}").items(),
        *((entry.name, entry) for entry in _installed(kind)),
    ]
    places: dict[str, Place] = {**_own(kind)}
    for name, place in offered:
        if name in places:
            raise InputError(
                f"{kind} {name!r}: two plug-ins have this name ({places[name]}, {place})"
            )
        places[name] = place
    return places


def is_outside(module: str) -> bool:
    """Whether a module belongs to a plug-in that is not the package's own."""
    installed = {entry.module.partition(".")[0] for kind in PACKAGES for entry in _installed(kind)}
    return module.partition(".")[0] in {PLUGINS, *installed}


def outside_files(kind: str) -> list[Path]:
    """Source files of the plug-ins of a kind that are not the package's own."""
    sources = set((plugins_folder() / GROUPS[kind]).rglob("*.py"))
    for entry in _installed(kind):
        spec = find_spec(entry.module)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            inside = "." in entry.module or origin.name == "__init__.py"
            sources |= set(origin.parent.rglob("*.py")) if inside else {origin}
    return sorted(sources)


def descriptions(kind: str) -> dict[str, str]:
    """What every plug-in of a kind is, by name; imports nothing.

    The first line of its file or, in a file of several, of its class.
    """
    lines = {}
    for name, place in sorted(_found(kind).items()):
        file, constants = _read(place)
        classes = {value: node for node, _, value in constants}
        text = ast.get_docstring(classes[name] if len(classes) > 1 and name in classes else file)
        lines[name] = (text or "").partition("\n")[0]
    return lines


def stated(kind: str, name: str) -> dict[str, Any]:
    """Constants that the class of a plug-in states in its own file, by name; imports nothing.

    >>> stated("dataset", "biased_mnist")["derivation"]
    'synthesise_images'
    """
    place = _found(kind).get(name)
    return {target: value for _, target, value in _read(place)[1]} if place else {}


def _read(place: Place) -> tuple[ast.Module, list[tuple[ast.ClassDef, str, Any]]]:
    """The file of a plug-in, and the constants that its classes state: class, name and value."""
    source = None if isinstance(place, EntryPoint) else place[0]
    if isinstance(place, EntryPoint) and (spec := find_spec(place.module)) and spec.origin:
        source = Path(spec.origin)
    file = ast.parse(source.read_bytes() if source else b"")
    return file, [
        (node, ast.unparse(item.targets[0]), item.value.value)
        for node in file.body
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant)
    ]


def names(kind: str) -> list[str]:
    """Names of all plug-ins of one kind, sorted."""
    return sorted(_found(kind))


def find(kind: str, name: str) -> Any:
    """The class of the plug-in ``name``: the one ``Plugin`` that its file defines.

    Raises:
        InputError: there is no such plug-in, or it cannot be imported or lacks a method.
    """
    places = _found(kind)
    if name not in places:
        raise unknown_name(kind, name, places)
    place = places[name]
    if isinstance(place, EntryPoint):
        return _complete(place.load(), place.value)
    return _class_of(_imported(*place), kind, name)


@cache
def _class_of(file: ModuleType, kind: str, name: str) -> Any:
    classes = [
        value
        for value in vars(file).values()
        if isinstance(value, type)
        and issubclass(value, Plugin)
        and value.__module__ == file.__name__
        and value.name == name
    ]
    if len(classes) != 1:
        raise InputError(f"{file.__file__}: {len(classes)} {kind}s, allowed: one class")
    return _complete(classes[0], str(file.__file__))


def _complete(plugin: Any, place: str) -> Any:
    """The plug-in, if it defines what its base class asks for."""
    if isabstract(plugin):
        missing = ", ".join(sorted(plugin.__abstractmethods__))
        raise InputError(f"{place}: class {plugin.__name__} does not define {missing}")
    return plugin


def _imported(path: Path, name: str) -> ModuleType:
    """Import a file under a name; a file of the package as every import does."""
    if path.is_relative_to(ROOT):
        return import_module(name)
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise InputError(f"{path}: not a Python file")
        sys.modules[name] = module_from_spec(spec)
        try:
            with chdir("."):  # a plug-in may leave it
                spec.loader.exec_module(sys.modules[name])
        except (Exception, SystemExit) as error:  # of a user's own code, of any type
            del sys.modules[name]
            lines = [
                frame.lineno
                for frame in extract_tb(error.__traceback__)
                if frame.filename == str(path)
            ]
            where = f"{path}:{lines[-1]}" if lines else path
            moved = isinstance(error, ImportError) and (error.name or "").startswith(
                f"{ROOT.name}."
            )
            remedy = f"; what a plug-in imports is in {ROOT.name}.plugins" if moved else ""
            raise InputError(
                f"{where}: {type(error).__name__}: {first_line(error)}{remedy}"
            ) from error
    return sys.modules[name]


def load(kind: str) -> None:
    """Import all plug-ins of a kind, for one of which a file may define several."""
    for place in _found(kind).values():
        if isinstance(place, EntryPoint):
            place.load()
        else:
            _imported(*place)
