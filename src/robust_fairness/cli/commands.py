"""Commands that report a user's mistake in one line."""

from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any

import click
from kedro.config import MissingConfigException
from kedro.utils import find_kedro_project

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path

force_option = click.option("--force", is_flag=True, help="Overwrite existing files.")


class Command(click.Command):
    """A command that reports a user's mistake in one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        from kedro.io import DatasetError
        from kedro.validation.exceptions import ParameterValidationError

        from robust_fairness.runs.runners import first_line

        try:
            return super().invoke(ctx)
        except (InputError, MissingConfigException) as error:
            raise click.ClickException(str(error)) from None
        except DatasetError as error:
            reason = error.__cause__ if isinstance(error.__cause__, InputError) else error
            raise click.ClickException(first_line(reason)) from None
        except ParameterValidationError as error:
            problems = [line.removeprefix("- ") for line in str(error).splitlines()[1:]]
            raise click.ClickException("; ".join(problems)) from None
        except OSError as error:  # a full or read-only disk, say
            place = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{place}{error.strerror or error}") from None


class ProjectCommand(Command):
    """A command that runs in the folder of the project, from any folder below it."""

    def invoke(self, ctx: click.Context) -> Any:
        with chdir(find_kedro_project(Path.cwd()) or Path.cwd()):
            return super().invoke(ctx)


def write_files(texts: dict[Path, str], force: bool) -> None:
    """Write all files, or none where one cannot be written or exists and may not be replaced."""
    for path in texts:
        if path.exists() and not force:
            raise InputError(f"{path}: exists, allowed: --force to overwrite it, or another place")
    try:
        with ExitStack() as files:
            for path, text in texts.items():
                files.enter_context(atomic_path(path)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error
