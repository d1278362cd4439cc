"""What has been trained of a cell so far, and the grid search that adds to it stage by stage."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from robust_fairness.checkpoints import Checkpoint, threads
from robust_fairness.errors import InputError
from robust_fairness.parameters import CellParameters, Replica, require_replicas
from robust_fairness.samples import Samples, require_categorical
from robust_fairness.training import augmentation, evaluation, fitting, prediction, selection
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Fitted, Prediction


class Trained:
    """Replicas that were fitted, in the order in which they were asked for.

    Args:
        samples: the dataset.
        cell: the cell's settings.
    """

    def __init__(self, samples: Samples, cell: CellParameters) -> None:
        self.samples, self.cell = samples, cell
        self.replicas: list[Replica] = []
        self.fitted: list[Fitted] = []
        self.validation: list[Prediction] = []
        self.curves: list[dict[str, Any]] = []

    def extend(self, replicas: Sequence[Replica]) -> None:
        """Fit further replicas and predict their validation rows.

        Raises:
            InputError: a trial is there twice, or see ``training.train``.
        """
        require_replicas([*self.replicas, *replicas])
        fitted: list[Fitted] = []
        kept: dict[tuple[str, int], dict[str, np.ndarray]] = {}
        network = self.cell.network.name
        sharing = {id(one[0]): one for one in fitting.trainings(replicas, network)}
        firsts = [one[0] for one in sharing.values()]
        for together in fitting.stacks(firsts, self.samples, network):
            trained = [one for first in together for one in sharing[id(first)]]
            with threads(together[0].protocol.threads):
                stack = fitting.Stack(self.samples, self.cell, together)
                content = fitting.training_key(self.samples, self.cell, together)
                stack.train_to_end(Checkpoint(f"{self.cell.dataset}.{self.cell.label}", content))
                fitted += stack.fitted(trained)
                self.curves += stack.curves(trained)
                kept |= stack.kept_of_validation(trained)
        position = {(one.trial, one.seed): number for number, one in enumerate(replicas)}

        def place(one: Fitted | Prediction) -> int:
            return position[one.trial, one.seed]

        fitted.sort(key=place)
        with threads(self.cell.protocol.threads):
            for part in prediction.validation_parts(self.samples):
                predicted = prediction.predict(
                    self.samples, fitted, self.cell, {UNSHIFTED: self.samples}, part
                )
                if part == "val":
                    predicted = [
                        replace(one, values=one.values | kept[one.trial, one.seed])
                        for one in predicted
                    ]
                # in the order of the trials, which decides between equal ones
                self.validation += sorted(predicted, key=place)
        self.replicas += replicas
        self.fitted += fitted

    def best(self, trials: Sequence[str], criterion: str) -> str:
        """The best of some trials by a criterion on validation rows."""
        among = [one for one in self.validation if one.trial in trials]
        scores = evaluation.criterion_scores([criterion], among, self.samples)
        return str(selection.choose(scores, [criterion])["trial"].iloc[0])


def require_fitting(samples: Samples, cell: CellParameters) -> None:
    """Check that a cell's settings fit the samples, before any of its replicas is trained.

    Groupings would fail when predictions are scored, and what a trial or a stage of the search
    is told when its turn comes: after hours of training.

    Raises:
        InputError: an attribute to mitigate does not exist, one of a grouping does not exist or
            is continuous, or what is no picture is to be augmented.
    """
    choices = [
        {name: value} for stage in cell.search for name, values in stage.items() for value in values
    ]
    for replica in cell.replicas([{}, *cell.trials, *choices]):
        seen = samples.of_split(replica.split(samples.split_names))
        with _naming(f"{cell.dataset}.{cell.label}: trial {replica.trial}"):
            fitting.require_head(replica.network, cell)
            fitting.mitigated_attributes(seen, replica.method)
            augmentation.require_augmentable(replica.protocol.augmentation, samples)
    for columns in cell.groupings:
        with _naming(f"{cell.dataset}: groupings, {' & '.join(columns)}"):
            require_categorical(samples.of_split(samples.split_names[0]).attributes, columns)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Make errors name the place in the settings."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def run_stages(trained: Trained) -> None:
    """Train the stages of the cell's search, each around the best trial of the one before.

    The paper of the study (A.2) searches the learning rate and weight decay first and the
    method's own values with the best of these. A combination that was trained before, under
    whatever name, is not trained again.
    """
    cell = trained.cell
    found: Mapping[str, Any] = {}
    for stage in cell.search:
        choices = [dict(zip(stage, values, strict=True)) for values in product(*stage.values())]
        by_trial = {}
        for override in [{**found, **choice} for choice in choices]:
            replicas = cell.replicas([override])
            trial = _trained_as(trained.replicas, replicas[0]) or replicas[0].trial
            by_trial[trial] = override
            if trial == replicas[0].trial and trial not in {one.trial for one in trained.replicas}:
                trained.extend(replicas)
        found = by_trial[trained.best(list(by_trial), cell.decides)]


def _trained_as(replicas: Sequence[Replica], wanted: Replica) -> str:
    """Name of the trial that had the same settings; "" where none had."""
    settings = (wanted.method, wanted.network, wanted.protocol)
    same = (one for one in replicas if (one.method, one.network, one.protocol) == settings)
    return next((one.trial for one in same), "")
