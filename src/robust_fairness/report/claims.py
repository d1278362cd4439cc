"""What the five papers claim, and the verdict of scores: an effect per claim, see ``papers``.

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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib.resources import files
from math import ceil
from operator import add, itemgetter, or_
from typing import Any, Literal

import numpy as np
import pandas as pd
import yaml
from markupsafe import Markup
from pydantic import BaseModel, Field, PositiveFloat, ValidationError, model_validator
from scipy import special

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.bench.experiment.yaml_source import FASTER
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted
from robust_fairness.core.numbers import written as as_text
from robust_fairness.core.rendering.effects import Effect, effects_svg
from robust_fairness.numbers.claims import BOUNDS, DECIDED, Says, decided
from robust_fairness.numbers.estimate import LEVEL, POWER, REFITS, ROWS, Component, Estimate
from robust_fairness.numbers.variance import (
    FEWEST_REFITS,
    between_refits,
    of_rate,
    of_rows,
    small_counts,
)
from robust_fairness.report.results import CELL, UNSHIFTED, Results, where

QUESTIONS = ("", "these models", "this method")
MODELS, METHOD = QUESTIONS[1:]
ANY = "any"  # value of a column that is not asked for
# Of columns that a claim does not name, where scores have them.
USUAL = {"trial": DEFAULT_TRIAL, "group": "", "alpha": np.nan}
PAPERS = (
    "equalized_robustness", "bias_mitigation", "kernel_fairness", "latent_shift",
    "fair_metric_learning",
)  # fmt: skip
MODEL = ["dataset", "method", "trial", "seed"]
ROW_KEY = [*MODEL, "shift", "severity", "domain", "attribute"]
QUALITY = ["accuracy", "constant_accuracy"]
SHARES = ("accuracy", "majority_accuracy", "minority_accuracy", "accuracy_by_subgroup")
# Metrics that are never negative, and those that are at most 1.
FROM_0 = re.compile(
    r"delta_\w+|faircocco_\w+|\w+_worst_gap|(\w+_)?accuracy(_by_subgroup)?|unshifted|recall_at"
    r"|disparate_impact|unexplained_variance"
)
TO_1 = re.compile(
    r"(\w+_)?accuracy(_by_subgroup)?|unshifted|recall_at|disparate_impact|faircocco_\w+_p_value"
)
OPEN = ("undecided", "out of reach", "not run")  # verdicts that say what they need
WORDS = {  # of states, for one part and for several
    "holds": ("holds", "hold"), "reversed": ("is reversed", "are reversed"),
    "excluded": ("excluded",) * 2, "out of reach": ("out of reach",) * 2, "void": ("void",) * 2,
    "undecided": ("open",) * 2, "not run": ("not run",) * 2,
}  # fmt: skip
GAPS = {"delta_eo": (0, 1), "delta_eopp": (1,)}  # classes of the rates whose differences are added
Rows = Mapping[str, Any]


class Part(BaseModel, extra="forbid", frozen=True):
    """An effect that must be as a claim says; what it lacks is that of its claim."""

    part: str = ""
    rows: Rows = Field(default_factory=dict)
    first: Rows = Field(default_factory=dict)
    second: Rows = Field(default_factory=dict)
    expect: Says | None = None
    margin: PositiveFloat | Literal["half"] | None = None
    published: float | None = None
    std: float | None = None
    known_before: Literal["yes", "partly", "no"] | None = None

    @property
    def size(self) -> float:
        """The margin as a number."""
        return abs(self.published or 0) / 2 if self.margin == "half" else float(self.margin or 0)


class Claim(Part):
    """A claim of a paper; ``papers`` says what its fields are."""

    claim: str
    at: str
    effect: str
    known: str
    average: Literal["dataset"] | None = None
    note: str = ""
    cost: str = ""
    command: str = ""
    apart: str = ""
    parts: tuple[Part, ...] = ()
    default_run: tuple[Part, ...] = ()

    @model_validator(mode="after")
    def _decidable(self) -> "Claim":
        for part in [*self.each(), *(self.of_default_run().each() if self.default_run else ())]:
            named = f"part {part.part!r}" if part.part else "the claim"
            if part.expect is None:
                raise ValueError(f"{named} needs expect")
            if part.known_before is None:
                raise ValueError(f"{named} needs known_before")
            if not part.size > 0:
                raise ValueError(f"{named} needs a margin, or half of a published effect")
        for parts in (self.parts, self.default_run):
            if len({part.part for part in parts}) < len(parts):
                raise ValueError("two parts have the same name")
        return self

    def of_default_run(self) -> "Claim":
        """The claim with the parts that the default run answers instead of its own."""
        return self.model_copy(update={"parts": self.default_run})

    def each(self) -> list[Part]:
        """Its parts, or itself as one, with all fields of both."""
        shared = {name: getattr(self, name) for name in Part.model_fields}
        result = []
        for part in self.parts or (Part(),):
            given = {name: getattr(part, name) for name in part.model_fields_set}
            sides = {
                name: {**shared[name], **given.get(name, {})}
                for name in ("rows", "first", "second")
            }
            result.append(Part.model_construct(**{**shared, **given, **sides}))
        return result


def read(text: str, place: str = "claims.yml") -> tuple[Claim, ...]:
    """The claims of a file.

    Raises:
        InputError: a claim has a mistake; the message names the file, the claim and the field.
    """
    claims = []
    for number, fields in enumerate(yaml.load(text, FASTER) or (), 1):  # a safe loader
        try:
            claims.append(Claim.model_validate(fields))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "fields"
            name = fields.get("claim", number) if isinstance(fields, dict) else number
            says = first["msg"].removeprefix("Value error, ")
            raise InputError(f"{place}: claim {name!r}, {field}: {says}") from None
    return tuple(claims)


@cache
def written() -> dict[str, tuple[Claim, ...]]:
    """All claims of the five papers, those that are listed apart among them."""
    folder = files("robust_fairness.papers")
    return {
        paper: read((folder / paper / "claims.yml").read_text(encoding="utf-8"), paper)
        for paper in PAPERS
    }


@cache
def listed() -> dict[str, tuple[Claim, ...]]:
    """The claims of the five papers that can fail."""
    return {
        paper: tuple(claim for claim in claims if not claim.apart)
        for paper, claims in written().items()
    }


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
        chosen = [self._have(name, value) for name, value in asked.items() if value != ANY]
        return self.rows.iloc[np.flatnonzero(np.logical_and.reduce(chosen))]

    def _have(self, column: str, value: Any) -> np.ndarray:
        values = tuple(value) if isinstance(value, list) else (value,)
        if (column, values) not in self.known:
            self.known[column, values] = self.rows[column].isin(values).to_numpy()
        return self.known[column, values]


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
    constant = any(_constant(side) for side in sides)
    reach = _reach(part, sides[1], both[1]["value"].mean()) if part.second else np.inf
    return Measured(value, question, ratio, constant, reach, components)


def _constant(side: pd.DataFrame) -> bool:
    """Whether some method, mean over seeds, is no more accurate than the most frequent class."""
    return "edge" in side and bool((side.groupby(CELL)["edge"].mean() <= 0).any())


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
    """What would decide an open part, in words."""
    return {
        "void": "models that are more accurate than the most frequent class",
        "out of reach": f"data on which {part.size:.3f} is possible, here at most "
        f"{effect.reach:.3f}",
        "undecided": _seeds_or_rows(effect, part, tests),
    }.get(state, "")


def _seeds_or_rows(effect: Measured, part: Part, tests: int) -> str:
    """How many seeds, or rows, would show an effect of the margin with a power of ``POWER``."""
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


def with_row_variances(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Scores with their variance by the test rows, as ``variance``, where it can be known.

    Of accuracies from their number of rows, of sums of differences of rates from the counts. With
    ``edge``, by how much the model is more accurate without a shift than the most frequent class,
    where that was counted or stored.
    """
    known = rows["variance"] if "variance" in rows else pd.Series(np.nan, rows.index)
    share = rows["metric"].isin(SHARES) & rows["value"].notna()
    value, n = rows["value"].where(share).to_numpy(float), rows["n"].to_numpy(float)
    variance = known.astype(float).fillna(pd.Series(of_small(value, n), rows.index))
    of_counts = _of_counts(results)
    if len(of_counts):
        keys = [*ROW_KEY, "metric"]
        of_gaps = rows[keys].merge(of_counts, how="left", on=keys)["variance"].to_numpy()
        variance = variance.fillna(pd.Series(of_gaps, rows.index))
    edge = rows[MODEL].merge(_edges(results), how="left", on=MODEL)["edge"].to_numpy()
    return rows.assign(variance=variance, edge=edge)


def of_small(value: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Variance of shares of n rows, with a row added on either side."""
    return small_counts(value, of_rate(value, n), n)[1]


def _of_counts(results: Results) -> pd.DataFrame:
    """Variance of the gaps that counts give, by replica, test set and attribute."""
    counts = results.counts[results.counts["attribute"] != ""]
    if counts.empty:
        return pd.DataFrame()
    cell = [*ROW_KEY, "group", "label"]
    n = counts.groupby(cell)["n"].sum()
    positive = (
        counts[counts["decision"] == 1].groupby(cell)["n"].sum().reindex(n.index, fill_value=0)
    )
    variance = pd.Series(of_small((positive / n).to_numpy(), n.to_numpy()), n.index)
    frames = []
    for metric, labels in GAPS.items():
        some = variance[variance.index.get_level_values("label").isin(labels)]
        total = some.groupby(level=ROW_KEY).sum(min_count=2 * len(labels))
        frames.append(total.rename("variance").reset_index().assign(metric=metric))
    return pd.concat(frames, ignore_index=True)


def _edges(results: Results) -> pd.DataFrame:
    """Accuracy minus that of the most frequent class, without a shift: ``MODEL`` and ``edge``.

    Missing where all rows have the same class, as those of a regression are counted.
    """
    counts = where(results.counts, attribute="", shift=UNSHIFTED, domain="")
    labels = counts.groupby([*MODEL, "label"])["n"].sum().groupby(level=MODEL)
    right = counts[counts["decision"] == counts["label"]].groupby(MODEL)["n"].sum()
    n = labels.sum()
    of_counts = (right.reindex(n.index, fill_value=0) - labels.max()) / n
    of_counts = of_counts.where(labels.count() > 1)
    scores = where(results.unshifted, metric=[*QUALITY], attribute="", group="")
    wide = scores.pivot_table("value", MODEL, "metric").reindex(columns=QUALITY)
    stored = wide[QUALITY[0]] - wide[QUALITY[1]]
    return of_counts.combine_first(stored.dropna()).rename("edge").reset_index()


def judged(parts: pd.DataFrame) -> pd.DataFrame:
    """A row per claim of ``table``, with its verdict in words and the part furthest from the claim.

    Returns:
        Columns claim, at, verdict, counted (the verdict in words, with the states of several
        parts), says (the same with what is possible and what it needs, where it is open), needs
        (what would decide the open parts), whom ("these models" if any part that decides is about
        these only), known_before (of its parts), cost, and part, state, published, ours, low, high,
        margin, reach, seeds and question of the part furthest from the claim by standard errors.
    """
    return pd.DataFrame([_judged(rows) for rows in _by_claim(parts)])


def _by_claim(parts: pd.DataFrame) -> list[list[dict[Any, Any]]]:
    """The parts of every claim, with ``nearness``: how far inside of what is claimed, in errors."""
    bounds = np.array([BOUNDS[name] for name in parts["expect"]]) * parts[["margin"]].to_numpy()
    inside = np.minimum(parts["ours"] - bounds[:, 0], bounds[:, 1] - parts["ours"])
    nearness = (inside / parts["error"]).fillna(np.inf)
    claims: dict[str, list[dict[Any, Any]]] = {}
    for part in parts.assign(nearness=nearness).to_dict("records"):
        claims.setdefault(part["claim"], []).append(part)
    return list(claims.values())


def _judged(rows: Sequence[dict[Any, Any]]) -> dict[str, Any]:
    """The line of ``judged`` about the parts of a claim."""
    furthest = _furthest(rows)
    decides = [part["question"] for part in rows if part["state"] in DECIDED]
    states, needs = _counted_states(rows, decides), _needs(rows)
    more = _possible(rows) if furthest["verdict"] in OPEN else ""
    says = f"{states}{';' if ':' in states else ':'} {more}" if more else states
    names = ("claim", "at", "verdict", "cost", "part", "state", "published", "ours", "low", "high",
             "margin", "reach", "seeds", "question")  # fmt: skip
    return {
        **{name: furthest[name] for name in names},
        "counted": states,
        "says": says,
        "needs": needs,
        "whom": MODELS if MODELS in decides else "",
        "known_before": ", ".join(dict.fromkeys(part["known_before"] for part in rows)),
    }


def _furthest(rows: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    """The part that is furthest from what is claimed."""
    return min(rows, key=itemgetter("nearness"))


def _counted_states(rows: Sequence[dict[Any, Any]], decides: Sequence[str]) -> str:
    """The verdict, whom it is about, and the states of several parts."""
    total, models, verdict = len(rows), decides.count(MODELS), str(rows[0]["verdict"])
    some = f" in {models} of {len(decides)}" if models < len(decides) else ""
    text = f"{verdict} (these models{some})" if models else verdict
    count = Counter(part["state"] for part in rows)
    if total == 1 or (len(count) == 1 and verdict != "undecided"):
        return text
    said = [
        f"{count[state]} of {total} {words[int(count[state] > 1)]}"
        for state, words in WORDS.items()
        if state in count
    ]
    return f"{text}: {', '.join(said)}"


def _unclear(rows: Sequence[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """The undecided part that is furthest from the claim; none if no part is undecided."""
    unclear = [part for part in rows if part["state"] == "undecided"]
    return [_furthest(unclear)] if unclear else []


def _possible(rows: Sequence[dict[Any, Any]]) -> str:
    """The range of the furthest undecided part, if there is one, and what is needed or costs."""
    if all(part["state"] == "not run" for part in rows):
        return str(rows[0]["cost"])
    ends = [
        f"{part['low']:.3f} to {part['high']:.3f}{' in ' * bool(part['part'])}{part['part']}"
        for part in _unclear(rows)
        if np.isfinite(part["low"])
    ]
    return "; ".join([*ends, _needs(rows)])


def _needs(rows: Sequence[dict[Any, Any]]) -> str:
    """What would decide the parts that are open."""
    closed = [part for part in rows if part["state"] in ("void", "out of reach")]
    needed = [part["needed"] for part in [*_unclear(rows), *closed]]
    said = [*dict.fromkeys(needed)][:2]
    if any(part["state"] == "not run" for part in rows):
        said.append("a run")
    return f"needs {', and '.join(said)}" if said else ""


def main_claim(paper: str, parts: pd.DataFrame) -> dict[str, Any]:
    """The main claim of a paper, that which the default run answers.

    Args:
        paper: name of the paper.
        parts: its ``table``.

    Returns:
        name, at and effect of the claim; part, the one furthest from the claim; published and ours,
        its effects in words; verdict, in words; line, as ``drawn``. Nothing where it was not run.
    """
    names = [claim.claim for claim in listed()[paper] if claim.default_run]
    rows = parts[parts["claim"].isin(names)]
    if (rows["state"] == "not run").all():
        return {}
    claim = _judged(_by_claim(rows)[0])
    ends = f" ({_signed(claim['low'])} to {_signed(claim['high'])})"
    ours = f"{_signed(claim['ours'])}{ends if claim['low'] < claim['high'] else ''}, "
    ours += counted({"seeds": claim["seeds"]})
    return {
        "name": claim["claim"],
        "at": claim["at"],
        "effect": rows["effect"].iloc[0],
        "part": claim["part"],
        "published": "" if np.isnan(claim["published"]) else _signed(claim["published"]),
        "ours": "" if np.isnan(claim["ours"]) else ours,
        "verdict": claim["says"],
        "line": drawn({"": rows}, legend=False),
    }


def _signed(effect: float) -> str:
    return as_text(effect, 2).replace("-", "\N{MINUS SIGN}")


def drawn(papers: Mapping[str, pd.DataFrame], legend: bool = True) -> Markup:
    """A line per claim with published effect, ours and verdict: SVG.

    Args:
        papers: ``table`` of papers by their titles; no title is shown of "".
        legend: whether it says what the marks mean.
    """
    return effects_svg(
        {title: list(map(_line, _by_claim(parts))) for title, parts in papers.items()},
        "Claims with their published effects, ours and verdicts.",
        legend,
    )


def _line(rows: Sequence[dict[Any, Any]]) -> Effect:
    furthest = _furthest(rows)
    scale = _in_margins(furthest)
    low, high = sorted((scale * furthest["low"], scale * furthest["high"]))
    return Effect(
        furthest["claim"], _judged(rows)["says"], scale * furthest["published"],
        scale * furthest["ours"], low, high,
        tuple(_in_margins(part) * part["ours"] for part in rows if part is not furthest),
        max((part["reach"] / part["margin"] for part in rows if part["state"] == "out of reach"),
            default=np.nan),
    )  # fmt: skip


def _in_margins(part: dict[Any, Any]) -> float:
    """What turns an effect into margins in the direction of the claim."""
    return (-1 if part["expect"] in ("below", "not above") else 1) / float(part["margin"])
