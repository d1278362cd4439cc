"""FairCOCCO: how far predictions depend on sensitive attributes of any kind and number.

0 is fair and 1 the largest dependence that the score can tell, for three notions: *demographic
parity* (dp) asks that predictions be independent of the attributes, *equalised odds* (eo) that
they be so given the outcome, and *calibration* (cal) that the outcome be independent of the
attributes given the predictions. The measures are ``faircocco_dp``, ``faircocco_eo`` and
``faircocco_cal`` (A.2), and ``faircocco_dp_p_value`` and so on, their permutation tests (C.3).

The score reaches 1 only if the two kernel matrices are proportional, as for affine maps; other
deterministic relations score less (a cube .5 to .7, a sign .3), and the printed conditional form
never reaches 1. It grows with the number of columns and falls with the number of rows: compare
scores of equal numbers of rows only, and use p-values to interpret small ones.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from robust_fairness.metrics.base import Array, Score, measure

Notion = Literal["dp", "eo", "cal"]
NOTIONS: tuple[Notion, ...] = ("dp", "eo", "cal")

ROWS = 4096
PERMUTATIONS = 1000
NEEDS = ("outputs", "classes", "sensitive_columns", "conditioning_columns")


def _score_of(notion: Notion) -> Callable[..., Score]:
    """The score of a notion, as the measure ``faircocco_<notion>``."""

    def score(
        outputs: Array,
        classes: Sequence[str],
        sensitive_columns: Any,
        conditioning_columns: Any,
        *,
        rows: float = ROWS,
    ) -> Score:
        """FairCOCCO score, between 0 and 1, of at most ``rows`` rows (A.2)."""
        from robust_fairness.maths.faircocco import rows_of

        used = rows_of(outputs, classes, sensitive_columns, conditioning_columns, rows)
        if flaw := used.flaw(notion):
            return Score(None, len(used), flaw)
        return Score(used.score(notion), len(used))

    score.__name__ = f"faircocco_{notion}"
    return measure(better="lower", task="any", needs=NEEDS, options={"rows": ROWS})(score)


def _p_value_of(notion: Notion) -> Callable[..., Score]:
    """The test of a notion, as the measure ``faircocco_<notion>_p_value``."""

    def p_value(
        outputs: Array,
        classes: Sequence[str],
        sensitive_columns: Any,
        conditioning_columns: Any,
        *,
        rows: float = ROWS,
        permutations: float = PERMUTATIONS,
    ) -> Score:
        """Permutation p-value of a score: small where the notion is violated (C.3)."""
        from robust_fairness.maths.faircocco import rows_of

        used = rows_of(outputs, classes, sensitive_columns, conditioning_columns, rows)
        if flaw := used.flaw(notion):
            return Score(None, len(used), flaw)
        return Score(used.p_value(notion, int(permutations)), len(used))

    p_value.__name__ = f"faircocco_{notion}_p_value"
    options = {"rows": ROWS, "permutations": PERMUTATIONS}
    facts = {"needs": NEEDS, "options": options, "unshifted_only": True}
    return measure(better="higher", task="any", **facts)(p_value)


faircocco_dp, faircocco_eo, faircocco_cal = map(_score_of, NOTIONS)
faircocco_dp_p_value, faircocco_eo_p_value, faircocco_cal_p_value = map(_p_value_of, NOTIONS)
