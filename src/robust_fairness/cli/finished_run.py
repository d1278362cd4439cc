"""Commands that read the results of a run, and its last lines."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from robust_fairness.cli.commands import ProjectCommand, force_option, write_files
from robust_fairness.core.errors import InputError, unknown_name

TABLE_FORMATS = ("text", "csv", "json", "markdown", "latex")
METHODS = "methods"  # the view that has options of its own
COMPARISONS = Path("data/08_reporting/comparisons")


run_argument = click.argument("run_id", metavar="[RUN]", required=False)


@click.command(cls=ProjectCommand)
@click.option(
    "--format",
    "form",
    type=click.Choice(TABLE_FORMATS),
    default=lambda: "text" if sys.stdout.isatty() else "csv",
    help="text has four digits, latex needs booktabs.  [default: text on a terminal, else csv]",
)
@run_argument
@click.option("--view", help="A paper's table or figure, as in the report: bias_table_1; methods.")
@click.option("--columns", help="Columns A,B that are shown; of the view methods, its metrics.")
@click.option("--digits", type=click.IntRange(0, 16), help="Decimals of numbers.")
@click.option("--against", help="Baseline of the view methods.  [default: erm]")
@click.option("--mean", is_flag=True, help="View methods: the mean over shifts, not each.")
def table(
    form: str,
    run_id: str | None,
    view: str | None,
    columns: str | None,
    digits: int | None,
    against: str | None,
    mean: bool,
) -> None:
    """Print the metrics table of a run, or a view of it.

    RUN is the id of a run, not a dataset; the newest finished one by default. The view methods has
    methods as rows and metrics as columns; csv and json have its numbers, a row per score.
    """
    from robust_fairness.catalog import files
    from robust_fairness.core import tables
    from robust_fairness.papers import VIEWS
    from robust_fairness.report.methods import PLAIN, as_table, methods
    from robust_fairness.runs import provenance

    names = columns.split(",") if columns else []
    if view != METHODS and (against or mean):
        raise InputError(f"--{'against' if against else 'mean'}: allowed with --view {METHODS}")
    if view is not None and view not in VIEWS:
        raise unknown_name("view", view, VIEWS)
    run_id = run_id or provenance.newest_finished_run()
    if view == METHODS:
        frame = methods(results_of(run_id), against or PLAIN, names, mean)
        if form not in ("csv", "json"):
            frame = as_table(frame, **({} if digits is None else {"digits": digits}))
    else:
        rows = (
            provenance.load(run_id, "metrics", files.table)
            if view is None
            else (VIEWS[view].rows(results_of(run_id)))
        )
        for name in names:
            if name not in rows:
                raise unknown_name("column", name, map(str, rows.columns))
        frame = rows[names] if names else rows
    frame = frame if digits is None else frame.round(digits)
    if form == "csv":
        click.echo(tables.csv(frame), nl=False)
    elif form == "text":
        click.echo(frame.to_string(index=False, float_format="{:.4g}".format, na_rep=""))
    elif form == "json":
        click.echo(frame.to_json(orient="records", lines=True), nl=False)
    else:
        click.echo((tables.markdown if form == "markdown" else tables.latex)(frame))


def results_of(run_id: str) -> Any:
    """The tables of a run that its report is made of, ``report.Results``.

    Raises:
        InputError: an earlier version made the run, and one of its tables has other columns.
    """
    from robust_fairness.catalog import files
    from robust_fairness.core import tables
    from robust_fairness.report import Results
    from robust_fairness.report.results import TABLES
    from robust_fairness.runs import provenance

    made = provenance.load_manifest(run_id)["outputs"]
    names = [name for name in TABLES if name in made or name == "metrics"]
    parts = {name: provenance.load(run_id, name, files.table) for name in names}
    for name, rows in parts.items():
        if lacking := [column for column in tables.TABLES[name] if column not in rows]:
            raise InputError(
                f"run {run_id}: an earlier version made it, its table {name} has no column "
                f"{lacking[0]}; make the run again, or read it with that version"
            )
    return Results.of(**parts)


@click.command(cls=ProjectCommand)
@run_argument
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@click.option("--compare", nargs=2, metavar="RUN RUN", help="Set two runs side by side instead.")
def report(run_id: str | None, opened: bool, compare: tuple[str, str] | None) -> None:
    """Print where the report of a run is.

    RUN is the newest finished one by default.
    """
    from robust_fairness.runs import provenance

    if compare is None:
        run_id = run_id or provenance.newest_finished_run()
        place = str(provenance.output(run_id, "report"))
        click.echo(provenance.load_manifest(run_id)["outputs"]["report"]["path"])
    else:
        from robust_fairness.report import comparison

        first, second = compare
        path = COMPARISONS / f"{first}_{second}.html"
        page = comparison(results_of(first), results_of(second), compare)
        write_files({path: page}, force=True)
        place = str(path)
        click.echo(place)
    if opened:
        click.launch(place)


def closing_lines(run_id: str) -> list[str]:
    """The answer of a run's report, how often each model's gap grew, and the report's place.

    A run without a report has no lines, one without a gap no answer.
    """
    import pandas as pd

    from robust_fairness.report.first_screen import answers
    from robust_fairness.report.matrix import STATES, matrices, words_of
    from robust_fairness.runs import provenance

    made = provenance.load_manifest(run_id)["outputs"].get("report")
    if made is None:
        return []
    place, results = f"Report: {made['path']}", results_of(run_id)
    by_gap = matrices(results)
    if not by_gap:
        return [place]
    (gap, rows), *_ = by_gap.items()
    answer, *parts = answers(results)
    lines = [f"Does fairness survive the shift? {answer}.", *(f"  {part}." for part in parts)]
    if rows.empty:
        return [*lines, place]
    states = pd.crosstab(rows["method"], rows["state"])
    states = states[[state for state in STATES if state in states]]
    home = rows.groupby("method", sort=False)[["accuracy"]].mean().mul(100).round().astype("Int64")
    home = home.rename(columns={"accuracy": "accuracy at home (%)"})
    lines.append(f"Comparisons of the {words_of(gap)} at home and in each test set:")
    return [*lines, *home.join(states).rename_axis(None).to_string().splitlines(), place]


def open_report(run_id: str) -> None:
    """Open the report of a run, if it has one."""
    from robust_fairness.runs import provenance

    if "report" in provenance.load_manifest(run_id)["outputs"]:
        click.launch(str(provenance.output(run_id, "report")))


@click.command(cls=ProjectCommand)
@click.argument("dataset")
@click.argument("method")
@click.option("--trial", default="default", show_default=True, help="Trial of the method.")
@click.option("--seed", default=0, show_default=True, help="Its seed.")
@click.option("--test-set", default="", help="A shifted test set; default: the test rows.")
@click.option("--run", "run_id", help="Id of the run; default: the newest finished.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="JSON file; default: standard output.",
)
@force_option
def answers(
    dataset: str,
    method: str,
    trial: str,
    seed: int,
    test_set: str,
    run_id: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write predicted answers for the evaluations of GQA.

    A JSON list of questionId and prediction, as GQA and GQA-OOD read it, for one replica of DATASET
    and METHOD (its label).
    """
    from robust_fairness.bench.training.answers import official_answers, prediction_of
    from robust_fairness.catalog import names
    from robust_fairness.catalog.arrays import PredictionsDataset, SamplesDataset
    from robust_fairness.runs import provenance

    run_id = run_id or provenance.newest_finished_run()
    predictions = provenance.load(
        run_id, names.of_cell(f"{dataset}.{method}", "predictions"), PredictionsDataset
    )
    prediction = prediction_of(predictions, trial, seed, test_set)
    samples = names.of_dataset(dataset, "samples")
    if test_set:
        samples = names.of_test_set(dataset, test_set)
    rows = official_answers(prediction, provenance.load(run_id, samples, SamplesDataset))
    text = json.dumps(rows, ensure_ascii=False)
    if output is None:
        click.echo(text)
    else:
        write_files({output: f"{text}\n"}, force)
        click.echo(output)


@click.command(cls=ProjectCommand)
@run_argument
def cite(run_id: str | None) -> None:
    """Print BibTeX of everything that a run used.

    RUN is the newest finished one by default. Without Kedro there are no runs: of the metrics of an
    audit.
    """
    from robust_fairness.bench.citations import bibliography

    try:
        from robust_fairness.runs import provenance
    except ModuleNotFoundError:
        if run_id:
            raise
        from robust_fairness.auditing.metric_names import CONVENTIONAL

        used = {"metric": list(CONVENTIONAL)}
    else:
        used = provenance.used(run_id or provenance.newest_finished_run())
    click.echo(bibliography(used), nl=False)


@click.command(cls=ProjectCommand)
def site() -> None:
    """Build a static site of the pipeline in build/."""
    from robust_fairness.runs import viz

    click.echo(f"{viz.build_site(Path.cwd())} files in build/")
