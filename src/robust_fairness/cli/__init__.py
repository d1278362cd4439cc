"""The commands of the project; Kedro looks for ``cli`` here."""

from robust_fairness.cli.commands import cli

__all__ = ["cli"]
