"""Samples: the only thing that travels between ingestion, shifts, training and evaluation."""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.questions import Questions

# Parts of a split. ``unbiased_val`` is optional: the validation rows again, drawn as the test
# rows are, for data whose bias is known (Biased MNIST).
PARTS = ("train", "val", "unbiased_val", "test")
REQUIRED_PARTS = ("train", "val", "test")
# Rows of domains that are not trained on.
OOD_PARTS = ("ood_val", "ood_test")

Arrays = np.ndarray | dict[str, np.ndarray]
# Fields of samples besides inputs that have an entry for every row, where they are given.
BY_ROW = ("y", "attributes", "id", "splits", "downstream", "sample_weight", "units")


@dataclass(frozen=True)
class Samples:
    """Rows of a dataset with their labels, attributes and named splits.

    Attributes:
        x: float32 features ``[n, d]`` as read (preprocessing is fitted per replica, on its own
            training rows), uint8 images ``[n, c, h, w]``, or a named set of such arrays.
        y: int64 class index ``[n]``, or float32 outcome ``[n]`` when ``classes`` is empty.
        attributes: sensitive or bias variables, ``n`` rows; a categorical column defines
            groups, a float column is continuous.
        id: what the row is called in its source, ``[n]`` int64 or str.
        splits: ``n`` rows, one categorical column a *named split*, with values in ``PARTS`` and
            ``OOD_PARTS``; a missing value keeps the row out of that split. A replica names the
            split it uses.
        features: names of the columns of ``x``; empty for images.
        columns: the column of the table that each feature was made of, the same for all features of
            a one-hot encoded column; empty where the features are the columns.
        classes: names of the classes of ``y``; empty for a continuous outcome.
        sensitive: the attributes that methods mitigate, in order.
        conditioning: the attribute that equalised odds conditions on, such as the outcome of a
            treatment that ``y`` is the choice of; empty for ``y``.
        perturbation: float32 ``[n, d]`` or None: what a shift adds to the features *after*
            preprocessing, in its units (standard deviations of the training rows).
        sources: SHA-256 of every file that the samples were read from, by file name.
        domain: the categorical attribute that names the domain of a row, such as a hospital or a
            year; empty where there is one domain.
        units: what rows must stay together, such as the number of a patient, int64 or str ``[n]``;
            None where every row is a unit.
        sample_weight: float weights of the rows in training ``[n]``; None for equal weights.
        split_attributes: further attributes, by the named split for which they hold; ``of_split``
            adds those of one split to ``attributes``.
        downstream: bool ``n`` rows, one column a named split: the rows that classifiers of frozen
            embeddings are fitted on; None for the training rows.
        questions: what the rows share where they are questions on images, else None.
    """

    x: Arrays
    y: np.ndarray
    attributes: pd.DataFrame
    id: np.ndarray
    splits: pd.DataFrame
    features: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    conditioning: str = ""
    perturbation: np.ndarray | None = None
    sources: dict[str, str] = field(default_factory=dict)
    domain: str = ""
    units: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    split_attributes: dict[str, pd.DataFrame] = field(default_factory=dict)
    downstream: pd.DataFrame | None = None
    questions: Questions | None = None

    def __post_init__(self) -> None:
        """Check that all parts describe the same rows."""
        fields = {name: getattr(self, name) for name in BY_ROW}
        parts = self.arrays | fields | self.split_attributes
        lengths = {name: len(part) for name, part in parts.items() if part is not None}
        if len(set(lengths.values())) != 1:
            raise InputError(f"samples: parts differ in length: {lengths}")
        known = set(map(str, chain(self.attributes, *self.split_attributes.values())))
        for name in self.sensitive:
            if name not in known:
                raise unknown_name("sensitive attribute", name, known)
        for kind, name in (("conditioning", self.conditioning), ("domain", self.domain)):
            if name and name not in self.attributes:
                raise unknown_name(f"{kind} attribute", name, self.attributes.columns)
        if (
            self.classes
            and len(self.y)
            and not 0 <= self.y.min() <= self.y.max() < len(self.classes)
        ):
            raise InputError(
                f"samples: y is between {self.y.min()} and {self.y.max()}, allowed: 0 to "
                f"{len(self.classes) - 1}"
            )
        if not self.classes and not np.isfinite(self.y).all():
            raise InputError("samples: y has values that are not finite")

    @classmethod
    def unlabelled(cls, x: np.ndarray, classes: tuple[str, ...], **others: Any) -> "Samples":
        """Samples with inputs ``[n, ...]`` alone, to predict; ``others`` are further fields.

        >>> len(Samples.unlabelled(np.zeros((2, 3), np.float32), ("no", "yes")))
        2
        """
        y = np.zeros(len(x), dtype=np.int64 if classes else np.float32)
        nothing = pd.DataFrame(index=range(len(x)))
        return cls(x, y, nothing, np.arange(len(x)), nothing, classes=classes, **others)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays of ``x`` by name; a single one is called ``x``."""
        return self.x if isinstance(self.x, dict) else {"x": self.x}

    @property
    def split_names(self) -> list[str]:
        """Names of the splits."""
        return [str(name) for name in self.splits.columns]

    def rows(self, split: str, part: str) -> np.ndarray:
        """Row numbers of one part of a named split, int64 ``[m]``."""
        if split not in self.splits:
            raise unknown_name("split", split, self.splits.columns)
        return np.flatnonzero((self.splits[split] == part).to_numpy())

    def out_of_distribution_rows(self, split: str) -> np.ndarray:
        """Row numbers of domains that are not trained on, int64 ``[m]``."""
        return np.concatenate([self.rows(split, part) for part in OOD_PARTS])

    def downstream_rows(self, split: str) -> np.ndarray:
        """Row numbers that classifiers of frozen embeddings are fitted on, int64 ``[m]``."""
        if self.downstream is None:
            return self.rows(split, "train")
        if split not in self.downstream:
            raise unknown_name("split", split, self.downstream.columns)
        return np.flatnonzero(self.downstream[split].to_numpy())

    def of_split(self, split: str) -> "Samples":
        """The samples with the attributes of one split; the same object if there are none."""
        if not self.split_attributes:
            return self
        attributes = pd.concat([self.attributes, self.split_attributes[split]], axis=1)
        return replace(self, attributes=attributes, split_attributes={})

    @property
    def labels(self) -> pd.Series:
        """Classes of the rows as categories, or numbers of a continuous outcome, ``[n]``."""
        if self.classes:
            return pd.Series(pd.Categorical.from_codes(self.y, pd.Index(self.classes)))
        return pd.Series(self.y)

    def conditioning_values(self) -> pd.Series:
        """What equalised odds conditions on, ``[n]``: an attribute, or the labels."""
        return self.attributes[self.conditioning] if self.conditioning else self.labels

    def weights(self) -> np.ndarray:
        """Weights of the rows in training, float64 ``[n]``."""
        if self.sample_weight is None:
            return np.ones(len(self))
        return np.asarray(self.sample_weight, dtype=np.float64)

    def table(self) -> pd.DataFrame:
        """All but the inputs as a table: id, y, splits and attributes.

        Attributes that differ by split make a row per row and split, with a column ``split``.
        """
        columns = pd.DataFrame({"id": self.id, "y": self.y})
        whole = pd.concat([columns, self.splits, self.attributes], axis=1)
        by_split = [
            pd.concat([whole.assign(split=name), frame], axis=1)
            for name, frame in self.split_attributes.items()
        ]
        return pd.concat(by_split, ignore_index=True) if by_split else whole

    def without_inputs(self) -> "Samples":
        """The samples without ``x``: what scoring needs, cheap to take rows of."""
        nothing = np.empty((len(self), 0), dtype=np.float32)
        return replace(self, x=nothing, perturbation=None, questions=None)

    def take(self, rows: np.ndarray) -> "Samples":
        """The samples of the given row numbers, in their order."""
        names = ("x", "perturbation", "split_attributes", *BY_ROW)
        return replace(self, **{name: _taken(getattr(self, name), rows) for name in names})


def _taken(part: Any, rows: np.ndarray) -> Any:
    """The given rows of an array or a table, numbered from 0, or of those in a dictionary."""
    if isinstance(part, dict):
        return {name: _taken(item, rows) for name, item in part.items()}
    if isinstance(part, pd.DataFrame):
        return part.iloc[rows].reset_index(drop=True)
    return None if part is None else part[rows]
