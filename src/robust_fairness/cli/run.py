"""Commands that run pipelines."""

import json
import logging
from collections.abc import Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.utils import load_obj

from robust_fairness.bench.experiment.yaml_source import parse
from robust_fairness.cli.commands import GRID, ProjectCommand
from robust_fairness.cli.finished_run import closing_lines, open_report
from robust_fairness.core.errors import InputError, first_line, unknown_name
from robust_fairness.core.escaping import HIDDEN, for_console
from robust_fairness.runs.provenance import load_manifest, new_run_id, newest_unfinished_run, root

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
    debug: bool,
    params: dict[str, Any],
    runner: str | None,
    **options: Any,
) -> Any:
    axes = {"datasets": datasets, "methods": methods, "shifts": shifts, "seeds": seeds}
    grid = {axis: value for axis, value in axes.items() if value is not None}
    run_id = run_id or params.get("run_id")
    if options["only_missing_outputs"]:
        if run_id is None:
            run_id = newest_unfinished_run()
            click.echo(f"Completing run {run_id}, the newest that did not finish.", err=True)
        options, params = _selected(load_manifest(run_id), options, params, bool(grid))
    told = {
        "grid": grid,
        "run_id": run_id or new_run_id(),
        "accept_changes": accept_changes,
        "allow_modified_data": allow_modified_data,
    }
    flags = {name: value for name, value in told.items() if value}
    runner = runner or RUNNER
    _require_runner(runner, options["runner_params"])
    if debug:
        for handler in logging.getLogger().handlers:
            handler.setLevel(logging.DEBUG)
    made = kedro_run.callback(  # type: ignore[misc]
        params={**params, **flags}, runner=runner, **options
    )
    for line in closing_lines(str(flags["run_id"])):
        click.echo(for_console(line))
    if opened:
        open_report(str(flags["run_id"]))
    return made


def _selected(
    manifest: Mapping[str, Any], options: Mapping[str, Any], params: Mapping[str, Any], grid: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options and parameters of a run to complete: those of its manifest, unless they are given."""
    written = {**manifest["filters"], "env": manifest["environment"]}
    written |= {"namespaces": manifest["namespaces"]}
    if "conf_source" in manifest:  # earlier versions did not record it
        written["conf_source"] = str(root() / manifest["conf_source"])
    if not options["pipeline"]:
        written["pipelines"] = manifest["pipelines"]
    before = dict(manifest["runtime_parameters"])
    if HIDDEN in json.dumps(before):
        raise InputError(
            f"run {manifest['run_id']}: its manifest lacks secret parameters; give all"
        )
    if grid:
        before.pop("grid", None)
    selected = {name: value for name, value in written.items() if not options[name]}
    return {**options, **selected}, {**before, **params}


def _require_runner(name: str, parameters: dict[str, Any]) -> None:
    try:
        runner = load_obj(name, "kedro.runner")
    except (AttributeError, ImportError, ValueError):
        raise InputError(
            f"unknown runner {name!r}, allowed: {RUNNER}, a runner of Kedro or the path of a class"
        ) from None
    allowed = signature(runner).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in allowed.values()):
        return  # the runner checks them
    for parameter in parameters:
        if parameter not in allowed:
            raise unknown_name(f"parameter of the runner {name}", parameter, allowed)


def _read_options(context: click.Context, parameter: click.Parameter, path: str | None) -> Any:
    """Defaults of options from the section ``run`` of a file; those of the command line win."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            written = parse(file.read(), path).plain["run"].items()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = first_line(error) if isinstance(error, InputError) else "not found"
        message = f"{path}: section `run` with options of the command: {reason}"
        raise click.BadParameter(message) from None
    names = {
        spelling.lstrip("-").replace("-", "_"): option.name
        for option in context.command.params
        for spelling in (*option.opts, str(option.name))
        if option is not parameter
    }
    for key, value in written:
        if key.replace("-", "_") not in names:
            raise click.BadParameter(str(unknown_name(f"option in {path}", key, names)))
        context.default_map = context.default_map or {}
        context.default_map[names[key.replace("-", "_")]] = value
    return path


run = ProjectCommand(
    "run",
    callback=_run,
    params=[
        *GRID,
        click.Option(["--run-id"], help="Id of the run; that of an earlier run completes it."),
        click.Option(["--open", "opened"], is_flag=True, help="Open the report in the browser."),
        click.Option(["--debug"], is_flag=True, help="Show the tracebacks of nodes that fail."),
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
        click.Option(
            ["--config", "-c"],
            type=click.Path(exists=True, dir_okay=False, resolve_path=True),
            callback=_read_options,
            is_eager=True,
            help="YAML file with options of this command in its section `run`.",
        ),
        *(option for option in kedro_run.params if option.name != "config"),
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
