"""Kedro's groups of commands, run in the folder of the project, with a mistake in one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli import catalog as kedro_catalog
from kedro.framework.cli import jupyter as kedro_jupyter
from kedro.framework.cli import registry as kedro_registry
from kedro.framework.cli import server as kedro_server
from kedro.framework.cli.utils import split_string
from kedro.framework.project import pipelines, settings
from kedro.framework.startup import bootstrap_project

from robust_fairness.cli.commands import ProjectCommand, project_folder
from robust_fairness.core.errors import unknown_name
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.runs.session import change_server


class OfKedro(ProjectCommand, click.Group):
    """A group of Kedro's commands."""

    def __init__(self, group: click.Group, name: str) -> None:
        super().__init__(name, commands=group.commands, help=group.help)

    def invoke(self, ctx: click.Context) -> Any:
        folder = project_folder()
        if folder is None:
            raise click.ClickException(
                f"{Path.cwd()}: no project, allowed: a folder that `robust-fairness new` made"
            )
        ctx.obj = ctx.obj or bootstrap_project(folder)  # kedro has read the project
        return super().invoke(ctx)


class Catalog(OfKedro):
    """Commands that neither show nor read what nodes get: plug-ins, whose imports take seconds."""

    def invoke(self, ctx: click.Context) -> Any:
        for command in self.commands.values():
            for option in command.params:
                if option.name == "pipeline":
                    option.callback = _known_pipelines
        with without_nodes():
            return super().invoke(ctx)


class Server(OfKedro):
    """The server, whose runs are ours, with log, lock and run id."""

    def invoke(self, ctx: click.Context) -> Any:
        import kedro.server.http_server  # noqa: F401

        change_server()
        return super().invoke(ctx)


def _known_pipelines(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    names: list[str] = split_string(ctx, option, value)
    for name in names:
        if name not in pipelines:
            raise unknown_name("pipeline", name, pipelines)
    return names


class WithoutNodes(ConfigLoader):
    """The configuration without what nodes get."""

    def of_nodes(self) -> dict[str, Any]:
        return {}


@contextmanager
def without_nodes() -> Iterator[None]:
    """Read the configuration without what nodes get."""
    before = settings.CONFIG_LOADER_CLASS
    settings.set("CONFIG_LOADER_CLASS", WithoutNodes)
    try:
        yield
    finally:
        settings.set("CONFIG_LOADER_CLASS", before)


catalog = Catalog(kedro_catalog.catalog, "catalog")
jupyter = OfKedro(kedro_jupyter.jupyter, "jupyter")
registry = OfKedro(kedro_registry.registry, "registry")
server = Server(kedro_server.server_cli, "server")
