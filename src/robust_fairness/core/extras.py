"""Extras of the installation: which of them brings a missing package, and whether versions fit.

What an extra needs is read from the metadata of this package.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import ROOT

# Distributions of modules with another name.
DISTRIBUTIONS = {
    "PIL": "pillow", "dask": "distributed", "pluggy": "kedro", "skimage": "scikit-image",
    "sklearn": "scikit-learn",
}  # fmt: skip
OF_DEVELOPERS = ("dev", "docs")
REQUIREMENT = re.compile(
    r"^([\w.-]+)(?:\[.*?])?([^;\n]*);.*\bextra == ['\"](\w+)['\"]", re.MULTILINE
)
BOUND = re.compile(r"(>=|<|~=)\s*([\d.]+)")


@cache
def requirements() -> dict[str, dict[str, str]]:
    """Distributions that every extra needs with bounds of their versions; small extras first."""
    needed: dict[str, dict[str, str]] = {}
    for name, bounds, extra in REQUIREMENT.findall("\n".join(requires(ROOT.name) or ())):
        if extra not in OF_DEVELOPERS:
            needed.setdefault(extra, {})[name] = bounds.strip()
    return dict(sorted(needed.items(), key=lambda item: len(item[1])))


def command(extra: str) -> str:
    """The command that installs an extra."""
    return f'pip install "robust-fairness[{extra}]"'


def extra_of(module: str) -> str | None:
    """The smallest extra that brings a module; None if none does."""
    top = module.partition(".")[0]
    name = DISTRIBUTIONS.get(top, top.replace("_", "-"))
    return next((extra for extra, needed in requirements().items() if name in needed), None)


def require_versions(what: str, extra: str) -> None:
    """Check the versions of the installed packages of an extra.

    Raises:
        InputError: a version does not fit; the message names it and what ``what`` needs.
    """
    for name, bounds in requirements().get(extra, {}).items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        if not fits(installed, bounds):
            raise InputError(f"{what} needs {name}{bounds}, not {installed}: {command(extra)}")


def fits(installed: str, bounds: str) -> bool:
    """Whether a version is within bounds such as ``>=5.24,<6`` or ``~=1.7.0``.

    >>> fits("5.25", ">=5.24,<6"), fits("6.0", ">=5.24,<6"), fits("1.8.0", "~=1.7.0")
    (True, False, False)
    """
    release = _numbers(installed)
    for sign, text in BOUND.findall(bounds):
        if (release < _numbers(text)) != (sign == "<"):
            return False
        if sign == "~=" and not f"{installed}.".startswith(f"{text.rpartition('.')[0]}."):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    """The release of a version, without zeros at its end."""
    release = re.match(r"[\d.]*", text)
    numbers = [int(part) for part in (release[0] if release else "").split(".") if part]
    while numbers[-1:] == [0]:
        numbers.pop()
    return tuple(numbers)


@contextmanager
def needed_by(what: str, extra: str | None = None) -> Iterator[None]:
    """Say in one line what is missing of the installation, a package of an extra or a file.

    Args:
        what: what needs the package.
        extra: named instead of the extra of the package, where more than that will be missing.

    Raises:
        InputError: a package of an extra, or a file of this package, is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = extra_of(error.name or "")
        if missing is None:
            raise
        raise InputError(f"{what} needs: {command(extra or missing)}") from None
    except FileNotFoundError as error:
        if not Path(error.filename or "").is_relative_to(ROOT):
            raise
        raise InputError(
            f"{error.filename}: not in this installation; install robust-fairness again"
        ) from None
