"""Projects: folders in which every command, ``kedro run`` and Kedro-Viz work."""

import json
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path

import kedro

from robust_fairness import __version__
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import CONF, require_plain

PYPROJECT = """\
# Marks the folder as a Kedro project that uses robust_fairness.
[tool.kedro]
package_name = "{package}"
project_name = {name}
kedro_init_version = "{version}"
source_dir = "src"
"""
SETTINGS = """\
# Settings of the project: those of robust_fairness; add hooks of your own to HOOKS.
from robust_fairness.settings import *  # noqa: F403
"""
REGISTRY = """\
# The pipelines of robust_fairness, and those that `kedro pipeline create` makes.
from robust_fairness.pipeline_registry import register_pipelines  # noqa: F401
"""
COMMANDS = """\
# The commands of robust_fairness, for `kedro`.
from robust_fairness.cli import cli  # noqa: F401
"""
REQUIREMENTS = """\
# What the project needs: pip install -r requirements.txt
robust-fairness[all]=={version}
"""
GRID = """\
# A copy to read: what `run` and `check` do without --datasets. What conf/local/experiment.yml says
# is added. Other grids: --env natural (with domains that are held out), demo, smoke.
"""
TELEMETRY = "consent: false\n"
FOLDERS = (
    "conf/base", "conf/local", "data/01_raw", "plugins/datasets", "plugins/methods",
    "plugins/metrics", "plugins/models", "plugins/shifts",
)  # fmt: skip
TEMPLATES = Path(__file__).parent / "templates"


def create(folder: Path) -> list[Path]:
    """Make a project in a folder that does not exist or is empty; returns the files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists, allowed: a new or empty folder")
    require_plain(folder)
    name = folder.resolve().name
    package = package_name(name)
    files = {
        "pyproject.toml": PYPROJECT.format(
            name=json.dumps(name), package=package, version=kedro.__version__
        ),
        f"src/{package}/__init__.py": "",
        f"src/{package}/settings.py": SETTINGS,
        f"src/{package}/pipeline_registry.py": REGISTRY,
        f"src/{package}/cli.py": COMMANDS,
        f"src/{package}/pipelines/__init__.py": "",
        "README.md": _template("README.md").format(name=name),
        ".gitignore": _template("gitignore"),
        ".telemetry": TELEMETRY,
        "requirements.txt": REQUIREMENTS.format(version=__version__),
        "conf/default_grid.yml": GRID + (CONF / "base/experiment.yml").read_text(encoding="utf-8"),
        "conf/logging.yml": (CONF / "logging.yml").read_text(encoding="utf-8"),
        "notebooks/first_look.ipynb": _template("first_look.ipynb"),
        **{f"{folder}/.gitkeep": "" for folder in FOLDERS},
    }
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from error
    return [folder / path for path in files]


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def package_name(name: str) -> str:
    """The name of a folder as that of a Python package that is not installed.

    >>> package_name("2nd study: Müller")
    'project_2nd_study__m_ller'
    """
    package = "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())
    is_taken = not package.isidentifier() or iskeyword(package) or find_spec(package) is not None
    return f"project_{package}" if is_taken else package


def is_project(folder: Path) -> bool:
    """Whether a folder is a project of this package."""
    from kedro.utils import is_kedro_project

    return bool(is_kedro_project(folder)) and "robust_fairness" in (
        folder / "pyproject.toml"
    ).read_text(encoding="utf-8")
