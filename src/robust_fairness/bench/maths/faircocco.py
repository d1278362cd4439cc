"""FairCOCCO's variables, score and permutation test of predictions (appendix A.2 and C.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from robust_fairness.bench.maths.cross_covariance import (
    WIDTH_ROWS,
    Pivots,
    Variable,
    evenly_spaced,
    low_rank_score,
    median_distance,
    pivots,
    variable,
)
from robust_fairness.bench.maths.permutation import hsic_test, permutation_test, strata_of
from robust_fairness.core.draws import subset

Notion = Literal["dp", "eo", "cal"]
Extended = Literal["attribute", "both"]

LEAST_ROWS = 4
MOST_REMEMBERED = 64  # lists of at most 400 numbers each
_REMEMBERED: dict[tuple[str, tuple[int, ...], bytes], Any] = {}


def variables_of(
    notion: Notion,
    prediction: Tensor,
    attribute: Tensor,
    outcome: Tensor,
    extended: Extended = "attribute",
    standardise: bool = True,
    width_rows: int = WIDTH_ROWS,
    width: Callable[[Tensor, int], Tensor] = median_distance,
) -> list[Variable]:
    """The two variables whose dependence a notion forbids, and the conditioning one.

    Args:
        notion: ``dp``: predictions and attributes; ``eo``: the same given the outcome; ``cal``:
            outcome and attributes given the predictions.
        prediction: predictions ``[..., n, d]``.
        attribute: attributes ``[..., n, k]``.
        outcome: classes as columns of 0 and 1, or an outcome, ``[..., n, c]``.
        extended: what the conditioning variable is joined to. ``attribute`` as printed; with
            ``both`` a prediction that is the attribute itself scores 1 instead of about .65.
        standardise: give every column standard deviation 1, see ``variable``.
        width_rows: rows whose distances give the width of the kernels.
        width: the width from values and that number.

    Source: FairCOCCO, appendix A.1 and A.2; C.1 for calibration.
    """

    def make(*columns: Tensor) -> Variable:
        return variable(*columns, standardise=standardise, rows=width_rows, width=width)

    if notion == "dp":
        return [make(prediction), make(attribute)]
    left, given = (prediction, outcome) if notion == "eo" else (outcome, prediction)
    first = make(left, given) if extended == "both" else make(left)
    return [first, make(attribute, given), make(given)]


def remembered(kind: str, values: Tensor, compute: Callable[[], Any]) -> Any:
    """What ``compute`` returns, kept for equal values: scores ask for the same many times.

    It returns Python's numbers: small tensors would lie between large ones in memory and keep the
    allocator from using these again.
    """
    key = kind, tuple(values.shape), blake2b(values.contiguous().numpy().data).digest()
    if key not in _REMEMBERED:
        if len(_REMEMBERED) >= MOST_REMEMBERED:
            _REMEMBERED.pop(next(iter(_REMEMBERED)))  # the oldest
        _REMEMBERED[key] = compute()
    return _REMEMBERED[key]


def remembered_width(x: Tensor, rows: int) -> Tensor:
    """``median_distance``, remembered."""
    used = evenly_spaced(x, rows)
    return x.new_tensor(remembered("width", used, lambda: float(median_distance(used, rows))))


def remembered_pivots(v: Variable) -> Pivots:
    """``pivots`` of a variable with that width, remembered."""

    def choose() -> tuple[list[int], list[float]]:
        chosen = pivots(v)
        return chosen.rows.tolist(), chosen.rest.tolist()

    rows, rest = remembered("pivots", v.x, choose)
    return Pivots(torch.tensor(rows, dtype=torch.int64), v.x.new_tensor(rest))


def probabilities(outputs: Tensor, classes: int) -> Tensor:
    """Predictions whose dependence is scored ``[..., n, d]``, from logits or outcomes.

    Of two classes only the probability of the second is needed.
    """
    if not classes:
        return outputs
    softmax = outputs.softmax(-1)
    return softmax[..., 1:] if classes == 2 else softmax


@dataclass(frozen=True)
class Rows:
    """The rows that a score rests on: predictions, attributes and outcome, float64 tensors."""

    prediction: Tensor
    attribute: Tensor
    outcome: Tensor

    def __len__(self) -> int:
        return len(self.prediction)

    def variables(self, notion: Notion) -> list[Variable]:
        columns = (self.prediction, self.attribute, self.outcome)
        return variables_of(notion, *columns, width=remembered_width)

    def strata(self, notion: Notion) -> np.ndarray:
        """Stratum of every row, int64 ``[n]``: rows of equal or near given values."""
        if notion == "dp":
            return np.zeros(len(self), dtype=np.int64)
        given = self.outcome if notion == "eo" else self.prediction
        categories = notion == "eo" and given.shape[1] > 1
        return given.argmax(1).numpy() if categories else strata_of(given.numpy())

    def score(self, notion: Notion) -> float:
        """The score of a notion, between 0 and 1."""
        variables = self.variables(notion)
        return float(low_rank_score(variables, list(map(remembered_pivots, variables))))

    def p_value(self, notion: Notion, permutations: int) -> float:
        """The p-value of a notion's permutation test."""
        variables = self.variables(notion)
        chosen = list(map(remembered_pivots, variables))
        return permutation_test(variables, self.strata(notion), permutations, chosen=chosen)

    def hsic_p_value(self, notion: Notion, permutations: int) -> float:
        """The p-value of ``hsic_test``, which needs classes to condition on."""
        variables = [
            variable(column, width=remembered_width) for column in (self.prediction, self.attribute)
        ]
        chosen = list(map(remembered_pivots, variables))
        return hsic_test(variables, self.strata(notion), permutations, chosen=chosen)

    def flaw(self, notion: Notion) -> str:
        """Why the score of that notion is not defined; empty where it is."""
        if len(self) < LEAST_ROWS:
            return f"{len(self)} rows, defined for {LEAST_ROWS} and more"
        needed = {"prediction": self.prediction, "attribute": self.attribute}
        if notion != "dp":
            needed["outcome"] = self.outcome
        for name, columns in needed.items():
            if not columns.isfinite().all():
                return f"a value of the {name} is not finite"
            # a constant outcome conditions on nothing; only calibration asks about it
            if (columns == columns[0]).all() and (name != "outcome" or notion == "cal"):
                return f"the {name} is constant"
        return ""


def rows_of(
    outputs: np.ndarray,
    classes: Sequence[str],
    sensitive_columns: Any,
    conditioning_columns: Any,
    most: float,
) -> Rows:
    """At most ``most`` rows, the same ones for every set of this size.

    Columns are numbers ``[n, columns]``, or an object that makes them of chosen rows.
    """
    rows = subset(len(outputs), int(most))
    prediction = probabilities(torch.from_numpy(outputs[rows]).double(), len(classes))
    attribute, outcome = (
        torch.from_numpy(columns[rows]) for columns in (sensitive_columns, conditioning_columns)
    )
    return Rows(prediction, attribute, outcome)
