"""Samples: the only thing that travels between ingestion, shifts, training and evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.samples.questions import Questions

# Parts of a split. ``unbiased_val`` is optional: the validation rows again, drawn as the test
# rows are, for data whose bias is known (Biased MNIST).
PARTS = ("train", "val", "unbiased_val", "test")
REQUIRED_PARTS = ("train", "val", "test")
OF_SPLIT = "@"  # ``class_size@split_3`` is the attribute ``class_size`` for split_3 alone

Arrays = np.ndarray | dict[str, np.ndarray]


@dataclass(frozen=True)
class Samples:
    """Rows of a dataset with their labels, attributes and named splits.

    Attributes:
        x: float32 features ``[n, d]`` as read (preprocessing is fitted per replica, on its own
            training rows), uint8 images ``[n, c, h, w]``, or a named set of such arrays.
        y: int64 class index ``[n]``, or float32 outcome ``[n]`` when ``classes`` is empty.
        attributes: sensitive or bias variables, ``n`` rows; a categorical column defines
            groups, a float column is continuous. A column ``name@split`` is the attribute
            ``name`` as it is for that split, see ``of_split``.
        id: what the row is called in its source, ``[n]`` int64 or str.
        splits: ``n`` rows, one categorical column a *named split*, with values in ``PARTS``; a
            missing value keeps the row out of that split. A replica names the split it uses.
        features: names of the columns of ``x``; empty for images.
        classes: names of the classes of ``y``; empty for a continuous outcome.
        sensitive: the attributes that methods mitigate, in order.
        given: the attribute that takes the place of ``y`` where equalised odds is asked for,
            such as the outcome of a treatment that ``y`` is the choice of; empty for ``y``.
        perturbation: float32 ``[n, d]`` or None: what a shift adds to the features *after*
            preprocessing, in its units (standard deviations of the training rows).
        sources: SHA-256 of every file that the samples were read from, by file name.
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
    classes: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    given: str = ""
    perturbation: np.ndarray | None = None
    sources: dict[str, str] = field(default_factory=dict)
    downstream: pd.DataFrame | None = None
    questions: Questions | None = None

    def __post_init__(self) -> None:
        """Check that all parts tell of the same rows.

        Raises:
            InputError: lengths differ, a label is out of range or missing, or a sensitive
                attribute, or the given one, is no column of ``attributes``.
        """
        lengths = {name: len(array) for name, array in self.arrays.items()}
        lengths |= {name: len(getattr(self, name)) for name in ("y", "attributes", "id", "splits")}
        if self.downstream is not None:
            lengths["downstream"] = len(self.downstream)
        if len(set(lengths.values())) != 1:
            raise InputError(f"samples: parts differ in length: {lengths}")
        known = {str(name).partition(OF_SPLIT)[0] for name in self.attributes}
        for name in self.sensitive:
            if name not in known:
                raise unknown_name("sensitive attribute", name, known)
        if self.given and self.given not in self.attributes:
            raise unknown_name("given attribute", self.given, self.attributes.columns)
        if (
            self.classes
            and len(self.y)
            and not 0 <= self.y.min() <= self.y.max() < len(self.classes)
        ):
            raise InputError(
                f"samples: y holds {self.y.min()} to {self.y.max()}, "
                f"allowed: 0 to {len(self.classes) - 1}"
            )
        if not self.classes and not np.isfinite(self.y).all():
            raise InputError("samples: y holds values that are not finite")

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

    @property
    def differs_by_split(self) -> bool:
        """Whether an attribute is another for each split, see ``of_split``."""
        return any(OF_SPLIT in str(name) for name in self.attributes)

    def rows(self, split: str, part: str) -> np.ndarray:
        """Row numbers of one part (of ``PARTS``) of a named split, int64 ``[m]``.

        Raises:
            InputError: no split of that name.
        """
        if split not in self.splits:
            raise unknown_name("split", split, self.splits.columns)
        return np.flatnonzero((self.splits[split] == part).to_numpy())

    def downstream_rows(self, split: str) -> np.ndarray:
        """Row numbers that classifiers of frozen embeddings are fitted on, int64 ``[m]``.

        Raises:
            InputError: no split of that name.
        """
        if self.downstream is None:
            return self.rows(split, "train")
        if split not in self.downstream:
            raise unknown_name("split", split, self.downstream.columns)
        return np.flatnonzero(self.downstream[split].to_numpy())

    def of_split(self, split: str) -> "Samples":
        """The samples as one split sees them: attributes that differ by split are its own."""
        if not self.differs_by_split:
            return self
        names = [str(name) for name in self.attributes]
        own = {name: name.partition(OF_SPLIT)[0] for name in names}
        kept = [name for name in names if name.partition(OF_SPLIT)[2] in ("", split)]
        return replace(self, attributes=self.attributes[kept].rename(columns=own))

    def given_values(self) -> pd.Series:
        """What equalised odds conditions on, ``[n]``: classes as categories, or numbers."""
        if self.given:
            return self.attributes[self.given]
        if self.classes:
            return pd.Series(pd.Categorical.from_codes(self.y, pd.Index(self.classes)))
        return pd.Series(self.y)

    def table(self) -> pd.DataFrame:
        """All but the inputs as a table, ``n`` rows: id, y, splits and attributes."""
        own = pd.DataFrame({"id": self.id, "y": self.y})
        return pd.concat([own, self.splits, self.attributes], axis=1)

    def without_inputs(self) -> "Samples":
        """The samples without ``x``: what scoring needs, cheap to take rows of."""
        nothing = np.empty((len(self), 0), dtype=np.float32)
        return replace(self, x=nothing, perturbation=None, questions=None)

    def take(self, rows: np.ndarray) -> "Samples":
        """The samples of the given row numbers, in their order."""
        x = {name: array[rows] for name, array in self.arrays.items()}
        return replace(
            self,
            x=x if isinstance(self.x, dict) else x["x"],
            y=self.y[rows],
            attributes=self.attributes.iloc[rows].reset_index(drop=True),
            id=self.id[rows],
            splits=self.splits.iloc[rows].reset_index(drop=True),
            perturbation=None if self.perturbation is None else self.perturbation[rows],
            downstream=None
            if self.downstream is None
            else self.downstream.iloc[rows].reset_index(drop=True),
        )


@dataclass(frozen=True)
class Groups:
    """Group number of every row, with the readable name of each number.

    Attributes:
        index: int64 ``[n]``, 0 to ``len(names) - 1``; -1 where an attribute is missing.
        names: one a group, for example ``"female"`` or ``"female & black"``.
    """

    index: np.ndarray
    names: tuple[str, ...]

    @property
    def counts(self) -> np.ndarray:
        """Rows in each group, int64 ``[groups]``; missing values are not counted."""
        return np.bincount(self.index[self.index >= 0], minlength=len(self.names))


def require_categorical(attributes: pd.DataFrame, columns: Sequence[str]) -> None:
    """Check that some attributes define groups.

    Raises:
        InputError: no column is given, or one does not exist or is continuous.
    """
    if not columns:
        raise InputError(f"groups of no attribute, allowed: {', '.join(map(str, attributes))}")
    for column in columns:
        if column not in attributes:
            raise unknown_name("attribute", column, attributes.columns)
        if not isinstance(attributes[column].dtype, pd.CategoricalDtype):
            raise InputError(f"attribute {column!r} is continuous: it defines no groups; bin it")


def groups_of(attributes: pd.DataFrame, columns: Sequence[str]) -> Groups:
    """Groups of one categorical attribute, or of every combination that occurs of several.

    A single attribute keeps all its categories, also those without rows, in their order; of
    several, the combinations found in the data are counted, never enumerated.

    Raises:
        InputError: no column is given, or one does not exist or is continuous.
    """
    require_categorical(attributes, columns)
    if len(columns) == 1:
        only = attributes[columns[0]].cat
        return Groups(only.codes.to_numpy().astype(np.int64), tuple(map(str, only.categories)))
    codes = [attributes[column].cat.codes.to_numpy() for column in columns]
    complete = np.all([code >= 0 for code in codes], axis=0)
    # Numbers of the combinations of the first columns, in order; never more than there are rows.
    inverse = np.zeros(complete.sum(), dtype=np.int64)
    for column, code in zip(columns, codes, strict=True):
        joined = inverse * len(attributes[column].cat.categories) + code[complete]
        _, first, inverse = np.unique(joined, return_index=True, return_inverse=True)
    index = np.full(len(attributes), -1, dtype=np.int64)
    index[complete] = inverse
    names = [
        np.array([str(name) for name in attributes[column].cat.categories], dtype=object)[
            code[complete][first]
        ]
        for column, code in zip(columns, codes, strict=True)
    ]
    return Groups(index, tuple(map(" & ".join, zip(*names, strict=True))))


def numbers_of(values: pd.Series) -> np.ndarray:
    """Numbers that stand for an attribute, float64 ``[n, columns]``; NaN where it is missing.

    A continuous one has one column, a categorical one a column of 0 and 1 for each category, and
    at least two, so that it is never taken for a number.
    """
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values.to_numpy(np.float64)[:, None]
    codes = values.cat.codes.to_numpy()
    columns = np.eye(width_of(values))[codes]
    columns[codes < 0] = np.nan
    return columns


def width_of(values: pd.Series) -> int:
    """Number of columns of ``numbers_of``."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return 1
    return max(2, len(values.cat.categories))


def values_of(values: pd.Series) -> np.ndarray:
    """What tells an attribute of rows apart from another, ``[n]``: numbers, or places of names."""
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return values.to_numpy(np.float64)
    return values.cat.codes.to_numpy()
