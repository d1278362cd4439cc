"""The command ``check``."""

import json
import time
from typing import TYPE_CHECKING, Any

import click

from robust_fairness.cli.commands import GRID, ProjectCommand
from robust_fairness.core.errors import Mistake

if TYPE_CHECKING:
    from robust_fairness.cli.checking import Findings


@click.command(cls=ProjectCommand, params=[*GRID])
@click.option("--env", "-e", "environment", envvar="KEDRO_ENV", help="Environment of conf/.")
@click.option(
    "--time", "timed", is_flag=True, help="Train an epoch of each cell to foretell the duration."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def check(environment: str | None, timed: bool, form: str, **axes: Any) -> None:
    """Report all mistakes of the configuration, without training.

    Reads the configuration and the tables; mistakes have file and line. For every sensitive
    attribute it foretells the smallest change of a gap between domains that the run would find.
    Exit status: 0, 1 if there are mistakes, 2 if the command is wrong.
    """
    from robust_fairness.cli.checking import check as find_mistakes

    start = time.perf_counter()
    grid = {axis: value for axis, value in axes.items() if value is not None}
    found = find_mistakes(environment, grid, timed)
    if form == "json":
        _print_json(found)
    else:
        _print_text(found, time.perf_counter() - start)
    if found.mistakes:
        raise SystemExit(1)


def _print_text(found: "Findings", seconds: float) -> None:
    from robust_fairness.cli.power import foretold, sentences

    for one in found.mistakes:
        click.echo(_line(one))
    checked = f"{_count(found.datasets, 'dataset')} with {_count(found.cells, 'cell')}"
    rows = _count(sum(found.tables.values()), "row")
    for sentence in sentences(foretold(found.counts)):
        click.echo(sentence)
    if found.mistakes:
        ending = f"{_count(len(found.mistakes), 'mistake')}. Nothing was trained."
    else:
        ending = f"no mistakes. A run trains {_count(found.trainings, 'model')}"
        if found.seconds is not None:
            ending += f", those of tables in about {found.seconds / 60:.1f} minutes of CPU time"
        ending += "."
    click.echo(f"Checked {checked}, {rows} of tables, in {seconds:.1f} s: {ending}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _line(one: Mistake) -> str:
    where = f"{one.place}: " if one.place else ""
    return f"{where}error: {one.text}{'. ' if one.hint else ''}{one.hint}"


def _print_json(found: "Findings") -> None:
    from robust_fairness.cli.power import foretold

    mistakes = [
        {"place": one.place, "message": one.text, "hint": one.hint} for one in found.mistakes
    ]
    counts = {
        "datasets": found.datasets,
        "cells": found.cells,
        "trainings": found.trainings,
        "rows": found.tables,
        "seconds": found.seconds,
        "foretold": json.loads(foretold(found.counts).to_json(orient="records")),
    }
    click.echo(json.dumps({"mistakes": mistakes, **counts}, indent=2))
