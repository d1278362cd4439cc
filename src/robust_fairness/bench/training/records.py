"""Results of training: fitted models and predictions, as plain arrays."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np

from robust_fairness.metrics.evaluation import DECISION

EARLIER = "outputs_of_earlier_epochs"  # of a prediction, [n, epoch, output]


@dataclass(frozen=True)
class Fitted:
    """One trained replica, complete: network, weights and preprocessing.

    Attributes:
        trial: name of its trial, for example ``default`` or ``alpha=0.1``.
        split: the named split it was trained on.
        network: name and parameters of its network.
        preprocessing: name of its preprocessing.
        state: weights as ``model.*``, fitted preprocessing as ``preprocessing.*``, and weights
            after the scored epochs before the last one as ``earlier.model.*``, ``[epoch, ...]``.
    """

    trial: str
    seed: int
    split: str
    network: dict[str, Any]
    preprocessing: str
    state: dict[str, np.ndarray] = field(repr=False)

    def earlier(self) -> list["Fitted"]:
        """The replica after each scored epoch before the last one, oldest first."""
        weights = with_prefix("earlier.", self.state)
        return [
            replace(
                self,
                state=self.state | {name: value[epoch, ...] for name, value in weights.items()},
            )
            for epoch in range(max(map(len, weights.values()), default=0))
        ]


@dataclass(frozen=True)
class Prediction:
    """Predictions of one replica on rows of one sample set.

    Attributes:
        split: the named split it was trained on.
        test_set: name of the sample set, "" for the dataset's own samples.
        part: part of the split.
        rows: int64 ``[n]`` row numbers in that sample set.
        outputs: float32 ``[n, classes]`` logits, or ``[n, 1]`` outcomes in their own units.
        values: further quantities of every row ``[n, ...]``, for example ``curvature`` ``[n]``,
            ``embedding`` ``[n, d]`` or, after post-processing, ``decision`` ``[n]``: the
            probability that class 1 is decided. ``EARLIER`` are the outputs ``[n, epoch, output]``
            after the scored epochs before the last one.
        network: name of the replica's network in tables.
    """

    trial: str
    seed: int
    split: str
    test_set: str
    part: str
    rows: np.ndarray = field(repr=False)
    outputs: np.ndarray = field(repr=False)
    values: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    network: str = ""

    @property
    def positive(self) -> np.ndarray:
        """Probability that class 1 is decided, float64 ``[n]``: 0 or 1 unless it is random."""
        return self.values.get(DECISION, self.outputs.argmax(-1) == 1).astype(np.float64)

    def take(self, places: np.ndarray) -> "Prediction":
        """The predictions of some of its rows, by their places in ``rows``."""
        values = {name: value[places] for name, value in self.values.items()}
        return replace(self, rows=self.rows[places], outputs=self.outputs[places], values=values)

    def by_epoch(self) -> list["Prediction"]:
        """The predictions after every scored epoch, oldest first."""
        if EARLIER not in self.values:
            return [self]
        last = replace(self, values={k: v for k, v in self.values.items() if k != EARLIER})
        outputs = self.values[EARLIER].swapaxes(0, 1)
        return [*(replace(last, outputs=earlier) for earlier in outputs), last]


Value = TypeVar("Value")


def with_prefix(prefix: str, state: Mapping[str, Value]) -> dict[str, Value]:
    """Entries whose names begin with a prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


LARGE = 2**16  # bytes from which arrays are compared

Record = TypeVar("Record", Fitted, Prediction)


def to_arrays(records: Sequence[Fitted | Prediction]) -> tuple[dict[str, np.ndarray], list[dict]]:
    """Split records into arrays by unique name and the rest, which JSON can hold.

    An array is named ``{record number}/{field}``, followed by ``/{key}`` in a dictionary. Large
    equal arrays, such as the weights of trials that share a training, are stored once: ``same`` of
    the rest names the stored one.
    """
    arrays: dict[str, np.ndarray] = {}
    rest = []
    for number, record in enumerate(records):
        plain: dict[str, Any] = {}
        for entry in fields(record):
            value = getattr(record, entry.name)
            if isinstance(value, np.ndarray):
                arrays[f"{number}/{entry.name}"] = value
            elif entry.name in ("state", "values"):
                arrays |= {f"{number}/{entry.name}/{key}": item for key, item in value.items()}
            else:
                plain[entry.name] = value
        rest.append(plain)
    first: dict[tuple, str] = {}
    for name, array in list(arrays.items()):
        if array.nbytes < LARGE:
            continue
        content = np.asarray(array, order="C")
        digest = hashlib.blake2b(content.view(np.uint8).data).hexdigest()
        kept = first.setdefault((array.shape, array.dtype.str, digest), name)
        if kept != name:
            del arrays[name]
            place, _, path = name.partition("/")
            rest[int(place)].setdefault("same", {})[path] = kept
    return arrays, rest


def from_arrays(
    kind: type[Record], arrays: dict[str, np.ndarray], rest: list[dict]
) -> list[Record]:
    """Records of ``kind`` from the result of ``to_arrays``."""
    result: list[dict[str, Any]] = [dict(plain) for plain in rest]
    whole = dict(arrays)
    for number, plain in enumerate(result):
        whole |= {f"{number}/{path}": arrays[kept] for path, kept in plain.pop("same", {}).items()}
    for name, array in whole.items():
        record, attribute, *key = name.split("/", 2)
        if key:
            result[int(record)].setdefault(attribute, {})[key[0]] = array
        else:
            result[int(record)][attribute] = array
    return [kind(**attributes) for attributes in result]
