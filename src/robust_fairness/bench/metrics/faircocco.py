"""FairCOCCO: how far predictions depend on sensitive attributes of any kind and number.

0 is fair and 1 the largest dependence that the score can tell, for three notions: *demographic
parity* (dp) asks that predictions be independent of the attributes, *equalised odds* (eo) that
they be so given the outcome, and *calibration* (cal) that the outcome be independent of the
attributes given the predictions. The measures are ``faircocco_dp``, ``faircocco_eo`` and
``faircocco_cal`` (A.2), and ``faircocco_dp_p_value`` and so on, their permutation tests (C.3).
``hsic_dp_p_value`` and ``hsic_eo_p_value`` permute the same rows with another statistic.

The score reaches 1 only if the two kernel matrices are proportional, as for affine maps; other
deterministic relations score less (a cube .5 to .7, a sign .3), and the printed conditional form
never reaches 1. It grows with the number of columns and falls with the number of rows: compare
scores of equal numbers of rows only, and use p-values to interpret small ones.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from robust_fairness.numbers.quantities import Array, Score, measure

if TYPE_CHECKING:
    from robust_fairness.bench.maths.faircocco import Notion, Rows

NOTIONS: tuple["Notion", ...] = ("dp", "eo", "cal")
NEEDS = ("outputs", "classes", "sensitive_columns", "conditioning_columns")
ROWS = {"rows": 4096}
PERMUTATIONS = {"permutations": 1000}
NUMBERS = "the outcome is a number, defined for classes"


def _score(rows: "Rows", notion: "Notion") -> float:
    """FairCOCCO score, between 0 and 1, of at most ``rows`` rows (A.2)."""
    return rows.score(notion)


def _p_value(rows: "Rows", notion: "Notion", permutations: float) -> float:
    """Permutation p-value of a score: small where the notion is violated (C.3)."""
    return rows.p_value(notion, int(permutations))


def _measure(
    value: Callable[..., float | None],
    name: str,
    notion: "Notion",
    further: dict[str, int],
    **facts: Any,
) -> Callable[..., Score]:
    """The measure of that name: a value of the rows under a notion."""
    options = {**ROWS, **further}

    def measured(
        outputs: Array,
        classes: Sequence[str],
        sensitive_columns: Any,
        conditioning_columns: Any,
        **changed: float,
    ) -> Score:
        from robust_fairness.bench.maths.faircocco import rows_of

        chosen = {**options, **changed}
        columns = (sensitive_columns, conditioning_columns)
        rows = rows_of(outputs, classes, *columns, chosen.pop("rows"))
        if flaw := rows.flaw(notion):
            return Score(None, len(rows), flaw)
        result = value(rows, notion, **chosen)
        return Score(result, len(rows), NUMBERS if result is None else "")

    measured.__name__, measured.__doc__ = name, value.__doc__
    return measure(task="any", needs=NEEDS, options=options, **facts)(measured)


faircocco_dp, faircocco_eo, faircocco_cal = (
    _measure(_score, f"faircocco_{notion}", notion, {}, better="lower") for notion in NOTIONS
)


def _hsic_p_value(rows: "Rows", notion: "Notion", permutations: float) -> float | None:
    """Permutation p-value of HSIC of predictions and attributes, under eo summed over classes.

    More powerful than that of the FairCOCCO score where a group's scores are shifted, less where
    only their spread differs. Gretton et al. (2007), "A Kernel Statistical Test of Independence".
    """
    if notion == "eo" and rows.outcome.shape[1] == 1:
        return None
    return rows.hsic_p_value(notion, int(permutations))


faircocco_dp_p_value, faircocco_eo_p_value, faircocco_cal_p_value = (
    _measure(
        _p_value, f"faircocco_{notion}_p_value", notion, PERMUTATIONS,
        better="higher", unshifted_only=True,
    )
    for notion in NOTIONS
)  # fmt: skip
hsic_dp_p_value, hsic_eo_p_value = (
    _measure(
        _hsic_p_value, f"hsic_{notion}_p_value", notion, PERMUTATIONS,
        better="higher", unshifted_only=True,
    )
    for notion in NOTIONS[:2]
)  # fmt: skip
