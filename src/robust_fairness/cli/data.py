"""Commands for raw files."""

from pathlib import Path

import click

from robust_fairness.cli.commands import Command, ProjectCommand


@click.command(cls=ProjectCommand)
@click.argument("name")
def fetch(name: str) -> None:
    """Download the raw files of a dataset and verify checksums."""
    from robust_fairness.bench.datasets.fetch import fetch as download
    from robust_fairness.core.raw_files import default_root

    for path in download(name, default_root()):
        click.echo(path)


@click.command("convert-edm", cls=Command)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("output", metavar="OUTPUT", type=click.Path(path_type=Path))
@click.option(
    "--configuration",
    type=click.Path(path_type=Path),
    help="JSON file of settings that the weights do not contain.",
)
def convert_edm(path: Path, output: Path, configuration: Path | None) -> None:
    """Convert published EDM weights to a generator's file.

    No code of FILE is executed.
    """
    from robust_fairness.bench.generation.conversion import convert, read_configuration

    settings = None if configuration is None else read_configuration(configuration)
    convert(path, output, settings)
    click.echo(output)
