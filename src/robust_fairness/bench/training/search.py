"""The trained replicas of a cell, the rounds of its search, and the choice of a trial.

The choice is a pure function of scores on validation rows.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from torch import Tensor

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.compute.checkpoints import Checkpoint, threads
from robust_fairness.bench.compute.process import device_named
from robust_fairness.bench.experiment.experiment import Cell, Replica, require_replicas
from robust_fairness.bench.training import (
    augmentation,
    checks,
    decisions,
    evaluation,
    fitting,
    prediction,
    preprocessing,
)
from robust_fairness.bench.training.prediction import UNSHIFTED
from robust_fairness.bench.training.records import Fitted, Prediction
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import sha256_of
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.criteria import VALIDATION_PARTS, Criterion, ScoredPart
from robust_fairness.numbers.groups import require_categorical, values_of

if TYPE_CHECKING:
    from robust_fairness.bench.training.optuna_stage import Asked, OptunaStage


from robust_fairness.metrics.criteria import EVERY, Constraint

LOGGER = logging.getLogger(__name__)
ShouldPrune = Callable[[str, int, float], bool]  # a trial, after an epoch of that mean loss


class TrainedReplicas:
    """Replicas that were fitted, in the order in which they were asked for."""

    def __init__(self, samples: Samples, cell: Cell) -> None:
        self.samples, self.cell = samples, cell
        self.replicas: list[Replica] = []
        self.fitted: list[Fitted] = []
        self.validation: list[Prediction] = []
        self.kept: dict[tuple[str, int], dict[str, np.ndarray]] = {}
        self.curves: list[dict[str, Any]] = []
        self.stages: dict[str, int] = {}
        self.stopped: dict[str, str] = {}  # "pruned" or "failed", by trial

    def train(self, wanted: "Round") -> None:
        """Train the replicas of a round in stacks, and predict their validation rows.

        Models, curves and embeddings are kept; of those that stopped the curves.
        """
        samples, cell = self.samples, self.cell
        require_replicas([*self.replicas, *wanted.replicas])
        self.replicas += wanted.replicas
        self.stages |= {replica.trial: wanted.stage for replica in wanted.replicas}
        for stacked, replicas in fitting.trainings(wanted.replicas, samples, cell.network.name):
            with threads(stacked[0].protocol.threads):
                stack = fitting.Stack(samples, cell, stacked)
                content = training_key(samples, cell, stacked)
                stops = partial(self._stops, stack, replicas, wanted.should_prune)
                stack.train_to_end(Checkpoint(f"{cell.dataset}.{cell.label}", content), stops)
                fitted = stack.fitted(replicas)
                self.fitted += [model for model in fitted if model.trial not in self.stopped]
                self.curves += stack.curves(replicas)
                if not stack.method.trains_head:
                    self.kept |= stack.kept_of_validation(replicas)
        self._predict_validation(wanted.replicas)

    def _predict_validation(self, replicas: Sequence[Replica]) -> None:
        """Predict the validation rows of the replicas that trained last.

        They, and their models, are put in the order of the trials, which decides between equal
        ones; predictions of ``val`` have the values that the method keeps. Warns of replicas that
        are no more accurate than always predicting the largest class.
        """
        place = {(replica.trial, replica.seed): number for number, replica in enumerate(replicas)}
        last = [model for model in self.fitted if (model.trial, model.seed) in place]
        last.sort(key=lambda model: place[model.trial, model.seed])
        self.fitted[len(self.fitted) - len(last) :] = last
        splits = self.samples.splits
        predicted: list[Prediction] = []
        for part in VALIDATION_PARTS:
            if (splits == part).any(axis=None):
                with threads(self.cell.protocol.threads):
                    made = prediction.predict(
                        self.samples, last, self.cell, {UNSHIFTED: self.samples}, part
                    )
                predicted += sorted(made, key=lambda record: place[record.trial, record.seed])
        for record in predicted if self.samples.classes else ():
            y = self.samples.y[record.rows]
            accuracy = (record.outputs.argmax(1) == y).mean()
            largest = np.bincount(y).max() / len(y)
            if record.part == "val" and accuracy <= largest:
                LOGGER.warning(
                    "%s.%s, trial %s, seed %d: accuracy %.3f on validation rows is not above the "
                    "share of the largest class, %.3f; balancing groups costs accuracy, else "
                    "search the hyperparameters of the method", self.cell.dataset, self.cell.label,
                    record.trial, record.seed, accuracy, largest,
                )  # fmt: skip
        self.validation += [
            replace(record, values=record.values | self.kept.get((record.trial, record.seed), {}))
            if record.part == "val"
            else record
            for record in predicted
        ]

    def _stops(
        self,
        stack: fitting.Stack,
        replicas: Sequence[Replica],
        should_prune: ShouldPrune | None,
        epoch: int,
        losses: Tensor,
    ) -> bool:
        """Whether a stack stops after an epoch because all its trials are pruned or failed."""
        for place, quantity in stack.failed.items():
            self._fail(replicas[place], quantity)
        trials = [replica.trial for replica in replicas]
        if should_prune is not None:
            for trial in [name for name in dict.fromkeys(trials) if name not in self.stopped]:
                places = [place for place, name in enumerate(trials) if name == trial]
                if should_prune(trial, epoch, losses[places].mean().item()):
                    self.stopped[trial] = "pruned"
        return self.stopped.keys() >= set(trials)

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
        for curve in self.curves:
            epochs[curve["trial"]] = max(epochs.get(curve["trial"], 0), curve["epoch"] + 1)
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
        hparams = {replica.trial: replica.changes for replica in self.replicas}
        return tables.TRIALS.table(rows, [hparams[trial] for trial in self.stages])

    def scores(self, scored: ScoredPart) -> dict[str, float]:
        """Mean score of every trial on validation rows, where it has one."""
        scores = evaluation.criterion_scores([str(scored)], self.validation, self.samples)
        _, by_trial = means(scores, scored)
        return {str(trial): float(score) for trial, score in by_trial.dropna().items()}

    def best(self, trials: Sequence[str], criterion: str) -> str:
        criterion = str(Criterion.parse(criterion).over_seeds)  # stages are shared by all seeds
        among = [item for item in self.validation if item.trial in trials]
        if not among:
            raise InputError(
                f"search of {self.cell.dataset}.{self.cell.label}: every trial of a stage failed, "
                "allowed: values with which training stays finite"
            )
        scores = evaluation.criterion_scores([criterion], among, self.samples)
        return str(choose(scores, [criterion])["trial"].iloc[0])


@dataclass(frozen=True)
class Round:
    """Replicas that train next, as far as they can together.

    ``should_prune`` is asked after every epoch of a trial. A pruned one is neither predicted nor
    selected; it stops once all trials of its stack have.
    """

    replicas: Sequence[Replica]
    stage: int = 0
    should_prune: ShouldPrune | None = None


def rounds(trained: TrainedReplicas) -> Iterator[Round]:
    """The configured trials, then those of every stage around the best trial of the one before.

    A stage asks for its next trials once the last ones have trained. The bias mitigation study
    (A.2) searches the learning rate and weight decay first and the method's own values with the
    best of these. A combination that was trained before is not trained again.
    """
    cell = trained.cell
    yield Round(cell.replicas())
    best: Mapping[str, Any] = {}
    for number, stage in enumerate(cell.search, 1):
        from robust_fairness.bench.training.optuna_stage import OptunaStage

        drawn = OptunaStage(stage, objective(cell).higher, best)
        by_trial: dict[str, dict[str, Any]] = {}
        while asked := drawn.ask():
            new: list[Replica] = []
            trials = []
            for candidate in asked:
                replicas = cell.replicas([candidate.override])
                named = partial(replace, trial=replicas[0].trial, seed=replicas[0].seed)
                same = [seen for seen in (*trained.replicas, *new) if named(seen) == replicas[0]]
                new += [] if same else replicas
                trials.append((same or replicas)[0].trial)
            # of trials with the same values only the first trains
            first = dict(reversed(list(zip(trials, asked, strict=True))))
            yield Round(new, number, _pruning(drawn, first) if stage.pruner != "none" else None)
            scores = trained.scores(objective(cell))
            for trial, candidate in zip(trials, asked, strict=True):
                drawn.tell(candidate, scores.get(trial))
                by_trial[trial] = candidate.override
        best = by_trial[trained.best(list(by_trial), cell.decides)]


def _pruning(drawn: "OptunaStage", asked: Mapping[str, "Asked"]) -> ShouldPrune:
    return lambda trial, epoch, loss: drawn.should_prune(asked[trial], epoch, loss)


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
            if cell.postprocessing is not None:
                decisions.require_groups(seen, split, cell.postprocessing)
            preprocessing.mitigated_attributes(seen, replica.method)
            checks.require_information(seen, split, replica.method)
            if replica.protocol.remove_correlation:
                preprocessing.sensitive_features(seen)
            if replica.protocol.augmentation != augmentation.NONE:
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


def objective(cell: Cell) -> ScoredPart:
    """The metric that the first criterion of a cell optimises."""
    return Criterion.parse(cell.decides).objective


def training_key(samples: Samples, cell: Cell, replicas: Sequence[Replica]) -> str:
    """Name of the checkpoint of these replicas: a hash of everything their numbers depend on."""
    splits = samples.splits
    samples = samples.of_split(replicas[0].split(samples.split_names))
    arrays = {
        **samples.arrays,
        "y": samples.y,
        "sample_weight": samples.weights(),
        "conditioning": values_of(samples.conditioning_values()),
        **{
            f"attribute.{attribute.name}": values_of(attribute)
            for attribute in preprocessing.mitigated_attributes(samples, replicas[0].method)
        },
        **{f"split.{name}": splits[name].cat.codes.to_numpy() for name in splits},
    }
    network = find("network", cell.network.name)
    settings = {
        "method": cell.method.name,
        "network": cell.network.name,
        "replicas": [repr(replica) for replica in replicas],
        "questions": repr(samples.questions),
        "weights": [
            sha256_of(path)
            for path in network.files(replicas[0].network)
            if path.is_file()  # the network reports what is wrong with another one
        ],
        "device": str(device_named(replicas[0].protocol.device, "protocol.device")),
    }
    return checkpoints.key(arrays, settings)


def choose(scores: pd.DataFrame, criteria: Sequence[str]) -> pd.DataFrame:
    """The trials that each criterion selects, as rows of ``tables.SELECTION``.

    The trial whose mean over seeds (and over sensitive attributes) is best wins, the earlier one
    where two are equal; all its seeds are selected. A criterion per seed does so within each seed.
    ``every`` selects all trials. ``scores`` has
    columns trial, seed, criterion, value, in the order of the trials; a trial whose score is
    missing for a seed cannot be selected.
    """
    replicas = scores[["trial", "seed"]].drop_duplicates()
    rows: list[dict] = []
    for criterion in criteria:
        if criterion == EVERY:
            chosen = replicas.assign(score=float("nan"))
        else:
            chosen = _best(scores, Criterion.parse(criterion))
        if chosen.empty:
            raise InputError(f"selection by {criterion}: no trial has a score for all seeds")
        rows += [{"selection": criterion, **row} for row in chosen.to_dict("records")]
    return tables.table(tables.SELECTION, rows)


def compare(scores: pd.DataFrame, criteria: Sequence[str]) -> list[dict[str, str | float]]:
    """The trial selected by each criterion: criterion, trial, score (a mean over seeds).

    Of a criterion per seed these are all trials that it selects, the most frequent one first.
    Criteria that no trial has a score of are left out.
    """
    result = [(criterion, _best(scores, Criterion.parse(criterion))) for criterion in criteria]
    return [
        {
            "criterion": name,
            "trial": " | ".join(best["trial"].value_counts().index),
            "score": best["score"].mean(),
        }
        for name, best in result
        if len(best)
    ]


def _best(scores: pd.DataFrame, criterion: Criterion) -> pd.DataFrame:
    """Seeds of the best trial, or of each seed's own, with scores.

    None where no trial has a score, of a criterion per seed in one of the seeds.
    """
    parts = [scores]
    if criterion.per_seed:
        parts = [of_seed for _, of_seed in scores.groupby("seed", sort=False)]
    best = []
    for part in parts:
        by_seed, by_trial = means(part, criterion.objective)
        if criterion.constraint:
            kept = _satisfying(part, criterion.constraint)
            by_trial = by_trial[by_trial.index.isin(kept)]
        if by_trial.isna().all():
            return pd.DataFrame(columns=["trial", "seed", "score"])
        trial = str(by_trial.idxmax() if criterion.objective.higher else by_trial.idxmin())
        of_trial = by_seed.xs(trial, level="trial").rename("score").reset_index()
        best.append(of_trial.assign(trial=trial))
    return pd.concat(best, ignore_index=True)


def _satisfying(scores: pd.DataFrame, constraint: Constraint) -> list[str]:
    """Trials with at least that share of the best value; or error, at most the inverse."""
    (_, values), share = means(scores, constraint.scored), constraint.share
    if constraint.scored.higher:
        kept = values >= share * values.max()
    else:
        kept = values * share <= values.min()
    return [str(trial) for trial in values.index[kept]]


def means(scores: pd.DataFrame, scored: ScoredPart) -> tuple[pd.Series, pd.Series]:
    """Means over attributes by trial and seed, and over seeds by trial; missing where one is."""
    by_seed = (
        scores[scores["criterion"] == str(scored)]
        .groupby(["trial", "seed"], sort=False)["value"]
        .agg(lambda values: values.mean(skipna=False))
    )
    by_trial = by_seed.groupby("trial", sort=False).agg(lambda values: values.mean(skipna=False))
    return by_seed, by_trial
