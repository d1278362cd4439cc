"""The base class of models that one call fits, and whose weights are buffers."""

import logging
from abc import abstractmethod
from collections.abc import Callable
from math import prod
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from robust_fairness.bench.estimators._scikit_learn import Mixture
from robust_fairness.bench.models.base import SingleModel
from robust_fairness.bench.models.layers import ABSENT
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError

LEAST_PROBABILITY = torch.finfo(torch.float32).tiny  # replaces 0 in logarithms
LOGGER = logging.getLogger(__name__)


# Inputs [m, d], classes [m] and an unfitted classifier with ``fit(x, y, sample_weight)`` and
# ``predict``, of which fitted copies become members.
Reduction = Callable[[Any, np.ndarray, np.ndarray], Mixture]


class Estimator(SingleModel):
    """A model of feature vectors or flattened images that one call fits, without steps and epochs.

    Of the protocol only preprocessing, device and threads apply.

    Attributes:
        feature_columns: column of the table that each feature is made of, int64 ``[d]``, set before
            ``fit``: features with the same number are the categories of one column. Empty for
            images and where preprocessing mixes features.
        present: classes that can be predicted, int64 ``[known class]``, ascending.
        keeps_training_rows: whether its buffers include rows of the training data.
        buffers_of: dtypes of further buffers, which are empty before ``fit``.
    """

    trained_in_steps = False
    keeps_training_rows: ClassVar[bool] = False
    piecewise_linear: bool | None = None
    buffers_of: ClassVar[dict[str, torch.dtype]] = {}
    feature_columns: Tensor = torch.zeros(0, dtype=torch.int64)
    present: Tensor

    def __init__(
        self, hparams: Any, inputs: tuple[int, ...], outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        self.classes, self.randomness = outputs, randomness
        self.early_width = self.feature_width = prod(inputs)
        for name, dtype in {"present": torch.int64, **self.buffers_of}.items():
            self.register_buffer(name, torch.zeros(0, dtype=dtype))

    @abstractmethod
    def fit(self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> None:
        """Fit to preprocessed inputs ``[1, m, ...]`` and classes or outcomes ``[1, m]``.

        ``sample_weight`` ``[1, m]`` has the mean 1; without it, rows have equal weights.
        """

    @classmethod
    def takes_sample_weight(cls, hparams: Any) -> bool:
        return False

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return x.flatten(2)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return early

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        raise InputError(f"network {self.name}: has no head to train, allowed: method erm")

    @abstractmethod
    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits or outcomes ``[1, row, output]`` of flattened inputs."""

    def finite(self, x: Tensor) -> Tensor:
        """Inputs ``[1, m, ...]`` as float64 ``[m, input]`` on the CPU, all finite or missing."""
        inputs = x[0].flatten(1).cpu().double()
        usable = inputs.isfinite()
        if self.takes_missing(self.hparams):
            usable |= inputs.isnan()
        bad = int((~usable).any(1).sum())
        if bad:
            raise InputError(
                f"network {self.name}: {bad} of {len(inputs)} training rows are not finite, "
                "allowed: finite numbers"
            )
        return inputs

    def keep_present(self, labels: Tensor) -> Tensor:
        """Keep which classes occur ``[m]``; returns their positions in ``present`` ``[m]``."""
        present = labels.unique()
        if len(present) < self.classes:
            LOGGER.warning(
                "%s: %d of %d classes are among its %d training rows, the others are never "
                "predicted", self.name, len(present), self.classes, len(labels),
            )  # fmt: skip
        self.keep(present=present)
        return torch.searchsorted(present, labels)

    def of_all_classes(self, known: Tensor) -> Tensor:
        """Logits of all classes ``[row, class]`` from those of the present ones."""
        logits = known.new_full((len(known), self.classes), ABSENT)
        return logits.index_copy(1, self.present, known)

    def keep(self, **learnt: Tensor) -> None:
        for name, value in learnt.items():
            setattr(self, name, value.to(self.present.device))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *options: Any, **more: Any
    ) -> None:
        """Resize the buffers to those of the fitted state before torch copies them."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            value = state_dict.get(prefix + name)
            if value is not None:
                setattr(self, name, torch.empty_like(value, device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *options, **more)
