"""``rf.load``, ``rf.train`` and ``rf.evaluate``: a method on a dataset, under shifts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.bench import training
from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.datasets.fetch import dataset_files, require_official
from robust_fairness.bench.experiment.experiment import Cell, TestSet
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.bench.networks import configured, named, network_of
from robust_fairness.bench.shifts.base import SampleShift
from robust_fairness.bench.training.records import Fitted
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples

METRICS = (
    "accuracy",
    "worst_group_accuracy",
    "equalized_odds_difference",
    "demographic_parity_difference",
)
METRICS_OF_NUMBERS = ("mean_squared_error", "worst_group_mean_squared_error")


def load(
    name: str,
    *,
    splits: int = 1,
    data: str | Path | None = None,
    allow_modified_data: bool = False,
    **options: Any,
) -> Samples:
    """A dataset: its rows, labels, attributes and named random splits.

    Args:
        name: a dataset of the default configuration, such as ``adult``, or a plug-in.
        splits: number of splits; a training with seed k uses split k.
        data: folder of the raw files; default: ``ROBUST_FAIRNESS_DATA``, else ``data/01_raw``.
            What is not there is taken from the bundled files.
        allow_modified_data: accept files that differ from the official ones.
        options: parameters of the dataset, which replace those of the configuration.

    Raises:
        InputError: no such dataset or parameter, or a file is missing, does not fit or differs
            from the official one, whose checksum is known.
    """
    parameters = {**configured("datasets", name), **options}
    source = Named(kind="dataset", name=parameters.pop("source", name), options=parameters)
    files = dataset_files(None if data is None else Path(data))
    samples: Samples = find("dataset", source.name)(source.parameters).load(files, splits)
    if not allow_modified_data:
        require_official(samples.sources, "pass allow_modified_data=True")
    return samples


@dataclass(frozen=True)
class Trained:
    """A method that was trained on a dataset, once per seed.

    ``history`` has the losses of every epoch and ``selection`` the replicas that were chosen, as
    the tables of a run.
    """

    samples: Samples = field(repr=False)
    cell: Cell
    fitted: Sequence[Fitted] = field(repr=False)
    history: pd.DataFrame = field(repr=False)
    selection: pd.DataFrame = field(repr=False)


def train(
    samples: Samples,
    method: str | Mapping[str, Any] = "erm",
    *,
    network: str | Mapping[str, Any] | None = None,
    seeds: int | Sequence[int] = 1,
    name: str = "samples",
    **settings: Any,
) -> Trained:
    """Train a method on the training rows of a dataset, with a number of seeds or these ones.

    ``network`` is a plug-in or a name of the default configuration, such as ``boosted_trees``;
    without it the method's own, which is ``mlp`` for most. Method and network are a name, or a name
    with fields: ``{"name": "boosted_trees", "params": {"learning_rate": 0.05}}``. ``settings`` are
    fields of the method, the network or the training protocol:
    ``rf.train(samples, "cuma", epochs=20, gamma=1.0)``. Nothing is written.

    Raises:
        InputError: a name or a setting is not known, is a field of two of them, or method, network
            and dataset do not fit.
    """
    if not isinstance(samples, Samples):
        raise InputError(
            f"samples of type {type(samples).__name__}, allowed: what load returns; tables and "
            "arrays are for the classifiers, such as Erm().fit(X, y)"
        )
    method = named("method", method)
    cell = Cell.model_validate(
        {
            "dataset": name,
            "label": method["name"],
            "method": method,
            "network": network_of(find("method", method["name"]).default_network, network),
            "settings": settings,
            "seeds": tuple(range(seeds) if isinstance(seeds, int) else seeds),
            "selections": ("accuracy" if samples.classes else "mean_squared_error",),
        }
    )
    with checkpoints.not_kept():
        fitted, validation, history, _ = training.train(samples, cell)
    return Trained(samples, cell, fitted, history, training.select(samples, validation, cell))


def evaluate(
    trained: Trained,
    *,
    shifts: Mapping[str, float | Sequence[float]] | None = None,
    metrics: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Scores on the test rows, unshifted and under every severity of the shifts.

    Args:
        trained: a trained method.
        shifts: severities by name of a shift, ``{"gaussian_noise": [0.03, 0.1]}``.
        metrics: names of metrics; by default accuracy and group fairness, or squared errors.

    Returns:
        The table ``metrics`` of a run, a row per replica, test set, attribute and metric.

    Raises:
        InputError: no such shift or metric, or a shift does not apply to the dataset.
    """
    samples = trained.samples
    test_sets = [
        TestSet.model_validate({"shift": name, "severity": float(severity)})
        for name, severities in (shifts or {}).items()
        for severity in np.atleast_1d(np.asarray(severities, dtype=float))
    ]
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    names = names or (METRICS if samples.classes else METRICS_OF_NUMBERS)
    places = {test_set.name: (test_set.called, test_set.severity) for test_set in test_sets}
    cell = trained.cell.model_copy(update={"metrics": names, "test_sets": places})
    shifted = {test_set.name: _shifted(samples, test_set) for test_set in test_sets}
    predictions = training.predict(samples, trained.fitted, trained.selection, cell, shifted)
    return training.evaluate(samples, predictions, trained.selection, cell, shifted)


def _shifted(samples: Samples, test_set: TestSet) -> Samples:
    """The rows that some split tests on, shifted as in a run."""
    places = np.flatnonzero((samples.splits == "test").any(axis=1))
    shift = find("shift", test_set.shift.name)(test_set.shift.parameters)
    if not isinstance(shift, SampleShift):
        raise InputError(f"shift {test_set.shift.name}: of generated images, allowed: of rows")
    shifted: Samples = shift.apply(samples.take(places), test_set.severity, places)
    return shifted
