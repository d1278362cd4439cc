"""What the five papers claim, and the verdict of scores: ``claims.yml``, an effect per claim.

An effect is the mean of some scores minus the mean of others, paired over seeds. Its variance is
that between seeds (*this method*), corrected by Nadeau and Bengio where the splits of seeds share
rows, else with that of the test rows where it is known. With fewer than ``FEWEST_REFITS`` seeds it
is that of the test rows alone (*these models*). Where scores have what every test row adds to them,
rows are paired: the effect is a mean over rows of what a row adds to it, over all seeds and both
sides. ``inference.claims`` decides. The gaps of models that are no more accurate than the most
frequent class, which has none, decide nothing.
"""

from collections.abc import Mapping, Sequence
from functools import cache, reduce
from importlib.resources import files
from math import ceil
from operator import add, or_
from typing import Any, Literal

import numpy as np
import pandas as pd
import yaml
from markupsafe import Markup
from pydantic import BaseModel, Field, PositiveFloat, ValidationError, model_validator
from scipy import special

from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.experiment.yaml_source import FASTER
from robust_fairness.inference import LEVEL, REFITS, ROWS, Component, Estimate
from robust_fairness.inference.claims import BOUNDS, Decided, Says, decided
from robust_fairness.inference.estimate import POWER
from robust_fairness.inference.variance import (
    FEWEST_REFITS,
    between_refits,
    of_rate,
    of_rows,
    small_counts,
)
from robust_fairness.rendering.effects import Effect, effects_svg
from robust_fairness.reporting.results import CELL, UNSHIFTED, Results, where

DETAILED = ("partly", "contradicted", "undecided")  # verdicts that need more words
QUESTIONS = ("", "these models", "this method")
ANY = "any"  # value of a column that is not asked for
USUAL = {"trial": DEFAULT_TRIAL, "group": ""}  # of columns that a claim does not name
ROW_KEY = ["dataset", "method", "trial", "seed", "shift", "severity", "domain", "attribute"]
SHARES = ("accuracy", "majority_accuracy", "minority_accuracy", "accuracy_by_subgroup")
CONSTANT = "a model is no more accurate than the most frequent class"
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

    @property
    def size(self) -> float:
        """The margin as a number."""
        return abs(self.published or 0) / 2 if self.margin == "half" else float(self.margin or 0)


class Claim(Part):
    """A claim of a paper, see the head of ``claims.yml``."""

    claim: str
    at: str
    effect: str
    known: str
    average: Literal["dataset"] | None = None
    note: str = ""
    cost: str = ""
    command: str = ""
    parts: tuple[Part, ...] = ()

    @model_validator(mode="after")
    def _decidable(self) -> "Claim":
        for part in self.each():
            named = f"part {part.part!r}" if part.part else "the claim"
            if part.expect is None:
                raise ValueError(f"{named} needs expect")
            if not part.size > 0:
                raise ValueError(f"{named} needs a margin, or half of a published effect")
        names = [part.part for part in self.parts]
        if len(set(names)) < len(names):
            raise ValueError("two parts have the same name")
        return self

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


def read(text: str, place: str = "claims.yml") -> dict[str, tuple[Claim, ...]]:
    """The claims of a file by paper.

    Raises:
        InputError: a claim has a mistake; the message names the paper, the claim and the field.
    """
    result = {}
    for paper, written in (yaml.load(text, FASTER) or {}).items():
        claims = []
        for number, fields in enumerate(written, 1):
            try:
                claims.append(Claim.model_validate(fields))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                field = ".".join(map(str, first["loc"])) or "fields"
                name = fields.get("claim", number) if isinstance(fields, dict) else number
                says = first["msg"].removeprefix("Value error, ")
                message = f"{place}: {paper}, claim {name!r}, {field}: {says}"
                raise InputError(message) from None
        result[paper] = tuple(claims)
    return result


@cache
def listed() -> dict[str, tuple[Claim, ...]]:
    """The claims of the five papers."""
    path = files("robust_fairness.reporting") / "claims.yml"
    return read(path.read_text(encoding="utf-8"))


def table(claims: Sequence[Claim], rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The effects of a paper's claims with their verdicts, a row per part.

    Args:
        claims: those of the paper.
        rows: scores by seed, with the columns that its claims name and those of
            ``with_row_variances``; a column ``by_row`` has arrays of which a score is the mean, a
            number per test row; a column ``model`` identifies trained models of a seed.
        results: the run that they come from.

    Returns:
        Columns claim, at, part, verdict (of the claim), state (of the part: holds, reversed,
        excluded, undecided or not run), expect, published, std (of the published effect), ours,
        low, high (95 %), p (adjusted), margin, seeds, question, needed (in words, of what is
        undecided), effect, known, cost, command.

    Raises:
        InputError: the scores lack a column that a claim names.
    """
    parts = [(number, part) for number, claim in enumerate(claims) for part in claim.each()]
    numbers = np.array([number for number, _ in parts], dtype=int)
    effects = [_effect(claims[number], part, rows, results) for number, part in parts]
    margin = np.array([part.size for _, part in parts])
    estimate = _together(effects)
    known = np.isfinite(estimate.value)
    run = pd.Series(known).groupby(numbers).transform("any").to_numpy()
    says = [part.expect or "above" for _, part in parts]
    verdicts = decided(estimate, numbers, says, margin)
    low, high = estimate.interval()
    shown = pd.DataFrame(
        {
            "claim": [claims[number].claim for number in numbers],
            "at": [claims[number].at for number in numbers],
            "part": [part.part for _, part in parts],
            "verdict": np.where(
                run, np.array(verdicts.verdicts, dtype=object)[numbers], "not run"
            ),
            "state": _states(verdicts, known),
            "expect": says,
            "published": [part.published for _, part in parts],
            "std": [part.std for _, part in parts],
            "ours": estimate.value, "low": low, "high": high,
            "p": np.where(known, verdicts.p, np.nan),
            "margin": margin,
            "seeds": [effect["seeds"] for effect in effects],
            "question": [effect["question"] for effect in effects],
        }
    )  # fmt: skip
    tests = len(set(numbers[known]))
    shown["needed"] = [
        _needed(effect, size, tests) if state == "undecided" else ""
        for effect, size, state in zip(effects, margin, shown["state"], strict=True)
    ]
    for name in ("effect", "known", "cost", "command"):
        shown[name] = [getattr(claims[number], name) for number in numbers]
    return shown.astype({"published": "float64", "std": "float64"})


def _states(verdicts: Decided, known: np.ndarray) -> np.ndarray:
    conditions = [~known, verdicts.holds, verdicts.reversed, verdicts.excluded]
    return np.select(conditions, ["not run", "holds", "reversed", "excluded"], "undecided")


def _together(effects: Sequence[Mapping[str, Any]]) -> Estimate:
    """All effects as one estimate; those that are not known have no variance."""
    names = (ROWS, REFITS)
    parts = {
        name: Component(
            np.array([effect.get(name, Component(0.0)).variance for effect in effects], float),
            np.array([effect.get(name, Component(0.0)).df for effect in effects], float),
        )
        for name in names
    }
    return Estimate(np.array([effect["value"] for effect in effects], float), parts)


def _effect(claim: Claim, part: Part, rows: pd.DataFrame, results: Results) -> dict[str, Any]:
    """Value, components of its variance, seeds and question of a part's effect."""
    named = {**part.rows, **part.first, **part.second}
    if missing := [name for name in named if name not in rows]:
        raise InputError(f"claim {claim.claim!r}: scores have no column {missing[0]!r}")
    datasets = part.rows["dataset"] if claim.average else [None]
    each = [
        _on_one(part, rows if name is None else where(rows, dataset=name), results)
        for name in ([datasets] if isinstance(datasets, str) else datasets)
    ]
    count = len(each)
    result = {
        "value": np.mean([effect["value"] for effect in each]),
        "seeds": min(effect["seeds"] for effect in each),
        "constant": any(effect["constant"] for effect in each),
        "ratio": max(effect["ratio"] for effect in each),
        "question": min(
            (effect["question"] for effect in each), key=["", "these models", "this method"].index
        ),
    }
    for name in () if result["constant"] else (ROWS, REFITS):
        components = [
            Component(effect[name].variance / count**2, effect[name].df)
            for effect in each
            if name in effect
        ]
        if len(components) == count:
            result[name] = reduce(add, components)
    return result


def _chosen(rows: pd.DataFrame, *values: Rows) -> pd.DataFrame:
    """The rows of a side of an effect."""
    asked = reduce(or_, map(dict, values), dict(USUAL))
    return where(rows, **{name: value for name, value in asked.items() if value != ANY})


def _on_one(part: Part, rows: pd.DataFrame, results: Results) -> dict[str, Any]:
    first = _chosen(rows, part.rows, part.first)
    sides = [first, *([_chosen(rows, part.rows, part.second)] if part.second else [])]
    if any(side.empty for side in sides):  # not run
        return {"value": np.nan, "seeds": 0, "ratio": 0.0, "question": "", "constant": False}
    both = pd.concat(map(_by_seed, sides), axis=1, join="inner", keys=range(len(sides)))
    value = both[0]["value"] - (both[1]["value"] if part.second else 0)
    seeds = len(value)
    splits = results.sizes_of_splits.reindex(first["dataset"].unique())
    ratio = float(splits["ratio"].fillna(0).max()) if len(splits) else 0.0
    if not ratio and (by_row := _by_row(sides, value.index)) is not None:
        by_rows = of_rows(by_row)
    else:
        # rows of both sides, and of all seeds, may be the same: their errors are not averaged out
        deviation = both.xs("deviation", axis=1, level=1).to_numpy(np.float64)
        error = np.sqrt((deviation**2).sum(1))
        # certain, and not 0, which stands for a variance that is not known
        error[_of_the_same_models(sides, value.index)] = np.sqrt(np.finfo(np.float64).tiny)
        by_rows = float(error.mean() ** 2) if seeds else np.nan
    constant = any(side["constant"].any() for side in sides if "constant" in side)
    result = {
        "value": np.nan, "seeds": seeds, "ratio": ratio, "question": "", "constant": constant
    }  # fmt: skip
    if seeds >= FEWEST_REFITS:
        between = between_refits(value.to_numpy(np.float64), ratio)
        result |= {"value": value.mean(), "question": "this method", REFITS: between}
        if not ratio and np.isfinite(by_rows):
            result[ROWS] = Component(by_rows)
    elif seeds:
        result |= {"value": value.mean(), "question": "these models", ROWS: Component(by_rows)}
    return result


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


def _needed(effect: Mapping[str, Any], margin: float, tests: int) -> str:
    """What would show an effect of the margin with a power of ``POWER``, in words."""
    target = (margin / (special.ndtri(1 - LEVEL / (2 * tests)) + special.ndtri(POWER))) ** 2
    rows, refits = (
        float(effect[name].variance) if name in effect else 0.0 for name in (ROWS, REFITS)
    )
    seeds, ratio = effect["seeds"], effect["ratio"]
    if effect["constant"]:
        return CONSTANT
    if not np.isfinite(rows + refits) or rows + refits == 0:
        return "rows were not counted"
    single = refits / (1 / seeds + ratio)
    rest = target - rows - ratio * single
    if refits and rest > 0:
        return f"{max(ceil(single / rest), seeds + 1)} seeds would decide"
    factor = max((rows + refits) / target, 1.1)
    return f"{_rounded(factor)} times as many rows would decide"


def _rounded(factor: float) -> str:
    if factor >= 100:  # noqa: PLR2004 - of no use to anyone
        return "more than a hundred"
    digits = f"{factor:.1g}" if factor >= 2 else f"{factor:.2g}"  # noqa: PLR2004
    return f"{float(digits):g}"


def with_row_variances(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Scores with their variance by the test rows, as ``variance``, where it can be known.

    Of accuracies from their number of rows, of sums of differences of rates from the counts. With
    these, ``constant`` is whether a score is a gap of a model whose accuracy without a shift, mean
    over seeds, is at most that of the most frequent class.
    """
    known = rows["variance"] if "variance" in rows else pd.Series(np.nan, rows.index)
    share = rows["metric"].isin(SHARES) & rows["value"].notna()
    value, n = rows["value"].where(share).to_numpy(float), rows["n"].to_numpy(float)
    variance = known.astype(float).fillna(pd.Series(of_small(value, n), rows.index))
    counted = _counted(results)
    if len(counted):
        keys = [*ROW_KEY, "metric"]
        of_gaps = rows[keys].merge(counted, how="left", on=keys)["variance"].to_numpy()
        variance = variance.fillna(pd.Series(of_gaps, rows.index))
    constant = rows.set_index([*CELL, "trial"]).index.isin(_constant(results.counts))
    constant &= rows["metric"].isin([*GAPS, "delta_er"])
    return rows.assign(variance=variance, constant=constant)


def of_small(value: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Variance of shares of n rows, with a row added on either side."""
    return small_counts(value, of_rate(value, n), n)[1]


def _counted(results: Results) -> pd.DataFrame:
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


def _constant(counts: pd.DataFrame) -> pd.Index:
    """The trials that are no more accurate than the most frequent class."""
    counts = where(counts, attribute="", shift=UNSHIFTED)
    cell = [*CELL, "trial"]
    labels = counts.groupby([*cell, "seed", "label"])["n"].sum()
    right = counts[counts["decision"] == counts["label"]].groupby(cell)["n"].sum()
    most = labels.groupby(level=[*cell, "seed"]).max().groupby(level=cell).sum()
    return most.index[right.reindex(most.index, fill_value=0) <= most]


def judged(parts: pd.DataFrame) -> pd.DataFrame:
    """A row per claim of ``table``, with its verdict in words and the part furthest from the claim.

    Returns:
        Columns claim, at, verdict, says (the verdict in words), part, published, ours, low, high,
        margin, seeds and question, of the part furthest from the claim by standard errors.
    """
    result = []
    for _, rows in parts.groupby("claim", sort=False):
        order = _nearness(rows).sort_values(kind="stable").index
        furthest = rows.loc[order[0]]
        names = ["claim", "at", "verdict", "part", "published", "ours", "low", "high", "margin",
                 "seeds", "question"]  # fmt: skip
        result.append({**furthest[names], "says": _in_words(rows, furthest)})
    return pd.DataFrame(result)


def _nearness(rows: pd.DataFrame) -> pd.Series:
    """How far inside of what is claimed the effects are, in half-widths; unknown ones come last."""
    bounds = np.array([BOUNDS[name] for name in rows["expect"]]) * rows[["margin"]].to_numpy()
    ours = rows[["ours"]].to_numpy()
    inside = np.minimum(ours[:, 0] - bounds[:, 0], bounds[:, 1] - ours[:, 0])
    half = (rows["high"] - rows["low"]).to_numpy() / 2
    return pd.Series(inside / half, rows.index)


def _in_words(rows: pd.DataFrame, furthest: pd.Series) -> str:
    verdict, count = str(furthest["verdict"]), rows["state"].value_counts()
    asked = rows.loc[rows["question"] != "", "question"]
    models = (asked == "these models").sum()
    some = f" in {models} of {len(rows)}" if models < len(asked) else ""
    whom = f" (these models{some})" if models else ""
    if verdict == "not run":
        cost = furthest["cost"] or "no scores"
        return f"not run: {cost}"
    names = {
        "holds": "holds", "reversed": "reversed", "excluded": "less than the margin",
        "not run": "not run",
    }  # fmt: skip
    of = f" of {len(rows)}" if len(rows) > 1 else ""
    decided = [f"{text} in {count[name]}{of}" for name, text in names.items() if name in count]
    unclear = rows[rows["state"] == "undecided"]
    if verdict == "undecided" and len(unclear):
        number = int(np.argsort(_nearness(unclear).to_numpy())[0])
        furthest = unclear.iloc[number]
        ends = "" if np.isnan(furthest["low"]) else "{low:.3f} to {high:.3f}".format(**furthest)
        where_open = f" in {furthest['part']}" if ends and furthest["part"] else ""
        decided.append("; ".join(filter(None, [ends + where_open, str(furthest["needed"])])))
    text = f"{verdict}{whom}"
    return f"{text}: {', '.join(decided)}" if decided and verdict in DETAILED else text


def drawn(papers: Mapping[str, pd.DataFrame]) -> Markup:
    """A line per claim with published effect, ours and verdict: SVG.

    Args:
        papers: ``table`` of papers by their titles; no title is shown of "".
    """
    return effects_svg(
        {title: list(map(_line, _by_claim(parts))) for title, parts in papers.items()},
        "Claims with their published effects, ours and verdicts.",
    )


def _by_claim(parts: pd.DataFrame) -> list[tuple[Any, pd.DataFrame]]:
    lines = judged(parts).itertuples(index=False)
    groups = (rows for _, rows in parts.groupby("claim", sort=False))
    return list(zip(lines, groups, strict=True))


def _line(claim: tuple[Any, pd.DataFrame]) -> Effect:
    furthest, rows = claim
    sign = np.where(rows["expect"].isin(["below", "not above"]), -1, 1) / rows["margin"]
    scale = float(sign[rows["part"] == furthest.part].iloc[0])
    low, high = sorted((scale * furthest.low, scale * furthest.high))
    others = (sign * rows["ours"])[rows["part"] != furthest.part]
    return Effect(
        furthest.claim, furthest.says, scale * furthest.published, scale * furthest.ours,
        low, high, tuple(others),
    )  # fmt: skip
