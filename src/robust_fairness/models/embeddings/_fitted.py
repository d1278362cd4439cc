"""Classifiers of feature vectors that scikit-learn fits at once, and torch predicts with."""

import logging
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import FittedAtOnce
from robust_fairness.models.randomness import DropoutNoise, Randomness

ABSENT = -1e15  # logit of a class without training rows: finite, and its square in float32 too
NUMBERS_AT_ONCE = 2**23  # of what a block of rows is predicted by
LOGGER = logging.getLogger(__name__)


class FittedClassifier(FittedAtOnce):
    """What scikit-learn learnt, as float64 tensors; the features are the inputs themselves.

    A class without training rows is no error: it has the logit ``ABSENT``. With rows of a single
    class there is nothing to fit, and that class is predicted everywhere.

    Attributes:
        present: classes that can be predicted, int64 ``[known class]``, ascending.

    Args:
        name: of the network, for messages.
        inputs: numbers of a row.
        classes: number of classes.
    """

    piecewise_linear = False
    present: Tensor

    def __init__(self, name: str, inputs: int, classes: int) -> None:
        super().__init__()
        self.name, self.classes = name, classes
        self.early_width = self.feature_width = inputs
        self.register_buffer("present", torch.zeros(0, dtype=torch.int64))

    @abstractmethod
    def fit(self, inputs: Tensor, labels: Tensor) -> None:
        """Fit scikit-learn's classifier to rows of two classes or more.

        Args:
            inputs: float64 ``[m, input]``, on the CPU.
            labels: int64 places in ``present`` ``[m]``, each of which occurs.
        """

    @abstractmethod
    def values(self, x: Tensor) -> Tensor:
        """Logits of the present classes ``[row, known class]``.

        Args:
            x: float64 inputs ``[row, input]``.
        """

    @abstractmethod
    def numbers_of_a_row(self) -> int:
        """How many numbers the prediction of one row needs at once."""

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The inputs, ``[1, row, input]``."""
        return x.flatten(2)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The same."""
        return early

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits ``[1, row, class]``, computed in float64 by blocks of rows."""
        block = max(1, NUMBERS_AT_ONCE // max(1, self.numbers_of_a_row()))
        known = torch.cat([self._known(rows) for rows in features[0].double().split(block)])
        logits = known.new_full((len(known), self.classes), ABSENT)
        return logits.index_copy(1, self.present, known).to(features.dtype)[None]

    def _known(self, x: Tensor) -> Tensor:
        """Logits of the present classes; of a single one the same everywhere."""
        return self.values(x) if len(self.present) > 1 else 0 * x.sum(1, keepdim=True)

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"network {self.name}: has no head that could be trained, allowed: method erm"
        )

    def rows_to_fit(self, count: int) -> Tensor:
        """All places, int64 ``[m]``."""
        return torch.arange(count)

    def fit_at_once(self, x: Tensor, y: Tensor) -> None:
        """Fit scikit-learn's classifier; a message tells of classes without rows.

        Raises:
            InputError: an input is no finite number.
        """
        inputs, labels = x[0].flatten(1).cpu().double(), y[0].cpu()
        bad = int((~inputs.isfinite()).any(1).sum())
        if bad:
            raise InputError(
                f"network {self.name}: {bad} of {len(inputs)} training rows are not finite, "
                "allowed: finite numbers"
            )
        present = labels.unique()
        if len(present) < self.classes:
            LOGGER.warning(
                "%s: %d of %d classes are among its %d training rows, the others are never "
                "predicted", self.name, len(present), self.classes, len(labels),
            )  # fmt: skip
        self.keep(present=present)
        if len(present) > 1:
            self.fit(inputs, torch.searchsorted(present, labels))

    def keep(self, **learnt: Tensor) -> None:
        """Set buffers, on the device of the network."""
        for name, value in learnt.items():
            setattr(self, name, value.to(self.present.device))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *options: Any, **more: Any
    ) -> None:
        """Take a fitted state, whose tensors are as large as the fit made them."""
        for name, buffer in list(self.named_buffers(recurse=False)):
            value = state_dict.get(prefix + name)
            if value is not None:
                setattr(self, name, torch.empty_like(value, device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *options, **more)


def require_classes(network: str, outputs: int) -> None:
    """Check that the outcome is a class.

    Raises:
        InputError: it is continuous.
    """
    if outputs == 1:
        raise InputError(f"network {network}: not applicable to a continuous outcome")
