"""The console script ``robust-fairness``: the project's commands."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import robust_fairness
from robust_fairness.cli.main import COMMANDS, CORE, cli

LOGGING = Path("conf/logging.yml")


def main() -> None:
    """Set up Kedro for the commands that need it, and run."""
    if any(word in COMMANDS and word not in CORE for word in sys.argv[1:2]):
        with suppress(ModuleNotFoundError):  # the command says which extra it needs
            _set_up()
    cli()


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
