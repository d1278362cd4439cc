"""The trained replicas of a cell, and the search that adds to them stage by stage."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from robust_fairness.core import tables
from robust_fairness.core.checkpoints import Checkpoint, threads
from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import Cell, Replica, require_replicas
from robust_fairness.metrics.criteria import VALIDATION_PARTS, Criterion, Scored
from robust_fairness.samples import Samples, require_categorical
from robust_fairness.training import (
    attributes,
    augmentation,
    checks,
    decisions,
    evaluation,
    fitting,
    prediction,
    selection,
    stacking,
)
from robust_fairness.training.prediction import UNSHIFTED
from robust_fairness.training.records import Fitted, Prediction

LOGGER = logging.getLogger(__name__)
ShouldPrune = Callable[[str, int, float], bool]  # a trial, after an epoch of that mean loss


class Trained:
    """Replicas that were fitted, in the order in which they were asked for."""

    def __init__(self, samples: Samples, cell: Cell) -> None:
        self.samples, self.cell = samples, cell
        self.replicas: list[Replica] = []
        self.fitted: list[Fitted] = []
        self.validation: list[Prediction] = []
        self.curves: list[dict[str, Any]] = []
        self.stages: dict[str, int] = {}
        self.stopped: dict[str, str] = {}  # "pruned" or "failed", by trial

    def extend(
        self, replicas: Sequence[Replica], should_prune: ShouldPrune | None = None, stage: int = 0
    ) -> None:
        """Fit further replicas and predict their validation rows.

        ``should_prune`` is asked after every epoch of a trial. A pruned one is neither predicted
        nor selected; it stops once all trials of its stack have. ``stage`` is that of the search, 0
        for configured trials.

        Raises:
            InputError: a configured trial has weights or losses that are not finite. Such a trial
                of a search has failed, and the search goes on.
        """
        require_replicas([*self.replicas, *replicas])
        self.stages |= {one.trial: stage for one in replicas}
        fitted: list[Fitted] = []
        kept: dict[tuple[str, int], dict[str, np.ndarray]] = {}
        network = self.cell.network.name
        sharing = {id(one[0]): one for one in stacking.trainings(replicas, network)}
        firsts = [one[0] for one in sharing.values()]
        for together in stacking.stacks(firsts, self.samples, network):
            trained = [one for first in together for one in sharing[id(first)]]
            with threads(together[0].protocol.threads):
                stack = fitting.Stack(self.samples, self.cell, together)
                content = fitting.training_key(self.samples, self.cell, together)
                checkpoint = Checkpoint(f"{self.cell.dataset}.{self.cell.label}", content)
                stack.train_to_end(checkpoint, self._stops(stack, trained, should_prune))
                fitted += [one for one in stack.fitted(trained) if one.trial not in self.stopped]
                self.curves += stack.curves(trained)
                kept |= stack.kept_of_validation(trained)
        # in the order of the trials, which decides between equal ones
        position = {(one.trial, one.seed): number for number, one in enumerate(replicas)}
        fitted.sort(key=lambda one: position[one.trial, one.seed])
        self.replicas += replicas
        self.fitted += fitted
        self.validation += self._predict_validation(fitted, kept)

    def _predict_validation(
        self, fitted: Sequence[Fitted], kept: Mapping[tuple[str, int], dict[str, np.ndarray]]
    ) -> list[Prediction]:
        """Predictions of every validation part in order; on ``val`` with the method's values."""
        found: list[Prediction] = []
        unshifted = {UNSHIFTED: self.samples}
        splits = self.samples.splits
        for part in (one for one in VALIDATION_PARTS if (splits == one).any(axis=None)):
            with threads(self.cell.protocol.threads):
                predicted = prediction.predict(self.samples, fitted, self.cell, unshifted, part)
            of_replica = {(one.trial, one.seed): one for one in predicted}
            found += [of_replica[one.trial, one.seed] for one in fitted]
        self._warn_of_weak(found)
        return [
            replace(one, values=one.values | kept[one.trial, one.seed])
            if one.part == "val"
            else one
            for one in found
        ]

    def _warn_of_weak(self, predictions: Sequence[Prediction]) -> None:
        """Warn of replicas that are less accurate than always predicting the larger class."""
        for predicted in predictions if self.samples.classes else ():
            y = self.samples.y[predicted.rows]
            accuracy = (predicted.outputs.argmax(1) == y).mean()
            largest = np.bincount(y).max() / len(y)
            if predicted.part == "val" and accuracy < largest:
                LOGGER.warning(
                    "%s.%s, trial %s, seed %d: accuracy %.3f on validation rows is below the share "
                    "of the largest class, %.3f; balancing groups costs accuracy, else search the "
                    "hyperparameters of the method", self.cell.dataset, self.cell.label,
                    predicted.trial, predicted.seed, accuracy, largest,
                )  # fmt: skip

    def _stops(
        self,
        stack: fitting.Stack,
        replicas: Sequence[Replica],
        should_prune: ShouldPrune | None,
    ) -> fitting.Stops:
        """Whether a stack stops after an epoch because all its trials are pruned or failed."""
        places: dict[str, list[int]] = {}
        for number, replica in enumerate(replicas):
            places.setdefault(replica.trial, []).append(number)

        def stops(epoch: int, losses: Tensor) -> bool:
            for place, quantity in stack.failed.items():
                self._fail(replicas[place], quantity)
            if should_prune is not None:
                for trial in [name for name in places if name not in self.stopped]:
                    if should_prune(trial, epoch, losses[places[trial]].mean().item()):
                        self.stopped[trial] = "pruned"
            return self.stopped.keys() >= places.keys()

        return stops

    def _fail(self, replica: Replica, quantity: str) -> None:
        """Note a failed trial of a search; raise for a configured one."""
        message = (
            f"trial {replica.trial}, seed {replica.seed}: {quantity}; choose a smaller learning "
            "rate, or look for extreme values in the data"
        )
        if not self.stages[replica.trial]:
            raise InputError(f"training of {self.cell.dataset}.{self.cell.label} failed: {message}")
        if self.stopped.get(replica.trial) != "failed":
            LOGGER.warning("%s.%s: %s", self.cell.dataset, self.cell.label, message)
            self.stopped[replica.trial] = "failed"

    def table(self) -> pd.DataFrame:
        """Every trial that was tried, ``tables.TRIALS``."""
        goal = objective(self.cell) if self.cell.decides else None
        scores = self.scores(goal) if goal else {}
        epochs: dict[str, int] = {}
        for one in self.curves:
            epochs[one["trial"]] = max(epochs.get(one["trial"], 0), one["epoch"] + 1)
        rows = [
            {
                "dataset": self.cell.dataset,
                "method": self.cell.label,
                "trial": trial,
                "stage": stage,
                "state": self.stopped.get(trial, "complete"),
                "epochs": epochs.get(trial, 0),
                "criterion": str(goal or ""),
                "score": scores.get(trial),
            }
            for trial, stage in self.stages.items()
        ]
        hparams = {one.trial: one.changes for one in self.replicas}
        return tables.TRIALS.table(rows, [hparams[trial] for trial in self.stages])

    def scores(self, scored: Scored) -> dict[str, float]:
        """Mean score of every trial on validation rows, where it has one."""
        scores = evaluation.criterion_scores([str(scored)], self.validation, self.samples)
        return selection.means(scores, scored)

    def best(self, trials: Sequence[str], criterion: str) -> str:
        criterion = str(Criterion.parse(criterion).over_seeds)  # stages are shared by all seeds
        among = [one for one in self.validation if one.trial in trials]
        if not among:
            raise InputError(
                f"search of {self.cell.dataset}.{self.cell.label}: every trial of a stage failed, "
                "allowed: values with which training stays finite"
            )
        scores = evaluation.criterion_scores([criterion], among, self.samples)
        return str(selection.choose(scores, [criterion])["trial"].iloc[0])


def require_fitting(samples: Samples, cell: Cell) -> None:
    """Check that all trials of a cell fit the samples, before hours of training."""
    choices = [choice for stage in cell.search for choice in stage.samples]
    if any(stage.pruner != "none" for stage in cell.search):
        checks.require_validation_loss(cell)
    for replica in cell.replicas([{}, *cell.trials, *choices]):
        split = replica.split(samples.split_names)
        seen = samples.of_split(split)
        with naming(f"{cell.dataset}.{cell.label}: trial {replica.trial}"):
            checks.require_head(replica.network, cell)
            decisions.require_groups(seen, split, cell.postprocessing)
            attributes.mitigated_attributes(seen, replica.method)
            checks.require_information(seen, split, replica.method)
            if replica.protocol.remove_correlation:
                attributes.sensitive_features(seen)
            augmentation.require_augmentable(replica.protocol.augmentation, samples)
    for columns in cell.groupings:
        with naming(f"{cell.dataset}: groupings, {' & '.join(columns)}"):
            require_categorical(samples.of_split(samples.split_names[0]).attributes, columns)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Make errors name the place in the settings."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def objective(cell: Cell) -> Scored:
    """The metric that the first criterion of a cell optimises."""
    return Criterion.parse(cell.decides).objective
