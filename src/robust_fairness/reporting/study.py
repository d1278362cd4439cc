r"""The study of natural shift: scores, answers and their robustness, from counts.

``robust-fairness study`` keeps, for every model and domain tested on, how many rows of each class
and groups are decided positive. Everything here is made of these counts; the questions are those of
docs/results/natural_shift_plan.md. ``study_predictions`` says what a further domain will show.

Arrays are ``[source, target, refit]``: the domain trained on, that tested on (the same one on the
diagonal) and the refit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.inference import (
    DOMAINS,
    LEVEL,
    Component,
    Estimate,
    between_domains,
    holm,
)
from robust_fairness.reporting.statistics import kendall_tau

Array = np.ndarray
MEASURES = ("accuracy", "tpr", "fpr", "delta_eo")
RATES = ("tpr", "fpr")
KNOWN = ("accuracy", *RATES)  # measures whose variance follows from the counts
FAIR, ACCURATE = "delta_eo subject to 0.99 of the best accuracy", "accuracy"
ATTRIBUTES = ("sex", "race")  # the order of groups in a subgroup's number
FAMILIES: Mapping[str, Mapping[str, str]] = {  # method: plain training of the same classifier
    "penalties": {"cuma": "erm", "faircocco": "erm", "laftr": "erm"},
    "thresholds": {
        "mlp_equalized_odds": "erm",
        "boosted_trees_equalized_odds": "boosted_trees",
    },
    "reweighting": {"group_dro": "erm", "jtt": "erm", "dfr": "erm"},
    "lisa": {"lisa": "erm"},
    "target inputs": {"importance_weighting": "erm", "coral": "erm"},
    "reductions": {"logistic_reductions": "erm"},
}
# Thresholds that are fitted on a quarter of the validation rows, by those fitted on all of them.
QUARTER = {
    "mlp_equalized_odds": "mlp_equalized_odds_quarter",
    "boosted_trees_equalized_odds": "boosted_trees_equalized_odds_quarter",
}
PROMISED = 0.05  # largest gap that thresholds are fitted for
MOSTLY = 0.8  # share of test sets from which a promise is kept
TAU_MARGIN = 0.15
FORECAST = "Q3 the gap at home forecasts the gap elsewhere"
FEWEST_REFITS = 5


@dataclass(frozen=True)
class Scores:
    """Scores of methods ``[source, target, refit]`` by method and measure.

    Attributes:
        domains: names of sources and targets, in the order of the first two axes.
        values: by method, then by measure.
        variance: of the rows, of accuracy and of the signed gaps ``tpr`` and ``fpr``.
        rows: test rows of a domain, mean over domains and refits.
        base_rates: share of class 1 among the test rows of every domain.
    """

    domains: tuple[str, ...]
    values: Mapping[str, Mapping[str, Array]]
    variance: Mapping[str, Mapping[str, Array]]
    rows: float = np.nan
    base_rates: Array = field(default_factory=lambda: np.zeros(0))

    def mean(self, method: str, measure: str) -> Array:
        """Means over refits ``[source, target]``."""
        return np.asarray(self.values[method][measure].mean(-1))

    def without(self, *methods: str) -> "Scores":
        """The scores of the other methods."""
        return replace(self, values={k: v for k, v in self.values.items() if k not in methods})


def scores(
    counts: pd.DataFrame, totals: pd.DataFrame, refits: int = FEWEST_REFITS, **choice: Any
) -> Scores:
    """Scores of the methods that are complete: every domain and the first ``refits``.

    Args:
        counts: of positive decisions, a row per model and domain tested on.
        totals: numbers of rows and of people, by domain, part and refit.
        refits: the number that is used.
        choice: attribute, weighted and rule of ``measured``.

    Returns:
        Signed gaps are rates of the second group minus those of the first.
    """
    table = measured(counts, totals, refits=refits, **choice)
    rows = totals[totals["part"] == "test"]
    domains = tuple(sorted(totals["domain"].unique()))
    values: dict[str, dict[str, Array]] = {}
    shape = (len(domains), len(domains), refits)
    order = pd.MultiIndex.from_product([domains, domains, range(refits)])
    names = [*MEASURES, *(f"{measure}_variance" for measure in KNOWN)]
    for method, part in table.groupby("method"):
        if len(part) == np.prod(shape):
            placed = part.set_index(["trained_on", "tested_on", "seed"]).loc[order]
            values[str(method)] = {name: placed[name].to_numpy().reshape(shape) for name in names}
    variance = {
        method: {measure: of[f"{measure}_variance"] for measure in KNOWN}
        for method, of in values.items()
    }
    sizes = rows[rows["seed"] < refits].groupby("domain").mean(numeric_only=True)
    by_class = [sizes[[f"rows_{4 * y + place}" for place in range(4)]].sum(axis=1) for y in (0, 1)]
    total = by_class[0] + by_class[1]
    return Scores(domains, values, variance, total.mean(), (by_class[1] / total).to_numpy())


def measured(
    counts: pd.DataFrame,
    totals: pd.DataFrame,
    attribute: str = "sex",
    weighted: bool = False,
    rule: str = FAIR,
    refits: int = FEWEST_REFITS,
) -> pd.DataFrame:
    """Measures and variances, a row per method, domain trained on, tested on and refit.

    Args:
        counts: see ``scores``.
        totals: see ``scores``.
        attribute: whose two groups are compared.
        weighted: whether rows count as the people that they stand for.
        rule: the criterion that selected the trial.
        refits: the number that is used.
    """
    chosen = counts["selections"].str.split("; ").map(lambda names: rule in names)
    tested = counts[chosen & counts["part"].isin(["test", "ood_test"]) & (counts["seed"] < refits)]
    rows = totals[totals["part"] == "test"]
    both = tested.merge(rows, left_on=["tested_on", "seed"], right_on=["domain", "seed"],
                        suffixes=("", "_all"))  # fmt: skip
    names = ("people_{}", "people_{}_all", "squares_{}") if weighted else (
        "positive_{}", "rows_{}", "rows_{}")  # fmt: skip
    sums = (
        _by_group([both[name.format(place)] for place in range(8)], attribute) for name in names
    )
    return both[["method", "trained_on", "tested_on", "seed"]].assign(**_measures(*sums))


def missing(scores: Scores) -> list[str]:
    """Methods that the questions need and that are not complete."""
    needed = {name for family in FAMILIES.values() for pair in family.items() for name in pair}
    return sorted((needed | {*QUARTER.values()}) - scores.values.keys())


def _by_group(columns: Sequence[pd.Series], attribute: str) -> Array:
    """Sums ``[class, group, row]`` of the columns of subgroups, over the other attribute."""
    table = np.array(columns, dtype=np.float64).reshape(2, 2, 2, -1)  # class, sex, race
    return np.asarray(table.sum(2 if attribute == ATTRIBUTES[0] else 1))


def _measures(hits: Array, n: Array, squares: Array) -> dict[str, Array]:
    """Measures and variances of signed gaps from sums ``[class, group, row]``.

    The variance of a rate is p (1 - p) / (m - 1) of m effective rows, (sum w)^2 / sum w^2.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = hits / n
        effective = n**2 / squares
        noise = (rates * (1 - rates) / (effective - 1)).sum(1)
    signed = rates[:, 1] - rates[:, 0]
    right = (hits[1].sum(0) + (n[0] - hits[0]).sum(0)) / n.sum((0, 1))
    people = n.sum((0, 1)) ** 2 / squares.sum((0, 1))
    return {
        "accuracy": right, "accuracy_variance": right * (1 - right) / (people - 1),
        "tpr": signed[1], "tpr_variance": noise[1], "fpr": signed[0], "fpr_variance": noise[0],
        "delta_eo": np.abs(signed).sum(0),
    }  # fmt: skip


def over_pairs(values: Array) -> Estimate:
    """The mean over pairs of different domains ``[source, target]``, with domains as the unit."""
    count = len(values)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    kept = values[None, source, target]
    return Estimate(kept.mean(-1), {DOMAINS: between_domains(kept, source, target)})


def gain(scores: Scores, methods: Mapping[str, str], measure: str = "delta_eo") -> Array:
    """How much smaller a measure is than that of plain training, mean over methods, ``[s, t]``."""
    ends = [(scores.mean(p, measure), scores.mean(m, measure)) for m, p in methods.items()]
    return np.mean([plain - mitigated for plain, mitigated in ends], 0)


def movement(scores: Scores, method: str) -> tuple[Array, Array]:
    """Squared movement of signed gaps between domains and their variance between refits.

    Both are means over the two rates, net of rows. Test rows of a refit are half of a domain's, so
    that half of their variance is between refits, the other half is the domain's own.

    Returns:
        ``[source, target]`` and ``[source]``.
    """
    moved, refitted = [], []
    for rate in RATES:
        value, noise = scores.values[method][rate], scores.variance[method][rate].mean(-1)
        home = np.einsum("ssr->sr", value)
        diagonal = np.diag(noise)
        change = value - home[:, None]
        error = change.var(-1, ddof=1) / value.shape[-1]
        moved.append(change.mean(-1) ** 2 - error - (noise + diagonal[:, None]) / 2)
        refitted.append(home.var(-1, ddof=1) - diagonal / 2)
    return np.mean(moved, 0), np.mean(refitted, 0)


def forecast_loss(scores: Scores) -> Array:
    """Kendall's tau over methods of the gap at home with that elsewhere, less with itself.

    The gap at home is that of even refits, the other one of odd refits. ``[source, target]``.
    """
    gaps = np.array([of["delta_eo"] for of in scores.values.values()])
    home = np.einsum("mss->sm", gaps[..., ::2].mean(-1))
    away = np.moveaxis(gaps[..., 1::2].mean(-1), 0, -1)
    tau = kendall_tau(np.broadcast_to(home[:, None], away.shape), away)
    return tau - np.diag(tau)[:, None]


def kept_promise(scores: Scores, methods: Sequence[str]) -> Array:
    """Share of refits and methods with both gaps within ``PROMISED``, ``[source, target]``."""
    within = [
        np.maximum(*(np.abs(scores.values[method][rate]) for rate in RATES)) <= PROMISED
        for method in methods
    ]
    return np.mean(within, (0, -1))


def at_home(values: Array) -> Array:
    """The diagonal of ``[source, target]``, the same for all targets."""
    return np.repeat(np.diag(values)[:, None], len(values), 1)


def effects(scores: Scores) -> dict[str, tuple[Estimate, Estimate | None]]:
    """The effects of Q1 to Q4 by question, and of Q1 the gain at home.

    Questions about methods that are not among the scores are left out.
    """
    asked: dict[str, tuple[Estimate, Estimate | None]] = {}
    for family, methods in families(scores).items():
        gained = gain(scores, methods)
        home = at_home(gained)
        asked[f"Q1 {family}"] = (over_pairs(gained - home / 2), over_pairs(home))
    parts = [movement(scores, method) for method in scores.values]
    moved = np.mean([between - refit[:, None] for between, refit in parts], 0)
    asked["Q2 a state moves a gap more than a refit"] = (over_pairs(moved), None)
    asked[FORECAST] = (over_pairs(forecast_loss(scores)), None)
    pairs = {m: quarter for m, quarter in QUARTER.items() if {m, quarter} <= {*scores.values}}
    if pairs:
        more = kept_promise(scores, [*pairs]) - kept_promise(scores, [*pairs.values()])
        asked["Q4 more validation rows help thresholds"] = (over_pairs(more), None)
    return asked


def families(scores: Scores) -> dict[str, dict[str, str]]:
    """``FAMILIES`` with the methods among the scores."""
    kept = {
        family: {m: plain for m, plain in methods.items() if {m, plain} <= {*scores.values}}
        for family, methods in FAMILIES.items()
    }
    return {family: methods for family, methods in kept.items() if methods}


def answers(scores: Scores) -> pd.DataFrame:
    """Effects of the primary questions Q1 to Q4 with intervals, tests and answers.

    ``p_holm`` is adjusted for all rows, ``detectable`` the effect that is found with 80 % power at
    Holm's first step. An answer is yes, no, inconclusive, or nothing to keep.
    """
    asked = effects(scores)
    adjusted = holm([effect.p().item() for effect, _ in asked.values()])
    rows = []
    for (question, (effect, gained_home)), p_holm in zip(asked.items(), adjusted, strict=True):
        row = _with_interval(effect) | {
            "p": effect.p().item(), "p_holm": p_holm,
            "detectable": np.asarray(effect.detectable(level=LEVEL / len(asked))).item(),
        }  # fmt: skip
        sign = np.sign(row["effect"]) if p_holm < LEVEL else 0
        answer = {1: "yes", -1: "no", 0: "inconclusive"}[int(sign)]
        if gained_home is not None and gained_home.interval()[0].item() <= 0:
            answer = "nothing to keep"
        if question == FORECAST:
            within = effect.p_within(TAU_MARGIN).item() < LEVEL
            answer = "yes" if within else "no" if sign < 0 else "inconclusive"
        rows.append({"question": question, **row, "answer": answer})
    return pd.DataFrame(rows)


def _with_interval(effect: Estimate) -> dict[str, float]:
    low, high = effect.interval()
    return {"effect": effect.value.item(), "low": low.item(), "high": high.item()}


def robustness(variants: Mapping[str, Scores]) -> pd.DataFrame:
    """Every effect under other choices, and whether it depends on them.

    Args:
        variants: scores by choice, the primary one first.

    Returns:
        A row per question and choice. An effect ``depends`` on a choice if its interval and the
        primary one exclude each other's effect.
    """
    rows = [
        {"question": question, "choice": choice, **_with_interval(effect)}
        for choice, scores in variants.items()
        for question, (effect, _) in effects(scores).items()
    ]
    table = pd.DataFrame(rows)
    primary = table[table["choice"] == next(iter(variants))].set_index("question")
    first = primary.reindex(table["question"]).set_index(table.index)
    outside = (first["effect"] < table["low"]) | (first["effect"] > table["high"])
    excluded = (table["effect"] < first["low"]) | (table["effect"] > first["high"])
    return table.assign(depends=outside & excluded)


def kept(scores: Scores) -> pd.DataFrame:
    """Gains in ``delta_eo`` of every family over plain training, at home and elsewhere."""
    rows = []
    for family, methods in families(scores).items():
        gained = gain(scores, methods)
        ends = {"at_home": over_pairs(at_home(gained)), "elsewhere": over_pairs(gained)}
        row: dict[str, object] = {"family": family}
        for name, estimate in ends.items():
            columns = (name, f"{name}_low", f"{name}_high")
            row |= zip(columns, _with_interval(estimate).values(), strict=True)
        rows.append(row)
    table = pd.DataFrame(rows)
    return table.assign(share=table["elsewhere"] / table["at_home"])


def promised(scores: Scores) -> pd.DataFrame:
    """Share of test sets on which thresholds keep ``PROMISED``, at home and elsewhere.

    Kept if the lower bound is ``MOSTLY`` or more, not kept if the upper bound is below.
    """
    rows = []
    for method in (name for name in scores.values if name in {*QUARTER, *QUARTER.values()}):
        share = kept_promise(scores, [method])
        for place, estimate in {
            "at home": over_pairs(at_home(share)), "elsewhere": over_pairs(share)
        }.items():  # fmt: skip
            row = _with_interval(estimate)
            verdict = "inconclusive"
            if row["low"] >= MOSTLY:
                verdict = "kept"
            elif row["high"] < MOSTLY:
                verdict = "not kept"
            rows.append({"method": method, "tested": place, **row, "verdict": verdict})
    return pd.DataFrame(rows).rename(columns={"effect": "share"})


def movement_forecasts(scores: Scores, distance: Array | None = None) -> pd.DataFrame:
    """Kendall's tau over pairs of domains between the size of a movement and what may forecast it.

    A movement is the change of a signed gap, mean over refits; its size is the mean over rates and
    methods. Errors come from a jackknife that leaves a domain out as source and target.

    Args:
        scores: scores of all methods.
        distance: of the domains ``[source, target]``, such as the AUC of a classifier.
    """
    sizes, spread = [], []
    for method in scores.values:
        for rate in RATES:
            value = scores.values[method][rate]
            home = np.einsum("ssr->sr", value)
            sizes.append(np.abs((value - home[:, None]).mean(-1)))
            spread.append(home.std(-1, ddof=1))
    size, count = np.mean(sizes, 0), len(scores.domains)
    rates = scores.base_rates
    candidates = {
        "spread over refits at home": np.repeat(np.mean(spread, 0)[:, None], count, 1),
        "difference of base rates": np.abs(rates[:, None] - rates),
    }
    if distance is not None:
        candidates["distance of the domains"] = distance
    rows, tests = [], []
    for name, values in candidates.items():
        estimate = _tau_over_pairs(values, size)
        tests.append(estimate.p().item())
        rows.append({"forecast": name, **_with_interval(estimate), "p": tests[-1]})
    return pd.DataFrame(rows).rename(columns={"effect": "tau"}).assign(p_holm=holm(tests))


def _tau_over_pairs(first: Array, second: Array) -> Estimate:
    """Kendall's tau over pairs of different domains, with a jackknife over domains."""
    count = len(first)

    def tau(kept: Array) -> float:
        pairs = np.ix_(kept, kept)
        off = ~np.eye(len(kept), dtype=bool)
        return float(kendall_tau(first[pairs][off], second[pairs][off]))

    without = np.array([tau(np.delete(np.arange(count), number)) for number in range(count)])
    variance = (count - 1) / count * np.square(without - without.mean()).sum(keepdims=True)
    value = np.array([tau(np.arange(count))])
    return Estimate(value, {DOMAINS: Component(variance, np.array([count - 1.0]))})


def levels(scores: Scores) -> pd.DataFrame:
    """Accuracy and ``delta_eo`` of every method, means at home and elsewhere."""
    away = ~np.eye(len(scores.domains), dtype=bool)
    rows = []
    for method in scores.values:
        means = {name: scores.mean(method, name) for name in ("accuracy", "delta_eo")}
        row: dict[str, object] = {"method": method}
        row |= {f"{name}_home": np.diag(mean).mean() for name, mean in means.items()}
        row |= {f"{name}_elsewhere": mean[away].mean() for name, mean in means.items()}
        rows.append(row)
    return pd.DataFrame(rows).sort_values("delta_eo_elsewhere", ignore_index=True)


def convergence(counts: pd.DataFrame) -> pd.DataFrame:
    """Share of trainings whose validation loss fell in the second half of their epochs.

    Args:
        counts: with ``loss_half`` and ``loss_end``, which methods without epochs lack.
    """
    known = counts.dropna(subset=["loss_half", "loss_end"]).drop_duplicates(
        ["trained_on", "method", "trial", "seed"]
    )
    fell = known.assign(fell=known["loss_end"] < known["loss_half"],
                        ratio=known["loss_end"] / known["loss_half"])  # fmt: skip
    table = fell.groupby("method").agg(
        trainings=("fell", "size"), fell=("fell", "mean"), ratio=("ratio", "median")
    )
    return table.reset_index()


def dominated(scores: Scores) -> pd.DataFrame:
    """Pairs of methods of which the first is more accurate and fairer elsewhere (Q5).

    ``p`` is the larger one-sided p-value of both differences, ``p_holm`` adjusted for all ordered
    pairs.
    """
    rows = []
    for better, worse in permutations(scores.values, 2):
        sharper = over_pairs(scores.mean(better, "accuracy") - scores.mean(worse, "accuracy"))
        fairer = over_pairs(scores.mean(worse, "delta_eo") - scores.mean(better, "delta_eo"))
        p = max(sharper.p_above().item(), fairer.p_above().item())
        rows.append({"better": better, "worse": worse, "accuracy": sharper.value.item(),
                     "delta_eo": fairer.value.item(), "p": p})  # fmt: skip
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"]))


def described(scores: Scores) -> dict[str, float]:
    """What domains do to models, without tests; domains are in the order of their names.

    Returns:
        Accuracy and ``delta_eo`` of plain training (``erm``), means over domains and over pairs;
        and sizes of the movement of a signed gap net of rows, root mean squares over methods and
        rates: of a refit, to all other domains, and to the next one in order, either way. A mean
        square below 0, which rows alone explain, counts as 0.
    """
    away = ~np.eye(len(scores.domains), dtype=bool)
    places = np.arange(len(scores.domains))
    following = np.abs(places[:, None] - places) == 1
    parts = [movement(scores, method) for method in scores.values]
    moved = np.mean([between for between, _ in parts], 0)
    squares = {
        "refit": np.mean([refit for _, refit in parts]),
        "moved": moved[away].mean(),
        "moved_to_next": moved[following].mean(),
    }
    plain = {name: scores.mean("erm", name) for name in ("accuracy", "delta_eo")}
    return {
        **{f"{name}_home": float(np.diag(mean).mean()) for name, mean in plain.items()},
        **{f"{name}_elsewhere": float(mean[away].mean()) for name, mean in plain.items()},
        **{name: float(np.sqrt(max(square, 0))) for name, square in squares.items()},
    }
