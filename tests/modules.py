"""Python files that are in no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def module(path: Path) -> ModuleType:
    """A file, by itself, which may import others of its folder."""
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
