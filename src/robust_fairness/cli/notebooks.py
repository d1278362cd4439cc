"""The command ``jupyter``: Kedro's, except that it says in one line what is not installed."""

from contextlib import chdir
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.jupyter import jupyter as of_kedro
from kedro.framework.cli.utils import KedroCliError
from kedro.framework.startup import bootstrap_project

from robust_fairness.cli.commands import project_folder
from robust_fairness.core.extras import command


class Jupyter(click.Group):
    """Kedro's commands, run in the folder of the project."""

    def invoke(self, ctx: click.Context) -> Any:
        folder = project_folder()
        if folder is None:
            raise click.ClickException(
                f"{Path.cwd()}: no project, allowed: a folder that `robust-fairness new` made"
            )
        with chdir(folder):
            ctx.obj = ctx.obj or bootstrap_project(folder)  # kedro has read the project
            try:
                return super().invoke(ctx)
            except KedroCliError as error:
                if isinstance(error.__cause__, ImportError):
                    name = error.__cause__.name
                    raise click.ClickException(
                        f"`jupyter` needs {name}: {command('notebooks')}"
                    ) from None
                raise


jupyter = Jupyter("jupyter", commands=of_kedro.commands, help=of_kedro.help)
