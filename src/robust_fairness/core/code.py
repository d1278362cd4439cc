"""Which code is running: hashes of sources, and versions of the packages that numbers depend on."""

import hashlib
import os
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from robust_fairness.core.files import ROOT, sha256_of
from robust_fairness.core.registry import PACKAGES as KINDS
from robust_fairness.core.registry import outside_files, plugins_folder

SOURCES = ("*.py", "*.yml", "*.bib")
# Packages that numbers depend on, as far as they are installed.
PACKAGES = (
    "robust-fairness", "diffusers", "kedro", "lightgbm", "numpy", "optuna", "pandas", "pillow",
    "pyarrow", "pytorch-metric-learning", "safetensors", "scikit-image", "scikit-learn", "scipy",
    "torch", "torchvision", "xgboost",
)  # fmt: skip


def code() -> dict[str, str]:
    """SHA-256 of the sources of this package, of all plug-ins outside of it and of the project.

    The project is that of the current folder, unless it is this package's own.
    """
    plugins = [path for kind in KINDS for path in outside_files(kind)]
    file = Path("pyproject.toml")
    tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}) if file.exists() else {}
    project = Path(tools.get("kedro", {}).get("source_dir", "src")).resolve()
    is_others = "kedro" in tools and not ROOT.is_relative_to(project)
    return {
        "package": _imported(ROOT),
        "plugins": _digest(plugins_folder(), plugins),
        "project": _imported(project) if is_others else "",
    }


def code_id() -> str:
    """``code`` in short: the first digits of each hash."""
    return "-".join(digest[:12] for digest in code().values())


@cache
def packages() -> dict[str, str]:
    """Versions of installed packages."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


@cache
def _imported(folder: Path) -> str:
    """The sources that this process imports; later changes of the files change nothing."""
    return _digest(folder)


def _digest(folder: Path, others: Iterable[Path] = ()) -> str:
    """SHA-256 of the names and contents of the sources in a folder, and of other files."""
    paths = {*others, *(path for kind in SOURCES for path in folder.rglob(kind))}
    files = (path for path in sorted(paths) if path.is_file())  # editors leave dangling links
    lines = [f"{os.path.relpath(path, folder)} {sha256_of(path)}" for path in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
