r"""Verdicts on claims, each of which says of one or more effects where they lie.

A part of a claim says that its effect is above 0, or below; that it is within a margin; or that it
is not below -margin, or not above it. Three questions are asked of it, each with at most 5 % of a
wrong answer over all claims of a paper:

- *Does it hold?*
- *Is it the other way round?*
- *Is it too small to matter?* What is claimed to be above 0 is below its margin, or the mirror
  image: one side of the equivalence test of Schuirmann (1987). A larger effect of the opposite sign
  would refute the claim just as well.

A question is answered for a whole claim if the largest p of its parts is below the level, an
intersection-union test without correction among parts (Berger 1982); the levels of claims are
Holm's. In the claims that are left it is answered for single parts, by Hochberg's procedure at the
level where Holm's stopped: no claim with a wrong part has a lower level, so that the probability of
any wrong answer stays below it.

Tests of a sign are two-sided, so that they agree with 95 % intervals. ``verdict_of`` says what the
states of its parts make of a claim.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from robust_fairness.numbers.estimate import LEVEL, Array, Estimate
from robust_fairness.numbers.verdicts import hochberg, holm

Says = Literal["above", "below", "within", "not below", "not above"]
State = Literal[
    "not run", "void", "holds", "reversed", "out of reach", "excluded", "undecided"
]  # of a part: the first that fits
Verdict = Literal[
    "supported", "partly", "mixed", "partly contradicted", "contradicted", "excluded",
    "undecided", "out of reach", "not run",
]  # fmt: skip
DECIDED = ("holds", "reversed", "excluded")  # states that scores decide
ALL_OF: dict[str, Verdict] = {  # a claim whose parts all have one of these states
    "not run": "not run", "holds": "supported", "reversed": "contradicted", "excluded": "excluded",
}  # fmt: skip
BOUNDS = {  # of an effect that agrees with a claim, in margins
    "above": (0.0, np.inf), "below": (-np.inf, 0.0), "within": (-1.0, 1.0),
    "not below": (-1.0, np.inf), "not above": (-np.inf, 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Decided:
    """Verdicts.

    Attributes:
        p: of a part that does not hold, adjusted, float64 ``[parts]``; 1 of what is not tested.
        states: one per part.
        verdicts: one per claim.
    """

    p: Array
    states: tuple[State, ...]
    verdicts: tuple[Verdict, ...]


def decided(
    effects: Estimate,
    claim: Array,
    says: Sequence[Says],
    margin: Array,
    *,
    reach: Any = np.inf,
    void: Any = False,
    disagree: Any = False,
) -> Decided:
    """The verdicts on the claims of a paper.

    Args:
        effects: values ``[parts]``, missing of parts that were not run; a part whose variance is 0
            or missing is undecided.
        claim: number of the claim of each part, from 0.
        says: what the claim says of each part.
        margin: the smallest effect that matters, per part.
        reach: the largest effect in the direction of the claim that is possible, per part.
        void: parts whose models are no better than the most frequent class.
        disagree: parts whose few seeds are on both sides of what is claimed.

    >>> from robust_fairness.numbers.estimate import REFITS, Component
    >>> effects = Estimate(np.array([3.0, 2.5, 0.1]), {REFITS: Component(np.full(3, 0.25), 9.0)})
    >>> decided(effects, np.array([0, 0, 1]), ["above", "above", "above"], np.full(3, 2.0)).verdicts
    ('supported', 'excluded')
    """
    run = np.isfinite(effects.value)
    known = run & (effects.variance > 0)
    answers = known & ~np.asarray(void, dtype=bool) & ~np.asarray(disagree, dtype=bool)
    of_sign = np.array([name in ("above", "below") for name in says], dtype=bool)
    members = [np.flatnonzero(claim == number) for number in range(claim.max(initial=-1) + 1)]
    tested = np.array([known[parts].any() for parts in members], dtype=bool)
    p_values = _p_values(effects, says, margin, answers, of_sign)
    p, p_turned, p_small = (_adjusted(values, members, tested) for values in p_values)
    conditions: dict[State, Array] = {
        "not run": ~run,
        "void": np.broadcast_to(void, run.shape),
        "holds": p < LEVEL,
        "reversed": p_turned < LEVEL,
        "out of reach": of_sign & (reach < margin),
        "excluded": p_small < LEVEL,
    }
    states = np.select([*conditions.values()], [*conditions], "undecided")
    return Decided(p, tuple(states.tolist()), tuple(verdict_of(states[part]) for part in members))


def _p_values(
    effects: Estimate, says: Sequence[Says], margin: Array, answers: Array, of_sign: Array
) -> Iterator[Array]:
    """Of parts that hold, that are reversed, and whose effect is smaller than what matters."""
    bounds = np.array([BOUNDS[name] for name in says]).reshape(-1, 2) * margin[:, None]
    with np.errstate(invalid="ignore"):
        below_low, above_high = effects.p_above(bounds[:, 0]), 1 - effects.p_above(bounds[:, 1])
    low, high = np.isfinite(bounds).T
    sides = np.where(low & high, 1, 2)
    p_holds = sides * np.fmax(np.where(low, below_low, 0), np.where(high, above_high, 0))
    p_turned = 2 * np.fmin(np.where(low, 1 - below_low, 1), np.where(high, 1 - above_high, 1))
    upwards = np.array([name == "above" for name in says], dtype=bool)
    p_small = np.where(upwards, 1 - effects.p_above(margin), effects.p_above(-margin))
    for p, of in ((p_holds, True), (p_turned, True), (p_small, of_sign)):
        yield np.where(answers & of, p, 1.0).clip(max=1)


def verdict_of(states: Iterable[str]) -> Verdict:
    """What the states of its parts make of a claim.

    >>> verdict_of(["holds", "holds"]), verdict_of(["holds", "void"]), verdict_of(["void"])
    ('supported', 'partly', 'undecided')
    >>> verdict_of(["holds", "excluded"]), verdict_of(["reversed", "excluded"])
    ('mixed', 'partly contradicted')
    """
    kinds = set(states)
    if len(kinds) == 1 and (kinds & ALL_OF.keys()):
        return ALL_OF[kinds.pop()]
    if "holds" in kinds:
        return "mixed" if kinds & {"reversed", "excluded"} else "partly"
    if "reversed" in kinds:
        return "partly contradicted"
    if "out of reach" in kinds and kinds <= {"out of reach", "not run"}:
        return "out of reach"
    return "undecided"


def _adjusted(p: Array, members: Sequence[Array], tested: Array) -> Array:
    """P-values of parts: Holm's of their claim if it has all of them, else Hochberg's within it."""
    whole = holm(np.where(tested, [p[parts].max() for parts in members], np.nan))
    left = max(int((tested & ~(whole < LEVEL)).sum()), 1)
    result = p.copy()
    for parts, of_all in zip(members, whole, strict=True):
        result[parts] = of_all if of_all < LEVEL else (left * hochberg(p[parts])).clip(max=1)
    return result
