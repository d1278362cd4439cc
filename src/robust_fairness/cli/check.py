"""The command ``check``."""

import json
import time
from typing import TYPE_CHECKING, Any

import click

from robust_fairness.cli.commands import GRID, ProjectCommand
from robust_fairness.core.errors import Mistake
from robust_fairness.core.escaping import for_console

if TYPE_CHECKING:
    from robust_fairness.cli.checking import Findings


@click.command(cls=ProjectCommand, params=[*GRID])
@click.option("--env", "-e", "environment", envvar="KEDRO_ENV", help="Environment of conf/.")
@click.option(
    "--time", "timed", is_flag=True, help="Train some steps of each cell to foretell the duration."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def check(environment: str | None, timed: bool, form: str, **axes: Any) -> None:
    """Report all mistakes of the configuration, without training.

    Reads the configuration and the tables; mistakes have file and line. Exit status: 0, 1 if there
    are mistakes, 2 if the command is wrong.
    """
    from robust_fairness.cli.checking import check as find_mistakes

    start = time.perf_counter()
    grid = {axis: value for axis, value in axes.items() if value is not None}
    findings = find_mistakes(environment, grid, timed)
    if form == "json":
        _print_json(findings)
    else:
        _print_text(findings, time.perf_counter() - start)
    if findings.mistakes:
        raise SystemExit(1)


def _print_text(findings: "Findings", seconds: float) -> None:
    for mistake in findings.mistakes:
        click.echo(for_console(_line(mistake)))
    checked = f"{_count(findings.datasets, 'dataset')} with {_count(findings.cells, 'cell')}"
    for line in (*findings.runs, *(f"hint: {hint}" for hint in findings.hints)):
        click.echo(for_console(line))
    rows = _count(sum(findings.tables.values()), "row")
    if findings.mistakes:
        ending = f"{_count(len(findings.mistakes), 'mistake')}. Nothing was trained."
    else:
        ending = f"no mistakes. A run trains {_count(findings.trainings, 'model')}"
        if findings.seconds is not None:
            ending += f", those of tables in about {findings.seconds / 60:.1f} minutes of CPU time"
        ending += "."
    click.echo(f"Checked {checked}, {rows} of tables, in {seconds:.1f} s: {ending}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _line(mistake: Mistake) -> str:
    where = f"{mistake.place}: " if mistake.place else ""
    return f"{where}error: {mistake.text}{'. ' if mistake.hint else ''}{mistake.hint}"


def _print_json(findings: "Findings") -> None:
    mistakes = [
        {"place": mistake.place, "message": mistake.text, "hint": mistake.hint}
        for mistake in findings.mistakes
    ]
    counts = {
        "datasets": findings.datasets,
        "cells": findings.cells,
        "trainings": findings.trainings,
        "runs": findings.runs,
        "hints": findings.hints,
        "rows": findings.tables,
        "seconds": findings.seconds,
    }
    click.echo(json.dumps({"mistakes": mistakes, **counts}, indent=2))
