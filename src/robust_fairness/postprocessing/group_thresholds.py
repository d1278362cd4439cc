"""Random mixtures of thresholds for each group, by a linear program on their ROC hulls."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, vstack
from scipy.spatial import ConvexHull
from sklearn.metrics import roc_curve

from robust_fairness.core.errors import InputError
from robust_fairness.postprocessing.base import Decisions, PostProcessing, PostProcessingParameters

PRECISION = 1e-9  # of the linear program


@dataclass(frozen=True)
class RocHull:
    """The vertices of the convex hull of a group's ROC curve.

    Attributes:
        fpr: false positive rates ``[vertex]``.
        tpr: true positive rates ``[vertex]``.
        threshold: scores from which class 1 is decided ``[vertex]``, descending.
        negatives: rows of class 0.
        positives: rows of class 1.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    threshold: np.ndarray
    negatives: int
    positives: int

    @property
    def base_rate(self) -> float:
        return self.positives / (self.negatives + self.positives)


class GroupThresholds(PostProcessing):
    r"""The most accurate mixture of thresholds per group whose rates differ by a tolerance.

    .. math:: \min_w \sum_a n_a^- F_a + n_a^+ (1 - T_a) \quad\text{subject to}\quad
              \max_{a,b} |r_a - r_b| \le \epsilon

    where the false and true positive rates F_a and T_a of a group are convex combinations, with
    weights w, of the points of its ROC curve, and r are rates that are linear in them. A row is
    decided as class 1 with the weight of the thresholds that its score reaches.

    Source: Cruz and Hardt, "Unprocessing Seven Years of Algorithmic Fairness" (ICLR 2024); without
    tolerance Hardt, Price and Srebro, "Equality of Opportunity in Supervised Learning" (NeurIPS
    2016).
    """

    class Parameters(PostProcessingParameters):
        """The largest difference between groups; with 1 every group has its most accurate one."""

        tolerance: float = Field(0.05, ge=0, le=1, description="epsilon, largest difference")

    @abstractmethod
    def rates(self, curve: RocHull) -> Sequence[np.ndarray]:
        """The rates that may not differ, of the points of a group's curve, ``[vertex]`` each."""

    def fit(self, y_true: np.ndarray, y_score: np.ndarray, group: np.ndarray) -> Decisions:
        names = np.unique(group)
        curves = [curve_of(y_true[group == name], y_score[group == name]) for name in names]
        weights = optimum(curves, [self.rates(curve) for curve in curves], self.hparams.tolerance)
        return Mixtures(
            {
                str(name): (item.threshold[::-1], weight[::-1].cumsum())
                for name, item, weight in zip(names, curves, weights, strict=True)
            }
        )


@dataclass(frozen=True)
class Mixtures(Decisions):
    """Thresholds by group, ascending, and the probability of a threshold up to each of them."""

    of_group: dict[str, tuple[np.ndarray, np.ndarray]]

    def __call__(self, y_score: np.ndarray, group: np.ndarray) -> np.ndarray:
        result = np.full(len(y_score), np.nan)
        for name, (thresholds, probability) in self.of_group.items():
            mask = group == name
            reached = np.searchsorted(thresholds, y_score[mask], side="right")
            result[mask] = np.concatenate([[0.0], probability])[reached]
        unknown = np.unique(group[np.isnan(result)])
        if len(unknown):
            raise InputError(
                f"post-processing: group {', '.join(map(str, unknown))} has no validation rows, "
                f"allowed: {', '.join(self.of_group)}"
            )
        return result.clip(0, 1)


def curve_of(y_true: np.ndarray, y_score: np.ndarray) -> RocHull:
    """The ROC hull of a group's rows, which have both classes."""
    fpr, tpr, threshold = roc_curve(y_true, y_score)
    if np.array_equal(fpr, tpr):  # all points are on the diagonal
        kept = np.array([0, len(fpr) - 1])
    else:
        kept = np.sort(ConvexHull(np.stack([fpr, tpr], axis=1)).vertices)
    positives = int(np.sum(y_true == 1))
    return RocHull(fpr[kept], tpr[kept], threshold[kept], len(y_true) - positives, positives)


def optimum(
    curves: Sequence[RocHull], rates: Sequence[Sequence[np.ndarray]], tolerance: float
) -> list[np.ndarray]:
    """Weights of the points of every curve, ``[vertex]``, with the least expected error.

    Variables are all weights and, for each kind of rate, the lowest of a group; the rate of each
    group is between it and it plus the tolerance.
    """
    sizes = [len(curve.fpr) for curve in curves]
    kinds, rows = len(rates[0]), sum(curve.negatives + curve.positives for curve in curves)
    error = [curve.negatives * curve.fpr - curve.positives * curve.tpr for curve in curves]
    sums = block_diag([np.ones((1, size)) for size in sizes])
    above = []
    for kind in range(kinds):
        lowest = np.zeros((len(curves), kinds))
        lowest[:, kind] = 1
        rates_of_kind = block_diag([rate[kind][None] for rate in rates])
        above.append(csr_array(np.hstack([rates_of_kind.toarray(), -lowest])))
    gaps = vstack(above)
    result = linprog(
        np.concatenate([*error, np.zeros(kinds)]) / rows,
        A_ub=vstack([gaps, -gaps]),
        b_ub=np.repeat([tolerance, 0.0], gaps.shape[0]),
        A_eq=csr_array(np.hstack([sums.toarray(), np.zeros((len(curves), kinds))])),
        b_eq=np.ones(len(curves)),
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

    def rates(self, curve: RocHull) -> Sequence[np.ndarray]:
        return (curve.base_rate * curve.tpr + (1 - curve.base_rate) * curve.fpr,)


class EqualizedOdds(GroupThresholds):
    """Equalised odds by thresholds of groups.

    Neither true nor false positive rates of two groups differ by more than the tolerance.
    """

    name = "equalized_odds"

    def rates(self, curve: RocHull) -> Sequence[np.ndarray]:
        return curve.tpr, curve.fpr


class TruePositiveRateParity(GroupThresholds):
    """Equal opportunity by thresholds of groups.

    True positive rates of two groups differ by the tolerance at most.
    """

    name = "true_positive_rate_parity"

    def rates(self, curve: RocHull) -> Sequence[np.ndarray]:
        return (curve.tpr,)


class FalsePositiveRateParity(GroupThresholds):
    """Predictive equality by thresholds of groups.

    False positive rates of two groups differ by the tolerance at most.
    """

    name = "false_positive_rate_parity"

    def rates(self, curve: RocHull) -> Sequence[np.ndarray]:
        return (curve.fpr,)
