"""The console script ``robust-fairness``: the project's commands."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import robust_fairness
from robust_fairness.cli.main import COMMANDS, CORE, cli

LOGGING = Path("conf/logging.yml")


def main(args: Sequence[str] | None = None, **options: Any) -> Any:
    """Set up Kedro for the commands that need it, and run.

    Args:
        args: words of the command; default: those of the command line. As in every packaged
            project of Kedro, options alone are those of ``run``.
        options: those of ``click.Command.main``.
    """
    words = list(sys.argv[1:] if args is None else args)
    if words and words[0][:1] == "-" and words[0] not in ("--help", "--version"):
        words = ["run", *words]
    if any(word in COMMANDS and word not in CORE for word in words[:1]):
        with suppress(ModuleNotFoundError):  # the command says which extra it needs
            _set_up()
    return cli.main(words, **options)


def _set_up() -> None:
    """Set up the project around the current folder, or else the package alone."""
    if not LOGGING.exists():  # Kedro reads the variable when it is imported
        own = Path(robust_fairness.__file__).parent / LOGGING
        os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(own))
    os.environ.setdefault("DO_NOT_TRACK", "true")  # usage data of Kedro and MLflow
    from kedro.framework.project import configure_project
    from kedro.framework.startup import bootstrap_project
    from kedro.utils import find_kedro_project

    root = find_kedro_project(Path.cwd())
    if root is None:
        configure_project("robust_fairness")
    else:
        bootstrap_project(root)


if __name__ == "__main__":
    main()
