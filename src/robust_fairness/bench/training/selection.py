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
