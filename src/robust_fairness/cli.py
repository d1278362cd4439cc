"""The command line: Kedro's own ``run`` with a narrower grid, and what the benchmark adds.

The same commands serve ``kedro ...`` and ``robust-fairness ...``. Whatever is a user's mistake
ends as one line on standard error and exit status 1.
"""

from collections.abc import Callable
from contextlib import chdir
from functools import wraps
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.utils import find_kedro_project

from robust_fairness.errors import InputError

TABLE_FORMATS = ("csv", "json", "markdown")


def one_line_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Work in the project's folder, and show a user's mistake as one line, not a traceback."""

    @wraps(function)
    def shown(*arguments: Any, **options: Any) -> Any:
        from kedro.validation.exceptions import ParameterValidationError

        try:
            with chdir(find_kedro_project(Path.cwd()) or Path.cwd()):
                return function(*arguments, **options)
        except InputError as error:
            raise click.ClickException(str(error)) from None
        except ParameterValidationError as error:
            found = [line.removeprefix("- ") for line in str(error).splitlines()[1:]]
            raise click.ClickException("; ".join(found)) from None

    return shown


@click.group(name="robust-fairness")
def cli() -> None:
    """Fairness that survives distribution shift: run, compare, rerun."""


@wraps(kedro_run.callback)  # type: ignore[arg-type]
def _run(
    *,
    datasets: str | None,
    methods: str | None,
    shifts: str | None,
    seeds: str | None,
    run_id: str | None,
    params: dict[str, Any],
    runner: str | None,
    **options: Any,
) -> Any:
    wanted = {"datasets": datasets, "methods": methods, "shifts": shifts, "seeds": seeds}
    grid = {axis: value for axis, value in wanted.items() if value is not None}
    own = ({"grid": grid} if grid else {}) | ({"run_id": run_id} if run_id else {})
    return kedro_run.callback(  # type: ignore[misc]
        params={**params, **own},
        runner=runner or "robust_fairness.runners.SequentialRunner",
        **options,
    )


cli.add_command(
    click.Command(
        "run",
        callback=one_line_errors(_run),
        params=[
            *kedro_run.params,
            click.Option(["--datasets"], help="Datasets of the grid, comma separated."),
            click.Option(["--methods"], help="Methods of the grid, comma separated."),
            click.Option(["--shifts"], help="Shifts of the grid, comma separated."),
            click.Option(["--seeds"], help="Number of seeds."),
            click.Option(["--run-id"], help="Name of the run; that of an old one completes it."),
        ],
        help=kedro_run.help,
    )
)


@cli.command()
@click.argument("name")
@one_line_errors
def fetch(name: str) -> None:
    """Download the raw files of a dataset from their official address, checksums verified."""
    from robust_fairness.datasets._fetch import fetch as download
    from robust_fairness.datasets._files import default_root

    for path in download(name, default_root()):
        click.echo(path)


@cli.command()
@click.option("--format", "form", type=click.Choice(TABLE_FORMATS), default="csv")
@click.option("--run", "run_id", help="Run to print; the newest finished one unless given.")
@one_line_errors
def table(form: str, run_id: str | None) -> None:
    """Print the tidy metrics table of a run."""
    import pandas as pd

    from robust_fairness import provenance

    chosen = run_id or provenance.newest_finished_run()
    frame: pd.DataFrame = pd.read_parquet(provenance.output(chosen, "metrics"))
    if form == "csv":
        click.echo(frame.to_csv(index=False), nl=False)
    elif form == "json":
        click.echo(frame.to_json(orient="records", lines=True), nl=False)
    else:
        click.echo(_markdown(frame))


def _markdown(frame: Any) -> str:
    """A data frame as a Markdown table, missing values blank."""
    rows = [list(frame.columns), ["---"] * len(frame.columns)]
    rows += frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


@cli.command()
@click.argument("run_id")
@one_line_errors
def rerun(run_id: str) -> None:
    """Run again what a run did and compare every output bit by bit."""
    from robust_fairness import provenance

    click.echo(provenance.rerun(run_id))
