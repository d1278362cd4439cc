"""The console script ``robust-fairness``: the project's commands."""

from pathlib import Path

from kedro.framework.project import configure_project
from kedro.framework.startup import bootstrap_project
from kedro.utils import find_kedro_project

from robust_fairness.cli.main import cli


def main() -> None:
    """Set up the project around the current folder, or the package alone, and run the command."""
    root = find_kedro_project(Path.cwd())
    if root is None:
        configure_project("robust_fairness")
    else:
        bootstrap_project(root)
    cli()


if __name__ == "__main__":
    main()
