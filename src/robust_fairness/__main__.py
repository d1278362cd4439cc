"""The console script ``robust-fairness``: the project's commands."""

import os
from pathlib import Path

import robust_fairness

LOGGING = Path("conf/logging.yml")


def main() -> None:
    """Set up the project around the current folder, or else the package alone, and run."""
    if not LOGGING.exists():  # Kedro reads the variable when it is imported
        own = Path(robust_fairness.__file__).parent / LOGGING
        os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(own))
    os.environ.setdefault("DO_NOT_TRACK", "true")  # usage data of Kedro and MLflow
    from kedro.framework.project import configure_project
    from kedro.framework.startup import bootstrap_project
    from kedro.utils import find_kedro_project

    from robust_fairness.cli.main import cli

    root = find_kedro_project(Path.cwd())
    if root is None:
        configure_project("robust_fairness")
    else:
        bootstrap_project(root)
    cli()


if __name__ == "__main__":
    main()
