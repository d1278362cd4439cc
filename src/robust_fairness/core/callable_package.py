"""Packages that can be called: ``rf.methods()`` beside the package ``robust_fairness.methods``."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package whose call is that of a function of the library, imported when it is needed."""

    library_module: str
    library_function: str

    def __call__(self, *args: Any, **options: Any) -> Any:
        return vars(import_module(self.library_module))[self.library_function](*args, **options)


def make_callable(package: str, module: str, function: str) -> None:
    """Let calls of a package, which calls this when it is imported, go to a function."""
    called = sys.modules[package]
    called.__class__ = CallablePackage
    vars(called).update(library_module=module, library_function=function)
