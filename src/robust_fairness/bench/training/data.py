"""Inputs of rows as tensors, and the rows of a dataset as a stack of replicas trains on them."""

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.bench.compute.process import device_named
from robust_fairness.bench.experiment.experiment import Protocol, Replica
from robust_fairness.bench.methods.base import Batch, TrainingRows
from robust_fairness.bench.models.base import LabelledRows
from robust_fairness.bench.models.packing import packed
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.bench.training import preprocessing
from robust_fairness.bench.training.augmentation import AUGMENTATIONS
from robust_fairness.bench.training.preprocessing import (
    Encoding,
    encode,
    groups_are_classes,
    mitigated_attributes,
    mitigated_groups,
    subgroups_of,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import IMAGE, TOKENS, QuestionShape, RowShape
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.groups import width_of

# Of weights, inputs and losses; bfloat16 is that of a network's passes alone.
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}
VisitingOrder = Callable[[TrainingRows, torch.Generator], Tensor]

NUMBERS_AT_ONCE = 2**21  # numbers of the inputs of one block of rows
MOST_ROWS_AT_ONCE = 8192


def shape_of(samples: Samples) -> RowShape:
    """Shape of one row: of its array, or of a question with its image."""
    if samples.questions is not None:
        words, boxes = samples.questions.words, samples.questions.boxes
        return QuestionShape(words, samples.arrays[TOKENS].shape[1], *boxes.shape[1:])
    if isinstance(samples.x, dict):
        raise InputError(f"rows are several arrays: {', '.join(samples.x)}, allowed: one, x")
    return samples.x.shape[1:]


def rows_at_once(shape: RowShape) -> int:
    """Rows of a block, so that predicting a large set needs bounded memory."""
    numbers = shape.numbers if isinstance(shape, QuestionShape) else prod(shape)
    return max(1, min(MOST_ROWS_AT_ONCE, NUMBERS_AT_ONCE // max(1, numbers)))


class Inputs:
    """Inputs of all rows of samples, from which those of any rows are taken.

    Arrays of the rows are on the device; features of images stay in their file. ``shape`` is that
    of one row.
    """

    def __init__(self, samples: Samples, device: torch.device) -> None:
        self.shape = shape_of(samples)
        self.device = device
        self.arrays = {
            name: torch.from_numpy(array).to(device) for name, array in samples.arrays.items()
        }
        self.questions = samples.questions

    def of(self, rows: Tensor) -> Tensor:
        """Raw inputs ``[..., *shape]`` of the rows ``[...]``; questions are packed, float32."""
        if self.questions is None:
            # several times faster than indexing, which copies number by number
            return self.arrays["x"].index_select(0, rows.flatten()).unflatten(0, rows.shape)
        boxes = self.questions.boxes
        images = self.arrays[IMAGE][rows].cpu().numpy()
        return packed(
            self.arrays[TOKENS][rows],
            torch.from_numpy(boxes.counts[images]).to(self.device),
            torch.from_numpy(boxes.features[images]).to(self.device),
            torch.float32,
        )


class StackData:
    """Inputs, labels and groups of all rows, the rows of every replica, and their batches.

    ``train`` and ``validation`` are int64 rows ``[replica, m]``; ``y`` holds classes, or outcomes
    standardised for each replica, ``[replica, row]``. ``classes`` is 0 for a continuous outcome,
    and ``groups`` where an attribute is continuous. ``subgroup_counts`` are the training rows of
    every replica in each subgroup, int64 ``[replica, subgroup]``.
    """

    def __init__(
        self, samples: Samples, replicas: Sequence[Replica], reads_attributes: bool
    ) -> None:
        first, seeds = replicas[0], [replica.seed for replica in replicas]
        self.protocol: Protocol = first.protocol
        self.device = device_named(self.protocol.device, "protocol.device")
        self.dtype = DTYPES[self.protocol.precision]
        self.splits = [replica.split(samples.split_names) for replica in replicas]
        samples = samples.of_split(self.splits[0])
        self.train = part_rows(samples, self.splits, "train").to(self.device)
        self.validation = part_rows(samples, self.splits, "val").to(self.device)
        downstream = samples.downstream_rows(self.splits[0])
        self.downstream = torch.from_numpy(downstream).to(self.device)
        self.inputs, self.rows = Inputs(samples, self.device), len(samples)
        self.classes, self.outputs = len(samples.classes), len(samples.classes) or 1
        self._encode_groups(samples, first, reads_attributes)
        fits = {
            split: preprocessing.fit_split(self.protocol, samples, split)
            for split in set(self.splits)
        }
        stacked = preprocessing.Preprocessing([fits[split] for split in self.splits])
        self.preprocessing = stacked.to(self.device, self.dtype)
        mixed = self.preprocessing.matrix.ndim > 2  # [replica, d, d]
        names = () if mixed else samples.columns or samples.features
        self.columns = torch.from_numpy(pd.factorize(np.array(names, dtype=object))[0])
        y = torch.from_numpy(samples.y).to(self.device).expand(len(self.splits), -1)
        self.y = self.preprocessing.standardise_outcome(y)
        weight = torch.from_numpy(samples.weights())
        self.sample_weight = weight.to(self.device, self.dtype)
        sees_target = "target rows" in first.method.sees
        target = map(samples.out_of_distribution_rows, self.splits if sees_target else ())
        self.target = [torch.from_numpy(rows).to(self.device) for rows in target]  # by replica
        self.orders = [Randomness([seed], "batches", self.device) for seed in seeds]
        self.streams = {
            "dropout": Randomness(seeds, "dropout", self.device),
            "augmentation": Randomness(seeds, "augmentation"),
            "mining": Randomness(seeds, "mining", self.device),
            "target": Randomness(seeds, "target", self.device),
        }
        self.augment = AUGMENTATIONS.get(self.protocol.augmentation)

    def _encode_groups(self, samples: Samples, replica: Replica, reads_attributes: bool) -> None:
        mitigated = mitigated_attributes(samples, replica.method)
        groups = mitigated_groups(samples, replica.method)
        self.groups = len(groups.names)
        self.attribute_widths = tuple(map(width_of, mitigated))
        self.group_is_class = groups_are_classes(groups, samples)
        subgroups = subgroups_of(groups, samples, replica.method.subgroup_definition)
        self.group = torch.from_numpy(groups.index).to(self.device)
        self.subgroup = torch.from_numpy(subgroups).to(self.device)
        subgroup = self.subgroup[self.train]
        counts = subgroup.new_zeros(len(subgroup), max(1, int(self.subgroup.max()) + 1))
        trained = (subgroup >= 0).long()
        self.subgroup_counts = counts.scatter_add_(1, subgroup.clamp(min=0), trained)
        self.like = torch.zeros(0, dtype=self.dtype, device=self.device)
        self.attributes: Encoding | None = None
        self.conditioning: Encoding | None = None
        if reads_attributes:
            conditioning = [samples.conditioning_values()]
            self.attributes = encode(mitigated, self.train, self.like)
            self.conditioning = encode(conditioning, self.train, self.like)

    def network_inputs(self, rows: Tensor) -> Tensor:
        """Preprocessed inputs ``[replica, m, ...]`` of rows ``[replica, m]``."""
        return self.preprocessing(self.inputs.of(rows).to(self.dtype))

    def batch(self, rows: Tensor, epoch: int = 0, augmented: bool = False) -> Batch:
        """The batch of the rows ``[replica, m]``, with fresh dropout masks."""
        x = self.inputs.of(rows)
        if augmented and self.augment:
            x = self.augment(x, self.streams["augmentation"])
        none = self.like.new_empty(*rows.shape, 0)
        return Batch(
            x=self.preprocessing(x.to(self.dtype)),
            y=self.y.gather(1, rows),
            group=self.group[rows],
            subgroup=self.subgroup[rows],
            attributes=self.attributes.of(rows) if self.attributes else none,
            conditioning=self.conditioning.of(rows) if self.conditioning else none,
            sample_weight=self.sample_weight[rows],
            rows=rows,
            noise=DropoutNoise(self.streams["dropout"]),
            epoch=epoch,
        )

    def target_batch(self, count: int) -> Tensor:
        """Preprocessed inputs ``[replica, count, ...]`` of rows out of distribution, at random."""
        share = self.streams["target"].uniform((count,), 0.5) + 0.5
        places = zip(self.target, share, strict=True)
        drawn = [rows[(item * len(rows)).long().clamp(max=len(rows) - 1)] for rows, item in places]
        return self.network_inputs(torch.stack(drawn))

    def target_inputs(self) -> list[Tensor]:
        """Preprocessed inputs of all rows out of distribution, ``[m, ...]`` for each replica."""
        most = torch.arange(max(map(len, self.target)), device=self.device)
        x = self.network_inputs(torch.stack([rows[most % len(rows)] for rows in self.target]))
        return [part[: len(rows)] for part, rows in zip(x, self.target, strict=True)]

    def blocks(self, rows: Tensor) -> Iterator[Tensor]:
        """Rows ``[replica, m]`` in blocks that bound the memory of predictions."""
        yield from rows.split(rows_at_once(self.inputs.shape), dim=1)

    def training_batches(self) -> Iterator[Batch]:
        """All training rows in order, in blocks and without augmentation."""
        yield from map(self.batch, self.blocks(self.train))

    def labelled(self) -> LabelledRows:
        """The rows that a classifier is fitted on after training."""
        rows = self.downstream[None]
        x = (self.batch(some).x for some in self.blocks(rows))
        return LabelledRows(x, self.y.gather(1, rows), self.group[rows])

    def epoch_batches(self, visiting_order: VisitingOrder) -> Iterator[Tensor]:
        """Row numbers of each batch of one epoch, ``[replica, m]``; the last one may be small."""
        orders = []
        for number, randomness in enumerate(self.orders):
            rows = self.train[number]
            (generator,) = randomness.generators
            seen = TrainingRows(self.y[number, rows], self.subgroup[rows], rows, number)
            orders.append(rows[visiting_order(seen, generator)])
        counts = {len(order) for order in orders}
        if len(counts) > 1:
            raise InputError(f"replicas visit {sorted(counts)} rows, allowed: equally many")
        yield from torch.stack(orders).split(self.protocol.batch_size, dim=1)

    def state(self) -> dict[str, Tensor]:
        """States of the random streams, by name."""
        order = torch.cat([stream.state() for stream in self.orders])
        return {"order": order} | {name: stream.state() for name, stream in self.streams.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        for order, of_replica in zip(self.orders, state["order"], strict=True):
            order.restore(of_replica[None])
        for name, stream in self.streams.items():
            stream.restore(state[name])


def part_rows(samples: Samples, splits: Sequence[str], part: str) -> Tensor:
    """Row numbers of a part of every replica's split, int64 ``[replica, m]``."""
    result = []
    for split in splits:
        rows = samples.rows(split, part)
        if not len(rows):
            raise InputError(f"split {split!r} has no {part} rows")
        result.append(torch.from_numpy(rows))
    return torch.stack(result)
