"""The study of natural shift: components of variance, and predictions for a further domain."""

import numpy as np
import pandas as pd

from robust_fairness.inference import DOMAINS, LEVEL, Component, Estimate
from robust_fairness.reporting.study import (
    KNOWN,
    MEASURES,
    Array,
    Scores,
    families,
    measured,
    over_pairs,
)

RIGHT = 0.9  # share of values that lie within right predictions


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
    total = float((flat**2).mean()) - square
    rest = total - by_source - by_target - pair - by_refit
    return {"source": by_source, "target": by_target, "pair": pair, "refit": by_refit, "rest": rest}


def variances(scores: Scores) -> pd.DataFrame:
    """Components of variance elsewhere of every measure, means over methods."""
    rows = []
    for measure in MEASURES:
        parts = pd.DataFrame([components(of[measure]) for of in scores.values.values()]).mean()
        known = [of[measure].mean() for of in scores.variance.values() if measure in of]
        rows.append({"measure": measure, **parts, "rows": np.mean(known) if known else np.nan})
    return pd.DataFrame(rows)


def predicted(change: Array, further: float = 0.0) -> tuple[float, float]:
    """Bounds that hold a value of a further domain with probability .95, of ``[s, t, refit]``.

    The value of one model in one domain has the mean over pairs, the variance of a single value
    elsewhere, and the error of the mean, with t of k - 1 degrees of freedom.

    Args:
        change: values by source, target and refit.
        further: variance that a value has beyond those here, below 0 for a larger domain.
    """
    parts = components(change)
    mean = over_pairs(change.mean(-1))
    variance = max(sum(parts.values()) + further, 0.0) + mean.variance
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


def predictions(scores: Scores, rows: int | None = None) -> pd.DataFrame:
    """Bounds of changes in a further domain, and how often they hold for one that is left out.

    Args:
        scores: scores of all methods.
        rows: test rows of the further domain; by default as many as the domains here have.
    """
    size = scores.rows / rows - 1 if rows else 0.0
    away = ~np.eye(len(scores.domains), dtype=bool)
    table = []
    for method, of in scores.values.items():
        for measure in KNOWN:
            home = np.einsum("ssr->sr", of[measure])
            change = of[measure] - home[:, None]
            further = size * scores.variance[method][measure][away].mean()
            low, high = predicted(change, further)
            table.append({"method": method, "measure": measure, "low": low, "high": high,
                          "inside": left_out(change).mean().item()})  # fmt: skip
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
    table = measured(counts, totals)
    keys = ["method", "trained_on", "seed"]
    home = table[table["tested_on"] == table["trained_on"]].set_index(keys)
    away = table[table["tested_on"] == domain].set_index(keys)
    change = (away[[*KNOWN]] - home[[*KNOWN]]).dropna().reset_index()
    made = predictions(scores, round(rows)).drop(columns="inside")
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
        gained = np.mean([
            scores.values[plain]["delta_eo"] - scores.values[method]["delta_eo"]
            for method, plain in families(scores)[family].items()
        ], 0)  # fmt: skip
        share = gained / np.einsum("ssr->sr", gained).mean()
        low, high = predicted(share)
        mean = over_pairs(share.mean(-1)).value.item()
        rows.append({"family": family, "share": mean, "low": low, "high": high,
                     "inside": left_out(share).mean().item()})  # fmt: skip
    return pd.DataFrame(rows)


def frontiers(scores: Scores) -> pd.DataFrame:
    """Methods that no other one beats in accuracy and in ``delta_eo``, by means over sources.

    Returns:
        For every method whether it is on the frontier of means over all domains elsewhere, and the
        share of domains on whose frontier it is.
    """
    away = ~np.eye(len(scores.domains), dtype=bool)
    means = {
        name: np.array([
            np.where(away, scores.mean(method, name), 0).sum(0) / away.sum(0)
            for method in scores.values
        ])
        for name in ("accuracy", "delta_eo")
    }  # fmt: skip
    on = _undominated(means["accuracy"], means["delta_eo"])
    overall = _undominated(*(of.mean(1, keepdims=True) for of in means.values()))
    return pd.DataFrame({"method": list(scores.values), "of_means": overall[:, 0],
                         "share_of_domains": on.mean(1)})  # fmt: skip


def _undominated(accuracy: Array, gap: Array) -> Array:
    """Whether no other method is better in both, bool ``[method, ...]``."""
    better = (accuracy[None] > accuracy[:, None]) & (gap[None] < gap[:, None])
    return np.asarray(~better.any(1))
