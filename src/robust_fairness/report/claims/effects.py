"""The effects of claims in scores, and their verdicts.

An effect is the mean of some scores minus the mean of others, paired over seeds. Its variance is
that between seeds (*this method*), corrected by Nadeau and Bengio where the splits of seeds share
rows, else with that of the test rows where it is known. With fewer than ``FEWEST_REFITS`` seeds it
is that of the test rows alone (*these models*), the seeds' range is shown, and seeds on both sides
of what is claimed decide nothing. Where scores have what every test row adds to them, rows are
paired: the effect is a mean over rows of what a row adds to it, over all seeds and both sides.

``numbers.claims`` decides. A part is void if a model is no more accurate than the most frequent
class, and out of reach if its margin is more than the whole value of the other side, or what that
lacks to 1, so that no effect of the margin is possible.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import ceil
from operator import add, or_
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.claims import BOUNDS, Says, decided
from robust_fairness.numbers.estimate import (
    FEWEST_REFITS,
    LEVEL,
    POWER,
    REFITS,
    ROWS,
    Component,
    Estimate,
    between_refits,
    of_rows,
)
from robust_fairness.report.claims.declared import Claim, Part, Rows
from robust_fairness.report.results import CELL, Results

QUESTIONS = ("", "these models", "this method")
MODELS, METHOD = QUESTIONS[1:]
ANY = "any"  # value of a column that is not asked for
# Of columns that a claim does not name, where scores have them.
USUAL = {"trial": DEFAULT_TRIAL, "group": "", "alpha": np.nan}
# Metrics that are never negative, and those that are at most 1.
FROM_0 = re.compile(
    r"delta_\w+|faircocco_\w+|\w+_worst_gap|(\w+_)?accuracy(_by_subgroup)?|unshifted|recall_at"
    r"|disparate_impact|unexplained_variance"
)
TO_1 = re.compile(
    r"(\w+_)?accuracy(_by_subgroup)?|unshifted|recall_at|disparate_impact|faircocco_\w+_p_value"
)


def table(claims: Sequence[Claim], rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The effects of a paper's claims with their verdicts, a row per part.

    Args:
        claims: those of the paper.
        rows: scores by seed, with the columns that its claims name and those of
            ``with_row_variances``; a column ``by_row`` has arrays of which a score is the mean, a
            number per test row; a column ``model`` identifies trained models of a seed.
        results: the run that they come from.

    Returns:
        Columns claim, at, part, verdict (of the claim), state (of the part, see
        ``numbers.claims``), expect, known_before, published, std (of the published effect), ours,
        low, high, ends (what low and high are: "95 %", or "seeds" for the range of few), p
        (adjusted), margin, reach (the largest effect that is possible; infinite where none is
        known), seeds, question, error (the standard error), needed (in words, of what is open),
        effect, known, cost, command.

    Raises:
        InputError: the scores lack a column that a claim names.
    """
    scores = _Scores(rows, results)
    claims = [_answered(claim, scores) for claim in claims]
    parts = [(number, part) for number, claim in enumerate(claims) for part in claim.each()]
    numbers = np.array([number for number, _ in parts], dtype=int)
    effects = [_effect(claims[number], part, scores) for number, part in parts]
    margin = np.array([part.size for _, part in parts])
    estimate = _together(effects)
    says: list[Says] = [part.expect or "above" for _, part in parts]
    answers = decided(
        estimate,
        numbers,
        says,
        margin,
        reach=np.array([effect.reach for effect in effects], float),
        void=np.array([effect.constant for effect in effects], bool),
        disagree=np.array(
            [effect.disagrees(part) for effect, (_, part) in zip(effects, parts, strict=True)], bool
        ),
    )
    of_models = np.array([effect.question == MODELS for effect in effects], bool)
    low, high = (
        np.where(of_models, [getattr(effect.by_seed, name)() for effect in effects], ends)
        for name, ends in zip(("min", "max"), estimate.interval(), strict=True)
    )
    run = np.isfinite(estimate.value)
    shown = pd.DataFrame(
        {
            "claim": [claims[number].claim for number in numbers],
            "at": [claims[number].at for number in numbers],
            "part": [part.part for _, part in parts],
            "verdict": np.array(answers.verdicts, dtype=object)[numbers],
            "state": np.array(answers.states, dtype=object),
            "expect": says,
            "known_before": [part.known_before for _, part in parts],
            "published": [part.published for _, part in parts],
            "std": [part.std for _, part in parts],
            "ours": estimate.value, "low": low, "high": high,
            "ends": np.where(of_models, "seeds", np.where(np.isfinite(low), "95 %", "")),
            "p": np.where(run, answers.p, np.nan),
            "margin": margin,
            "reach": [effect.reach for effect in effects],
            "seeds": [len(effect.by_seed) for effect in effects],
            "question": [effect.question for effect in effects],
            "error": np.where(estimate.variance > 0, estimate.error, np.nan),
        }
    )  # fmt: skip
    tests = len(set(numbers[run]))
    shown["needed"] = [
        _needed(effect, part, state, tests)
        for effect, (_, part), state in zip(effects, parts, shown["state"], strict=True)
    ]
    for name in ("effect", "known", "cost", "command"):
        shown[name] = [getattr(claims[number], name) for number in numbers]
    return shown.astype({"published": "float64", "std": "float64"})


@dataclass(frozen=True)
class _Scores:
    """The scores of a paper and the run that they come from.

    Claims choose rows by the same few values: ``known`` has those that were looked up.
    """

    rows: pd.DataFrame
    results: Results
    known: dict[Any, np.ndarray] = field(default_factory=dict)

    def of(self, *sides: Rows) -> pd.DataFrame:
        """The rows of a side of an effect."""
        named = reduce(or_, map(dict, sides))
        asked = {name: value for name, value in USUAL.items() if name in self.rows} | named
        chosen = []
        for name, value in asked.items():
            values = tuple(value) if isinstance(value, list) else (value,)
            if values != (ANY,) and (name, values) not in self.known:
                self.known[name, values] = self.rows[name].isin(values).to_numpy()
            chosen += [] if values == (ANY,) else [self.known[name, values]]
        return self.rows.iloc[np.flatnonzero(np.logical_and.reduce(chosen))]


def _answered(claim: Claim, scores: _Scores) -> Claim:
    """The claim with the parts of the default run, where these were run and no other of its own.

    Which parts count depends on what was run, never on its scores.
    """
    if not claim.default_run:
        return claim
    short = claim.of_default_run()
    with_scores, all_of_short = (
        [part for part in item.each() if len(_effect(item, part, scores).by_seed)]
        for item in (claim, short)
    )
    sides = [(part.rows, part.first, part.second) for part in all_of_short]
    further = [part for part in with_scores if (part.rows, part.first, part.second) not in sides]
    return claim if further or len(sides) < len(short.parts) else short


@dataclass(frozen=True)
class Measured:
    """An effect of a part.

    Attributes:
        by_seed: its value for every seed that has all of its scores.
        question: who is judged, one of ``QUESTIONS``.
        ratio: test rows by training rows where splits of seeds share rows, else 0.
        constant: whether a model is no more accurate than the most frequent class.
        reach: the largest effect that is possible in the direction of the claim.
        components: of the variance of its mean.
    """

    by_seed: pd.Series
    question: str = ""
    ratio: float = 0.0
    constant: bool = False
    reach: float = np.inf
    components: Mapping[str, Component] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The mean over seeds, missing without any."""
        return float(self.by_seed.mean())

    def variance(self, name: str) -> float:
        """A component of its variance; 0 if it has none of that name."""
        return float(self.components[name].variance) if name in self.components else 0.0

    def disagrees(self, part: Part) -> bool:
        """Whether few seeds are on both sides of what is claimed."""
        low, high = np.array(BOUNDS[part.expect or "above"]) * part.size
        agree = self.by_seed.between(low, high, inclusive="neither")
        return self.question == MODELS and agree.nunique() > 1


def _together(effects: Sequence[Measured]) -> Estimate:
    """All effects as one estimate; those that are not known have no variance."""
    parts = {
        name: Component(
            np.array([effect.variance(name) for effect in effects], float),
            np.array([effect.components.get(name, Component(0.0)).df for effect in effects], float),
        )
        for name in (ROWS, REFITS)
    }
    return Estimate(np.array([effect.value for effect in effects], float), parts)


def _effect(claim: Claim, part: Part, scores: _Scores) -> Measured:
    """The effect of a part, or the mean of those on single datasets."""
    named = {**part.rows, **part.first, **part.second}
    if missing := [name for name in named if name not in scores.rows]:
        raise InputError(f"claim {claim.claim!r}: scores have no column {missing[0]!r}")
    if not claim.average:
        return _on_one(part, part.rows, scores)
    datasets = part.rows["dataset"]
    each = [
        _on_one(part, {**part.rows, "dataset": name}, scores)
        for name in ([datasets] if isinstance(datasets, str) else datasets)
    ]
    count = len(each)
    components = {
        name: reduce(
            add,
            [
                Component(effect.variance(name) / count**2, effect.components[name].df)
                for effect in each
            ],
        )
        for name in (ROWS, REFITS)
        if all(name in effect.components for effect in each)
    }
    return Measured(
        pd.concat([effect.by_seed for effect in each], axis=1, join="inner").mean(axis=1),
        min((effect.question for effect in each), key=QUESTIONS.index),
        max(effect.ratio for effect in each),
        any(effect.constant for effect in each),
        float(np.mean([effect.reach for effect in each])),
        components,
    )


def _on_one(part: Part, of_both: Rows, scores: _Scores) -> Measured:
    named = [part.first, *([part.second] if part.second else [])]
    sides = [scores.of(of_both, side) for side in named]
    if any(side.empty for side in sides):  # not run
        return Measured(pd.Series(dtype=np.float64))
    both = pd.concat(map(_by_seed, sides), axis=1, join="inner", keys=range(len(sides)))
    value = both[0]["value"] - (both[1]["value"] if part.second else 0)
    value = value.astype(np.float64)
    splits = scores.results.sizes_of_splits.reindex(sides[0]["dataset"].unique())
    ratio = float(splits["ratio"].fillna(0).max()) if len(splits) else 0.0
    if not ratio and (by_row := _by_row(sides, value.index)) is not None:
        by_rows = of_rows(by_row)
    else:
        # rows of both sides, and of all seeds, may be the same: their errors are not averaged out
        deviation = both.xs("deviation", axis=1, level=1).to_numpy(np.float64)
        error = np.sqrt((deviation**2).sum(1))
        # certain, and not 0, which stands for a variance that is not known
        error[_of_the_same_models(sides, value.index)] = np.sqrt(np.finfo(np.float64).tiny)
        by_rows = float(error.mean() ** 2) if len(value) else np.nan
    components, question = {}, ""
    if len(value) >= FEWEST_REFITS:
        question = METHOD
        components[REFITS] = between_refits(value.to_numpy(), ratio)
        if not ratio and np.isfinite(by_rows):
            components[ROWS] = Component(by_rows)
    elif len(value):
        question, components[ROWS] = MODELS, Component(by_rows)
    # whether some method, mean over seeds, is no more accurate than the most frequent class
    constant = any(
        "edge" in side and (side.groupby(CELL)["edge"].mean() <= 0).any() for side in sides
    )
    reach = _reach(part, sides[1], both[1]["value"].mean()) if part.second else np.inf
    return Measured(value, question, ratio, constant, reach, components)


def _reach(part: Part, other: pd.DataFrame, value: float) -> float:
    """The largest effect that the other side leaves room for; infinite where none is known.

    Accuracy can fall to that of the most frequent class.
    """
    metric = str({**part.rows, **part.second}.get("metric", ""))
    if part.expect == "below" and FROM_0.fullmatch(metric):
        edge = other["edge"].mean() if metric == "accuracy" and "edge" in other else np.nan
        return float(value if np.isnan(edge) else edge)
    if part.expect == "above" and TO_1.fullmatch(metric):
        return float(1 - value)
    return np.inf


def _by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation by rows of the seeds that have all of the scores."""
    known = rows[rows["value"].notna()]
    known = known.assign(deviation=np.sqrt(known["variance"].astype(float)))
    groups = known.groupby("seed")
    sizes = groups.size()
    columns = groups[["value", "deviation"]]
    means = columns.mean().assign(
        deviation=groups["deviation"].agg(lambda values: values.mean(skipna=False))
    )
    complete = sizes == rows.groupby("seed").size().max() if len(rows) else sizes > 0
    return means[complete.reindex(means.index)]


def _of_the_same_models(sides: Sequence[pd.DataFrame], seeds: pd.Index) -> np.ndarray:
    """Whether both sides are scores of the same models, by seed: then nothing is between them."""
    if len(sides) < 2 or "model" not in sides[0]:  # noqa: PLR2004
        return np.zeros(len(seeds), dtype=bool)
    first, second = (
        {seed: set(rows) for seed, rows in side.groupby("seed")["model"] if rows.notna().all()}
        for side in sides
    )
    same = [seed in first and first[seed] == second.get(seed) for seed in seeds]
    return np.array(same, dtype=bool)


def _by_row(sides: Sequence[pd.DataFrame], seeds: pd.Index) -> np.ndarray | None:
    """What each test row adds to an effect, mean over seeds ``[rows]``; None where not known.

    A row of both sides is the one at the same place.
    """
    parts = [side.loc[side["seed"].isin(seeds), "by_row"] for side in sides if "by_row" in side]
    shapes = {np.shape(value) for part in parts for value in part}
    if len(parts) < len(sides) or len(shapes) != 1 or shapes == {()}:
        return None
    means = [np.mean(np.stack(part.to_list()), axis=0, dtype=np.float64) for part in parts]
    return np.asarray(reduce(np.subtract, means))


def _needed(effect: Measured, part: Part, state: str, tests: int) -> str:
    """What would decide an open part: seeds, or rows, for a power of ``POWER`` at its margin."""
    if state != "undecided":
        reach = f"data on which {part.size:.3f} is possible, here at most {effect.reach:.3f}"
        accurate = "models that are more accurate than the most frequent class"
        return {"void": accurate, "out of reach": reach}.get(state, "")
    seeds = len(effect.by_seed)
    rows, refits = effect.variance(ROWS), effect.variance(REFITS)
    if effect.disagrees(part):
        return f"{FEWEST_REFITS} seeds, since these {seeds} are on both sides"
    if not np.isfinite(rows + refits) or rows + refits == 0:
        return "counts of rows" if effect.question == MODELS else "seeds that differ"
    target = (part.size / (special.ndtri(1 - LEVEL / (2 * tests)) + special.ndtri(POWER))) ** 2
    single = refits / (1 / seeds + effect.ratio)
    rest = target - rows - effect.ratio * single
    if refits and rest > 0:
        return f"{max(ceil(single / rest), seeds + 1)} seeds"
    factor = max((rows + refits) / target, 1.1)
    return f"{_rounded(factor)} times as many rows"


def _rounded(factor: float) -> str:
    if factor >= 100:  # noqa: PLR2004 - of no use to anyone
        return "more than a hundred"
    digits = f"{factor:.1g}" if factor >= 2 else f"{factor:.2g}"  # noqa: PLR2004
    return f"{float(digits):g}"
