"""Plain training and reductions of estimators of scikit-learn's interface, without torch.

They are what ``training`` does with the network ``estimator``, for the classifiers of ``rf``: the
same rows, features, weights and groups.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, is_classifier
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from robust_fairness.bench.estimators import (
    EstimatorParameters,
    Mixture,
    Oracle,
    calling,
    decides,
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
        model: what was fitted; None of a single class.
    """

    samples: Samples = field(repr=False)
    centre: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    present: np.ndarray
    model: BaseEstimator | Mixture | None = None

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Features ``[n, d]`` as the estimator takes them, float64."""
        return np.asarray(((x - self.centre) * self.scale).astype(np.float64))

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """Probabilities of all classes, or of decisions of a mixture, float64 ``[n, k]``."""
        result = np.zeros((len(x), len(self.samples.classes)))
        if len(self.present) == 1:
            result[:, self.present] = 1
            return result
        values = prediction_of(self.model)(self.inputs(x))
        if not isinstance(self.model, Mixture) and decides(self.model):
            values = softmax(values, axis=1)
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
    known, group = np.ones(len(rows), bool), np.zeros(len(rows), np.int64)
    if reduction:
        group = groups_of(samples.attributes, samples.sensitive).index[rows]
        known = (weight > 0) & (group >= 0)
    rows, weight, group = rows[known], weight[known], group[known]
    present, y = np.unique(samples.y[rows], return_inverse=True)
    result = FittedOnce(samples, centre, scale, present)
    if len(present) == 1:
        return result
    machine, x = prepared(estimator, seed, THREADS), result.inputs(samples.arrays["x"][rows])
    with calling(what, THREADS):
        if reduction:
            mixture = reduction.mixture(Oracle(machine, np.asarray), x, y, group, weight)
            return replace(result, model=mixture)
        weights = {weight_argument(machine): weight / weight.mean()} if weighted else {}
        machine.fit(x, y, **weights)
        return replace(result, model=machine, present=present[machine.classes_])


def _scaling(x: np.ndarray, standardise: bool) -> tuple[np.ndarray, np.ndarray]:
    """What is subtracted from features, and what they are then multiplied by, float32 ``[d]``."""
    if not standardise:
        return np.zeros(x.shape[1], np.float32), np.ones(x.shape[1], np.float32)
    known = SimpleImputer(keep_empty_features=True).fit_transform(x.astype(np.float64))
    scaler = StandardScaler().fit(known)
    return scaler.mean_.astype(np.float32), (1 / scaler.scale_).astype(np.float32)
