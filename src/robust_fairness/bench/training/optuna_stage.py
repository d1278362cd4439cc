"""Trials of one stage of a search, asked of Optuna and told their scores.

Nothing random is kept between trials: a draw depends on the stage, on the name of the field and on
the number of the trial (and, with TPE, on earlier scores). A search that was killed asks for the
same trials again, finds those that finished in their checkpoints and continues.
"""

import hashlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState

from robust_fairness.bench.experiment.search import Range, Stage

DIGITS = 4  # of a drawn number in the name of its trial
GUIDED_AT_ONCE = 4  # trials of TPE that are drawn together
GUIDED_FIRST = 10  # trials that TPE draws evenly, as its authors' code

optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass
class Asked:
    """A trial that was asked for: what it overrides, and Optuna's record of it."""

    override: dict[str, Any]
    trial: Trial
    pruned: bool = False


class OptunaStage:
    """One stage of a search, around the best override of the stages before."""

    def __init__(self, stage: Stage, higher: bool, earlier: Mapping[str, Any]) -> None:
        self.stage, self.earlier, self.higher = stage, earlier, higher
        self._study = optuna.create_study(
            direction="maximize" if higher else "minimize",
            sampler=SampledByName(stage),
            pruner=_pruner(stage),
        )
        self.left = stage.trials or 0
        if stage.sampler == "grid":  # every combination of values, the last field fastest
            space: Mapping[str, Any] = stage.space
            places = list(product(*(range(len(values)) for values in space.values())))
            for place in places:
                self._study.enqueue_trial(dict(zip(space, place, strict=True)))
            self.left = len(places)
        self.at_once = stage.at_once or (GUIDED_AT_ONCE if stage.sampler == "tpe" else self.left)

    def ask(self) -> list[Asked]:
        """The next trials, which may train together; none where all were asked."""
        number = min(self.at_once, self.left)
        self.left -= number
        distributions = {name: distribution(item) for name, item in self.stage.space.items()}
        asked = [self._study.ask(distributions) for _ in range(number)]
        return [Asked({**self.earlier, **self._override(item)}, item) for item in asked]

    def _override(self, trial: Trial) -> dict[str, Any]:
        return {
            name: _rounded(trial.params[name], values)
            if isinstance(values, Range)
            else values[trial.params[name]]
            for name, values in self.stage.space.items()
        }

    def should_prune(self, asked: Asked, epoch: int, loss: float) -> bool:
        """Whether to prune a trial after an epoch (from 0) of that mean validation loss."""
        # Optuna compares in the direction of the score
        asked.trial.report(-loss if self.higher else loss, epoch)
        if epoch + 1 >= self.stage.first_epochs and asked.trial.should_prune():
            asked.pruned = True
        return asked.pruned

    def tell(self, asked: Asked, score: float | None) -> None:
        """Note the score of a trial; None where it has none."""
        if asked.pruned:
            self._study.tell(asked.trial, state=TrialState.PRUNED)
        elif score is None:
            self._study.tell(asked.trial, state=TrialState.FAIL)
        else:
            self._study.tell(asked.trial, score)


class SampledByName(RandomSampler):
    """Draws every field independently, with a sampler of its own, made anew for every trial."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.make: Callable[[int], BaseSampler] = _tpe if stage.sampler == "tpe" else RandomSampler

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A value of one field, drawn by seed, name and number of the trial."""
        text = f"{self.stage.seed} {param_name} {trial.number}"
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
        return self.make(seed).sample_independent(study, trial, param_name, param_distribution)


def distribution(values: tuple[Any, ...] | Range) -> BaseDistribution:
    """Optuna's form of the values of a field; of a list, the positions in it."""
    if not isinstance(values, Range):
        return CategoricalDistribution(range(len(values)))
    if values.whole:
        return IntDistribution(int(values.low), int(values.high), log=values.log)
    return FloatDistribution(values.low, values.high, log=values.log)


def _tpe(seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        # trials that are drawn together avoid one another
        return TPESampler(seed=seed, n_startup_trials=GUIDED_FIRST, constant_liar=True)


def _pruner(stage: Stage) -> BasePruner:
    if stage.pruner == "median":
        return MedianPruner(stage.first_trials, n_warmup_steps=stage.first_epochs - 1)
    if stage.pruner == "successive_halving":
        return SuccessiveHalvingPruner(min_resource=stage.first_epochs, reduction_factor=2)
    return NopPruner()


def _rounded(value: float, within: Range) -> float:
    """A number with few digits, for the name of its trial, within its range."""
    if within.whole:
        return value
    return float(min(max(float(f"{value:.{DIGITS}g}"), within.low), within.high))
