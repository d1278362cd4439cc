"""The command line: Kedro's own ``run`` with a narrower grid, and what the benchmark adds.

The same commands serve ``kedro ...`` and ``robust-fairness ...``. Whatever is a user's mistake
ends as one line on standard error and exit status 1; with ``audit``, whose status 1 is a gate that
failed, with status 2.
"""

from collections.abc import Callable
from contextlib import chdir
from functools import wraps
from pathlib import Path
from typing import Any

import click
from kedro.framework.cli.project import run as kedro_run
from kedro.utils import find_kedro_project

from robust_fairness.core.errors import InputError

TABLE_FORMATS = ("csv", "json", "markdown")


def one_line_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Work in the project's folder, and show a user's mistake as one line, not a traceback."""

    @wraps(function)
    def shown(*arguments: Any, **options: Any) -> Any:
        from kedro.io import DatasetError
        from kedro.validation.exceptions import ParameterValidationError

        from robust_fairness.runs.runners import first_line

        try:
            with chdir(find_kedro_project(Path.cwd()) or Path.cwd()):
                return function(*arguments, **options)
        except InputError as error:
            raise click.ClickException(str(error)) from None
        except DatasetError as error:
            told = error.__cause__ if isinstance(error.__cause__, InputError) else error
            raise click.ClickException(first_line(told)) from None
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
        runner=runner or "robust_fairness.runs.runners.SequentialRunner",
        **options,
    )


cli.add_command(
    click.Command(
        "run",
        callback=one_line_errors(_run),
        params=[
            *kedro_run.params,
            click.Option(["--datasets"], help="Datasets of the grid, comma separated."),
            click.Option(
                ["--methods"], help="Methods of the grid by their labels, comma separated."
            ),
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
    from robust_fairness.datasets.fetch import fetch as download
    from robust_fairness.datasets.files import default_root

    for path in download(name, default_root()):
        click.echo(path)


@cli.command("convert-edm")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("output", metavar="OUTPUT", type=click.Path(path_type=Path))
@click.option(
    "--configuration",
    type=click.Path(path_type=Path),
    help="JSON file of what the weights do not tell.",
)
@one_line_errors
def convert_edm(path: Path, output: Path, configuration: Path | None) -> None:
    """Make a generator's file of published weights, which are read and never executed."""
    from robust_fairness.generation.conversion import convert, read_configuration, write_safetensors

    given = None if configuration is None else read_configuration(configuration)
    convert(path, output, given, write=write_safetensors)
    click.echo(output)


@cli.command()
@click.option("--format", "form", type=click.Choice(TABLE_FORMATS), default="csv")
@click.option("--run", "run_id", help="Run to print; the newest finished one unless given.")
@click.option("--view", help="Table or figure of a paper, as the report shows it: bias_table_1.")
@one_line_errors
def table(form: str, run_id: str | None, view: str | None) -> None:
    """Print the tidy metrics table of a run, or a view of it."""
    from robust_fairness.catalog.files import TableDataset
    from robust_fairness.core import tables
    from robust_fairness.runs import provenance

    chosen = run_id or provenance.newest_finished_run()
    frame = provenance.load(chosen, "metrics", TableDataset)
    if view is not None:
        frame = _seen(frame, view, chosen)
    if form == "csv":
        click.echo(frame.to_csv(index=False), nl=False)
    elif form == "json":
        click.echo(frame.to_json(orient="records", lines=True), nl=False)
    else:
        click.echo(tables.markdown(frame))


def _seen(metrics: Any, view: str, run_id: str) -> Any:
    """The rows of a view of a run."""
    from robust_fairness.catalog.files import TableDataset
    from robust_fairness.core.errors import unknown_name
    from robust_fairness.pipelines.reporting.pipeline import FURTHER, further
    from robust_fairness.reporting import VIEWS
    from robust_fairness.runs import provenance

    if view not in VIEWS:
        raise unknown_name("view", view, VIEWS)
    outputs = provenance.load_manifest(run_id)["outputs"]
    names = [name for name in outputs if name.endswith(tuple(FURTHER))]
    parts = {name: provenance.load(run_id, name, TableDataset) for name in names}
    return VIEWS[view].rows(metrics, further(parts))


@cli.command()
@click.argument("dataset")
@click.argument("method")
@click.option("--trial", default="default", show_default=True, help="Trial of the method.")
@click.option("--seed", default=0, show_default=True, help="Its seed.")
@click.option(
    "--test-set", default="", help="Name of a shifted test set; the test rows unless given."
)
@click.option("--run", "run_id", help="Run that predicted; the newest finished one unless given.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="JSON file; standard output unless given.",
)
@one_line_errors
def answers(
    dataset: str,
    method: str,
    trial: str,
    seed: int,
    test_set: str,
    run_id: str | None,
    output: Path | None,
) -> None:
    """Write predicted answers as the official evaluations of GQA and GQA-OOD read them.

    One JSON list of questionId and prediction, for a replica of DATASET and METHOD (its label).
    """
    import json

    from robust_fairness.catalog.arrays import PredictionsDataset, SamplesDataset
    from robust_fairness.runs import provenance
    from robust_fairness.training.answers import official_answers, prediction_of

    chosen = run_id or provenance.newest_finished_run()
    predictions = provenance.load(chosen, f"{dataset}.{method}.predictions", PredictionsDataset)
    found = prediction_of(predictions, trial, seed, test_set)
    shown = f"{dataset}.shifted.{test_set}" if test_set else f"{dataset}.samples"
    rows = official_answers(found, provenance.load(chosen, shown, SamplesDataset))
    text = json.dumps(rows, ensure_ascii=False)
    if output is None:
        click.echo(text)
    else:
        _write({output: f"{text}\n"})
        click.echo(output)


@cli.command()
@click.argument("run_id", metavar="[RUN]", required=False)
@one_line_errors
def cite(run_id: str | None) -> None:
    """Print BibTeX of exactly the datasets, shifts, methods and metrics that a run used.

    RUN is the newest finished one unless given.
    """
    from robust_fairness.reporting.citations import bibliography
    from robust_fairness.runs import provenance

    chosen = run_id or provenance.newest_finished_run()
    click.echo(bibliography(provenance.used(chosen)), nl=False)


@cli.command()
@one_line_errors
def site() -> None:
    """Build a static site of the pipeline in build/, which any web server can show."""
    from robust_fairness.runs import viz

    click.echo(f"{viz.build_site(Path.cwd())} files in build/")


@cli.command()
@click.argument("run_id")
@one_line_errors
def rerun(run_id: str) -> None:
    """Run again what a run did and compare every output bit by bit."""
    from robust_fairness.runs import provenance

    click.echo(provenance.rerun(run_id))


class BadInput(click.ClickException):
    """A mistake of the user's in a command whose exit status 1 means something else."""

    exit_code = 2


@cli.command()
@click.argument("path", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Column of what is true.")
@click.option("--prediction", required=True, help="Column of what was predicted.")
@click.option("--attributes", required=True, help="Columns of sensitive attributes, A,B.")
@click.option(
    "--positive", help="Value of a binary target that is positive; 1 or True if left out."
)
@click.option("--continuous", is_flag=True, help="The target is a number.")
@click.option(
    "--prediction-is",
    type=click.Choice(["auto", "class", "probability", "score", "number"]),
    default="auto",
    show_default=True,
    help="What predictions are.",
)
@click.option("--threshold", type=float, help="From which on a probability or score is positive.")
@click.option(
    "--bins", multiple=True, help="Cut an attribute into groups: age=30,60 or age=4 (equal ones)."
)
@click.option("--number", "numbers", multiple=True, help="An attribute that is a number.")
@click.option("--category", "categories", multiple=True, help="An attribute that is categories.")
@click.option("--intersections", is_flag=True, help="Groups of all attributes together as well.")
@click.option(
    "--small",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Rows below which a group is flagged.",
)
@click.option(
    "--missing", multiple=True, help="A cell that stands for no value; the empty one does."
)
@click.option(
    "--delimiter", default=",", show_default=True, help="Between two cells of a CSV file."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder of page and CSV file; the current one if left out.",
)
@click.option("--fail-if", "gates", multiple=True, help="Exit with 1 if so: delta_eo[sex]>0.1")
def audit(path: Path, **options: Any) -> None:
    """Score predictions that stand in a table, CSV or Parquet: nothing is trained.

    Writes TABLE_audit.html and TABLE_audit.csv. Exits with 0, with 1 if a gate of --fail-if failed,
    and with 2 if the input is wrong; then nothing is written.
    """
    try:
        failed = _audited(path, **options)
    except InputError as error:
        raise BadInput(str(error)) from None
    for failure in failed:
        click.echo(f"failed: {failure}", err=True)
    if failed:
        raise SystemExit(1)


def _audited(
    path: Path,
    *,
    target: str,
    prediction: str,
    attributes: str,
    positive: str | None,
    continuous: bool,
    prediction_is: Any,
    threshold: float | None,
    bins: tuple[str, ...],
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    intersections: bool,
    small: int,
    missing: tuple[str, ...],
    delimiter: str,
    output: Path | None,
    gates: tuple[str, ...],
) -> list[str]:
    """Read, check, score and write; the reasons why gates failed."""
    from robust_fairness.audit import report as scoring
    from robust_fairness.audit.gates import parse, require_known
    from robust_fairness.audit.page import audit_page

    asked = [parse(gate) for gate in gates]
    columns = _names(attributes)
    joint = " & ".join(columns)
    for gate in asked:
        known = scoring.offered_names(continuous)
        require_known(gate, known, {*columns, joint} if not intersections else _joined(columns))
    table = _own_table(path, [target, prediction, *columns], delimiter, ("", *missing))
    scored = scoring.checked(
        table, target, prediction, columns, positive=positive, continuous=continuous,
        prediction_is=prediction_is, threshold=threshold,
        types=_types(numbers, categories), bins=dict(map(_cut, bins)), name=path.name,
    )  # fmt: skip
    rows = scoring.rows_of(scored, intersections, small, path.name)
    failures = {gate: gate.failures(rows) for gate in asked}
    page = audit_page(
        rows, name=path.name, target=target, prediction=prediction, kind=scored.kind,
        attributes=columns, classes=scored.samples.classes, count=len(table), small=small,
        gates=failures,
    )  # fmt: skip
    folder = output or Path.cwd()
    name = path.name.partition(".")[0]
    found = {
        folder / f"{name}_audit.html": page,
        folder / f"{name}_audit.csv": rows.to_csv(index=False),
    }
    _write(found)
    click.echo(_told(rows))
    for written in found:
        click.echo(f"wrote {written}")
    return [line for lines in failures.values() for line in lines]


def _names(text: str) -> list[str]:
    """Names that commas divide, none of them empty or twice."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"attributes: {text!r}, allowed: names of columns, each once, as A,B")
    return names


def _joined(columns: list[str]) -> set[str]:
    """Names of attributes that are scored alone or together, whichever of them have groups."""
    from itertools import combinations

    return {
        " & ".join(some)
        for size in range(1, len(columns) + 1)
        for some in combinations(columns, size)
    }


def _types(numbers: tuple[str, ...], categories: tuple[str, ...]) -> dict[str, Any]:
    """Declared types of attributes."""
    for name in numbers:
        if name in categories:
            raise InputError(f"{name} is declared a number and a category, allowed: one of them")
    return dict.fromkeys(numbers, "number") | dict.fromkeys(categories, "category")


def _cut(text: str) -> tuple[str, Any]:
    """Attribute and cut points, or number of groups, of ``age=30,60`` or ``age=4``."""
    name, _, cuts = text.rpartition("=")
    try:
        if "," not in cuts and cuts.strip().isdigit():
            return name, int(cuts)
        return name, tuple(float(cut) for cut in cuts.split(",") if cut.strip())
    except ValueError:
        raise InputError(f"bins {text!r}, allowed: age=30,60 or age=4") from None


def _own_table(path: Path, columns: list[str], delimiter: str, missing: tuple[str, ...]) -> Any:
    """Columns of the file that was named on the command line, wherever it lies."""
    from robust_fairness.datasets.files import Files
    from robust_fairness.datasets.streamed_tables import stream_columns

    if len(delimiter) != 1:
        raise InputError(f"delimiter: {delimiter!r}, allowed: one character")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    files = Files(path.absolute().parent)
    return stream_columns(files, path.name, list(dict.fromkeys(columns)), delimiter, missing)


def _write(texts: dict[Path, str]) -> None:
    """Write all files or, where one cannot be written, none of them new."""
    from contextlib import ExitStack

    from robust_fairness.core.files import written_aside

    try:
        with ExitStack() as together:
            for path, text in texts.items():
                aside = together.enter_context(written_aside(path))
                aside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from error


def _told(rows: Any) -> str:
    """What the terminal shows: values with intervals that are not of single groups."""
    import pandas as pd

    own = rows[(rows["group"] == "") & ~rows["metric"].str.endswith("_p_value")]
    own = own[~((own["metric"] == "missing_attribute") & (own["value"] == 0))]
    own = own[~own["note"].str.startswith("not applicable")]
    lines = []
    for row in own.itertuples():
        value = "n/a" if pd.isna(row.value) else f"{row.value:.4f}"
        interval = "" if pd.isna(row.low) else f"[{row.low:.4f}, {row.high:.4f}]"
        small = "small" if row.small else ""
        lines.append((row.metric, row.attribute, value, interval, small, row.note))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
