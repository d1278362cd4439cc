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
    tests = _Tests(home.corrected(), away.corrected(), of, ratio, covariance, family, level)
    margin = np.broadcast_to(np.asarray(margin, np.float64), len(home.value))
    here, there = (of.among(tests.known, rates.mean) for rates in (home, away))
    table = pd.DataFrame(
        {
            "question": question, "at_home": here, "away": there, "change": there - here,
            "low": tests.low, "high": tests.high, "least": tests.least, "error": tests.error,
            "df": tests.df, "bound": tests.bounds.max(-1), "p_signed": tests.p_signed,
            "p_held": np.where(tests.known, tests.signed.p_within(margin[:, None]), 1.0).max(-1),
            **{f"p_{name}": p for name, p in tests.p.items()},
        }
    )  # fmt: skip
    places = np.arange(len(table)), tests.decisive
    variance = np.nan if spread is None else np.asarray(spread.variance)[places]
    return _limited(table.assign(between_refits=np.sqrt(variance * refits)), tests, margin)


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


class _Tests:
    """Estimates and unadjusted p-values of a family of changes of one gap."""

    def __init__(
        self,
        home: Rates,
        away: Rates,
        of: LinearGap,
        ratio: float | Array,
        covariance: Array | None,
        family: int,
        level: float,
    ) -> None:
        self.home, self.away, self.functions = home, away, of.functions
        self.covariance = covariance
        self.ratio = np.reshape(ratio, (-1, 1)) if np.ndim(ratio) else ratio
        rows = np.arange(len(home.value))
        self.signed = self._of(away, home, of.functions, of.functions)
        self.known = self.signed.variance > 0  # NaN: not known
        self.decisive = np.where(self.known, np.abs(self.signed.value), -1).argmax(-1)
        bounds = self.signed.bound(LEVEL)
        self.bounds = np.where(self.known, bounds, np.inf)
        self.loosest = np.where(self.known, bounds, -1).argmax(-1)
        self.error = self.signed.error[rows, self.decisive]
        self.df = self.signed.df[rows, self.decisive]
        self._compare(of, family, level)

    def _compare(self, of: LinearGap, family: int, level: float) -> None:
        """P-values and bounds of growth, shrinking and reversal, times the number of functions."""
        home, away, number = self.home, self.away, len(of.functions)
        up, down = (
            of.functions[of.values(self.known, rates.mean).argmax(-1)][:, None]
            for rates in (away, home)
        )
        more = self._of(away, home, up, of.functions)
        less = self._of(home, away, down, of.functions)
        before, after = self._of(home, None, up, None), self._of(away, None, up, None)
        turned = np.maximum(1 - before.p_above(), after.p_above())[:, 0]
        # growth among the known functions is growth; the gap is smaller only if every one is
        p_more = np.where(self.known, more.p_above(), 0.0).max(-1)
        p_less = np.where(self.known, less.p_above(), 1.0).max(-1)
        smallest = np.where(self.known, self.signed.p_above(), 1.0).min(-1)
        self.p = {
            name: np.fmin(number * p, 1.0)
            for name, p in (("grew", p_more), ("shrank", p_less), ("reversed", turned))
        }
        self.p_signed = np.minimum(number * smallest, 1)
        tail = level / number
        self.low, self.least = (
            np.where(
                self.known.any(-1),
                np.where(self.known, more.value - more.critical(one_sided), np.inf).min(-1),
                -np.inf,
            )
            for one_sided in (tail, tail / family)
        )
        self.high = -np.where(self.known, less.value - less.critical(tail), -np.inf).min(-1)

    def _of(self, first: Rates, second: Rates | None, up: Array, down: Array | None) -> Estimate:
        return with_moderated(contrast(first, second, up, down, self.ratio, self.covariance))


def _limited(table: pd.DataFrame, tests: _Tests, margin: Array) -> pd.DataFrame:
    """With what limits each test, and the number that would suffice."""
    rows = np.arange(len(table))
    squares = tests.functions[tests.loosest] ** 2
    shared = 0.0 if tests.covariance is None else tests.covariance
    parts = {
        "rows at home": squares * np.maximum(tests.home.variance - shared, 0.0),
        "rows away": squares * np.maximum(tests.away.variance - shared, 0.0),
    }
    refits = np.zeros(len(table))
    for name in (REFITS, SPLITS):
        if name in tests.signed.components:
            refits = np.asarray(tests.signed.components[name].variance)[rows, tests.loosest]
    variances = np.nan_to_num(np.column_stack([*parts.values(), refits]))
    n = np.column_stack(
        [tests.home.n, tests.away.n, np.full(len(table), tests.home.value.shape[-1])]
    )
    largest, rates = variances.argmax(1), tests.home.n.shape[1]
    share, have = variances[rows, largest], n[rows, largest]
    tails = LEVEL / (len(tests.functions) * max(1, len(table)))
    target = (margin / (special.ndtri(1 - tails) + special.ndtri(POWER))) ** 2
    total = variances.sum(1)
    rest = total - share
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(rest < target, np.ceil(have * share / (target - rest)), np.inf)
        factor = total / target
    names = np.repeat(["rows at home", "rows away", "refits"], [rates, rates, 1])
    unknown = ~np.isfinite(table["bound"].to_numpy())
    counts = np.column_stack([tests.home.n, tests.away.n])
    fewest = counts.argmin(1)
    largest = np.where(unknown, fewest, largest)
    return table.assign(
        limit=names[largest],
        limit_rate=np.where(largest < 2 * rates, largest % rates, -1),
        have=np.where(unknown, counts[rows, fewest], have),
        needed=np.where(unknown, np.nan, needed),
        needed_factor=np.where(unknown, np.nan, factor),
    )
