"""Random mixtures of thresholds for each group, by a linear program on their ROC hulls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, vstack
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_curve

from robust_fairness.auditing.repair.base import Decisions, PostProcessing, PostProcessingParameters
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.estimate import ROWS, Component, Estimate
from robust_fairness.numbers.groups import Groups, shown
from robust_fairness.numbers.quantities import means_of_rows
from robust_fairness.numbers.rates import Rates, contrast, linear_gap

PRECISION = 1e-9  # of the linear program
MOST_THRESHOLDS = 1_000  # of a common mixture


@dataclass(frozen=True)
class RocPoints:
    """Points of a group's ROC curve.

    Attributes:
        fpr: false positive rates ``[point]``.
        tpr: true positive rates ``[point]``.
        threshold: scores from which class 1 is decided ``[point]``, descending.
        negatives: weight of the rows of class 0, their number without weights.
        positives: the same of class 1.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    threshold: np.ndarray
    negatives: float
    positives: float

    @property
    def base_rate(self) -> float:
        return self.positives / (self.negatives + self.positives)


class GroupThresholds(PostProcessing):
    r"""The most accurate mixture of thresholds per group whose rates differ by a tolerance.

    .. math:: \min_w \sum_a n_a^- F_a + n_a^+ (1 - T_a) \quad\text{subject to}\quad
              \max_{a,b} |r_a - r_b| \le \epsilon

    where the false and true positive rates F_a and T_a of a group are convex combinations, with
    weights w, of the points of its ROC curve, and r are rates that are linear in them. A row is
    decided as class 1 with the weight of the thresholds that its score reaches. Of weighted rows
    the n are sums of weights.

    With ``common`` all groups have the same weights w, on the thresholds of all rows together: the
    rule is then a function of the score alone.

    Source: Cruz and Hardt, "Unprocessing Seven Years of Algorithmic Fairness" (ICLR 2024); without
    tolerance Hardt, Price and Srebro, "Equality of Opportunity in Supervised Learning" (NeurIPS
    2016).
    """

    class Parameters(PostProcessingParameters):
        """The largest difference between groups; with 1 every group has its most accurate one."""

        tolerance: float = Field(0.05, ge=0, le=1, description="epsilon, largest difference")
        common: bool = Field(False, description="one mixture of thresholds for all groups")

    among: ClassVar[tuple[int | None, ...]]  # the classes in whose rows a rate counts; None: all

    def rates(self, curve: RocPoints) -> list[np.ndarray]:
        """The rates that may not differ, of the points of a group's curve, ``[point]`` each."""
        selected = curve.base_rate * curve.tpr + (1 - curve.base_rate) * curve.fpr
        return [{None: selected, 0: curve.fpr, 1: curve.tpr}[label] for label in self.among]

    def fit(
        self,
        y_true: np.ndarray,
        y_score: np.ndarray,
        groups: Groups,
        sample_weight: np.ndarray | None = None,
    ) -> "Mixtures":
        weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
        rows = [groups.codes == code for code in np.flatnonzero(groups.counts)]
        if self.hparams.common:
            thresholds = common_thresholds(y_score)
            curves = [points_at(thresholds, y_true[of], y_score[of], weight[of]) for of in rows]
        else:
            curves = [curve_of(y_true[of], y_score[of], weight[of]) for of in rows]
        rates = [self.rates(curve) for curve in curves]
        shares = optimum(curves, rates, self.hparams.tolerance, self.hparams.common)
        values = [groups.values[code] for code in np.flatnonzero(groups.counts)]
        known = zip([()] if self.hparams.common else values, curves, shares, strict=False)
        return Mixtures({of: mixture(curve.threshold, share) for of, curve, share in known})

    def differences(
        self,
        positive: np.ndarray,
        y_true: np.ndarray,
        groups: Groups,
        sample_weight: np.ndarray | None = None,
    ) -> Estimate:
        """Differences ``[pair]`` of the rates of two groups, of decisions on rows of every group.

        Every difference comes with both signs. The rows are others than those fitted to.

        Args:
            positive: probabilities of deciding class 1 ``[n]``.
            y_true: classes 0 and 1 ``[n]``.
            groups: groups of the rows, all of which have rows.
            sample_weight: weights ``[n]``.
        """
        weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
        number, parts = len(groups.values), []
        for label in self.among:
            used = (weight > 0) & (True if label is None else y_true == label)
            parts.append(means_of_rows(groups.index[used], positive[used], number, weight[used]))
        value, variance, rows = (
            np.concatenate([getattr(part, name) for part in parts])[None]
            for name in ("value", "variance", "effective")
        )
        rates = Rates(value[..., None], variance, rows).corrected()
        functions = linear_gap("largest", number, len(parts)).functions
        pairs = contrast(rates, None, functions, None)
        return Estimate(pairs.value[0], {ROWS: Component(pairs.variance[0])})


@dataclass(frozen=True)
class Mixtures(Decisions):
    """Thresholds by the values of a group, ascending, and their probabilities ``[threshold]``.

    A common mixture stands under the values ``()``.
    """

    of_group: dict[tuple[str, ...], tuple[np.ndarray, np.ndarray]]

    def __call__(self, y_score: np.ndarray, groups: Groups) -> np.ndarray:
        if () in self.of_group:
            return self._decided(y_score, ())
        unknown = [
            name
            for name, values, rows in zip(groups.names, groups.values, groups.counts, strict=True)
            if rows and values not in self.of_group
        ]
        if unknown or (groups.codes < 0).any():
            kind = f"group {', '.join(unknown)} has" if unknown else "rows without a group have"
            raise InputError(
                f"post-processing: {kind} no validation rows, "
                f"allowed: {', '.join(map(shown, self.of_group))}"
            )
        result = np.empty(len(y_score))
        for code in np.flatnonzero(groups.counts):
            rows = groups.codes == code
            result[rows] = self._decided(y_score[rows], groups.values[code])
        return result

    def _decided(self, y_score: np.ndarray, values: tuple[str, ...]) -> np.ndarray:
        thresholds, probability = self.of_group[values]
        reached = np.searchsorted(thresholds, y_score, side="right")
        return np.concatenate([[0.0], probability.cumsum()])[reached].clip(0, 1)


def curve_of(y_true: np.ndarray, y_score: np.ndarray, weight: np.ndarray) -> RocPoints:
    """The vertices of the convex hull of a group's ROC curve; its rows have both classes."""
    fpr, tpr, threshold = roc_curve(y_true, y_score, sample_weight=weight)
    if np.array_equal(fpr, tpr):  # all points are on the diagonal
        kept = np.array([0, len(fpr) - 1])
    else:
        kept = np.sort(ConvexHull(np.stack([fpr, tpr], axis=1)).vertices)
    positives = float(weight[y_true == 1].sum())
    return RocPoints(
        fpr[kept], tpr[kept], threshold[kept], float(weight[y_true == 0].sum()), positives
    )


def common_thresholds(y_score: np.ndarray) -> np.ndarray:
    """Infinity and the distinct scores, descending; of many, ``MOST_THRESHOLDS`` of their ranks."""
    scores = np.unique(y_score)[::-1]
    if len(scores) > MOST_THRESHOLDS:
        scores = scores[np.linspace(0, len(scores) - 1, MOST_THRESHOLDS).astype(np.int64)]
    return np.append(np.inf, scores)


def points_at(
    thresholds: np.ndarray, y_true: np.ndarray, y_score: np.ndarray, weight: np.ndarray
) -> RocPoints:
    """The points of a group's ROC curve at given thresholds, descending."""
    place = np.searchsorted(-thresholds, -y_score)  # the first threshold that is reached
    sums = [
        np.bincount(place[y_true == label], weight[y_true == label], len(thresholds)).cumsum()
        for label in (0, 1)
    ]
    negatives, positives = (float(of[-1]) for of in sums)
    return RocPoints(sums[0] / negatives, sums[1] / positives, thresholds, negatives, positives)


def mixture(thresholds: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thresholds that have a share, ascending, and their shares, which sum to 1."""
    used = np.flatnonzero(share > PRECISION)[::-1]
    return thresholds[used], share[used] / share[used].sum()


def optimum(
    curves: Sequence[RocPoints],
    rates: Sequence[Sequence[np.ndarray]],
    tolerance: float,
    common: bool = False,
) -> list[np.ndarray]:
    """Weights of the points of every curve, ``[point]``, with the least expected error.

    Variables are all weights and, for each kind of rate, the lowest of a group; the rate of each
    group is between it and it plus the tolerance. With ``common`` the curves have points at the
    same thresholds, and the result are the weights of these alone.
    """
    kinds, rows = len(rates[0]), sum(curve.negatives + curve.positives for curve in curves)
    error = [curve.negatives * curve.fpr - curve.positives * curve.tpr for curve in curves]
    sizes = [len(curve.fpr) for curve in curves]
    if common:
        error, sizes = [np.sum(error, axis=0)], sizes[:1]
    sums = block_diag([np.ones((1, size)) for size in sizes]).toarray()
    above = []
    for kind in range(kinds):
        lowest = np.zeros((len(curves), kinds))
        lowest[:, kind] = 1
        of_kind = [rate[kind][None] for rate in rates]
        of_groups = np.concatenate(of_kind) if common else block_diag(of_kind).toarray()
        above.append(csr_array(np.hstack([of_groups, -lowest])))
    gaps = vstack(above)
    result = linprog(
        np.concatenate([*error, np.zeros(kinds)]) / rows,
        A_ub=vstack([gaps, -gaps]),
        b_ub=np.repeat([tolerance, 0.0], gaps.shape[0]),
        A_eq=csr_array(np.hstack([sums, np.zeros((len(sizes), kinds))])),
        b_eq=np.ones(len(sizes)),
        bounds=(0, 1),
        method="highs",
        options={
            "primal_feasibility_tolerance": PRECISION,
            "dual_feasibility_tolerance": PRECISION,
        },
    )
    if not result.success:
        raise InputError(f"post-processing: {result.message}")
    return np.split(result.x[: sum(sizes)], np.cumsum(sizes)[:-1])


class DemographicParity(GroupThresholds):
    """Demographic parity by thresholds of groups.

    Selection rates of two groups differ by the tolerance at most.
    """

    name = "demographic_parity"
    among = (None,)


class EqualizedOdds(GroupThresholds):
    """Equalised odds by thresholds of groups.

    Neither true nor false positive rates of two groups differ by more than the tolerance.
    """

    name = "equalized_odds"
    among = (1, 0)


class TruePositiveRateParity(GroupThresholds):
    """Equal opportunity by thresholds of groups.

    True positive rates of two groups differ by the tolerance at most.
    """

    name = "true_positive_rate_parity"
    among = (1,)


class FalsePositiveRateParity(GroupThresholds):
    """Predictive equality by thresholds of groups.

    False positive rates of two groups differ by the tolerance at most.
    """

    name = "false_positive_rate_parity"
    among = (0,)
