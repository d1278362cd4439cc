"""Any estimator of scikit-learn, or of a package with its interface, such as boosted trees."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np
import sklearn
import torch
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import get_tags
from torch import Tensor

from robust_fairness.bench.estimators._scikit_learn import (
    EstimatorParameters,
    Oracle,
    Predict,
    Rows,
    calling,
    decides,
    mixture_of,
    prediction_of,
    prepared,
    restored,
    stored,
    with_categories,
)
from robust_fairness.bench.estimators.base import LEAST_PROBABILITY, Estimator, Reduction
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.scikit_learn import weight_argument

LOGGER = logging.getLogger(__name__)
PACKAGE = f"scikit-learn {sklearn.__version__}"


class ScikitLearn(Estimator):
    """Logarithms of ``predict_proba``, whose softmax it is, or the outcomes of a regressor.

    Of a classifier without ``predict_proba`` they are the values of its ``decision_function``.

    A probability of 0 counts as the smallest normal number of float32, and a class without
    training rows has the logit ``ABSENT``. ``random_state`` is of the replica's seed where it is
    not given, and ``n_jobs`` is the protocol's number of threads. Weights of rows have mean 1.
    """

    Parameters = EstimatorParameters
    name = "estimator"
    seeds: ClassVar[int] = 2**31  # below which ``random_state`` is
    keeps_training_rows = True  # nearest neighbours and machines do
    buffers_of: ClassVar = {
        "content": torch.uint8,
        "package": torch.uint8,
        "lengths": torch.int64,
        "share": torch.float64,
        "always": torch.float64,
        "columns": torch.int64,
    }
    content: Tensor  # the fitted estimators in the format of their package, one after the other
    package: Tensor  # name and version of scikit-learn, UTF-8
    lengths: Tensor  # of the content of each
    share: Tensor  # the mixture of a reduction, empty without one
    always: Tensor  # likewise, one number
    columns: Tensor  # of the table, of each feature; empty unless they are given as categories

    def __init__(
        self,
        hparams: EstimatorParameters,
        inputs: tuple[int, ...],
        outputs: int,
        randomness: Randomness,
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        if is_classifier(hparams.built()) != (outputs > 1):
            needed = "a classifier" if outputs > 1 else "a regressor of a continuous outcome"
            raise InputError(f"network {self.name}: {hparams.estimator}, allowed: {needed}")
        self._predict: Predict | None = None

    @classmethod
    def describe(cls, hparams: EstimatorParameters) -> str:
        return hparams.estimator.rpartition(".")[2]

    @classmethod
    def takes_sample_weight(cls, hparams: EstimatorParameters) -> bool:
        return bool(weight_argument(hparams.built()))

    @classmethod
    def takes_missing(cls, hparams: EstimatorParameters) -> bool:
        return bool(get_tags(hparams.built()).input_tags.allow_nan)

    def _rows(self, x: np.ndarray) -> Rows:
        """Rows as the estimator takes them."""
        return with_categories(x, self.columns.cpu().numpy()) if len(self.columns) else x

    def fit(self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> None:
        inputs, outcome = self.finite(x), y[0].cpu()
        if self.classes > 1:
            outcome = self.keep_present(outcome)
            if len(self.present) == 1:
                return
        machine = self._unfitted()
        weights = {}
        if sample_weight is not None:
            weight = sample_weight[0].cpu().double().numpy()
            weights[weight_argument(machine)] = weight
        with self._calling():
            machine.fit(self._rows(inputs.numpy()), outcome.numpy(), **weights)
            self._store([machine])
        if self.classes > 1:  # k-means may drop some
            self.keep(present=self.present.cpu()[machine.classes_])
        self._predict = prediction_of(machine)

    def fit_reduction(self, x: Tensor, y: Tensor, reduction: Reduction) -> None:
        """Fit the mixture that a reduction makes of the estimator; inputs are those of ``fit``.

        Outputs are the logarithms of the probabilities of decisions.
        """
        inputs, outcome = self.finite(x), self.keep_present(y[0].cpu())
        if len(self.present) == 1:
            return
        with self._calling():
            result = reduction(
                Oracle(self._unfitted(), self._rows), inputs.numpy(), outcome.numpy()
            )
            self._store(result.members)
        share = torch.tensor(result.share, dtype=torch.float64)
        self.keep(share=share, always=torch.tensor([result.always], dtype=torch.float64))
        self._predict = prediction_of(result)

    def _unfitted(self) -> BaseEstimator:
        """The estimator with the seed of the replica and the number of threads."""
        if self.hparams.categories:
            if not len(self.feature_columns):
                raise InputError(
                    f"network {self.name}: categories need the columns of a table, allowed: "
                    "preprocessing standardise or none, without remove_correlation"
                )
            self.keep(columns=self.feature_columns)
        seed, threads = self.randomness.integer() % self.seeds, torch.get_num_threads()
        return prepared(self.hparams.built(), seed, threads)

    def _store(self, machines: Sequence[BaseEstimator]) -> None:
        """Keep fitted estimators in the format of their package."""
        contents = [stored(self.hparams.estimator, machine) for machine in machines]
        self.keep(
            content=_bytes(b"".join(contents)),
            package=_bytes(PACKAGE.encode()),
            lengths=torch.tensor([len(content) for content in contents]),
        )

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        rows = features[0].detach().double().cpu().numpy()
        if len(self.present) == 1:
            result = features.new_zeros(features.shape[1], 1)
            return self.of_all_classes(result)[None]
        if self._predict is None:
            self._predict = self._restored()
        with self._calling():
            result = torch.as_tensor(self._predict(self._rows(rows)), dtype=torch.float64)
        result = result.to(features.device)
        if self.classes > 1:
            if len(self.always) or not decides(self.hparams.built()):
                result = result.clamp(min=LEAST_PROBABILITY).log()
            result = self.of_all_classes(result)
        return result.view(1, len(rows), self.classes).to(features.dtype)

    def _restored(self) -> Predict:
        """The prediction of the fitted estimator from its content."""
        package = bytes(self.package.cpu().numpy()).decode()
        if package != PACKAGE:
            raise InputError(
                f"network {self.name}: {self.hparams.estimator} was fitted with {package}, "
                f"installed is {PACKAGE}"
            )
        contents = self.content.cpu().split(self.lengths.tolist())
        with self._calling():
            result = [
                restored(self.hparams.estimator, bytes(content.numpy()), self.hparams.built())
                for content in contents
            ]
        if not len(self.always):
            return result[0]
        return mixture_of(result, self.share.tolist(), self.always.item())

    def _calling(self) -> AbstractContextManager[None]:
        what = f"network {self.name}: {self.hparams.estimator}"
        return calling(what, torch.get_num_threads())

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *options: Any, **more: Any
    ) -> None:
        super()._load_from_state_dict(state_dict, prefix, *options, **more)
        self._predict = None


def _bytes(content: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(content, dtype=np.uint8).copy())
