"""Verdicts about changes of gaps: grew, shrank, reversed, changed, held or inconclusive.

Two questions are never mixed. *This model*: is the gap of the model that is used another one there?
Only its test rows count. *This method*: would the gap change, trained again? Rows and refits count,
and ``FEWEST_REFITS`` are needed. A family is all tests of a first screen; Holm adjusts all of them.
Every verdict comes with a bound that is known and with what limits it.

The columns ``VERDICTS`` of a change of a gap:

- at_home, away, change: gaps of the mean rates, uncorrected, among the functions that are known at
  both ends; low and high: bounds of the change at ``LEVEL``, without adjustment, high being
  infinite where a function is not known; least: the lower bound that holds for all tests of the
  family (Bonferroni); error and df: of the signed difference that decides; between_refits: standard
  deviation of that difference over refits, which is reported with a verdict about the model;
- p: that the gap changed or reversed, p_signed: that any signed difference changed, p_held,
  p_reversed, each adjusted by Holm over the rows; changed: p_signed below ``LEVEL``;
- state: one of ``STATES``; ``reversed`` is a gap that turned its sign, whatever its size;
  ``changed``: a difference between groups changed, whether the gap grew is not known;
- bound: the change, grown or shrunk, is at most this at ``LEVEL``; infinite where a function is not
  known: the gap may then have grown, reversed or changed among the others, and never held or
  shrunk;
- limit: which component is largest, of the function with the largest bound: ``rows at home``,
  ``rows away`` (limit_rate: of which rate) or ``refits``; have: how many there are; needed: how
  many would show a change of ``margin`` with a power of ``POWER``, inf if no number of these alone
  does; needed_factor: by how much everything would have to grow.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.numbers.estimate import (
    FEWEST_REFITS,
    LEVEL,
    POWER,
    REFITS,
    SPLITS,
    Array,
    Estimate,
    small_covariance,
)
from robust_fairness.numbers.rates import LinearGap, Rates, contrast, with_moderated


def holm(p_values: Any) -> np.ndarray:
    """P-values adjusted for their number, float64 ``[tests]`` (Holm 1979).

    Rejecting those below a level keeps the probability of any false rejection below it, however
    the tests depend on one another.
    """
    return _adjusted(p_values, lambda p, rank: np.maximum.accumulate(p * (len(p) + 1 - rank)))


def hochberg(p_values: Any) -> np.ndarray:
    """P-values adjusted for their number, float64 ``[tests]`` (Hochberg 1988).

    All tests are rejected if the largest p is below the level, as in an intersection-union test,
    and fewer with stronger evidence. The probability of any false rejection is kept for independent
    and for positively dependent tests.

    >>> hochberg([0.04, 0.01, 0.03]).round(3)
    array([0.04, 0.03, 0.04])
    """
    return _adjusted(
        p_values, lambda p, rank: np.minimum.accumulate((p * (len(p) + 1 - rank))[::-1])[::-1]
    )


def false_discovery_rate(p_values: Any) -> np.ndarray:
    """P-values adjusted by Benjamini and Hochberg (1995), float64 ``[tests]``.

    Rejecting those below a level keeps the expected share of false rejections below it.
    """
    return _adjusted(
        p_values, lambda p, rank: np.minimum.accumulate((p * len(p) / rank)[::-1])[::-1]
    )


def _adjusted(p_values: Any, adjust: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """What a rule makes of the sorted p-values and their ranks, at most 1, in the given order."""
    values = np.array(p_values, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    values[order] = adjust(values[order], np.arange(1, len(order) + 1)).clip(max=1)
    return values


Question = Literal["this model", "this method"]
STATES = ("grew", "shrank", "reversed", "changed", "held", "inconclusive", "not estimable")
VERDICTS = {
    "question": "str", "at_home": "float64", "away": "float64", "change": "float64",
    "low": "float64", "high": "float64", "least": "float64", "error": "float64", "df": "float64",
    "p": "float64", "p_signed": "float64", "p_held": "float64", "p_reversed": "float64",
    "changed": "bool", "state": "str", "bound": "float64", "between_refits": "float64",
    "limit": "str", "limit_rate": "int64", "have": "float64", "needed": "float64",
    "needed_factor": "float64",
}  # fmt: skip

P_VALUES = ("p_signed", "p_held", "p_reversed", "p_grew", "p_shrank")  # of ``tested``


def question_of(refits: int) -> Question:
    """What a verdict answers with so many refits."""
    return "this method" if refits >= FEWEST_REFITS else "this model"


def tested(
    home: Rates,
    away: Rates,
    of: LinearGap,
    margin: float | Array = 0.05,
    question: Question | None = None,
    ratio: float | Array = 0.0,
    covariance: Array | None = None,
    family: int = 1,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Changes of a gap between home and other rows, a row per test, which ``judged`` adjusts.

    Args:
        home: rates on rows of the distribution trained on ``[tests, rates, refits]``.
        away: rates on other rows, or on shifted copies of the same ones.
        of: the gap.
        margin: change that is immaterial, per test.
        question: by default ``question_of`` the number of refits.
        ratio: test by training rows of splits that share rows, per test.
        covariance: of each rate away with that at home ``[tests, rates]``; 0 if independent.
        family: number of tests that are judged together.
        level: of the bounds of the change.
    """
    refits = home.value.shape[-1]
    question = question or question_of(refits)
    spread = contrast(away, home, of.functions, of.functions).components.get(REFITS)
    if question == "this model":
        home, away = home.first(), away.first()
    if covariance is not None and home.bounded:
        together = small_covariance(home.mean, away.mean, covariance, home.n)
        covariance = np.where(covariance == 0, 0.0, together)
    ends = home.corrected(), away.corrected()
    shared = np.reshape(ratio, (-1, 1)) if np.ndim(ratio) else ratio, covariance
    signed = with_moderated(contrast(*ends[::-1], of.functions, of.functions, *shared))
    known, bounds = signed.variance > 0, signed.bound(LEVEL)  # NaN: not known
    margin = np.broadcast_to(np.asarray(margin, np.float64), len(home.value))
    here, there = (of.among(known, rates.mean) for rates in (home, away))
    decisive = np.arange(len(known)), np.where(known, np.abs(signed.value), -1).argmax(-1)
    variance = np.nan if spread is None else np.asarray(spread.variance)[decisive]
    table = pd.DataFrame(
        {
            "question": question, "at_home": here, "away": there, "change": there - here,
            "error": signed.error[decisive], "df": signed.df[decisive],
            "bound": np.where(known, bounds, np.inf).max(-1),
            "p_held": np.where(known, signed.p_within(margin[:, None]), 1.0).max(-1),
            "between_refits": np.sqrt(variance * refits),
            **_directions(ends, of, shared, signed, family, level),
        }
    )  # fmt: skip
    loosest = np.where(known, bounds, -1).argmax(-1)
    return _limited(table, ends, of.functions[loosest] ** 2, covariance, signed, loosest, margin)


def judged(tests: pd.DataFrame) -> pd.DataFrame:
    """The columns ``VERDICTS`` of a family of tests, and all others that it has.

    Args:
        tests: rows of ``tested``, of a gap between any numbers of groups; p-values are adjusted by
            Holm over all of them.
    """
    known = tests["error"] > 0
    tests = tests.assign(**{name: tests[name].where(known) for name in ("error", *P_VALUES)})
    grew, shrank, turned = (tests[f"p_{name}"] for name in ("grew", "shrank", "reversed"))
    verdicts = tests.drop(columns=["p_grew", "p_shrank"]).assign(
        p=holm(np.minimum(np.minimum(grew, shrank), turned)),
        p_signed=holm(tests["p_signed"]),
        p_held=holm(tests["p_held"]),
        p_reversed=holm(turned),
    )
    changed = verdicts["p_signed"] < LEVEL
    certain = changed & (verdicts["p"] < LEVEL)
    state = np.select(
        [
            ~known,
            certain & (verdicts["p_reversed"] < LEVEL),
            certain & (grew <= shrank),
            certain,
            verdicts["p_held"] < LEVEL,
            changed,
            ~np.isfinite(verdicts["bound"]),
        ],
        ["not estimable", "reversed", "grew", "shrank", "held", "changed", "not estimable"],
        "inconclusive",
    )
    return verdicts.assign(changed=changed, state=state)


def concluded(estimate: Estimate, n: Array) -> pd.DataFrame:
    """Which values of a family are above or below 0, a row each.

    Variances between refits are ``moderated`` over the family, where there are enough of them.

    Args:
        estimate: values ``[tests]``.
        n: numbers of refits, or of domains, that the variances are estimated from; fewer than
            ``FEWEST_REFITS`` have an interval and no test.

    Returns:
        Columns value, low, high (at ``LEVEL``, without adjustment), error, n, p, p_holm, p_fdr
        (of Holm; of Benjamini and Hochberg), sign (1 or -1 where p_holm is below ``LEVEL``, else
        0) and detectable (the value that Holm's first step finds with a power of ``POWER``).
    """
    enough, alone = n >= FEWEST_REFITS, estimate.interval()
    estimate = with_moderated(estimate)
    known = estimate.variance > 0
    low, high = (np.where(enough, *ends) for ends in zip(estimate.interval(), alone, strict=True))
    p = np.where(known & enough, estimate.p(), np.nan)
    family = max(1, int(np.isfinite(p).sum()))
    p_holm = holm(p)
    return pd.DataFrame(
        {
            "value": estimate.value, "low": low, "high": high,
            "error": np.where(known, estimate.error, np.nan), "n": n, "p": p, "p_holm": p_holm,
            "p_fdr": false_discovery_rate(p),
            "sign": np.where(p_holm < LEVEL, np.sign(estimate.value), 0).astype(int),
            "detectable": np.where(enough, estimate.detectable(level=LEVEL / family), np.nan),
        }
    )  # fmt: skip


def _directions(
    ends: tuple[Rates, Rates],
    of: LinearGap,
    shared: tuple[float | Array, Array | None],
    signed: Estimate,
    family: int,
    level: float,
) -> dict[str, Array]:
    """P-values and bounds of growth, shrinking and reversal, times the number of functions."""
    home, away = ends
    known, number = signed.variance > 0, len(of.functions)
    up, down = (
        of.functions[of.values(known, rates.mean).argmax(-1)][:, None] for rates in (away, home)
    )
    more, less, before, after = (
        with_moderated(contrast(first, second, ups, downs, *shared))
        for first, second, ups, downs in (
            (away, home, up, of.functions), (home, away, down, of.functions),
            (home, None, up, None), (away, None, up, None),
        )
    )  # fmt: skip
    tail = level / number
    low, least = (
        np.where(
            known.any(-1),
            np.where(known, more.value - more.critical(one_sided), np.inf).min(-1),
            -np.inf,
        )
        for one_sided in (tail, tail / family)
    )
    # growth among the known functions is growth; the gap is smaller only if every one is
    p_values = {
        "p_grew": np.where(known, more.p_above(), 0.0).max(-1),
        "p_shrank": np.where(known, less.p_above(), 1.0).max(-1),
        "p_reversed": np.maximum(1 - before.p_above(), after.p_above())[:, 0],
    }
    return {name: np.fmin(number * p, 1.0) for name, p in p_values.items()} | {
        "p_signed": np.minimum(number * np.where(known, signed.p_above(), 1.0).min(-1), 1),
        "low": low,
        "high": -np.where(known, less.value - less.critical(tail), -np.inf).min(-1),
        "least": least,
    }


def _limited(
    table: pd.DataFrame,
    ends: tuple[Rates, Rates],
    squares: Array,
    covariance: Array | None,
    signed: Estimate,
    loosest: Array,
    margin: Array,
) -> pd.DataFrame:
    """With what limits each test, and the number that would suffice."""
    rows, (home, away) = np.arange(len(table)), ends
    shared = 0.0 if covariance is None else covariance
    by_rows = [squares * np.maximum(end.variance - shared, 0.0) for end in ends]
    refits = np.zeros(len(table))
    for name in (REFITS, SPLITS):
        if name in signed.components:
            refits = np.asarray(signed.components[name].variance)[rows, loosest]
    variances = np.nan_to_num(np.column_stack([*by_rows, refits]))
    n = np.column_stack([home.n, away.n, np.full(len(table), home.value.shape[-1])])
    largest, rates = variances.argmax(1), home.n.shape[1]
    share, have = variances[rows, largest], n[rows, largest]
    tails = LEVEL / (signed.value.shape[-1] * max(1, len(table)))
    target = (margin / (special.ndtri(1 - tails) + special.ndtri(POWER))) ** 2
    total = variances.sum(1)
    rest = total - share
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(rest < target, np.ceil(have * share / (target - rest)), np.inf)
        factor = total / target
    names = np.repeat(["rows at home", "rows away", "refits"], [rates, rates, 1])
    unknown = ~np.isfinite(table["bound"].to_numpy())
    counts = n[:, :-1]
    fewest = counts.argmin(1)
    largest = np.where(unknown, fewest, largest)
    return table.assign(
        limit=names[largest],
        limit_rate=np.where(largest < 2 * rates, largest % rates, -1),
        have=np.where(unknown, counts[rows, fewest], have),
        needed=np.where(unknown, np.nan, needed),
        needed_factor=np.where(unknown, np.nan, factor),
    )
