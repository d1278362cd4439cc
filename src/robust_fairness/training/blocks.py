"""Blocks of the study of natural shift: a training, and the counts from which every score follows.

A *block* is a dataset (a task and the domains trained on), a training (cells that differ only in
their post-processing share it) and the refits that are missing.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd
from pydantic import ValidationError

from robust_fairness import training
from robust_fairness.compute import checkpoints
from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import Cell, DatasetConfig
from robust_fairness.samples import Samples
from robust_fairness.samples.domains import rows_by_domain
from robust_fairness.training import decisions, prediction
from robust_fairness.training.records import Fitted, Prediction
from robust_fairness.training.search import Round

SPLITS = 10  # all of them have equally many rows of every part of a domain
SEARCHED = 0  # the refit whose validation rows choose a trial, for all refits
WEIGHT = "PWGTP"  # attribute by which rows are counted as well, if there is one
SUBGROUPS = 8  # of two classes and at most four groups
SEES_TARGET = "target rows"
UNSHIFTED = ""
DIGITS = 3  # of a number of rows; random decisions count by their probability

logger = logging.getLogger(__name__)


def tested_in(dataset: DatasetConfig, domain: str) -> DatasetConfig:
    """The dataset with its training tested in a further domain alone; ``acs`` reads that state.

    Raises:
        InputError: the domain is one of the grid, or there is no such state.
    """
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


def due(dataset: DatasetConfig, done: pd.DataFrame) -> Iterator[tuple[list[Cell], tuple[int, ...]]]:
    """Trainings of a dataset, each with its cells and the refits whose counts are missing."""
    shared: dict[str, list[Cell]] = {}
    for cell in dataset.cells:
        trained = [
            (replica.method, replica.network, replica.protocol) for replica in cell.replicas()
        ]
        shared.setdefault(repr((cell.method.name, cell.network.name, trained)), []).append(cell)
    for cells in shared.values():
        refits = [set(done.loc[done["method"] == cell.label, "seed"]) for cell in cells]
        # a cell whose rule could not be fitted has none
        missing = set(cells[0].seeds) - set.intersection(*(filter(None, refits)), refits[0])
        if missing:
            yield cells, tuple(sorted(missing))


def equal_sizes(samples: Samples) -> Samples:
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
    fewest = pd.concat([grouped.size() for grouped in by.values()], axis=1).min(axis=1)
    splits = {}
    for name, parts in samples.splits.items():
        most = fewest.reindex(pd.MultiIndex.from_arrays([domain, parts])).to_numpy()
        splits[name] = parts.where(by[name].cumcount().to_numpy() < most)
    return replace(samples, splits=pd.DataFrame(splits))


def adapting(samples: Samples, everything: Samples) -> Samples:
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


def thinned(samples: Samples, share: float) -> Samples:
    """The samples with a share of their validation rows, drawn by split."""
    splits = samples.splits.copy()
    for number, (name, parts) in enumerate(samples.splits.items()):
        rows = np.random.default_rng(number).permutation(samples.rows(str(name), "val"))
        left_out = np.isin(np.arange(len(samples)), rows[round(share * len(rows)) :])
        splits[name] = parts.mask(left_out)
    return replace(samples, splits=splits)


def run_block(
    samples: Samples,
    everything: Samples,
    cells: Sequence[Cell],
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
    plain = cells[0].model_copy(update={"postprocessing": None, "seeds": tuple(seeds)})
    seen = adapting(samples, everything) if SEES_TARGET in plain.sees else samples
    known = done[(done["method"] == cells[0].label) & (done["selections"] != "")]
    earlier = dict(zip(known["trial"], known["selections"], strict=True))
    fitted, validated, history, selections = _trained(seen, plain, earlier)
    unshifted = {UNSHIFTED: samples}
    tested = prediction.predict(samples, fitted, plain, unshifted)
    tested += prediction.predict(samples, fitted, plain, unshifted, "ood_test")
    rows = []
    for cell in cells:
        rule = thinned(samples, float(cell.facets.get("validation", 1)))
        try:
            for split in {model.split for model in fitted}:
                decisions.require_groups(rule, split, cell.postprocessing)
        except InputError as error:
            logger.warning("%s: left out, %s", cell.label, error)
            continue
        decided = decisions.decided(rule, fitted, cell, unshifted, tested)
        rows += [
            {"method": cell.label, "trial": part.trial, "seed": part.seed, "part": part.part, **row}
            for part in (decided if cell.postprocessing else validated + decided)
            for row in positives(part, samples, cell)
        ]
    table = pd.DataFrame(rows)
    counts = table.columns.drop(["method", "trial", "seed", "part", "tested_on"])
    table[counts] = table[counts].round(DIGITS).astype("float32")
    table = table.assign(selections=table["trial"].map(selections).fillna(""))
    return table.merge(losses(history), how="left")


def _trained(
    seen: Samples, plain: Cell, selections: Mapping[str, str]
) -> tuple[list[Fitted], list[Prediction], pd.DataFrame, Mapping[str, str]]:
    """Models of the selected trials, validation predictions, history, and criteria by trial.

    Args:
        seen: the rows that the method reads.
        plain: the cell without post-processing, with the refits that are missing.
        selections: criteria by trial, if ``SEARCHED`` is not among these refits.
    """
    runs = []
    with checkpoints.not_kept():
        if SEARCHED in plain.seeds:
            first = plain.model_copy(update={"seeds": (SEARCHED,)})
            models, validation, history, _ = training.train(seen, first)
            selected = training.select(seen, validation, plain)
            criteria = selected.groupby("trial", sort=False)["selection"].agg("; ".join)
            selections = {str(trial): text for trial, text in criteria.items()}
            runs.append(
                ([model for model in models if model.trial in selections], validation, history)
            )
        later = tuple(seed for seed in plain.seeds if seed != SEARCHED)
        if later:
            then = plain.model_copy(update={"seeds": later})
            changes = {replica.trial: replica.changes for replica in plain.replicas()}
            again = Round(then.replicas([changes[trial] for trial in selections]))
            models, validation, history, _ = training.train(seen, then, lambda _: [again])
            runs.append((models, validation, history))
    fitted, validated, histories = zip(*runs, strict=True)
    return [*chain(*fitted)], [*chain(*validated)], pd.concat(histories), selections


def losses(history: pd.DataFrame) -> pd.DataFrame:
    """Validation loss of every replica after half of its epochs and after all."""
    table = history[history["quantity"] == "validation_loss"]
    last = table.groupby(["trial", "seed"])["epoch"].transform("max")
    ends = {"loss_half": (last + 1) // 2 - 1, "loss_end": last}
    columns = [
        table[table["epoch"] == epoch].set_index(["trial", "seed"])["value"].rename(name)
        for name, epoch in ends.items()
    ]
    return pd.concat(columns, axis=1).astype("float32").reset_index()


def subgroups(samples: Samples, cell: Cell) -> np.ndarray:
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


def positives(predicted: Prediction, samples: Samples, cell: Cell) -> Iterator[dict[str, object]]:
    """Rows of every domain and subgroup that are decided positive, and the people they stand for.

    Random decisions count by their probability.
    """
    number = subgroups(samples, cell)[predicted.rows]
    weight = weights_of(samples)[predicted.rows]
    for domain, rows in rows_by_domain(samples, predicted.rows).items():
        positive = predicted.positive[rows]
        yield {"tested_on": domain, **summed(
            number[rows], positive=positive, people=positive * weight[rows]
        )}  # fmt: skip


def weights_of(samples: Samples) -> np.ndarray:
    """How many people every row stands for."""
    if WEIGHT in samples.attributes:
        return samples.attributes[WEIGHT].to_numpy(np.float64)
    return np.ones(len(samples))


def totals(samples: Samples, dataset: DatasetConfig) -> pd.DataFrame:
    """Rows, people and squared weights of subgroups, by domain of the design, part and refit."""
    domains = [*dataset.domains.train, *dataset.domains.test] if dataset.domains else []
    number, weight = subgroups(samples, dataset.cells[0]), weights_of(samples)
    domain = samples.attributes[samples.domain].astype(str).to_numpy()
    table = []
    for seed, split in enumerate(samples.split_names):
        for part in ("train", "val", "test"):
            inside = (samples.splits[split] == part).to_numpy()
            for name in sorted(domains):
                rows = inside & (domain == name)
                table.append({"domain": name, "part": part, "seed": seed, **summed(
                    number[rows], rows=np.ones(rows.sum()), people=weight[rows],
                    squares=weight[rows] ** 2,
                )})  # fmt: skip
    return pd.DataFrame(table)
