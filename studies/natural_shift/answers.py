"""The answers to the questions of the README, from counts of decisions.

``train.py`` counts, for every model and domain tested on, how many rows of each class and groups
are decided positive. Arrays are ``[source, target, refit]``: the domain trained on, that tested on
(the same one on the diagonal) and the refit; those of several methods are stacked in front.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.numbers.estimate import DOMAINS, LEVEL, Component, Estimate, over_domains
from robust_fairness.numbers.verdicts import holm
from robust_fairness.report.statistics import kendall_tau

Array = np.ndarray
RATES = ("tpr", "fpr")
KNOWN = ("accuracy", *RATES)  # measures whose variance follows from the counts
MEASURES = (*KNOWN, "delta_eo")
FAIR, ACCURATE = "delta_eo subject to 0.99 of the best accuracy", "accuracy"
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
# thresholds that are fitted on a quarter of the validation rows, by those fitted on all of them
QUARTER = {name: f"{name}_quarter" for name in FAMILIES["thresholds"]}
PROMISED = 0.05  # largest gap that thresholds are fitted for
MOSTLY = 0.8  # share of test sets from which a promise is kept
RIGHT = 0.9  # share of values that lie within right predictions
TAU_MARGIN = 0.15
FORECAST = "Q3 the gap at home forecasts the gap elsewhere"
FEWEST_REFITS = 5
KEYS = ["method", "trained_on", "tested_on", "seed"]


@dataclass(frozen=True)
class Scores:
    """Measures of methods, and variances of their rows, which are called ``tpr_variance``.

    ``tpr`` and ``fpr`` are signed gaps: rates of the second group minus those of the first.
    ``rows`` are the test rows of a domain, mean over domains and refits; ``base_rates`` the shares
    of class 1 among the test rows of every domain.
    """

    domains: tuple[str, ...]
    values: Mapping[str, Mapping[str, Array]]
    rows: float = np.nan
    base_rates: Array = field(default_factory=lambda: np.zeros(0))

    def of(self, measure: str, methods: Iterable[str] | None = None) -> Array:
        """A measure of methods, by default of all, ``[method, source, target, refit]``."""
        return np.array([self.values[name][measure] for name in methods or self.values])

    def without(self, *methods: str) -> "Scores":
        """The scores of the other methods."""
        return replace(self, values={k: v for k, v in self.values.items() if k not in methods})

    @property
    def away(self) -> Array:
        """Which pairs are of different domains."""
        return ~np.eye(len(self.domains), dtype=bool)

    @property
    def families(self) -> dict[str, dict[str, str]]:
        """``FAMILIES`` with the methods among the scores."""
        kept = {
            family: {m: plain for m, plain in of.items() if {m, plain} <= self.values.keys()}
            for family, of in FAMILIES.items()
        }
        return {family: methods for family, methods in kept.items() if methods}


def scores(
    counts: pd.DataFrame, totals: pd.DataFrame, refits: int = FEWEST_REFITS, **choice: Any
) -> Scores:
    """Scores of the methods that are complete: every domain and the first ``refits``.

    Args:
        counts: of positive decisions, a row per model and domain tested on.
        totals: numbers of rows and of people, by domain, part and refit.
        refits: the number that is used.
        choice: attribute, weighted and rule of ``measured``.
    """
    table = measured(counts[counts["seed"] < refits], totals, **choice)
    domains = tuple(sorted(totals["domain"].unique()))
    order = pd.MultiIndex.from_product([domains, domains, range(refits)])
    shape = (len(domains), len(domains), refits)
    values = {
        str(method): {
            name: of.to_numpy().reshape(shape)
            for name, of in part.drop(columns="method").set_index(KEYS[1:]).loc[order].items()
        }
        for method, part in table.groupby("method")
        if len(part) == len(order)
    }
    tested = totals[(totals["part"] == "test") & (totals["seed"] < refits)]
    sizes = tested.groupby("domain")[[f"rows_{place}" for place in range(8)]].mean()
    by_class = [sizes.iloc[:, :4].sum(axis=1), sizes.iloc[:, 4:].sum(axis=1)]
    rows = by_class[0] + by_class[1]
    return Scores(domains, values, rows.mean(), (by_class[1] / rows).to_numpy())


def measured(
    counts: pd.DataFrame,
    totals: pd.DataFrame,
    attribute: str = "sex",
    weighted: bool = False,
    rule: str = FAIR,
) -> pd.DataFrame:
    """Measures and variances, a row per method, domain trained on, tested on and refit.

    Args:
        counts: see ``scores``.
        totals: see ``scores``.
        attribute: whose two groups are compared, sex or race.
        weighted: whether rows count as the people that they stand for.
        rule: the criterion that selected the trial.

    The variance of a rate is p (1 - p) / (m - 1) of m effective rows, (sum w)^2 / sum w^2.
    """
    chosen = counts["selections"].str.split("; ").map(lambda names: rule in names)
    tested = counts[chosen & counts["part"].isin(["test", "ood_test"])]
    both = tested.merge(
        totals[totals["part"] == "test"], left_on=["tested_on", "seed"],
        right_on=["domain", "seed"], suffixes=("", "_all"),
    )  # fmt: skip
    names = ("people_{}", "people_{}_all", "squares_{}") if weighted else (
        "positive_{}", "rows_{}", "rows_{}")  # fmt: skip
    hits, n, squares = (  # [class, group, row], summed over the other attribute
        both[[name.format(place) for place in range(8)]].to_numpy(np.float64).T.reshape(2, 2, 2, -1)
        .sum(2 if attribute == "sex" else 1)
        for name in names
    )  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = hits / n
        noise = (rates * (1 - rates) / (n**2 / squares - 1)).sum(1)
    signed = rates[:, 1] - rates[:, 0]
    right = (hits[1].sum(0) + (n[0] - hits[0]).sum(0)) / n.sum((0, 1))
    people = n.sum((0, 1)) ** 2 / squares.sum((0, 1))
    return both[KEYS].assign(
        accuracy=right, tpr=signed[1], fpr=signed[0], delta_eo=np.abs(signed).sum(0),
        accuracy_variance=right * (1 - right) / (people - 1),
        tpr_variance=noise[1], fpr_variance=noise[0],
    )  # fmt: skip


def over_pairs(values: Array) -> Estimate:
    """The mean over pairs of different domains ``[source, target]``, with domains as the unit."""
    source, target = np.nonzero(~np.eye(len(values), dtype=bool))
    return over_domains(values[None, source, target], source, target)


def home(values: Array) -> Array:
    """Values at home ``[..., source, refit]`` of ``[..., source, target, refit]``."""
    return np.einsum("...ssr->...sr", values)


def at_home(values: Array) -> Array:
    """The diagonal of ``[source, target]``, the same for all targets."""
    return np.repeat(np.diag(values)[:, None], len(values), 1)


def with_interval(effect: Estimate, *names: str) -> dict[str, float]:
    """Value, low and high, called effect, low and high by default."""
    low, high = effect.interval()
    ends = (effect.value.item(), low.item(), high.item())
    return dict(zip(names or ("effect", "low", "high"), ends, strict=True))


def gain(scores: Scores, methods: Mapping[str, str]) -> Array:
    """How much smaller Delta-EO is than with plain training, mean over methods, ``[s, t, r]``."""
    return (scores.of("delta_eo", methods.values()) - scores.of("delta_eo", methods)).mean(0)


def movement(scores: Scores) -> tuple[Array, Array]:
    """Squared movement of signed gaps between domains and their variance between refits.

    Both are means over methods and the two rates, net of rows. Test rows of a refit are half of a
    domain's, so that half of their variance is between refits, the other half is the domain's own.

    Returns:
        ``[source, target]`` and ``[source]``.
    """
    moved, refitted = [], []
    for rate in RATES:
        value, noise = scores.of(rate), scores.of(f"{rate}_variance").mean(-1)
        diagonal = np.einsum("mss->ms", noise)
        change = value - home(value)[:, :, None]
        error = change.var(-1, ddof=1) / value.shape[-1]
        moved.append(change.mean(-1) ** 2 - error - (noise + diagonal[..., None]) / 2)
        refitted.append(home(value).var(-1, ddof=1) - diagonal / 2)
    return np.mean(moved, (0, 1)), np.mean(refitted, (0, 1))


def forecast_loss(scores: Scores) -> Array:
    """Kendall's tau over methods of the gap at home with that elsewhere, less with itself.

    The gap at home is that of even refits, the other one of odd refits. ``[source, target]``.
    """
    gaps = scores.of("delta_eo")
    even = home(gaps[..., ::2]).mean(-1).T
    odd = np.moveaxis(gaps[..., 1::2].mean(-1), 0, -1)
    tau = kendall_tau(np.broadcast_to(even[:, None], odd.shape), odd)
    return tau - np.diag(tau)[:, None]


def kept_promise(scores: Scores, methods: Iterable[str]) -> Array:
    """Share of refits and methods with both gaps within ``PROMISED``, ``[source, target]``."""
    gaps = np.abs([scores.of(rate, methods) for rate in RATES]).max(0)
    return np.mean(gaps <= PROMISED, (0, -1))


def effects(scores: Scores) -> dict[str, tuple[Estimate, Estimate | None]]:
    """The effects of Q1 to Q4 by question, and of Q1 the gain at home.

    Questions about methods that are not among the scores are left out.
    """
    asked: dict[str, tuple[Estimate, Estimate | None]] = {}
    for family, methods in scores.families.items():
        gained = gain(scores, methods).mean(-1)
        there = at_home(gained)
        asked[f"Q1 {family}"] = (over_pairs(gained - there / 2), over_pairs(there))
    moved, refitted = movement(scores)
    question = "Q2 a state moves a gap more than a refit"
    asked[question] = (over_pairs(moved - refitted[:, None]), None)
    asked[FORECAST] = (over_pairs(forecast_loss(scores)), None)
    pairs = {m: quarter for m, quarter in QUARTER.items() if {m, quarter} <= scores.values.keys()}
    if pairs:
        more = kept_promise(scores, [*pairs]) - kept_promise(scores, [*pairs.values()])
        asked["Q4 more validation rows help thresholds"] = (over_pairs(more), None)
    return asked


def answers(scores: Scores) -> pd.DataFrame:
    """Effects of the primary questions Q1 to Q4 with intervals, tests and answers.

    ``p_holm`` is adjusted for all rows, ``detectable`` the effect that is found with 80 % power at
    Holm's first step. An answer is yes, no, inconclusive, or nothing to keep.
    """
    asked = effects(scores)
    adjusted = holm([effect.p().item() for effect, _ in asked.values()])
    rows = []
    for (question, (effect, gained_home)), p_holm in zip(asked.items(), adjusted, strict=True):
        row = with_interval(effect) | {
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


def robustness(variants: Mapping[str, Scores]) -> pd.DataFrame:
    """Every effect under other choices, the primary one first, and whether it depends on them.

    An effect ``depends`` on a choice if its interval and the primary one exclude each other's
    effect.
    """
    table = pd.DataFrame([
        {"question": question, "choice": choice, **with_interval(effect)}
        for choice, scores in variants.items()
        for question, (effect, _) in effects(scores).items()
    ])  # fmt: skip
    primary = table[table["choice"] == next(iter(variants))].set_index("question")
    first = primary.reindex(table["question"]).set_index(table.index)
    outside = (first["effect"] < table["low"]) | (first["effect"] > table["high"])
    excluded = (table["effect"] < first["low"]) | (table["effect"] > first["high"])
    return table.assign(depends=outside & excluded)


def kept(scores: Scores) -> pd.DataFrame:
    """Gains in ``delta_eo`` of every family over plain training, at home and elsewhere."""
    rows = []
    for family, methods in scores.families.items():
        gained, row = gain(scores, methods).mean(-1), {"family": family}
        for name, values in {"at_home": at_home(gained), "elsewhere": gained}.items():
            row |= with_interval(over_pairs(values), name, f"{name}_low", f"{name}_high")
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
        for place, values in {"at home": at_home(share), "elsewhere": share}.items():
            row = with_interval(over_pairs(values), "share", "low", "high")
            not_kept = "not kept" if row["high"] < MOSTLY else "inconclusive"
            verdict = "kept" if row["low"] >= MOSTLY else not_kept
            rows.append({"method": method, "tested": place, **row, "verdict": verdict})
    return pd.DataFrame(rows)


def movement_forecasts(scores: Scores, distance: Array | None = None) -> pd.DataFrame:
    """Kendall's tau over pairs of domains between the size of a movement and what may forecast it.

    A movement is the change of a signed gap, mean over refits; its size is the mean over rates and
    methods. Errors come from a jackknife that leaves a domain out as source and target.

    Args:
        scores: scores of all methods.
        distance: of the domains ``[source, target]``, such as the AUC of a classifier.
    """
    gaps = np.concatenate([scores.of(rate) for rate in RATES])
    size = np.abs((gaps - home(gaps)[:, :, None]).mean(-1)).mean(0)
    spread = np.repeat(home(gaps).std(-1, ddof=1).mean(0)[:, None], len(size), 1)
    rates = scores.base_rates
    candidates = {
        "spread over refits at home": spread,
        "difference of base rates": np.abs(rates[:, None] - rates),
    }
    if distance is not None:
        candidates["distance of the domains"] = distance
    taus = {name: tau_over_pairs(values, size) for name, values in candidates.items()}
    table = pd.DataFrame([
        {"forecast": name, **with_interval(tau, "tau", "low", "high"), "p": tau.p().item()}
        for name, tau in taus.items()
    ])  # fmt: skip
    return table.assign(p_holm=holm(table["p"]))


def tau_over_pairs(first: Array, second: Array) -> Estimate:
    """Kendall's tau over pairs of different domains, with a jackknife over domains."""
    count = len(first)

    def tau(kept: Array) -> float:
        pairs, off = np.ix_(kept, kept), ~np.eye(len(kept), dtype=bool)
        return float(kendall_tau(first[pairs][off], second[pairs][off]))

    without = np.array([tau(np.delete(np.arange(count), number)) for number in range(count)])
    variance = (count - 1) / count * np.square(without - without.mean()).sum(keepdims=True)
    value = np.array([tau(np.arange(count))])
    return Estimate(value, {DOMAINS: Component(variance, np.array([count - 1.0]))})


def frontier(scores: Scores) -> pd.DataFrame:
    """Accuracy and ``delta_eo`` of every method, means at home and elsewhere, the fairest first.

    ``of_means`` says whether no other method is more accurate and fairer elsewhere, and
    ``share_of_domains`` for which share of the domains tested on none is.
    """
    away = scores.away
    means = {name: scores.of(name).mean(-1) for name in ("accuracy", "delta_eo")}
    table = pd.DataFrame(
        {"method": list(scores.values)}
        | {f"{name}_home": [mean[~away].mean() for mean in of] for name, of in means.items()}
        | {f"{name}_elsewhere": [mean[away].mean() for mean in of] for name, of in means.items()}
    )
    by_target = [np.where(away, of, 0).sum(1) / away.sum(0) for of in means.values()]
    ends = (table[f"{name}_elsewhere"].to_numpy() for name in means)
    table = table.assign(
        of_means=undominated(*ends), share_of_domains=undominated(*by_target).mean(1)
    )
    return table.sort_values("delta_eo_elsewhere", ignore_index=True)


def undominated(accuracy: Array, gap: Array) -> Array:
    """Whether no other method is better in both, bool ``[method, ...]``."""
    better = (accuracy[None] > accuracy[:, None]) & (gap[None] < gap[:, None])
    return np.asarray(~better.any(1))


def convergence(counts: pd.DataFrame) -> pd.DataFrame:
    """Share of trainings whose validation loss fell in the second half of their epochs.

    Args:
        counts: with ``loss_half`` and ``loss_end``, which methods without epochs lack.
    """
    known = counts.dropna(subset=["loss_half", "loss_end"]).drop_duplicates(
        ["trained_on", "method", "trial", "seed"]
    )
    ratio = known["loss_end"] / known["loss_half"]
    fell = known.assign(fell=known["loss_end"] < known["loss_half"], ratio=ratio)
    columns = {
        "trainings": ("fell", "size"),
        "fell": ("fell", "mean"),
        "ratio": ("ratio", "median"),
    }
    return fell.groupby("method").agg(**columns).reset_index()


def dominated(scores: Scores) -> pd.DataFrame:
    """Pairs of methods of which the first is more accurate and fairer elsewhere (Q5).

    ``p`` is the larger one-sided p-value of both differences, ``p_holm`` adjusted for all ordered
    pairs.
    """
    rows = []
    for better, worse in permutations(scores.values, 2):
        sharper, fairer = (
            over_pairs(np.diff(scores.of(name, pair).mean(-1), axis=0)[0])
            for name, pair in {"accuracy": (worse, better), "delta_eo": (better, worse)}.items()
        )
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
    away, places = scores.away, np.arange(len(scores.domains))
    following = np.abs(places[:, None] - places) == 1
    moved, refitted = movement(scores)
    squares = {
        "refit": refitted.mean(),
        "moved": moved[away].mean(),
        "moved_to_next": moved[following].mean(),
    }
    plain = {name: scores.of(name, ["erm"])[0].mean(-1) for name in ("accuracy", "delta_eo")}
    return {
        **{f"{name}_home": float(mean[~away].mean()) for name, mean in plain.items()},
        **{f"{name}_elsewhere": float(mean[away].mean()) for name, mean in plain.items()},
        **{name: float(np.sqrt(max(square, 0))) for name, square in squares.items()},
    }


def components(values: Array) -> dict[str, float]:
    """Components of variance of values ``[source, target, refit]`` elsewhere, without the diagonal.

    Symmetric sums (Koch, Technometrics 9, 1967): the mean product of two values that share some of
    source, target and refit is the squared mean plus the components of what they share, whatever
    the distributions. Estimates may be negative.

    Returns:
        ``source``, ``target``, ``pair``, ``refit`` (of a source) and ``rest``.
    """
    place = np.argwhere(~np.eye(len(values), dtype=bool))
    source, target = np.repeat(place, values.shape[2], 0).T
    refit = np.tile(np.arange(values.shape[2]), len(place))
    flat = values[place[:, 0], place[:, 1]].ravel()
    same = [number[:, None] == number for number in (source, target, refit)]
    apart = ~(source[:, None] == target) & ~(target[:, None] == source)
    product = np.outer(flat, flat)

    def shared(*which: bool) -> float:
        """Mean product of values that share just these of source, target and refit."""
        pairs = np.logical_and.reduce(
            [shares == is_same for shares, is_same in zip(same, which, strict=True)]
        )
        return float(product[pairs & apart].mean())

    square = shared(False, False, False)
    by_source = shared(True, False, False) - square
    by_target = shared(False, True, False) - square
    pair = shared(True, True, False) - square - by_source - by_target
    by_refit = shared(True, False, True) - square - by_source
    rest = float((flat**2).mean()) - square - by_source - by_target - pair - by_refit
    return {"source": by_source, "target": by_target, "pair": pair, "refit": by_refit, "rest": rest}


def variances(scores: Scores) -> pd.DataFrame:
    """Components of variance elsewhere of every measure, means over methods."""
    return pd.DataFrame([
        {"measure": measure, **pd.DataFrame(map(components, scores.of(measure))).mean(),
         "rows": scores.of(f"{measure}_variance").mean() if measure in KNOWN else np.nan}
        for measure in MEASURES
    ])  # fmt: skip


def predicted(change: Array, further: float = 0.0) -> tuple[float, float]:
    """Bounds that hold a value of a further domain with probability .95, of ``[s, t, refit]``.

    The value of one model in one domain has the mean over pairs, the variance of a single value
    elsewhere, and the error of the mean, with t of k - 1 degrees of freedom.

    Args:
        change: values by source, target and refit.
        further: variance that a value has beyond those here, below 0 for a larger domain.
    """
    mean = over_pairs(change.mean(-1))
    variance = max(sum(components(change).values()) + further, 0.0) + mean.variance
    part = Component(variance, np.full(1, len(change) - 1.0))
    half = Estimate(mean.value, {DOMAINS: part}).critical(LEVEL / 2)
    return (mean.value - half).item(), (mean.value + half).item()


def left_out(change: Array) -> float:
    """Share of the values tested on a domain that lie within a prediction without it."""
    inside = []
    for number in range(len(change)):
        others = np.arange(len(change)) != number
        low, high = predicted(change[others][:, others])
        value = change[others, number]
        inside.append(((low <= value) & (value <= high)).mean())
    return float(np.mean(inside))


def predictions(scores: Scores, rows: float | None = None) -> pd.DataFrame:
    """Bounds of changes in a further domain, and how often they hold for one that is left out.

    Args:
        scores: scores of all methods.
        rows: test rows of the further domain; by default as many as the domains here have.
    """
    size = scores.rows / rows - 1 if rows else 0.0
    table = []
    for method, of in scores.values.items():
        for measure in KNOWN:
            change = of[measure] - home(of[measure])[:, None]
            further = size * of[f"{measure}_variance"].mean(-1)[scores.away].mean()
            low, high = predicted(change, further)
            table.append({"method": method, "measure": measure, "low": low, "high": high,
                          "inside": left_out(change)})  # fmt: skip
    return pd.DataFrame(table)


def scored(scores: Scores, counts: pd.DataFrame, totals: pd.DataFrame, domain: str) -> pd.DataFrame:
    """How often the changes in a further domain lie within their predictions.

    Args:
        scores: scores of all methods, from which is predicted.
        counts: of trainings on the same domains, tested at home and in the further one.
        totals: their numbers of rows.
        domain: the further one.

    Returns:
        For every method and measure the bounds, and the share of sources and refits inside. The
        prediction is right if their mean over the rows is ``RIGHT`` or more.
    """
    here = totals[(totals["domain"] == domain) & (totals["part"] == "test")]
    rows = here[[f"rows_{place}" for place in range(8)]].sum(axis=1).mean()
    table, keys = measured(counts, totals), ["method", "trained_on", "seed"]
    ends = [table[table["tested_on"] == name].set_index(keys)[[*KNOWN]]
            for name in (table["trained_on"], domain)]  # fmt: skip
    made = predictions(scores, round(rows)).drop(columns="inside")
    change = (ends[1] - ends[0]).dropna().reset_index()
    both = change.melt(keys, var_name="measure", value_name="change").merge(made)
    both["inside"] = both["change"].between(both["low"], both["high"])
    shares = both.groupby(["method", "measure"], as_index=False)["inside"].mean()
    table = made.merge(shares)
    return table.assign(right=table["inside"].mean() >= RIGHT)


def shares_kept(scores: Scores) -> pd.DataFrame:
    """Bounds of the share of the gain in ``delta_eo`` that a family keeps in a further domain.

    A share is the gain of one refit elsewhere, mean over the family's methods, over the mean gain
    at home.
    """
    rows = []
    for family in ("penalties", "thresholds"):
        gained = gain(scores, scores.families[family])
        share = gained / home(gained).mean()
        low, high = predicted(share)
        rows.append({"family": family, "share": over_pairs(share.mean(-1)).value.item(),
                     "low": low, "high": high, "inside": left_out(share)})  # fmt: skip
    return pd.DataFrame(rows)
