"""Train the models of grid.yml in every domain, and count their decisions in all.

    python -m studies.natural_shift.train --data income_40 --refits 10
    python -m studies.natural_shift.train --data income_40 --refits 5 --further DE

Counts of a training are written when it is done, so that the command can be stopped and repeated.
With ``--further`` the models are tested in this state alone, in a folder of its own.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

import robust_fairness as rf
from robust_fairness.bench import training
from robust_fairness.bench.compute.checkpoints import not_kept
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.bench.training.search import Round
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path
from robust_fairness.core.samples import Samples

HERE = Path(__file__).resolve().parent
SPLITS = 10  # all of them have equally many rows of every part of a domain
SEARCHED = 0  # the refit whose validation rows choose a trial, for all refits
WEIGHT = "PWGTP"  # attribute by which rows are counted as well, if there is one
SUBGROUPS = 8  # of two classes and at most four groups
DIGITS = 3  # of a number of rows; random decisions count by their probability


def equal_sizes(samples: Samples) -> Samples:
    """The samples with as many rows of every part of a domain in all splits.

    Refits then train as one stack. Households are the units of splits, whose parts therefore have
    slightly different numbers of rows; the last rows of the larger ones are left out, as are rows
    without a sensitive attribute.
    """
    domain = samples.attributes[samples.domain].astype(str)
    known = samples.attributes[[*samples.sensitive]].notna().all(axis=1)
    splits = samples.splits.where(known)
    by = {name: parts.groupby([domain, parts], observed=True) for name, parts in splits.items()}
    fewest = pd.concat([grouped.size() for grouped in by.values()], axis=1).min(axis=1)
    kept = {}
    for name, parts in splits.items():
        most = fewest.reindex(pd.MultiIndex.from_arrays([domain, parts])).to_numpy()
        kept[name] = parts.where(by[name].cumcount().to_numpy() < most)
    return replace(samples, splits=pd.DataFrame(kept))


def adapting(inside: Samples, everything: Samples) -> Samples:
    """The samples with other rows out of distribution than those that are tested.

    A method that reads unlabelled rows of other domains gets those that a training there would
    have, so that it is tested on rows that it has not read.
    """
    splits, domain = inside.splits.copy(), inside.attributes[inside.domain]
    for name, parts in splits.items():
        tested = domain.isin(domain[parts == "ood_test"].unique())
        outside = everything.splits[name].isin(["train", "val"]) & parts.isna() & tested
        splits[name] = parts.mask(parts == "ood_test").mask(outside, "ood_test")
    return replace(inside, splits=splits)


def thinned(samples: Samples, share: float) -> Samples:
    """The samples with a share of their validation rows, drawn by split."""
    splits = samples.splits.copy()
    for number, (name, parts) in enumerate(samples.splits.items()):
        rows = np.random.default_rng(number).permutation(samples.rows(str(name), "val"))
        left_out = np.isin(np.arange(len(samples)), rows[round(share * len(rows)) :])
        splits[name] = parts.mask(left_out)
    return replace(samples, splits=splits)


def cell_of(grid: Mapping[str, Any], data: str, label: str, seeds: Sequence[int]) -> Cell:
    """The settings of a method without thresholds."""
    method = grid["methods"][label]
    return Cell.model_validate({
        "dataset": data, "label": label, "seeds": tuple(seeds),
        "method": method.get("method", label), "network": method.get("network", "mlp"),
        "protocol": {**grid["protocol"], "epochs": grid["data"][data]["epochs"]},
        "settings": method.get("settings", {}), "trials": method.get("trials", ()),
        "selections": grid["selections"],
    })  # fmt: skip


def trained(
    seen: Samples, cell: Cell, selections: Mapping[str, str]
) -> tuple[list[Fitted], list[Prediction], pd.DataFrame, Mapping[str, str]]:
    """Models of the selected trials, validation predictions, history, and criteria by trial.

    All trials are fitted with ``SEARCHED`` alone. Each criterion chooses one of them on validation
    rows of that refit; the other refits are fitted with it.

    Args:
        seen: the rows that the method reads.
        cell: the method, with the refits that are missing.
        selections: criteria by trial, if ``SEARCHED`` is not among these refits.
    """
    parts = []
    with not_kept():
        if SEARCHED in cell.seeds:
            first = cell.model_copy(update={"seeds": (SEARCHED,)})
            models, validated, history, _ = training.train(seen, first)
            chosen = training.select(seen, validated, first)
            criteria = chosen.groupby("trial", sort=False)["selection"].agg("; ".join)
            selections = {str(trial): text for trial, text in criteria.items()}
            parts.append(([m for m in models if m.trial in selections], validated, history))
        later = tuple(seed for seed in cell.seeds if seed != SEARCHED)
        if later:
            then = cell.model_copy(update={"seeds": later})
            changes = {replica.trial: replica.changes for replica in cell.replicas()}
            again = Round(then.replicas([changes[trial] for trial in selections]))
            parts.append(training.train(seen, then, lambda _: [again])[:3])
    models, validated, histories = zip(*parts, strict=True)
    return [*chain(*models)], [*chain(*validated)], pd.concat(histories), selections


def block(
    inside: Samples,
    everything: Samples,
    cell: Cell,
    done: pd.DataFrame,
    groups: Sequence[str],
    thresholds: Mapping[str, float],
) -> pd.DataFrame:
    """Counts of a training, a row per label, refit, selected trial and domain tested on.

    Args:
        inside: samples that are trained on in some domains.
        everything: the same rows with the parts of all domains.
        cell: the method, with the refits that are missing.
        done: counts of earlier refits, which have the choice if ``SEARCHED`` is not missing.
        groups: attributes whose groups are counted.
        thresholds: shares of the validation rows by the label of the rule that is fitted on them.
    """
    seen = adapting(inside, everything) if "target rows" in cell.sees else inside
    known = done[(done["method"] == cell.label) & (done["selections"] != "")]
    models, validated, history, selections = trained(
        seen, cell, dict(zip(known["trial"], known["selections"], strict=True))
    )
    every = pd.DataFrame([{"trial": model.trial, "seed": model.seed} for model in models])
    decided = {cell.label: validated + training.predict(inside, models, every, cell, {})}
    for label, share in thresholds.items():
        rule, rows = with_thresholds(cell, label), thinned(inside, share)
        try:
            training.check(rows, rule)
        except InputError as error:
            print(f"{label}: left out, {error}")
        else:
            decided[label] = training.predict(rows, models, every, rule, {})
    table = pd.DataFrame([
        {"method": label, "trial": part.trial, "seed": part.seed, "part": part.part, **row}
        for label, predictions in decided.items()
        for part in predictions
        for row in positives(part, inside, groups)
    ])  # fmt: skip
    counts = [name for name in table if name.startswith(("positive", "people"))]
    table[counts] = table[counts].round(DIGITS).astype("float32")
    table = table.assign(selections=table["trial"].map(selections).fillna(""))
    return table.merge(losses(history), how="left")


def with_thresholds(cell: Cell, label: str) -> Cell:
    """The cell with thresholds for equalised odds with gaps of at most .05."""
    rule = {"postprocessing": {"name": "equalized_odds", "tolerance": 0.05}, "label": label}
    return Cell.model_validate(cell.model_dump() | rule)


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


def sums(samples: Samples, groups: Sequence[str], places: np.ndarray, **values: Any) -> dict:
    """Sums of values of rows by class and groups of two attributes, as ``name_0`` to ``name_7``.

    A single attribute is the first of the two; the second then has one group.
    """
    number = samples.y[places].astype(np.int64)
    for name in groups:
        number = 2 * number + samples.attributes[name].cat.codes.to_numpy()[places]
    number *= 2 ** (2 - len(groups))
    return {
        f"{name}_{place}": float(total)
        for name, of in values.items()
        for place, total in enumerate(np.bincount(number, of, SUBGROUPS))
    }


def weights(samples: Samples) -> np.ndarray:
    """How many people every row stands for."""
    if WEIGHT in samples.attributes:
        return samples.attributes[WEIGHT].to_numpy(np.float64)
    return np.ones(len(samples))


def positives(
    predicted: Prediction, samples: Samples, groups: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Rows of every domain that are decided positive, and the people that they stand for."""
    domain = samples.attributes[samples.domain].astype(str).to_numpy()[predicted.rows]
    for name in np.unique(domain):
        rows, positive = predicted.rows[domain == name], predicted.positive[domain == name]
        people = positive * weights(samples)[rows]
        yield {"tested_on": name, **sums(samples, groups, rows, positive=positive, people=people)}


def totals(samples: Samples, groups: Sequence[str], domains: Sequence[str]) -> pd.DataFrame:
    """Rows, people and squared weights of the test rows of every domain and refit."""
    domain, weight = samples.attributes[samples.domain].astype(str).to_numpy(), weights(samples)
    table = []
    for seed, split in enumerate(samples.split_names):
        tested = samples.rows(split, "test")
        for name in domains:
            rows = tested[domain[tested] == name]
            of = {"rows": np.ones(len(rows)), "people": weight[rows], "squares": weight[rows] ** 2}
            table.append(
                {"domain": name, "part": "test", "seed": seed, **sums(samples, groups, rows, **of)}
            )
    return pd.DataFrame(table)


def write(path: Path, table: pd.DataFrame) -> None:
    """Write counts atomically."""
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False, compression="zstd")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what has no counts yet."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", help="names in grid.yml, separated by commas")
    parser.add_argument("--methods", help="names in grid.yml, separated by commas")
    parser.add_argument("--refits", type=int, help="at most so many")
    parser.add_argument("--further", help="test in this state alone")
    parser.add_argument("--grid", type=Path, default=HERE / "grid.yml")
    parser.add_argument("--counts", type=Path, default=HERE / "counts")
    asked = parser.parse_args(arguments)
    grid = yaml.safe_load(asked.grid.read_text())
    for data in asked.data.split(",") if asked.data else grid["data"]:
        train_data(grid, data, asked)


def train_data(grid: Mapping[str, Any], data: str, asked: argparse.Namespace) -> None:
    """Train the methods of a dataset in each of its domains."""
    settings = grid["data"][data]
    load, groups = dict(settings["load"]), settings["groups"]
    domains = settings.get("domains") or load["states"]
    tested = [asked.further] if asked.further else domains
    if asked.further:
        load["states"] = [*load["states"], asked.further]
    samples = equal_sizes(rf.load(splits=SPLITS, **load))
    folder = asked.counts / (f"{data}_in_{asked.further}" if asked.further else data)
    known = list(dict.fromkeys([*domains, *tested]))
    write(folder.with_name(f"{folder.name}_rows.parquet"), totals(samples, groups, known))
    refits = min(settings["refits"], asked.refits or SPLITS)
    for state in domains:
        others = [name for name in tested if name != state]
        inside = hold_out_domains(samples, train=[state], test=others, rows="test")
        path = folder / f"{data}_{state}.parquet"
        done = pd.read_parquet(path) if path.exists() else NOTHING
        for label in asked.methods.split(",") if asked.methods else grid["methods"]:
            method = grid["methods"][label]
            if settings.get("only_networks") and "network" in method:
                continue
            seeds = set(range(refits)) - set(done.loc[done["method"] == label, "seed"])
            if not seeds:
                continue
            cell = cell_of(grid, data, label, sorted(seeds))
            start = time.process_time()
            made = block(inside, samples, cell, done, groups, method.get("thresholds", {}))
            made.insert(0, "trained_on", state)
            seconds = time.process_time() - start
            done = pd.concat([done, made.assign(seconds=seconds)], ignore_index=True)
            write(path, done)
            print(f"{data}, {state}, {label}: refits {cell.seeds}, {seconds:.1f} s")


NOTHING = pd.DataFrame(columns=["trained_on", "method", "seed", "trial", "selections"])

if __name__ == "__main__":
    main()
