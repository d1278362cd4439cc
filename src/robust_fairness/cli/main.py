"""The command line: Kedro's ``run`` with options for the grid, and the benchmark's own commands.

``kedro ...`` and ``robust-fairness ...`` have the same commands. A user's mistake ends with one
line on standard error and exit status 1, in ``audit`` with status 2: status 1 is a failed gate.
"""

from importlib import import_module
from typing import Any

import click

from robust_fairness import __version__
from robust_fairness.core.extras import command, extra_of

# Where the commands are, imported when one is used; CORE are those that need no extra.
COMMANDS = {
    "answers": "report", "audit": "audit", "check": "check", "cite": "report",
    "convert-edm": "data", "demo": "project", "export": "exchange", "fetch": "data",
    "init": "init", "list": "listing", "new": "project", "prune": "prune", "report": "report",
    "rerun": "run", "run": "run", "site": "report", "submit": "exchange", "table": "report",
}  # fmt: skip
FUNCTIONS = {"convert-edm": "convert_edm", "list": "list_names"}
CORE = ("audit", "init", "list")


class Commands(click.Group):
    """The commands by name; one whose extra is not installed says so in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            module = import_module(f"robust_fairness.cli.{COMMANDS[cmd_name]}")
        except ModuleNotFoundError as error:
            if extra_of(error) is None:
                raise
            return _unavailable(cmd_name)
        found: click.Command = getattr(module, FUNCTIONS.get(cmd_name, cmd_name))
        return found


def _unavailable(name: str) -> click.Command:
    """A command that says that it needs everything."""
    needs = f"needs: {command('all')}"

    def refuse(**_: Any) -> None:
        raise click.ClickException(f"`robust-fairness {name}` {needs}")

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
        short_help=needs,
    )


@click.group(name="robust-fairness", cls=Commands)
@click.version_option(__version__, prog_name="robust-fairness")
def cli() -> None:
    """Fairness that survives distribution shift: audit, run, compare, rerun."""
