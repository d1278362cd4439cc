"""The console script ``robust-fairness``: the project's commands, from anywhere in the project."""

from pathlib import Path

from kedro.framework.startup import bootstrap_project
from kedro.utils import find_kedro_project

from robust_fairness.cli.main import cli


def main() -> None:
    """Set the project up where the current folder is in one, then run the command."""
    root = find_kedro_project(Path.cwd())
    if root is not None:
        bootstrap_project(root)
    cli()


if __name__ == "__main__":
    main()
