"""Commands that run pipelines."""

from functools import wraps
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.io.core import generate_timestamp
from kedro.utils import load_obj

from robust_fairness.cli.closing import closing_lines
from robust_fairness.cli.commands import ProjectCommand
from robust_fairness.cli.report import open_report
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.pipeline_registry import PIPELINES
from robust_fairness.runs.provenance import load_manifest

RUNNER = "robust_fairness.runs.runners.SequentialRunner"


@wraps(kedro_run.callback)  # type: ignore[arg-type]
def _run(
    *,
    datasets: str | None,
    methods: str | None,
    shifts: str | None,
    seeds: str | None,
    run_id: str | None,
    accept_changes: bool,
    allow_modified_data: bool,
    opened: bool,
    params: dict[str, Any],
    runner: str | None,
    **options: Any,
) -> Any:
    axes = {"datasets": datasets, "methods": methods, "shifts": shifts, "seeds": seeds}
    grid = {axis: value for axis, value in axes.items() if value is not None}
    told = {
        "grid": grid,
        "run_id": run_id or params.get("run_id") or generate_timestamp(),
        "accept_changes": accept_changes,
        "allow_modified_data": allow_modified_data,
    }
    own = {name: value for name, value in told.items() if value}
    if runner:
        _require_runner(runner)
    for name in filter(None, (options["pipeline"], *options["pipelines"])):
        if name not in PIPELINES:
            raise unknown_name("pipeline", name, PIPELINES)
    if run_id and options["only_missing_outputs"]:
        load_manifest(run_id)  # an unknown run would be trained from the start
    made = kedro_run.callback(  # type: ignore[misc]
        params={**params, **own}, runner=runner or RUNNER, **options
    )
    for line in closing_lines(str(own["run_id"])):
        click.echo(line)
    if opened:
        open_report(str(own["run_id"]))
    return made


def _require_runner(name: str) -> None:
    try:
        load_obj(name, "kedro.runner")
    except (AttributeError, ImportError, ValueError):
        raise InputError(
            f"unknown runner {name!r}, allowed: {RUNNER}, a runner of Kedro or the path of a class"
        ) from None


run = ProjectCommand(
    "run",
    callback=_run,
    params=[
        click.Option(["--datasets"], help="Datasets of the grid, separated by commas."),
        click.Option(["--methods"], help="Labels of methods of the grid, separated by commas."),
        click.Option(["--shifts"], help="Shifts of the grid, separated by commas."),
        click.Option(["--seeds"], help="Number of seeds."),
        click.Option(["--run-id"], help="Id of the run; that of an earlier run completes it."),
        click.Option(["--open", "opened"], is_flag=True, help="Open the report in the browser."),
        click.Option(
            ["--accept-changes"],
            is_flag=True,
            help="Complete a run although code, packages or settings differ; the manifest and the "
            "report record what.",
        ),
        click.Option(
            ["--allow-modified-data"],
            is_flag=True,
            help="Use raw files that differ from the official ones; the manifest and the report "
            "name them.",
        ),
        *kedro_run.params,
    ],
    help="Train, score and report the grid, or a part of it.",
)


@click.command(cls=ProjectCommand)
@click.argument("run", metavar="RUN")
def rerun(run: str) -> None:
    """Repeat a run and compare every output bit by bit.

    RUN is the id of the run, or the file of its manifest.
    """
    from robust_fairness.runs.rerun import rerun as repeat

    click.echo(repeat(run))
