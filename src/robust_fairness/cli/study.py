"""The command ``study``: train a grid in blocks, and keep counts from which every score follows.

A *block* is a dataset (a task and the domains trained on), a training (cells that differ only in
their post-processing share it) and the refits that are missing. Its counts are put into FOLDER when
it is done, a folder of each base dataset with a file of each dataset, so that the command can be
stopped and repeated, also elsewhere.
"""

import logging
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
import pandas as pd

from robust_fairness.cli.commands import ProjectCommand

if TYPE_CHECKING:
    from robust_fairness.experiment.experiment import Cell, DatasetConfig
    from robust_fairness.samples import Samples
    from robust_fairness.training.records import Prediction

SPLITS = 10  # all of them have equally many rows of every part of a domain
SEARCHED = 0  # the refit whose validation rows choose a trial, for all refits
WEIGHT = "PWGTP"  # attribute by which rows are counted as well, if there is one
SUBGROUPS = 8  # of two classes and at most four groups
SEES_TARGET = "target rows"
UNSHIFTED = ""
KEYS = ["trained_on", "method", "trial", "seed", "part", "tested_on"]
DIGITS = 3  # of a number of rows; random decisions count by their probability

logger = logging.getLogger(__name__)


@click.command(cls=ProjectCommand, short_help="Train a grid in blocks, and keep their counts.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--env", "-e", default="study", show_default=True, help="Environment of conf/.")
@click.option("--datasets", help="Datasets of the grid, separated by commas.")
@click.option("--methods", help="Labels of methods of the grid, separated by commas.")
@click.option("--seeds", help="Number of refits, those before among them.")
@click.option("--answers", help="Train nothing: print what this base dataset in FOLDER says.")
@click.option("--rows", type=click.IntRange(min=2), help="Test rows of a domain to predict for.")
@click.option("--further", help="Test in this domain alone, which the grid does not have.")
def study(
    folder: Path,
    env: str,
    answers: str | None,
    rows: int | None,
    further: str | None,
    **axes: str | None,
) -> None:
    """Train the blocks whose counts are not in FOLDER, and put them there.

    Repeat the command to go on: blocks that are done are left out. With --further the trainings of
    the grid are tested in another domain; --answers and --further then compare it with what the
    counts in FOLDER predict.
    """
    if answers is not None:
        click.echo(answered(folder, answers, rows, further))
        return
    from kedro.framework.startup import bootstrap_project

    from robust_fairness.pipelines.ingestion.pipeline import read, within_domains
    from robust_fairness.runs.configuration import loader_of

    bootstrap_project(Path.cwd())
    folder.mkdir(parents=True, exist_ok=True)
    grid = {axis: value for axis, value in axes.items() if value is not None}
    loaded: dict[str, Samples] = {}
    for configured in loader_of(env, grid).validated_experiment.datasets:
        dataset = tested_in(configured, further) if further else configured
        path = counts_path(folder, dataset.base, further)
        done = counts_in(path, dataset.name)
        for cells, seeds in due(dataset, done):
            if dataset.base not in loaded:
                samples = equal_sizes(read(dataset.model_copy(update={"seeds": SPLITS})))
                loaded = {dataset.base: samples}
                _write(rows_path(path), totals(samples, dataset))
            samples = loaded[dataset.base]
            start = time.process_time()
            table = run_block(within_domains(samples, dataset), samples, cells, seeds, done)
            table = table.assign(
                trained_on=dataset.facets["trained_on"], seconds=time.process_time() - start
            )
            known = pd.concat([counts_in(path, dataset.name), table], ignore_index=True)
            _write(path / f"{dataset.name}.parquet", known.drop_duplicates(KEYS, keep="last"))
            names = ", ".join(cell.label for cell in cells)
            click.echo(f"{dataset.name}: {names}, refits {seeds}, {table['seconds'].iloc[0]:.1f} s")


def counts_path(folder: Path, base: str, further: str | None = None) -> Path:
    """The folder of the counts of a base dataset, or of those in a further domain."""
    return folder / (f"{base}_in_{further}" if further else base)


def rows_path(counts: Path) -> Path:
    """The file of the numbers of rows that belong to counts."""
    return counts.with_name(f"{counts.name}_rows.parquet")


def tested_in(dataset: "DatasetConfig", domain: str) -> "DatasetConfig":
    """The dataset with its training tested in a further domain alone; ``acs`` reads that state.

    Raises:
        InputError: the domain is one of the grid, or there is no such state.
    """
    from pydantic import ValidationError

    from robust_fairness.core.errors import InputError

    domains, parameters = dataset.domains, dataset.source.parameters
    if domains is None or domain in (*domains.train, *domains.test):
        raise InputError(f"--further {domain}: allowed: a domain that the grid does not have")
    states = getattr(parameters, "states", None)
    if states is not None:
        try:
            parameters = type(parameters)(**{
                **parameters.model_dump(), "states": (*states, domain)
            })  # fmt: skip
        except ValidationError as error:
            raise InputError(f"--further {domain}: {error.errors()[0]['msg']}") from None
    source = dataset.source.model_copy(update={"parameters": parameters})
    tested = domains.model_copy(update={"test": (domain,)})
    return dataset.model_copy(update={"source": source, "domains": tested})


def answered(folder: Path, base: str, rows: int | None = None, further: str | None = None) -> str:
    """The tables of ``reporting.study``, or what its questions wait for."""
    from robust_fairness.reporting import study as views
    from robust_fairness.reporting import study_predictions as predicted

    scores = views.scores(*_read(counts_path(folder, base)))
    waiting = views.missing(scores)
    if waiting:
        return f"{base}: no verdict before these methods are complete: {', '.join(waiting)}"
    if further:
        shown = [predicted.scored(scores, *_read(counts_path(folder, base, further)), further)]
    else:
        made = (
            views.answers, views.kept, views.promised, views.dominated, views.movement_forecasts,
            predicted.variances, predicted.shares_kept, predicted.frontiers,
        )  # fmt: skip
        shown = [make(scores) for make in made] + [predicted.predictions(scores, rows)]
    return "\n\n".join(table.round(4).to_csv(index=False) for table in shown)


def _read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    from robust_fairness.core.errors import InputError

    counts = counts_in(path)
    if counts.empty:
        raise InputError(f"{path}: missing, train it first")
    return counts, pd.read_parquet(rows_path(path))


def counts_in(path: Path, dataset: str = "*") -> pd.DataFrame:
    """The counts of the blocks that are done, of one dataset or of all."""
    files = sorted(path.glob(f"{dataset}.parquet"))
    if files:
        return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    return pd.DataFrame(columns=["trained_on", "method", "seed", "trial", "selections"])


def _write(path: Path, table: pd.DataFrame) -> None:
    from robust_fairness.core.files import atomic_path

    floats = [str(name) for name in table if table[name].dtype.kind == "f"]
    with atomic_path(path) as temporary:
        table.to_parquet(
            temporary,
            index=False,
            compression="zstd",
            use_dictionary=[str(name) for name in table if name not in floats],
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),  # two thirds of the size
        )


def due(
    dataset: "DatasetConfig", done: pd.DataFrame
) -> Iterator[tuple[list["Cell"], tuple[int, ...]]]:
    """Trainings of a dataset, each with its cells and the refits whose counts are missing."""
    shared: dict[str, list[Cell]] = {}
    for cell in dataset.cells:
        trained = [(one.method, one.network, one.protocol) for one in cell.replicas()]
        shared.setdefault(repr((cell.method.name, cell.network.name, trained)), []).append(cell)
    for cells in shared.values():
        refits = [set(done.loc[done["method"] == cell.label, "seed"]) for cell in cells]
        # a cell whose rule could not be fitted has none
        missing = set(cells[0].seeds) - set.intersection(*(filter(None, refits)), refits[0])
        if missing:
            yield cells, tuple(sorted(missing))


def equal_sizes(samples: "Samples") -> "Samples":
    """The samples with as many rows of every part of a domain in all splits.

    Refits then train as one stack. Households are the units of splits, whose parts therefore have
    slightly different numbers of rows; the last rows of the larger ones are left out, as are rows
    without a sensitive attribute.
    """
    domain = samples.attributes[samples.domain].astype(str)
    known = samples.attributes[[*samples.sensitive]].notna().all(axis=1)
    samples = replace(samples, splits=samples.splits.where(known))
    by = {
        name: parts.groupby([domain, parts], observed=True)
        for name, parts in samples.splits.items()
    }
    fewest = pd.concat([one.size() for one in by.values()], axis=1).min(axis=1)
    splits = {}
    for name, parts in samples.splits.items():
        most = fewest.reindex(pd.MultiIndex.from_arrays([domain, parts])).to_numpy()
        splits[name] = parts.where(by[name].cumcount().to_numpy() < most)
    return replace(samples, splits=pd.DataFrame(splits))


def adapting(samples: "Samples", everything: "Samples") -> "Samples":
    """The samples with other rows out of distribution than those that are tested.

    A method that reads unlabelled rows of other domains gets those that a training there would
    have, so that it is tested on rows that it has not read.
    """
    splits, domain = samples.splits.copy(), samples.attributes[samples.domain]
    for name, parts in splits.items():
        tested = domain.isin(domain[parts == "ood_test"].unique())
        outside = everything.splits[name].isin(["train", "val"]) & parts.isna() & tested
        splits[name] = parts.mask(parts == "ood_test").mask(outside, "ood_test")
    return replace(samples, splits=splits)


def thinned(samples: "Samples", share: float) -> "Samples":
    """The samples with a share of their validation rows, drawn by split."""
    splits = samples.splits.copy()
    for number, (name, parts) in enumerate(samples.splits.items()):
        rows = np.random.default_rng(number).permutation(samples.rows(str(name), "val"))
        left_out = np.isin(np.arange(len(samples)), rows[round(share * len(rows)) :])
        splits[name] = parts.mask(left_out)
    return replace(samples, splits=splits)


def run_block(
    samples: "Samples",
    everything: "Samples",
    cells: Sequence["Cell"],
    seeds: Sequence[int],
    done: pd.DataFrame,
) -> pd.DataFrame:
    """Counts of a training, a row per cell, refit, selected trial and domain tested on.

    All trials are fitted with ``SEARCHED`` alone. Each criterion chooses one of them on validation
    rows of that refit, before any post-processing; the other refits are fitted with it.

    Args:
        samples: within the domains of the training.
        everything: the same rows with the parts of all domains.
        cells: that differ in their post-processing only.
        seeds: refits that are missing.
        done: counts of this dataset, which have the choice if ``SEARCHED`` is not missing.
    """
    from robust_fairness import training
    from robust_fairness.compute.checkpoints import ROOT_VARIABLE
    from robust_fairness.core.errors import InputError
    from robust_fairness.runs.session import environment
    from robust_fairness.training import decisions, prediction
    from robust_fairness.training.search import Round

    plain = cells[0].model_copy(update={"postprocessing": None, "seeds": tuple(seeds)})
    seen = adapting(samples, everything) if SEES_TARGET in plain.sees else samples
    changes = {one.trial: one.changes for one in plain.replicas()}
    with tempfile.TemporaryDirectory() as folder, environment({ROOT_VARIABLE: folder}):
        fitted, validated, curves = [], [], []
        if SEARCHED in seeds:
            first = plain.model_copy(update={"seeds": (SEARCHED,)})
            models, validation, history, _ = training.train(seen, first)
            selected = training.select(seen, validation, plain)
            chosen = selected.groupby("trial", sort=False)["selection"].agg("; ".join).to_dict()
            fitted += [model for model in models if model.trial in chosen]
            validated += validation
            curves.append(history)
        else:
            rows = done[(done["method"] == cells[0].label) & (done["selections"] != "")]
            chosen = dict(zip(rows["trial"], rows["selections"], strict=True))
        later = tuple(seed for seed in seeds if seed != SEARCHED)
        if later:
            then = plain.model_copy(update={"seeds": later})
            again = Round(then.replicas([changes[str(trial)] for trial in chosen]))
            models, validation, history, _ = training.train(seen, then, lambda _: [again])
            fitted += models
            validated += validation
            curves.append(history)
    unshifted = {UNSHIFTED: samples}
    tested = prediction.predict(samples, fitted, plain, unshifted)
    tested += prediction.predict(samples, fitted, plain, unshifted, "ood_test")
    found = []
    for cell in cells:
        rule = thinned(samples, float(cell.facets.get("validation", 1)))
        try:
            for split in {item.split for item in fitted}:
                decisions.require_groups(rule, split, cell.postprocessing)
        except InputError as error:
            logger.warning("%s: left out, %s", cell.label, error)
            continue
        predictions = decisions.decided(rule, fitted, cell, unshifted, tested)
        if cell.postprocessing is None:
            predictions = validated + predictions
        found += [
            {"method": cell.label, "trial": one.trial, "seed": one.seed, "part": one.part, **row}
            for one in predictions
            for row in positives(one, samples, cell)
        ]
    table = pd.DataFrame(found)
    counts = table.columns.drop(["method", "trial", "seed", "part", "tested_on"])
    table[counts] = table[counts].round(DIGITS).astype("float32")
    selections = table["trial"].map(chosen).fillna("")
    return table.assign(selections=selections).merge(losses(pd.concat(curves)), how="left")


def losses(history: pd.DataFrame) -> pd.DataFrame:
    """Validation loss of every replica after half of its epochs and after all."""
    table = history[history["quantity"] == "validation_loss"]
    last = table.groupby(["trial", "seed"])["epoch"].transform("max")
    ends = {"loss_half": (last + 1) // 2 - 1, "loss_end": last}
    found = [
        table[table["epoch"] == epoch].set_index(["trial", "seed"])["value"].rename(name)
        for name, epoch in ends.items()
    ]
    return pd.concat(found, axis=1).astype("float32").reset_index()


def subgroups(samples: "Samples", cell: "Cell") -> np.ndarray:
    """Class, and the groups of two attributes of two groups, as a number below 8.

    A single attribute is the first of the two; the second then has one group.
    """
    names = cell.groupings[0] if cell.groupings else samples.sensitive
    number = samples.y.astype(np.int64)
    for name in names:
        number = 2 * number + samples.attributes[name].cat.codes.to_numpy()
    return number * 2 ** (2 - len(names))


def summed(number: np.ndarray, **values: np.ndarray) -> dict[str, float]:
    """Sums of values by subgroup, as ``name_0`` to ``name_7``."""
    return {
        f"{name}_{place}": float(total)
        for name, of in values.items()
        for place, total in enumerate(np.bincount(number, of, SUBGROUPS))
    }


def positives(one: "Prediction", samples: "Samples", cell: "Cell") -> Iterator[dict[str, object]]:
    """Rows of every domain and subgroup that are decided positive, and the people they stand for.

    Random decisions count by their probability.
    """
    from robust_fairness.samples.domains import rows_by_domain

    number = subgroups(samples, cell)[one.rows]
    weight = weights_of(samples)[one.rows]
    for domain, rows in rows_by_domain(samples, one.rows).items():
        positive = one.positive[rows]
        yield {"tested_on": domain, **summed(
            number[rows], positive=positive, people=positive * weight[rows]
        )}  # fmt: skip


def weights_of(samples: "Samples") -> np.ndarray:
    """How many people every row stands for."""
    if WEIGHT in samples.attributes:
        return samples.attributes[WEIGHT].to_numpy(np.float64)
    return np.ones(len(samples))


def totals(samples: "Samples", dataset: "DatasetConfig") -> pd.DataFrame:
    """Rows, people and squared weights of subgroups, by domain of the design, part and refit."""
    domains = [*dataset.domains.train, *dataset.domains.test] if dataset.domains else []
    number, weight = subgroups(samples, dataset.cells[0]), weights_of(samples)
    domain = samples.attributes[samples.domain].astype(str).to_numpy()
    found = []
    for seed, split in enumerate(samples.split_names):
        for part in ("train", "val", "test"):
            inside = (samples.splits[split] == part).to_numpy()
            for name in sorted(domains):
                rows = inside & (domain == name)
                found.append({"domain": name, "part": part, "seed": seed, **summed(
                    number[rows], rows=np.ones(rows.sum()), people=weight[rows],
                    squares=weight[rows] ** 2,
                )})  # fmt: skip
    return pd.DataFrame(found)
