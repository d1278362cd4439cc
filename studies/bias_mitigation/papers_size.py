"""Train a slice of the papers' tables in limited time, in an order of worth.

    python -m studies.bias_mitigation.papers_size FOLDER --minutes 20    # again: continues
    python -m studies.bias_mitigation.papers_size FOLDER --merge         # stores its scores here

Trainings are cells of ``conf/paper`` with one seed and without their search. FOLDER gets the scores
of every finished one and checkpoints of the one that time did not suffice for. Datasets whose files
are missing are left out. ``--workers 12`` trains so many at once, which keeps a large GPU busy.
``--toy`` tries all this on small images of scikit-learn's digits.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import groupby
from multiprocessing import get_context
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd

from robust_fairness.bench import training
from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path
from robust_fairness.core.samples import Samples
from robust_fairness.papers.bias_mitigation.bias_variables import (
    EXPLICIT,
    IMPLICIT,
    PAPER,
    STANDARD,
)
from robust_fairness.papers.bias_mitigation.views import DIFFERENCE, VARIABLES, table_1
from robust_fairness.pipelines.ingestion.nodes import ingest
from robust_fairness.report import Results
from robust_fairness.report.results import where
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import published
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tools.pages import ROOT, spread

SCORES = Path(__file__).with_name("papers_size.parquet")
METHODS = (STANDARD, *IMPLICIT, *EXPLICIT)
# Dataset, method and seed; a group-aware method has the dataset's own bias variable.
FIRST = tuple(("biased_mnist", method, 0) for method in METHODS)
SLICE = (
    *FIRST,
    *(("biased_mnist", method, seed) for seed in (1, 2) for method in METHODS),
    *(("celeba_hair", method, 0) for method in METHODS),
)
# The tables of the paper whose explicit methods know the variable that they know here: Table 1 of
# Biased MNIST is a mean over runs with each of its seven variables.
VIEWS = {"biased_mnist": "table_a4", "celeba_hair": "table_1"}
SETTINGS = "settings.json"
TOY = {"epochs": 2, "checkpoint_seconds": 0, "threads": 1}
TOY_IMAGES = {"digits": "scikit_learn", "canvas": 24, "train_rows": 256, "val_rows": 64,
              "test_rows": 64}  # fmt: skip
# To be trained again with the sampler that the study's code has: no claim takes these.
ANOTHER_SAMPLER = {"dataset": "biased_mnist", "method": "group_dro"}
VALUES = ("value", "n", "variance", "covariance", "note")
KEYS = [name for name in tables.METRICS if name not in VALUES]


class OutOfTime(Exception):
    """The time limit has passed."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise ``OutOfTime`` after so many seconds, wherever the block is."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def datasets() -> dict[str, DatasetConfig]:
    """The datasets of ``conf/paper`` by name."""
    loader = ConfigLoader(str(ROOT / "conf"), "paper", **CONFIG_LOADER_ARGS)
    return {dataset.name: dataset for dataset in loader.validated_experiment.datasets}


def dataset_of(name: str, toy: bool) -> DatasetConfig:
    """A dataset of ``conf/paper``, or its toy."""
    dataset = datasets()[name]
    if not toy:
        return dataset
    small = dataset.source.parameters.model_copy(update=TOY_IMAGES)
    return dataset.model_copy(
        update={"source": dataset.source.model_copy(update={"parameters": small})}
    )


def cell_of(dataset: DatasetConfig, method: str, seed: int, changes: dict[str, Any]) -> Cell:
    """The default trial of a cell with one seed, whose protocol has changes."""
    cell = next(configured for configured in dataset.cells if configured.label == method)
    protocol = cell.protocol.model_copy(update=changes)
    alone = {"seeds": (seed,), "trials": (), "search": (), "selections": ("every",)}
    return cell.model_copy(update={**alone, "protocol": protocol})


def scores(samples: Samples, cell: Cell) -> pd.DataFrame:
    """Train and score a cell, ``tables.METRICS``."""
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    predictions = training.predict(samples, fitted, chosen, cell, {})
    return training.evaluate(samples, predictions, chosen, cell, {})


def train(folder: Path, toy: bool, precision: str, workers: int) -> None:
    """Train what is missing of the slice, so many trainings at once."""
    changes = {"precision": precision, "checkpoint_seconds": 10, **(TOY if toy else {})}
    for name, trainings in groupby(FIRST if toy else SLICE, itemgetter(0)):
        missing = [training for training in trainings if not file_of(folder, *training).exists()]
        if not missing or samples_of(name, toy) is None:
            continue
        alone = partial(train_one, folder, toy, changes)
        if workers == 1:
            finished(map(alone, missing))
        else:
            # forked before the GPU is used; the workers share the images
            with get_context("fork").Pool(workers) as pool:
                finished(pool.imap_unordered(alone, missing))


def finished(trainings: Iterable[str]) -> None:
    """Wait for trainings, and print what each says."""
    for line in trainings:
        print(line, flush=True)


def train_one(
    folder: Path, toy: bool, changes: dict[str, Any], training: tuple[str, str, int]
) -> str:
    """Train and score one method with one seed; returns its name and time."""
    name, method, seed = training
    samples, start = samples_of(name, toy), time.monotonic()
    assert samples is not None
    cell, path = cell_of(dataset_of(name, toy), method, seed, changes), file_of(folder, *training)
    table = scores(samples, cell)
    with atomic_path(path) as file:
        table.to_parquet(file)
    checkpoints.drop(cell.name)
    return f"{path.stem}: {time.monotonic() - start:.0f} s"


def file_of(folder: Path, name: str, method: str, seed: int) -> Path:
    """The file of the scores of a training."""
    return folder / f"{name}.{method}.{seed}.parquet"


@cache
def samples_of(name: str, toy: bool) -> Samples | None:
    """The samples of a dataset, read once; None where its files are missing."""
    try:
        samples: Samples = ingest(dataset_files(), dataset_of(name, toy))
    except InputError as error:
        print(f"{name} left out: {error}", flush=True)
        return None
    return samples


def settings_of(folder: Path, **settings: Any) -> None:
    """Note the settings of a folder; others than those of its scores are an error."""
    path = folder / SETTINGS
    if path.exists() and json.loads(path.read_text()) != settings:
        raise InputError(f"{path}: scores of other settings; use another folder")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings))


def run(
    folder: Path, minutes: float, toy: bool = False, precision: str = "float32", workers: int = 1
) -> bool:
    """Train for so many minutes; returns whether the slice is complete."""
    settings_of(folder, toy=toy, precision=precision)
    os.environ[checkpoints.ROOT_VARIABLE] = str(folder / "checkpoints")
    try:
        with limited(60 * minutes):
            train(folder, toy, precision, workers)
    except OutOfTime:
        print(f"time is up; the same command continues, {folder} has the checkpoint")
        return False
    return True


def beside_published(metrics: pd.DataFrame, dataset: str) -> pd.DataFrame:
    """Unbiased accuracy in percent, published and ours, of trained methods.

    Explicit methods know the dataset's own bias variable in both.
    """
    theirs = where(
        published(PAPER), view=VIEWS[dataset], dataset=dataset, trial="default", attribute=""
    )
    theirs = theirs[["method", "value"]].rename(columns={"value": "published"})
    rows = table_1(Results.of(metrics)).query("dataset == @dataset")
    both = theirs.merge(rows[["method", "ours", "std", "seeds"]], on="method")
    percent = {
        name: [f"{100 * value:.1f}" if pd.notna(value) else "" for value in both[name]]
        for name in ("published", "ours", "std")
    }
    return both.assign(**percent, seeds=both["seeds"].astype(int))


def by_variable(metrics: pd.DataFrame) -> pd.DataFrame:
    """Majority minus minority by variable in points, that of Table A4 in brackets.

    Explicit methods know the shape of the distractors.
    """
    theirs = where(published(PAPER), view="table_a4", trial="default")
    sides = theirs[theirs["attribute"] != ""].pivot(
        index=["method", "attribute"], columns="metric", values="value"
    )
    differences = sides["majority_accuracy"] - sides["minority_accuracy"]
    rows = where(metrics, dataset="biased_mnist", metric=DIFFERENCE)
    cells = over_seeds(rows, ["method", "attribute"]).merge(
        differences.rename("published").reset_index(), on=["method", "attribute"]
    )
    cells = cells.assign(
        cell=spread(cells, digits=1, unit=100) + (100 * cells["published"]).map(" ({:.1f})".format),
        variable=cells["attribute"],
    )
    wide = cells.pivot(index="variable", columns="method", values="cell")
    trained = [method for method in METHODS if method in wide]
    return wide.reindex(VARIABLES, columns=trained).fillna("").reset_index()


TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    **{f"{name}_at_the_papers_size": partial(beside_published, dataset=name) for name in VIEWS},
    "by_variable_at_the_papers_size": by_variable,
}


def known(path: Path = SCORES) -> pd.DataFrame:
    """The stored scores, ``tables.METRICS``; none before the first merge."""
    return pd.read_parquet(path) if path.exists() else tables.table(tables.METRICS, [])


def merge(folder: Path, to: Path = SCORES) -> None:
    """Add the scores of a folder to the stored ones."""
    finished = [pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))]
    if not finished:
        raise InputError(f"{folder}: no scores")
    rows = pd.concat([table for table in (known(to), *finished) if len(table)], ignore_index=True)
    rows = rows.drop_duplicates(KEYS, keep="last").astype(tables.METRICS)
    rows.to_parquet(to)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train or merge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--workers", type=int, default=1, help="trainings at once")
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--merge", action="store_true")
    options = parser.parse_args(arguments)
    if options.merge:
        if options.toy or json.loads((options.folder / SETTINGS).read_text())["toy"]:
            raise InputError(
                f"{options.folder}: scores of a toy, allowed: those of the paper's size"
            )
        merge(options.folder)
    else:
        run(options.folder, options.minutes, options.toy, options.precision, options.workers)


if __name__ == "__main__":
    try:
        main()
    except InputError as problem:
        sys.exit(str(problem))
