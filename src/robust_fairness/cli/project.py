"""The commands ``new`` and ``demo``."""

import logging
import shutil
from contextlib import chdir
from pathlib import Path

import click

from robust_fairness.cli.commands import Command
from robust_fairness.cli.finished_run import closing_lines

DEMO = "demo"  # the environment


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
def new(folder: Path) -> None:
    """Make a project: a folder in which all commands work."""
    from robust_fairness.runs import project

    project.create(folder)
    click.echo(f"Made the project {folder}: conf/, data/, plugins/, notebooks/.")
    click.echo(f"Next: cd {folder}; robust-fairness init YOUR.csv, or robust-fairness check")


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path), default=Path(DEMO))
def demo(folder: Path) -> None:
    """Train three methods in four states and test them in four others: offline, a minute.

    FOLDER becomes a project, by default the folder demo.
    """
    from kedro.framework.startup import bootstrap_project

    from robust_fairness.runs import project, provenance
    from robust_fairness.runs.session import Session, environment
    from robust_fairness.runs.tracking import SWITCH

    if not project.is_project(folder):
        project.create(folder)
    click.echo(
        "Three methods are trained in half of four US states and tested in the other half and"
    )
    click.echo(
        "in four other states (income, American Community Survey). This takes less than a minute."
    )
    run_id = provenance.new_run_id()
    with chdir(folder), environment({SWITCH: "off"}):
        bootstrap_project(Path.cwd())
        logging.getLogger("robust_fairness").setLevel(logging.WARNING)
        session = Session.create(env=DEMO)
        with session:
            session.run(run_id, pipeline_names=["robust_fairness"])
        shutil.copy(provenance.output(run_id, "report"), "report.html")
        lines = closing_lines(run_id)
    for line in lines[:-1]:
        click.echo(line)
    click.echo(f"Report: {folder / 'report.html'}")
    click.echo(f"Next: cd {folder}; robust-fairness init YOUR.csv")
