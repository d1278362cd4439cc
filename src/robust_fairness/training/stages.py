"""The stages of a cell's search: what they ask for is trained with what was trained before."""

from collections.abc import Mapping, Sequence
from typing import Any

from robust_fairness.experiment.experiment import Replica
from robust_fairness.training.search import Trained, objective
from robust_fairness.training.study import Asked, Study


def run_stages(trained: Trained) -> None:
    """Train the stages of the cell's search, each around the best trial of the one before.

    Trials of a stage that are asked for together train together, as far as they can. The bias
    mitigation study (A.2) searches the learning rate and weight decay first and the method's own
    values with the best of these. A combination that was trained before is not trained again.
    """
    cell = trained.cell
    found: Mapping[str, Any] = {}
    for number, stage in enumerate(cell.search, 1):
        study = Study(stage, objective(cell).higher, found)
        by_trial: dict[str, dict[str, Any]] = {}
        while asked := study.ask():
            named = _train_asked(trained, asked, study, number)
            by_trial |= {trial: one.override for trial, one in named}
        found = by_trial[trained.best(list(by_trial), cell.decides)]


def _train_asked(
    trained: Trained, asked: Sequence[Asked], study: Study, stage: int
) -> list[tuple[str, Asked]]:
    """Train those trials that were not trained before; returns all with their names."""
    cell = trained.cell
    known, new = list(trained.replicas), []
    named: list[tuple[str, Asked]] = []
    for one in asked:
        replicas = cell.replicas([one.override])
        trial = _trained_as(known, replicas[0])
        if not trial:
            trial = replicas[0].trial
            new += replicas
            known += replicas
        named.append((trial, one))
    # of trials with the same values only the first trains
    first = dict(reversed(named))
    pruned = study.stage.pruner != "none"
    trained.extend(
        new,
        (lambda trial, *told: study.should_prune(first[trial], *told)) if pruned else None,
        stage,
    )
    scores = trained.scores(objective(cell))
    for trial, one in named:
        study.tell(one, scores.get(trial))
    return named


def _trained_as(replicas: Sequence[Replica], wanted: Replica) -> str:
    """Name of the trial that had the same settings; "" where none had."""
    settings = (wanted.method, wanted.network, wanted.protocol)
    same = (one for one in replicas if (one.method, one.network, one.protocol) == settings)
    return next((one.trial for one in same), "")
