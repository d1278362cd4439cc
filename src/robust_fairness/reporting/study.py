r"""The study of natural shift: answers, components of variance and predictions from counts.

``robust-fairness study`` keeps, for every model and domain tested on, how many rows of each class
and groups are decided positive. Everything here is made of these counts; the questions are those of
docs/results/natural_shift_plan.md.

Arrays are ``[source, target, refit]``: the domain trained on, that tested on (the same one on the
diagonal) and the refit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pandas as pd
from scipy import stats

from robust_fairness.inference import (
    DOMAINS,
    LEVEL,
    Component,
    Estimate,
    between_domains,
    holm,
)

Array = np.ndarray
MEASURES = ("accuracy", "tpr", "fpr", "delta_eo")
RATES = ("tpr", "fpr")
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
PROMISED = 0.05  # largest gap that thresholds are fitted for
TAU_MARGIN = 0.15
FORECAST = "Q3 the gap at home forecasts the gap elsewhere"
FEWEST_REFITS = 5


@dataclass(frozen=True)
class Scores:
    """Scores of methods ``[source, target, refit]`` by method and measure.

    Attributes:
        domains: names of sources and targets, in the order of the first two axes.
        values: by method, then by measure.
        variance: of the rows, of the signed gaps ``tpr`` and ``fpr``.
    """

    domains: tuple[str, ...]
    values: Mapping[str, Mapping[str, Array]]
    variance: Mapping[str, Mapping[str, Array]]

    def mean(self, method: str, measure: str) -> Array:
        """Means over refits ``[source, target]``."""
        return np.asarray(self.values[method][measure].mean(-1))


def scores(
    counts: pd.DataFrame,
    totals: pd.DataFrame,
    attribute: str = "sex",
    weighted: bool = False,
    rule: str = FAIR,
    refits: int = FEWEST_REFITS,
) -> Scores:
    """Scores of the methods that are complete: every domain and the first ``refits``.

    Args:
        counts: of positive decisions, a row per model and domain tested on.
        totals: numbers of rows and of people, by domain, part and refit.
        attribute: whose two groups are compared.
        weighted: whether rows count as the people that they stand for.
        rule: the criterion that selected the trial.
        refits: the number that is used.

    Returns:
        Signed gaps are rates of the second group minus those of the first.
    """
    chosen = counts["selections"].str.split("; ").map(lambda names: rule in names)
    tested = counts[chosen & counts["part"].isin(["test", "ood_test"]) & (counts["seed"] < refits)]
    rows = totals[totals["part"] == "test"]
    both = tested.merge(rows, left_on=["tested_on", "seed"], right_on=["domain", "seed"],
                        suffixes=("", "_all"))  # fmt: skip
    if weighted:
        hits = [both[f"people_{place}"] for place in range(8)]
        n = [both[f"people_{place}_all"] for place in range(8)]
    else:
        hits = [both[f"positive_{place}"] for place in range(8)]
        n = [both[f"rows_{place}"] for place in range(8)]
    squares = [both[f"squares_{place}" if weighted else f"rows_{place}"] for place in range(8)]
    table = both[["method", "trained_on", "tested_on", "seed"]].assign(
        **_measures(*(_by_group(one, attribute) for one in (hits, n, squares)))
    )
    domains = tuple(sorted(totals["domain"].unique()))
    values: dict[str, dict[str, Array]] = {}
    shape = (len(domains), len(domains), refits)
    order = pd.MultiIndex.from_product([domains, domains, range(refits)])
    names = [*MEASURES, *(f"{rate}_variance" for rate in RATES)]
    for method, part in table.groupby("method"):
        if len(part) == np.prod(shape):
            placed = part.set_index(["trained_on", "tested_on", "seed"]).loc[order]
            values[str(method)] = {name: placed[name].to_numpy().reshape(shape) for name in names}
    variance = {
        method: {rate: of[f"{rate}_variance"] for rate in RATES} for method, of in values.items()
    }
    return Scores(domains, values, variance)


def missing(found: Scores) -> list[str]:
    """Methods that the questions need and that are not complete."""
    needed = {name for family in FAMILIES.values() for pair in family.items() for name in pair}
    needed |= {f"{method}_quarter" for method in FAMILIES["thresholds"]}
    return sorted(needed - found.values.keys())


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
    right = hits[1].sum(0) + (n[0] - hits[0]).sum(0)
    return {
        "accuracy": right / n.sum((0, 1)), "tpr": signed[1], "fpr": signed[0],
        "delta_eo": np.abs(signed).sum(0), "tpr_variance": noise[1], "fpr_variance": noise[0],
    }  # fmt: skip


def over_pairs(values: Array) -> Estimate:
    """The mean over pairs of different domains ``[source, target]``, with domains as the unit."""
    count = len(values)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    kept = values[None, source, target]
    return Estimate(kept.mean(-1), {DOMAINS: between_domains(kept, source, target)})


def gain(found: Scores, methods: Mapping[str, str], measure: str = "delta_eo") -> Array:
    """How much smaller a measure is than that of plain training, mean over methods, ``[s, t]``."""
    return np.mean([found.mean(p, measure) - found.mean(m, measure) for m, p in methods.items()], 0)


def movement(found: Scores, method: str) -> tuple[Array, Array]:
    """Squared movement of signed gaps between domains and their variance between refits.

    Both are means over the two rates, net of rows. Test rows of a refit are half of a domain's, so
    that half of their variance is between refits, the other half is the domain's own.

    Returns:
        ``[source, target]`` and ``[source]``.
    """
    moved, refitted = [], []
    for rate in RATES:
        value, noise = found.values[method][rate], found.variance[method][rate].mean(-1)
        home = np.einsum("ssr->sr", value)
        own = np.diag(noise)
        change = value - home[:, None]
        error = change.var(-1, ddof=1) / value.shape[-1]
        moved.append(change.mean(-1) ** 2 - error - (noise + own[:, None]) / 2)
        refitted.append(home.var(-1, ddof=1) - own / 2)
    return np.mean(moved, 0), np.mean(refitted, 0)


def forecast_loss(found: Scores) -> Array:
    """Kendall's tau over methods of the gap at home with that elsewhere, less with itself.

    The gap at home is that of even refits, the other one of odd refits. ``[source, target]``.
    """
    gaps = np.array([of["delta_eo"] for of in found.values.values()])
    even, odd = gaps[..., ::2].mean(-1), gaps[..., 1::2].mean(-1)
    count = len(found.domains)
    tau = np.array([
        [stats.kendalltau(even[:, s, s], odd[:, s, t]).statistic for t in range(count)]
        for s in range(count)
    ])  # fmt: skip
    return np.asarray(tau - np.diag(tau)[:, None])


def kept_promise(found: Scores, methods: Sequence[str]) -> Array:
    """Share of refits and methods with both gaps within ``PROMISED``, ``[source, target]``."""
    within = [
        np.maximum(*(np.abs(found.values[method][rate]) for rate in RATES)) <= PROMISED
        for method in methods
    ]
    return np.mean(within, (0, -1))


def answers(found: Scores) -> pd.DataFrame:
    """Effects of the primary questions Q1 to Q4 with intervals, tests and answers.

    ``p_holm`` is adjusted for all rows, ``detectable`` the effect that is found with 80 % power at
    Holm's first step. An answer is yes, no, inconclusive, or nothing to keep.
    """
    thresholds = list(FAMILIES["thresholds"])
    asked: dict[str, tuple[Estimate, Estimate | None]] = {}
    for family, methods in FAMILIES.items():
        gained = gain(found, methods)
        at_home = np.repeat(np.diag(gained)[:, None], len(gained), 1)
        asked[f"Q1 {family}"] = (over_pairs(gained - at_home / 2), over_pairs(at_home))
    parts = [movement(found, method) for method in found.values]
    moved = np.mean([between - refit[:, None] for between, refit in parts], 0)
    asked["Q2 a state moves a gap more than a refit"] = (over_pairs(moved), None)
    asked[FORECAST] = (over_pairs(forecast_loss(found)), None)
    quarter = [f"{method}_quarter" for method in thresholds]
    more = kept_promise(found, thresholds) - kept_promise(found, quarter)
    asked["Q4 more validation rows help thresholds"] = (over_pairs(more), None)
    effects = [effect for effect, _ in asked.values()]
    adjusted = holm([effect.p().item() for effect in effects])
    rows = []
    for (question, (effect, gained_home)), p_holm in zip(asked.items(), adjusted, strict=True):
        low, high = effect.interval()
        row = {
            "question": question, "effect": effect.value, "low": low, "high": high,
            "p": effect.p(), "p_holm": p_holm,
            "detectable": effect.detectable(level=LEVEL / len(asked)),
        }  # fmt: skip
        row |= {name: np.asarray(row[name]).item() for name in row}
        sign = np.sign(row["effect"]) if p_holm < LEVEL else 0
        answer = {1: "yes", -1: "no", 0: "inconclusive"}[int(sign)]
        if gained_home is not None and gained_home.interval()[0].item() <= 0:
            answer = "nothing to keep"
        if question == FORECAST:
            within = effect.p_within(TAU_MARGIN).item() < LEVEL
            answer = "yes" if within else "no" if sign < 0 else "inconclusive"
        rows.append({**row, "answer": answer})
    return pd.DataFrame(rows)


def dominated(found: Scores) -> pd.DataFrame:
    """Pairs of methods of which the first is more accurate and fairer elsewhere (Q5).

    ``p`` is the larger one-sided p-value of both differences, ``p_holm`` adjusted for all ordered
    pairs.
    """
    rows = []
    for better, worse in permutations(found.values, 2):
        sharper = over_pairs(found.mean(better, "accuracy") - found.mean(worse, "accuracy"))
        fairer = over_pairs(found.mean(worse, "delta_eo") - found.mean(better, "delta_eo"))
        p = max(sharper.p_above().item(), fairer.p_above().item())
        rows.append({"better": better, "worse": worse, "accuracy": sharper.value.item(),
                     "delta_eo": fairer.value.item(), "p": p})  # fmt: skip
    table = pd.DataFrame(rows)
    return table.assign(p_holm=holm(table["p"]))


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
    same = [one[:, None] == one for one in (source, target, refit)]
    apart = ~(source[:, None] == target) & ~(target[:, None] == source)
    product = np.outer(flat, flat)

    def shared(*which: bool) -> float:
        """Mean product of values that share just these of source, target and refit."""
        pairs = np.logical_and.reduce(
            [one == is_same for one, is_same in zip(same, which, strict=True)]
        )
        return float(product[pairs & apart].mean())

    square = shared(False, False, False)
    by_source = shared(True, False, False) - square
    by_target = shared(False, True, False) - square
    pair = shared(True, True, False) - square - by_source - by_target
    by_refit = shared(True, False, True) - square - by_source
    total = float((flat**2).mean()) - square
    rest = total - by_source - by_target - pair - by_refit
    return {"source": by_source, "target": by_target, "pair": pair, "refit": by_refit, "rest": rest}


def variances(found: Scores) -> pd.DataFrame:
    """Components of variance elsewhere of every measure, means over methods."""
    rows = []
    for measure in MEASURES:
        parts = pd.DataFrame([components(of[measure]) for of in found.values.values()]).mean()
        known = [of[measure].mean() for of in found.variance.values() if measure in of]
        rows.append({"measure": measure, **parts, "rows": np.mean(known) if known else np.nan})
    return pd.DataFrame(rows)


def predicted(change: Array) -> tuple[float, float]:
    """Bounds that hold a value of a further domain with probability .95, of ``[s, t, refit]``.

    The value of one model in one domain has the mean over pairs, the variance of a single value
    elsewhere, and the error of the mean, with t of k - 1 degrees of freedom.
    """
    parts = components(change)
    mean = over_pairs(change.mean(-1))
    variance = max(sum(parts.values()), 0.0) + mean.variance
    half = Estimate(
        mean.value, {DOMAINS: Component(variance, np.full(1, len(change) - 1.0))}
    ).critical(LEVEL / 2)
    return (mean.value - half).item(), (mean.value + half).item()


def left_out(change: Array) -> Array:
    """Share of the values tested on each domain that lie within a prediction without it."""
    inside = []
    for number in range(len(change)):
        kept = np.arange(len(change)) != number
        low, high = predicted(change[kept][:, kept])
        value = change[kept, number]
        inside.append(((low <= value) & (value <= high)).mean())
    return np.array(inside)


def predictions(found: Scores) -> pd.DataFrame:
    """Bounds of changes in a further domain, and how often they hold for one that is left out."""
    rows = []
    for method, of in found.values.items():
        for measure in ("accuracy", *RATES):
            home = np.einsum("ssr->sr", of[measure])
            change = of[measure] - home[:, None]
            low, high = predicted(change)
            rows.append({"method": method, "measure": measure, "low": low, "high": high,
                         "inside": float(left_out(change).mean())})  # fmt: skip
    return pd.DataFrame(rows)
