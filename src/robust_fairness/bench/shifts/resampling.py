"""Test rows drawn again with other shares of classes or groups."""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, NonNegativeInt

from robust_fairness.bench.shifts.base import SampleShift, Severities
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.registry import PluginParameters
from robust_fairness.core.samples import Samples


class ResamplingParameters(PluginParameters):
    """``seed`` is that of the order: a larger change leaves out the same rows and further ones."""

    seed: NonNegativeInt = 0


class Resampling(SampleShift):
    """Leave out test rows at random until the selected ones have a stated share.

    The severity is their share among the test rows of each split. As many rows as possible are
    kept, none is repeated, and the distribution within the selected rows and within the others
    stays as it is.
    """

    applies_to = ("table", "image", "generated")
    severities = Severities("a share of the test rows", high=1)
    Parameters: ClassVar[type[BaseModel]] = ResamplingParameters

    def shifted(self, samples: Samples, severity: float, places: np.ndarray) -> Samples:
        selected = self.selected(samples)
        generator = np.random.default_rng(self.parameters.seed)
        order = generator.random(int(places.max(initial=-1)) + 1)[places]
        splits = samples.splits.copy()
        for split in splits:
            rows = samples.rows(str(split), "test")
            kept = kept_rows(selected[rows], order[rows], severity)
            if not kept.any():
                raise InputError(
                    f"{self.name} severity {severity}: no test row of {split} is left; "
                    "allowed: shares of rows that there are"
                )
            splits.loc[splits.index[rows[~kept]], split] = pd.NA
        return replace(samples, splits=splits)

    @abstractmethod
    def selected(self, samples: Samples) -> np.ndarray:
        """The rows whose share is stated, bool ``[n]``; an error if there are none."""


def kept_rows(selected: np.ndarray, order: np.ndarray, share: float) -> np.ndarray:
    """The largest subset in which the selected rows have a share, rounded to whole rows.

    Args:
        selected: bool ``[n]``.
        order: the rows with the smallest values are kept, ``[n]``.
        share: from 0 to 1.

    Returns:
        bool ``[n]``.
    """
    counts = np.array([(~selected).sum(), selected.sum()])
    wanted = np.array([1 - share, share])
    # the total is limited by the kind of row that runs out first
    total = min(count / part for count, part in zip(counts, wanted, strict=True) if part > 0)
    numbers = np.rint(total * wanted).astype(np.int64)
    kept = np.zeros(len(selected), dtype=bool)
    for kind, number in enumerate(numbers):
        rows = np.flatnonzero(selected == bool(kind))
        kept[rows[np.argsort(order[rows], kind="stable")[:number]]] = True
    return kept


class LabelPrevalence(Resampling):
    r"""Another share of a class among the test rows.

    Change the prevalence :math:`P(Y = y)`; :math:`P(X, A \mid Y)` stays as it is.

    The severity is the new prevalence.
    """

    name = "label_prevalence"

    class Parameters(ResamplingParameters):
        """``label`` is the class whose share is stated; the last one by default."""

        label: str = ""

    def selected(self, samples: Samples) -> np.ndarray:
        if not samples.classes:
            raise InputError("label_prevalence is not applicable to a continuous outcome")
        label = self.parameters.label or samples.classes[-1]
        if label not in samples.classes:
            raise unknown_name("class", label, samples.classes)
        return samples.y == samples.classes.index(label)


class GroupMix(Resampling):
    r"""Another share of a group among the test rows.

    Change the share :math:`P(A = a)`; :math:`P(X, Y \mid A)` stays as it is.

    The severity is the new share.
    """

    name = "group_mix"

    class Parameters(ResamplingParameters):
        """``group`` is the value of ``attribute`` whose share is stated."""

        attribute: str
        group: str

    def selected(self, samples: Samples) -> np.ndarray:
        attribute, group = self.parameters.attribute, self.parameters.group
        if attribute not in samples.attributes:
            raise unknown_name("attribute of group_mix", attribute, samples.attributes.columns)
        values = samples.attributes[attribute].astype(str)
        if group not in set(values):
            raise unknown_name(f"group of {attribute}", group, values.unique())
        return (values == group).to_numpy()
