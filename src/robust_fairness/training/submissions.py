"""Rows for models that are trained elsewhere, and their predictions as those of a cell."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.experiment.experiment import DEFAULT_TRIAL, Cell, Protocol
from robust_fairness.samples import Samples
from robust_fairness.training import preprocessing
from robust_fairness.training.prediction import TEST_PARTS, UNSHIFTED
from robust_fairness.training.records import Prediction

PLAIN = "unshifted"  # name of the dataset's own test rows
KEYS = ["split", "test_set", "id"]
PROBABILITY, OUTCOME = "probability", "prediction"
NETWORK = "submitted"


def exported(
    samples: Samples, protocol: Protocol, splits: Sequence[str], shifted: Mapping[str, Samples]
) -> dict[str, pd.DataFrame]:
    """Tables ``train``, ``validation`` and ``test`` with a row per split, test set and row.

    Features ``x.<name>`` are those that networks get: preprocessed by the training rows of the
    split, shifted. ``attribute.<name>`` are the sensitive attributes, ``domain`` the domain, and
    ``y`` the class, or the outcome, of training and validation rows; test rows have none.
    """
    if not samples.features or isinstance(samples.x, dict):
        raise InputError("export: rows are no table, allowed: datasets with tabular features")
    sets = {UNSHIFTED: samples, **shifted}
    result: dict[str, list[pd.DataFrame]] = {"train": [], "validation": [], "test": []}
    for split in splits:
        fitted = preprocessing.stack([preprocessing.fit_split(protocol, samples, split)])
        for table, part in (("train", "train"), ("validation", "val")):
            rows = samples.rows(split, part)
            y = {"y": samples.y[rows]}
            result[table].append(_table(samples, fitted, split, rows, y))
        for name, item in sets.items():
            rows = _test_rows(item, split, name)
            of_set = {"test_set": [name or PLAIN] * len(rows)}
            result["test"].append(_table(item, fitted, split, rows, of_set))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in result.items()}


def _test_rows(samples: Samples, split: str, test_set: str) -> np.ndarray:
    """Test rows in distribution and, without shift, out of distribution."""
    parts = TEST_PARTS if test_set == UNSHIFTED else TEST_PARTS[:1]
    return np.concatenate([samples.rows(split, part) for part in parts])


def _table(
    samples: Samples,
    fitted: preprocessing.Preprocessing,
    split: str,
    rows: np.ndarray,
    further: Mapping[str, Any],
) -> pd.DataFrame:
    raw = torch.from_numpy(samples.arrays["x"][rows].astype(np.float64))
    x = fitted(raw[None])[0].numpy()
    if samples.perturbation is not None:
        x = x + samples.perturbation[rows]
    seen = samples.of_split(split).attributes.iloc[rows].reset_index(drop=True)
    named = {"domain": seen[samples.domain]} if samples.domain else {}
    attributes = {f"attribute.{name}": seen[name] for name in samples.sensitive}
    keys = {"split": [split] * len(rows), **further, "id": samples.id[rows], **named, **attributes}
    features = pd.DataFrame(
        x.astype(np.float32), columns=[f"x.{feature}" for feature in samples.features]
    )
    return pd.concat([pd.DataFrame(keys), features], axis=1)


def imported(
    table: pd.DataFrame, samples: Samples, cell: Cell, shifted: Mapping[str, Samples]
) -> list[Prediction]:
    """Predictions of a table, one replica for each split that the seeds of the cell have.

    The table has the columns of ``KEYS`` and ``probability``, of class 1, or ``prediction``, the
    outcome in its own units: exactly one row for each exported test row, in any order.

    Raises:
        InputError: a column is missing, an id is missing, repeated or foreign, or a value is not
            a number or outside [0, 1].
    """
    if samples.classes and len(samples.classes) != 2:
        raise InputError(f"submit: {len(samples.classes)} classes, allowed: two, or an outcome")
    value = PROBABILITY if samples.classes else OUTCOME
    _require_columns(table, value)
    sets = {PLAIN: samples, **shifted}
    seeds = first_seeds(samples, cell)
    for column, known in (("split", seeds), ("test_set", sets)):
        for name in table[column].unique():
            if name not in known:
                raise unknown_name(column.replace("_", " "), str(name), known)
    by_set = dict(iter(table.groupby(["split", "test_set"], sort=False)))
    nothing = table.iloc[:0]
    return [
        prediction
        for split, seed in seeds.items()
        for name, part in sets.items()
        for prediction in _predictions(
            by_set.get((split, name), nothing), part, split, seed, name, value
        )
    ]


def first_seeds(samples: Samples, cell: Cell) -> dict[str, int]:
    """The first seed of every split that a seed of the cell has."""
    names = samples.split_names
    return {names[seed % len(names)]: seed for seed in reversed(cell.seeds)}


def _require_columns(table: pd.DataFrame, value: str) -> None:
    for name in (*KEYS, value):
        if name not in table:
            raise InputError(f"predictions: no column {name}, allowed: {', '.join(KEYS)}, {value}")
    numbers = pd.to_numeric(table[value], errors="coerce")
    low, high = (0, 1) if value == PROBABILITY else (-np.inf, np.inf)
    wrong = table[~numbers.between(low, high) | ~np.isfinite(numbers)]
    if len(wrong):
        first = wrong.iloc[0]
        allowed = "0 to 1" if value == PROBABILITY else "finite numbers"
        given = str(first[value]) or "missing"
        raise InputError(
            f"predictions: {value} of id {first['id']} is {given} ({len(wrong)} such rows), "
            f"allowed: {allowed}"
        )


def _predictions(
    table: pd.DataFrame, samples: Samples, split: str, seed: int, test_set: str, value: str
) -> Iterator[Prediction]:
    """Predictions of a split on a test set, by part."""
    shift = UNSHIFTED if test_set == PLAIN else test_set
    rows = _test_rows(samples, split, shift)
    ids = pd.Index(samples.id[rows].astype(str))
    result = _by_id(table, ids, f"{test_set} of split {split}", value)
    if value == PROBABILITY:
        with np.errstate(divide="ignore"):
            outputs = np.log(np.stack([1 - result, result], axis=1))
    else:
        outputs = result[:, None]
    for part in TEST_PARTS:
        mask = np.isin(rows, samples.rows(split, part))
        if mask.any():
            yield Prediction(
                trial=DEFAULT_TRIAL,
                seed=seed,
                split=split,
                test_set=shift,
                part=part,
                rows=rows[mask],
                outputs=outputs[mask].astype(np.float32),
                network=NETWORK,
            )


def _by_id(table: pd.DataFrame, ids: pd.Index, where: str, value: str) -> np.ndarray:
    """Values in the order of ``ids``, each of which has exactly one, float64 ``[n]``."""
    given = pd.Index(table["id"].astype(str))
    for problem, wrong in (
        ("has no prediction", ids.difference(given)),
        ("is no test row", given.difference(ids)),
        ("is predicted twice", given[given.duplicated()]),
    ):
        if len(wrong):
            raise InputError(
                f"predictions for {where}: id {wrong[0]} {problem} ({len(wrong)} such ids), "
                f"allowed: each of {len(ids)} ids once"
            )
    values = pd.to_numeric(table[value]).to_numpy(dtype=np.float64)
    return values[given.get_indexer(ids)]


def submitted(label: str, cell: Cell) -> Cell:
    """The cell of predictions from elsewhere, scored as another cell of the dataset is."""
    return cell.model_copy(update={"label": label, "postprocessing": None})


def chosen(predictions: Sequence[Prediction], cell: Cell) -> pd.DataFrame:
    """Every replica under every criterion of the cell, ``tables.SELECTION``."""
    replicas = dict.fromkeys((prediction.trial, prediction.seed) for prediction in predictions)
    return tables.table(
        tables.SELECTION,
        [
            {"selection": criterion, "trial": trial, "seed": seed, "score": None}
            for criterion in cell.selections
            for trial, seed in replicas
        ],
    )
