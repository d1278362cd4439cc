"""The base class of post-processing."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel

from robust_fairness.core.registry import Plugin, PluginParameters
from robust_fairness.numbers.groups import Groups


class PostProcessingParameters(PluginParameters):
    """Parameters of post-processing.

    ``attributes`` define the groups; default: the dataset's ``sensitive`` ones.
    """

    attributes: tuple[str, ...] = ()


class Decisions(ABC):
    """A fitted rule."""

    @abstractmethod
    def __call__(self, y_score: np.ndarray, groups: Groups) -> np.ndarray:
        """Probability of deciding class 1, float64 ``[n]``, of scores and groups of the rows.

        Groups are recognised by their values; their codes may differ from those fitted.
        """


class PostProcessing(Plugin, ABC):
    """Post-processing of a classifier of two classes, fitted on validation rows.

    It sees the groups of validation rows and of every row that it decides on. Decisions may be
    random: they are given, and scored, by their probability.

    Args:
        hparams: of the class ``Parameters``.
    """

    Parameters: ClassVar[type[BaseModel]] = PostProcessingParameters

    def __init__(self, hparams: Any) -> None:
        self.hparams = hparams

    @abstractmethod
    def fit(
        self,
        y_true: np.ndarray,
        y_score: np.ndarray,
        groups: Groups,
        sample_weight: np.ndarray | None = None,
    ) -> Decisions:
        """Fit to classes 0 and 1, probabilities of class 1, groups and weights, ``[n]`` each.

        Every row has a group, and every group with rows has rows of both classes.
        """
