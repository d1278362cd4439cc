"""The command line: Kedro's ``run`` with options for the grid, and the benchmark's own commands.

``kedro ...`` and ``robust-fairness ...`` have the same commands. A user's mistake ends with one
line on standard error and exit status 1, in ``audit`` with status 2: status 1 is a failed gate. An
unexpected error ends with its traceback, the line "this is a bug" and status 3.
"""

import signal
import sys
import traceback
from collections.abc import Mapping
from contextlib import chdir, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from robust_fairness import __version__
from robust_fairness.core.errors import InputError
from robust_fairness.core.escaping import for_console_lines
from robust_fairness.core.extras import command, extra_of, needed_by
from robust_fairness.core.files import atomic_paths, lock_of, locked

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
INTERRUPTED = 128 + signal.SIGINT  # the exit status, as of shells
# Options that select a part of the grid.
GRID = (
    click.Option(["--datasets"], help="Datasets of the grid, separated by commas."),
    click.Option(["--methods"], help="Labels of methods of the grid, separated by commas."),
    click.Option(["--shifts"], help="Shifts of the grid, separated by commas."),
    click.Option(["--seeds"], help="Number of seeds."),
)
FAULT = 3  # exit status of an error that is neither a user's mistake nor a verdict
force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")


class Command(click.Command):
    """A command, or a group, that reports a user's mistake in one line instead of a traceback.

    Exit status: 1 for a mistake, ``FAULT`` for an error that nobody expected.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with needed_by(f"`robust-fairness {ctx.info_name}`", "all"):
                return super().invoke(ctx)
        except InputError as error:
            raise click.ClickException(for_console_lines(str(error))) from None
        except (click.ClickException, click.Abort, click.exceptions.Exit) as error:
            if (text := _kedros_own(error)) is None:
                raise
            raise click.ClickException(text) from None
        except KeyboardInterrupt as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends
            click.echo(f"Interrupted. {error}".rstrip(), err=True)
            raise SystemExit(INTERRUPTED) from None
        except MemoryError:
            raise click.ClickException("not enough memory for this data; use fewer rows") from None
        except OSError as error:  # a full or read-only disk, say
            place = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{place}{error.strerror or error}") from None
        except Exception as error:
            reason = _reason(error)
            if reason is None:
                raise fault(error) from None
            raise click.ClickException(for_console_lines(reason)) from None


def _kedros_own(error: Exception) -> str | None:
    """The text of an error of Kedro's commands, which would print "NoneType: None" before it."""
    if "kedro" not in sys.modules:
        return None
    from kedro.framework.cli.utils import KedroCliError

    if not isinstance(error, KedroCliError) or KedroCliError.VERBOSE_ERROR:
        return None
    if isinstance(error.__cause__, ImportError):
        name, extra = error.__cause__.name, extra_of(str(error.__cause__.name))
        return f"this command needs {name}: {command(extra or 'all')}"
    return error.message


def fault(error: Exception) -> SystemExit:
    """The end of a command by an unexpected error: its traceback, and that it is to be reported."""
    with suppress(BrokenPipeError):  # nobody reads it
        click.echo("".join(traceback.format_exception(error)).rstrip(), err=True)
        click.echo(
            "Error: this is a bug; please report it with the lines above and the output of "
            "robust-fairness --version",
            err=True,
        )
    return SystemExit(FAULT)


def _reason(error: Exception) -> str | None:
    """An error of Kedro that a user's mistake causes, in one line; None for other errors."""
    if "kedro" not in sys.modules:
        return None
    from kedro.config import MissingConfigException
    from kedro.io import DatasetError
    from kedro.validation.exceptions import ParameterValidationError

    from robust_fairness.runs.runners import reason_of

    if isinstance(error, MissingConfigException):
        return str(error)
    if isinstance(error, DatasetError):
        cause = error.__cause__
        return reason_of(cause if isinstance(cause, InputError) else error)
    if isinstance(error, KeyError) and "credentials" in str(error):  # Kedro's, of the catalog
        return f"{error.args[0]}; conf/local/credentials.yml is read in every environment"
    if isinstance(error, ParameterValidationError):
        problems = [line.removeprefix("- ") for line in str(error).splitlines()[1:]]
        return "; ".join(problems)
    return None


class ProjectCommand(Command):
    """A command that runs in the folder of the project, from any folder below it."""

    def invoke(self, ctx: click.Context) -> Any:
        with chdir(project_folder() or Path.cwd()):
            return super().invoke(ctx)


def project_folder() -> Path | None:
    """The folder of the project around the current one; None outside of a project."""
    try:
        from kedro.utils import find_kedro_project
    except ModuleNotFoundError:  # without Kedro there are no projects
        return None
    folder: Path | None = find_kedro_project(Path.cwd())
    return folder


def write_files(texts: dict[Path, str], force: bool, changed: Mapping[Path, str] = {}) -> None:
    """Write all files, or none where one cannot be written or exists and may not be replaced.

    Args:
        texts: contents by path.
        force: whether existing files may be replaced.
        changed: contents of files that the caller has read, and holds the lock of.
    """
    every = {**texts, **changed}
    try:
        with locked(lock_of(min(texts))):  # nobody else writes them after they were looked for
            for path in texts:
                if path.exists() and not force:
                    raise InputError(
                        f"{path}: exists, allowed: --force to overwrite it, or another place"
                    )
            with atomic_paths([*every]) as temporary:
                for path, text in zip(temporary, every.values(), strict=True):
                    path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error


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
