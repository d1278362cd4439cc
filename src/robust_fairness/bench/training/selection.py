"""Model selection: a pure function of scores on validation rows."""

from collections.abc import Sequence

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.metrics.criteria import EVERY, Constraint, Criterion, ScoredPart


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
    """The best trial of every seed with its score; none where a seed has no trial with a score."""
    if not criterion.per_seed:
        return _best_over_seeds(scores, criterion)
    each = [_best_over_seeds(item, criterion) for _, item in scores.groupby("seed", sort=False)]
    return pd.concat(each if all(map(len, each)) else [each[0].iloc[:0]], ignore_index=True)


def _best_over_seeds(scores: pd.DataFrame, criterion: Criterion) -> pd.DataFrame:
    """Seeds of the best trial with their scores; none where no trial has a score."""
    by_seed = _by_seed(scores, criterion.objective)
    by_trial = _by_trial(by_seed)
    if criterion.constraint:
        kept = _satisfying(scores, criterion.constraint)
        by_trial = by_trial[by_trial.index.isin(kept)]
    if by_trial.isna().all():
        return pd.DataFrame(columns=["trial", "seed", "score"])
    best = str(by_trial.idxmax() if criterion.objective.higher else by_trial.idxmin())
    return by_seed.xs(best, level="trial").rename("score").reset_index().assign(trial=best)


def _satisfying(scores: pd.DataFrame, constraint: Constraint) -> list[str]:
    """Trials with at least that share of the best value; or error, at most the inverse."""
    values, share = _by_trial(_by_seed(scores, constraint.scored)), constraint.share
    if constraint.scored.higher:
        kept = values >= share * values.max()
    else:
        kept = values * share <= values.min()
    return [str(trial) for trial in values.index[kept]]


def _by_seed(scores: pd.DataFrame, scored: ScoredPart) -> pd.Series:
    """Means over attributes by trial and seed; missing where one of them is."""
    return (
        scores[scores["criterion"] == str(scored)]
        .groupby(["trial", "seed"], sort=False)["value"]
        .agg(lambda values: values.mean(skipna=False))
    )


def _by_trial(by_seed: pd.Series) -> pd.Series:
    """Means over seeds by trial; missing where one of them is."""
    return by_seed.groupby("trial", sort=False).agg(lambda values: values.mean(skipna=False))


def means(scores: pd.DataFrame, scored: ScoredPart) -> dict[str, float]:
    """Mean score of every trial; trials without one are left out."""
    result = _by_trial(_by_seed(scores, scored)).dropna()
    return {str(trial): float(score) for trial, score in result.items()}
