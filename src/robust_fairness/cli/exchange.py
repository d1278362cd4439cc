"""Commands by which models from elsewhere take part: rows out, predictions in."""

import json
from pathlib import Path
from typing import Any

import click

from robust_fairness.cli.commands import ProjectCommand, force_option, require_free
from robust_fairness.cli.report import run_option
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.files import atomic_path, sha256_of

SUBMISSIONS = Path("data/08_reporting/submissions")
SEES = ("groups", "domains", "target rows", "groups at prediction")
FILES = ("train", "validation", "test")

file_path = click.Path(path_type=Path, resolve_path=True)


@click.command(cls=ProjectCommand)
@click.argument("dataset")
@click.argument("folder", type=file_path)
@run_option
@force_option
def export(dataset: str, folder: Path, run_id: str | None, force: bool) -> None:
    """Write the rows of DATASET in a run into FOLDER, as Parquet.

    train.parquet and validation.parquet have labels; test.parquet has all test sets without them.
    """
    from robust_fairness.runs import provenance
    from robust_fairness.training import submissions

    run_id = run_id or provenance.newest_finished_run()
    samples, cell, shifted = _problem(run_id, dataset)
    places = {name: folder / f"{name}.parquet" for name in FILES}
    require_free(places.values(), force)
    splits = list(submissions.first_seeds(samples, cell))
    exported = submissions.exported(samples, cell.protocol, splits, shifted)
    for name, path in places.items():
        with atomic_path(path) as file:
            exported[name].to_parquet(file, index=False)
        click.echo(f"{path}: {len(exported[name]):,} rows")


@click.command(cls=ProjectCommand)
@click.argument("dataset")
@click.argument("name")
@click.argument("file", type=file_path)
@run_option
@click.option(
    "--sees",
    multiple=True,
    type=click.Choice(SEES),
    help="What the model read besides inputs and labels of training rows.",
)
@force_option
def submit(
    dataset: str, name: str, file: Path, run_id: str | None, sees: tuple[str, ...], force: bool
) -> None:
    """Score the predictions in FILE as a method called NAME.

    They are of the test rows of DATASET. FILE (.parquet or .csv) has the columns split, test_set,
    id and probability, of class 1, or prediction. Prints the report of the run with this and
    all earlier submissions.
    """
    from robust_fairness.experiment.reading import is_label
    from robust_fairness.runs import provenance
    from robust_fairness.training import evaluation, submissions

    run_id = run_id or provenance.newest_finished_run()
    samples, cell, shifted = _problem(run_id, dataset)
    taken = provenance.load_manifest(run_id)["grid"]["cells"]
    if not name or not is_label(name) or f"{dataset}.{name}" in taken:
        raise InputError(
            f"name {name!r}, allowed: letters, digits and '_', but no method of the run"
        )
    place = SUBMISSIONS / run_id / dataset / f"{name}.parquet"
    require_free([place], force)
    submitted = submissions.submitted(name, cell)
    predictions = submissions.imported(_read(file), samples, submitted, shifted)
    chosen = submissions.chosen(predictions, submitted)
    metrics = evaluation.evaluate(samples, predictions, chosen, submitted, shifted)
    described = {"sees": ", ".join(sorted(sees)), "sha256": sha256_of(file)}
    with atomic_path(place.with_suffix(".json")) as path:
        path.write_text(json.dumps(described) + "\n", encoding="utf-8")
    with atomic_path(place) as path:
        metrics.to_parquet(path, index=False)
    click.echo(f"{file}: {len(metrics)} scores on {len(predictions)} test sets of {dataset}")
    click.echo(_report(run_id))


def _problem(run_id: str, dataset: str) -> tuple[Any, Any, dict[str, Any]]:
    """Samples of a dataset in a run, the settings of a cell of it, and its shifted test sets."""
    from robust_fairness.catalog import names
    from robust_fairness.catalog.arrays import SamplesDataset
    from robust_fairness.runs import configuration, provenance

    manifest = provenance.load_manifest(run_id)
    known = manifest["grid"]["seeds"]
    if dataset not in known:
        raise unknown_name(f"dataset of run {run_id}", dataset, known)
    grid = (manifest["runtime_parameters"] or {}).get("grid")
    loader = configuration.loader_of(manifest["environment"], grid)
    provenance.require_same_configuration(manifest, loader)
    configuration.use(loader)
    settings = next(d for d in loader.validated_experiment.datasets if d.name == dataset)
    samples = provenance.load(run_id, names.of_dataset(dataset, "samples"), SamplesDataset)
    shifted = {
        test_set.name: provenance.load(
            run_id, names.of_test_set(dataset, test_set.name), SamplesDataset
        )
        for test_set in settings.test_sets
    }
    return samples, settings.cells[0], shifted


def _read(file: Path) -> Any:
    """The table of a file; keys are text."""
    import pandas as pd

    keys = dict.fromkeys(("split", "test_set", "id"), "str")
    readers: dict[str, Any] = {
        ".parquet": pd.read_parquet,
        ".csv": lambda path: pd.read_csv(path, dtype=keys, keep_default_na=False),
    }
    if file.suffix not in readers:
        raise InputError(f"{file}: allowed: a file .parquet or .csv")
    try:
        return readers[file.suffix](file)
    except (ValueError, OSError) as error:
        raise InputError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def _report(run_id: str) -> Path:
    """File of the report of a run with all its submissions."""
    import pandas as pd

    from robust_fairness.catalog import names
    from robust_fairness.catalog.files import ParquetDataset, ResultsDataset
    from robust_fairness.core import tables
    from robust_fairness.pipelines.reporting.pipeline import FURTHER, report
    from robust_fairness.runs import provenance

    manifest = provenance.load_manifest(run_id)
    kinds: dict[str, Any] = dict.fromkeys(FURTHER, ParquetDataset)
    for dataset in manifest["grid"]["seeds"]:
        kinds[names.of_dataset(dataset, "results")] = ResultsDataset
    kinds = {name: kind for name, kind in kinds.items() if name in manifest["outputs"]}
    kinds["metrics"] = ParquetDataset
    parts = {name: provenance.load(run_id, name, kind) for name, kind in kinds.items()}
    scores, cells, trials = [parts["metrics"]], [], []
    margin = parts["cells"].groupby("dataset")["margin"].first()
    for path in sorted((SUBMISSIONS / run_id).glob("*/*.parquet")):
        scores.append(pd.read_parquet(path))
        cell = {"dataset": path.parent.name, "method": path.stem}
        described = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        facts = {"sees": described["sees"], "margin": margin[path.parent.name]}
        cells.append({**cell, **facts, "algorithm": "submission"})
        trials.append({**cell, "trial": "default", "stage": 0, "state": "complete", "epochs": 0})
    parts["metrics"] = tables.METRICS.joined(scores)
    parts["cells"] = tables.CELLS.joined([parts["cells"], tables.CELLS.table(cells)])
    parts["trials"] = tables.TRIALS.joined([parts["trials"], tables.TRIALS.table(trials)])
    place = SUBMISSIONS / run_id / "report.html"
    with atomic_path(place) as file:
        file.write_text(report(manifest=manifest, **parts), encoding="utf-8")
    return place
