"""The command line: Kedro's ``run`` with options for the grid, and the benchmark's own commands.

``kedro ...`` and ``robust-fairness ...`` have the same commands. A user's mistake ends with one
line on standard error and exit status 1, in ``audit`` with status 2: status 1 is a failed gate. An
unexpected error ends with its traceback, the line "this is a bug" and status 3.
"""

from importlib import import_module

import click

from robust_fairness import __version__
from robust_fairness.core.errors import InputError
from robust_fairness.core.extras import command, needed_by

# Where the commands are, imported when one is used; CORE are those that need no extra.
COMMANDS = {
    "answers": "finished_run", "audit": "audit", "catalog": "of_kedro", "check": "check",
    "cite": "finished_run", "convert-edm": "data", "demo": "project", "fetch": "data",
    "init": "init", "jupyter": "of_kedro", "list": "listing", "new": "project",
    "registry": "of_kedro", "report": "finished_run", "rerun": "run", "run": "run",
    "server": "of_kedro", "site": "finished_run", "table": "finished_run",
}  # fmt: skip
FUNCTIONS = {"convert-edm": "convert_edm", "list": "list_names"}
CORE = ("audit", "cite", "init", "list")


class Commands(click.Group):
    """The commands by name; one whose extra is not installed says so in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        try:
            with needed_by(cmd_name, "all"):
                module = import_module(f"robust_fairness.cli.{COMMANDS[cmd_name]}")
        except InputError:
            return click.Command(cmd_name, short_help=f"needs: {command('all')}")
        function: click.Command = getattr(module, FUNCTIONS.get(cmd_name, cmd_name))
        return function


@click.group(name="robust-fairness", cls=Commands)
@click.version_option(__version__, prog_name="robust-fairness")
def cli() -> None:
    """Fairness that survives distribution shift: audit, run, compare, rerun."""
