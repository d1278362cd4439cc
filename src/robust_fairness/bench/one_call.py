"""Plain training and reductions of estimators of scikit-learn's interface, without torch.

They are what ``training`` does with the network ``estimator``, for the classifiers of ``rf``: the
same rows, features, weights and groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from robust_fairness.bench.estimators import (
    EstimatorParameters,
    Oracle,
    calling,
    decides,
    mixture_of,
    prediction_of,
    prepared,
)
from robust_fairness.bench.methods._reductions import ReductionParameters
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.core.scikit_learn import weight_argument
from robust_fairness.numbers.groups import groups_of

THREADS = 1  # those of the training protocol


@dataclass(frozen=True)
class FittedOnce:
    """An estimator that was fitted in one call, or the mixture that a reduction made of it.

    Attributes:
        samples: the rows, with their parts.
        centre, scale: of every feature ``[d]``, float32.
        present: codes of the classes that can be predicted.
        members: the fitted estimators; none of a single class.
        share: the probability of each of a mixture; none of a single estimator.
        always: probability that a mixture decides for class 1 without any of them.
    """

    samples: Samples = field(repr=False)
    centre: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    present: np.ndarray
    members: Sequence[BaseEstimator] = ()
    share: Sequence[float] = ()
    always: float = 0.0
    is_mixture: bool = False

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Features ``[n, d]`` as the estimator takes them, float64."""
        return np.asarray(((x - self.centre) * self.scale).astype(np.float64))

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """Probabilities of all classes, or of decisions of a mixture, float64 ``[n, k]``."""
        result = np.zeros((len(x), len(self.samples.classes)))
        if len(self.present) == 1:
            result[:, self.present] = 1
            return result
        predictions = [prediction_of(member) for member in self.members]
        if self.is_mixture:
            values = mixture_of(predictions, self.share, self.always)(self.inputs(x))
        else:
            values = predictions[0](self.inputs(x))
            values = softmax(values, axis=1) if decides(self.members[0]) else values
        result[:, self.present] = values
        return result


def fitted(
    samples: Samples,
    split: str,
    parameters: EstimatorParameters,
    *,
    method: str,
    standardise: bool,
    seed: int,
    reduction: ReductionParameters | None = None,
) -> FittedOnce:
    """Fit to the training rows of a split.

    Raises:
        InputError: the estimator is no classifier, takes no weights that are needed, or fails.
    """
    estimator = parameters.built()
    what = f"network estimator: {parameters.estimator}"
    if not is_classifier(estimator):
        raise InputError(f"{what}, allowed: a classifier")
    rows = samples.rows(split, "train")
    weight = np.ones(len(rows)) if samples.sample_weight is None else samples.sample_weight[rows]
    weighted = bool((weight != weight[0]).any())
    if (weighted or reduction) and not weight_argument(estimator):
        raise InputError(
            f"method {method} with network estimator: weights rows, which the network ignores, "
            "allowed: a network that takes weights, or rows of equal weight"
        )
    centre, scale = _scaling(samples.arrays["x"][rows], standardise)
    known, group = weight > 0, np.zeros(len(rows), np.int64)
    if reduction:
        group = groups_of(samples.attributes, samples.sensitive).index[rows]
        known &= group >= 0
    else:
        known[:] = True
    rows, weight, group = rows[known], weight[known], group[known]
    present, y = np.unique(samples.y[rows], return_inverse=True)
    result = FittedOnce(samples, centre, scale, present)
    if len(present) == 1:
        return result
    machine, x = prepared(estimator, seed, THREADS), result.inputs(samples.arrays["x"][rows])
    with calling(what, THREADS):
        if reduction:
            made = reduction.mixture(Oracle(machine, np.asarray), x, y, group, weight)
            parts: dict[str, Any] = {
                "members": made.members, "share": made.share, "always": made.always,
                "is_mixture": True,
            }  # fmt: skip
        else:
            weights = {weight_argument(machine): weight / weight.mean()} if weighted else {}
            machine.fit(x, y, **weights)
            parts = {"members": [machine]}
            present = present[machine.classes_]
    return FittedOnce(samples, centre, scale, present, **parts)


def _scaling(x: np.ndarray, standardise: bool) -> tuple[np.ndarray, np.ndarray]:
    """What is subtracted from features, and what they are then multiplied by, float32 ``[d]``."""
    if not standardise:
        return np.zeros(x.shape[1], np.float32), np.ones(x.shape[1], np.float32)
    known = SimpleImputer(keep_empty_features=True).fit_transform(x.astype(np.float64))
    scaler = StandardScaler().fit(known)
    return scaler.mean_.astype(np.float32), (1 / scaler.scale_).astype(np.float32)
