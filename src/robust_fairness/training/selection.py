"""Choosing trials: a pure function of scores on validation rows."""

from collections.abc import Sequence

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.experiment.parameters import EVERY, goal_and_condition, metric_and_part
from robust_fairness.metrics import find_metric


def choose(scores: pd.DataFrame, criteria: Sequence[str]) -> pd.DataFrame:
    """The trials that each criterion chooses, as rows of ``tables.SELECTION``.

    A criterion is a metric, on the validation rows or on another part of the split
    (``accuracy@unbiased_val``): the trial whose mean over seeds (and over sensitive attributes)
    is best wins, the earlier one where two are equal; all its seeds are chosen. With a share of a
    quality (``delta_dp with 0.97 of accuracy``) only trials that keep it count. ``every`` chooses
    all trials.

    Args:
        scores: columns trial, seed, criterion, value, in the order of the trials. A trial whose
            score is missing for a seed cannot be chosen.
        criteria: the criteria, or ``every``.

    Raises:
        InputError: a criterion has no score for any trial (a metric of another task, say).
    """
    replicas = scores[["trial", "seed"]].drop_duplicates()
    rows: list[dict] = []
    for criterion in criteria:
        if criterion == EVERY:
            chosen = replicas.assign(score=float("nan"))
        else:
            chosen = _best(scores, criterion)
        if chosen.empty:
            raise InputError(f"selection by {criterion}: no trial has that score for all seeds")
        rows += [{"selection": criterion, **row} for row in chosen.to_dict("records")]
    return tables.table(tables.SELECTION, rows)


def compare(scores: pd.DataFrame, criteria: Sequence[str]) -> pd.DataFrame:
    """What each criterion would choose: columns criterion, trial, score (a mean over seeds).

    Args:
        scores: as of ``choose``.
        criteria: criteria that choose one trial; those that no trial has a score of are left out.
    """
    found = [(criterion, _best(scores, criterion)) for criterion in criteria]
    return pd.DataFrame(
        [
            {"criterion": name, "trial": best["trial"].iloc[0], "score": best["score"].mean()}
            for name, best in found
            if len(best)
        ],
        columns=["criterion", "trial", "score"],
    )


def _best(scores: pd.DataFrame, criterion: str) -> pd.DataFrame:
    """Seeds of the best trial with their scores; none where no trial has a score."""
    goal, share, quality = goal_and_condition(criterion)
    by_seed = _by_seed(scores, goal)
    by_trial = _by_trial(by_seed)
    if quality:
        kept = _keeps(_by_trial(_by_seed(scores, quality)), share, quality)
        by_trial = by_trial[by_trial.index.isin(kept)]
    if by_trial.isna().all():
        return pd.DataFrame(columns=["trial", "seed", "score"])
    best = str(by_trial.idxmax() if higher(goal) else by_trial.idxmin())
    return by_seed.xs(best, level="trial").rename("score").reset_index().assign(trial=best)


def _keeps(qualities: pd.Series, share: float, quality: str) -> list[str]:
    """Trials whose quality is at least that share of the best; or error, at most the inverse."""
    if higher(quality):
        kept = qualities >= share * qualities.max()
    else:
        kept = qualities * share <= qualities.min()
    return [str(trial) for trial in qualities.index[kept]]


def _by_seed(scores: pd.DataFrame, criterion: str) -> pd.Series:
    """Means over attributes by trial and seed; missing where one of them is."""
    return (
        scores[scores["criterion"] == criterion]
        .groupby(["trial", "seed"], sort=False)["value"]
        .agg(lambda values: values.mean(skipna=False))
    )


def _by_trial(by_seed: pd.Series) -> pd.Series:
    """Means over seeds by trial; missing where one of them is."""
    return by_seed.groupby("trial", sort=False).agg(lambda values: values.mean(skipna=False))


def means(scores: pd.DataFrame, criterion: str) -> dict[str, float]:
    """Mean score of every trial by a plain criterion; trials without one are left out.

    Args:
        scores: as of ``choose``.
        criterion: a metric, or one on another part of the split.
    """
    found = _by_trial(_by_seed(scores, criterion)).dropna()
    return {str(trial): float(score) for trial, score in found.items()}


def higher(criterion: str) -> bool:
    """Whether higher values of a plain criterion are better."""
    return bool(find_metric(metric_and_part(criterion)[0]).better == "higher")
