"""Packages that can be called: ``rf.audit(...)`` beside the package ``robust_fairness.audit``."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package whose call is that of the function at ``call_target``, ``module:name``."""

    call_target: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return imported(self.call_target)(*args, **options)


def make_callable(package: str, target: str) -> None:
    """Let calls of a package, while it is imported, go to the function ``module:name``."""
    module = sys.modules[package]
    module.__class__ = CallablePackage
    vars(module)["call_target"] = target


def imported(target: str) -> Callable[..., Any]:
    """The object ``module:name``, imported when it is needed."""
    module, _, name = target.partition(":")
    found: Callable[..., Any] = vars(import_module(module))[name]
    return found
