"""The training loop: all replicas of a stack at once, resumable at any moment."""

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from math import cos, isnan, pi
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from pydantic import BaseModel
from torch import Tensor

from robust_fairness.core import checkpoints
from robust_fairness.core.checkpoints import Checkpoint
from robust_fairness.core.devices import device_named
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.progress import progress
from robust_fairness.core.registry import find
from robust_fairness.experiment.parameters import CellParameters, Protocol, Replica
from robust_fairness.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    TrainingRows,
    plain_steps,
    shuffled,
)
from robust_fairness.models.base import LabelledRows, Model
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.samples import REQUIRED_PARTS, Groups, Samples, groups_of, values_of, width_of
from robust_fairness.training import attributes, augmentation, preprocessing
from robust_fairness.training.inputs import Inputs, rows_at_once, training_inputs
from robust_fairness.training.preprocessing import Preprocessing
from robust_fairness.training.records import Fitted

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: (1 + cos(pi * done)) / 2,
    "constant": lambda done: 1.0,
    "two_steps": lambda done: 0.3 ** ((done >= 0.4) + (done >= 0.8)),  # noqa: PLR2004
}
Steps = Callable[[Model, Batch], Iterator[Step]]
Stops = Callable[[int, Tensor], bool]
VisitingOrder = Callable[[TrainingRows, torch.Generator], Tensor]

PLAIN_METHOD = "erm"
GROUP_AND_CLASS = "group_and_class"
# The code that decides a training's numbers.
ROOMS = ("training", "methods", "objectives", "miners", "models", "metrics")


def never(epoch: int, losses: Tensor) -> bool:
    """That no epoch but the protocol's last is the last one."""
    return False


def trainings(replicas: Sequence[Replica], network: str) -> list[list[Replica]]:
    """Replicas that share one training: they differ in what is fitted after it alone."""
    model = network_class(network)
    if model.stacks:
        return [[replica] for replica in replicas]
    found: dict[str, list[Replica]] = {}
    for replica in replicas:
        trained = model.trained_as(replica.network)
        key = repr((replica.seed, replica.method, trained, replica.protocol))
        found.setdefault(key, []).append(replica)
    return list(found.values())


def stacks(replicas: Sequence[Replica], samples: Samples, network: str) -> list[list[Replica]]:
    """Replicas that can train at once: alike but for seeds and the method's float fields.

    Networks of torch's own layers train one by one, and so do splits with attributes of their own.
    """
    splits = samples.split_names
    apart = samples.differs_by_split

    def shape(replica: Replica) -> str:
        alike = {
            name: value
            for name, value in replica.method.model_dump().items()
            if not is_per_replica(replica.method, name)
        }
        split = replica.split(splits)
        counts = [len(samples.rows(split, part)) for part in REQUIRED_PARTS]
        return repr((alike, replica.network, replica.protocol, counts, split if apart else ""))

    if not network_class(network).stacks:
        return [[replica] for replica in replicas]
    return [list(group) for _, group in groupby(sorted(replicas, key=shape), key=shape)]


def is_per_replica(parameters: BaseModel, name: str) -> bool:
    """Whether a hyperparameter may differ within a stack: the float fields do."""
    return type(parameters).model_fields[name].annotation is float


def stack_parameters(parameters: Sequence[BaseModel], like: Tensor) -> BaseModel:
    """Hyperparameters of a stack: tensors ``[replica]`` in the place of floats."""
    first = parameters[0]
    values = {
        name: like.new_tensor([getattr(one, name) for one in parameters])
        if is_per_replica(first, name)
        else getattr(first, name)
        for name in type(first).model_fields
    }
    return type(first).model_construct(None, **values)


def optimiser_options(protocol: Protocol) -> dict[str, Any]:
    """What the protocol's optimiser is made with."""
    options = {"lr": protocol.learning_rate, "weight_decay": protocol.weight_decay, "fused": True}
    return options | ({"momentum": protocol.momentum} if protocol.optimiser == "sgd" else {})


def apply(
    step: Step,
    players: Mapping[str, Sequence[torch.nn.Parameter]],
    optimisers: Mapping[str, torch.optim.Optimizer],
) -> None:
    """Move every player of the step along its own loss, all from the same pass.

    Args:
        step: losses, and gradients for players whose direction is none of a loss.
        players: parameters of every player.
        optimisers: one a player, over these parameters.
    """
    for player, loss in step.losses.items():
        owned = players[player]
        # a loss may leave out layers of its player: they stand still but for the optimiser
        gradients = step.gradients.get(player) or torch.autograd.grad(
            loss.sum(), owned, retain_graph=len(step.losses) > 1, materialize_grads=True
        )
        for parameter, gradient in zip(owned, gradients, strict=True):
            # Fused Adam reads memory in order, whatever the gradient's strides say.
            parameter.grad = gradient.contiguous()
    for player in step.losses:
        optimisers[player].step()
        optimisers[player].zero_grad()  # the next gradients need not stand beside these


def device_of(protocol: Protocol) -> torch.device:
    """The device that the protocol names; ``auto`` takes the GPU where there is one.

    Raises:
        InputError: cuda is asked for and there is none.
    """
    return device_named(protocol.device, "protocol.device")


class Stack:
    """A stack of replicas in training: data, networks, optimisers and random numbers.

    Args:
        samples: the dataset.
        cell: the cell's settings.
        replicas: what ``stacks`` put together.
    """

    def __init__(self, samples: Samples, cell: CellParameters, replicas: Sequence[Replica]) -> None:
        first, seeds = replicas[0], [replica.seed for replica in replicas]
        self.replicas, self.protocol, self.cell = list(replicas), first.protocol, cell
        self.history: list[Tensor] = []
        self.device = device_of(first.protocol)
        self.dtype = getattr(torch, first.protocol.precision)
        self.splits = [replica.split(samples.split_names) for replica in replicas]
        samples = samples.of_split(self.splits[0])
        self.train = part_rows(samples, self.splits, "train").to(self.device)
        self.validation = part_rows(samples, self.splits, "val").to(self.device)
        groups = mitigated_groups(samples, first.method)
        cells = cells_of(groups, samples, first.method.subgroup_definition)
        self.inputs = Inputs(samples, self.device)
        self.outputs = len(samples.classes) or 1
        downstream = samples.downstream_rows(self.splits[0])
        self.downstream = torch.from_numpy(downstream).to(self.device)
        self.group = torch.from_numpy(groups.index).to(self.device)
        like = torch.zeros(0, dtype=self.dtype, device=self.device)
        method = method_class(cell.method.name)
        mitigated = mitigated_attributes(samples, first.method)
        read = method.reads_attributes
        self.attributes = attributes.encode(mitigated if read else [], self.train, like)
        given = [samples.given_values()] if read else []
        self.given = attributes.encode(given, self.train, like)
        self.cells = torch.from_numpy(cells).to(self.device)
        self.preprocessing = self._fit_preprocessing(samples)
        self.y = self._labels(samples)

        self.dropout = Randomness(seeds, "dropout", self.device)
        self.order = Randomness(seeds, "batches", self.device)
        self.mining = Randomness(seeds, "mining", self.device)
        self.augmentation = Randomness(seeds, "augmentation")
        self.augment = augmentation.named(first.protocol.augmentation, self.inputs.some())
        weights = Randomness(seeds, "weights")
        self.model = self._new_model(weights, first)
        require_plain_training(self.model, cell, self.protocol)
        problem = Problem(
            classes=len(samples.classes),
            groups=len(groups.names),
            attribute_widths=tuple(map(width_of, mitigated)),
            group_is_class=groups_are_classes(groups, samples),
            subgroup_counts=self._subgroup_counts(),
            rows=len(samples),
            batch_size=self.protocol.batch_size,
            seeds=tuple(seeds),
            heads=Randomness(seeds, "heads"),
            new_model=lambda: self._new_model(weights, first),
            learning_rate=self.protocol.learning_rate,
            mining=self.mining,
            training_batches=self.training_batches,
        )
        values = stack_parameters([replica.method for replica in replicas], like)
        self.method = method(values, self.model, problem)
        self.method.to(self.device, self.dtype)
        self.players = {
            name: list(owned) for name, owned in self.method.players(self.model).items()
        }
        options = {
            name: optimiser_options(self.protocol) | self.method.optimiser_options(name)
            for name in self.players
        }
        self.learning_rates = {name: one["lr"] for name, one in options.items()}
        self.optimisers = {
            name: OPTIMISERS[self.protocol.optimiser](owned, **options[name])
            for name, owned in self.players.items()
            if owned
        }

    def _new_model(self, weights: Randomness, replica: Replica) -> Model:
        network = network_class(self.cell.network.name)
        model = network(replica.network, self.inputs.shape, self.outputs, weights)
        return model.to(self.device, self.dtype)

    def _subgroup_counts(self) -> Tensor:
        """Training rows of every replica in each cell, int64 ``[replica, cell]``."""
        cells = self.cells[self.train]
        known = cells >= 0
        counts = self.cells.new_zeros(len(cells), max(1, int(self.cells.max()) + 1))
        return counts.scatter_add_(1, cells.clamp(min=0), known.long())

    def _fit_preprocessing(self, samples: Samples) -> Preprocessing:
        fits = {}
        for split in set(self.splits):
            rows = samples.rows(split, "train")
            fits[split] = preprocessing.fit(
                self.protocol.preprocessing, training_inputs(samples, rows), samples.y[rows]
            )
        return preprocessing.stack([fits[split] for split in self.splits]).to(
            self.device, self.dtype
        )

    def _labels(self, samples: Samples) -> Tensor:
        """Classes, or outcomes standardised for each replica, ``[replica, row]``."""
        y = torch.from_numpy(samples.y).to(self.device)
        y = y.to(self.dtype) if y.is_floating_point() else y
        return self.preprocessing.standardise_outcome(y.expand(len(self.splits), -1))

    def batch(self, rows: Tensor, augmented: bool = False) -> Batch:
        """The batch of the rows ``[replica, m]``, with fresh dropout masks.

        Args:
            rows: row numbers.
            augmented: whether their pictures are changed as the protocol says.
        """
        x = self.inputs.of(rows)
        if augmented and self.augment:
            x = self.augment(x, self.augmentation)
        return Batch(
            x=self.preprocessing(x.to(self.dtype)),
            y=self.y.gather(1, rows),
            group=self.group[rows],
            subgroup=self.cells[rows],
            attributes=self.attributes.of(rows),
            conditioning=self.given.of(rows),
            sample_weight=torch.ones_like(rows, dtype=self.dtype),
            rows=rows,
            noise=DropoutNoise(self.dropout),
            epoch=len(self.history),
        )

    def training_batches(self) -> Iterator[Batch]:
        """All training rows in order as they are, in blocks as large as prediction takes."""
        for rows in self.train.split(rows_at_once(self.inputs.shape), dim=1):
            yield self.batch(rows)

    def epoch_batches(self, visiting_order: VisitingOrder) -> Iterator[Tensor]:
        """Row numbers of each batch of one epoch, ``[replica, m]``; the last one may be small."""
        orders = {}
        for seed, generator in self.order.by_seed():
            number = self.order.seeds.index(seed)
            rows = self.train[number]
            seen = TrainingRows(self.y[number, rows], self.group[rows], self.cells[rows], rows)
            visits = visiting_order(seen, generator)
            orders[seed] = rows[visits]
        order = torch.stack([orders[seed] for seed in self.order.seeds])
        yield from order.split(self.protocol.batch_size, dim=1)

    def run_epoch(self) -> None:
        """Train one epoch; note each player's mean loss and the loss on validation rows."""
        number, warm_up = len(self.history), self.replicas[0].method.warm_up_epochs

        def take_steps() -> dict[str, list[Tensor]]:
            if number < warm_up:
                return self._train_epoch(number / warm_up, plain_steps, shuffled)
            done = (number - warm_up) / (self.protocol.epochs - warm_up)
            return self._train_epoch(done, self.method.steps, self.method.visiting_order)

        def load(places: Tensor) -> tuple[Tensor, Tensor]:
            batch = self.batch(self.train[:, places.to(self.device)])
            return batch.x, batch.y

        losses = dict.fromkeys(self.players, list[Tensor]()) | self.model.run_epoch(
            take_steps, self.train.shape[1], load
        )
        absent = self.y.new_full((len(self.replicas),), torch.nan, dtype=self.dtype)
        means = [torch.stack(values or [absent]).mean(0) for values in losses.values()]
        self.history.append(torch.stack([*means, self.validation_loss()]))

    def _train_epoch(
        self, done: float, steps: Steps, visiting_order: VisitingOrder
    ) -> dict[str, list[Tensor]]:
        """One epoch at the learning rates of that share of the schedule; losses by player."""
        share = SCHEDULES[self.protocol.schedule](done)
        for player, optimiser in self.optimisers.items():
            for group in optimiser.param_groups:
                group["lr"] = self.learning_rates[player] * share
        self.model.train()
        self.method.train()
        losses: dict[str, list[Tensor]] = {name: [] for name in self.players}
        for rows in self.epoch_batches(visiting_order):
            for step in steps(self.model, self.batch(rows, augmented=True)):
                apply(step, self.players, self.optimisers)
                for player, loss in step.losses.items():
                    losses[player].append(loss.detach())
        return losses

    @torch.no_grad()
    def validation_loss(self) -> Tensor:
        """Mean task loss on each replica's validation rows, ``[replica]``; NaN without a head."""
        self.model.eval()
        if not self.model.has_outputs:
            return self.y.new_full((len(self.replicas),), torch.nan, dtype=self.dtype)
        losses = [
            self.model.task_loss(
                self.model(self.preprocessing(self.inputs.of(rows).to(self.dtype))),
                self.y.gather(1, rows),
            )
            for rows in self.validation.split(rows_at_once(self.inputs.shape), dim=1)
        ]
        return torch.cat(losses, dim=1).mean(1)

    def _streams(self) -> dict[str, Randomness]:
        """The random numbers that training draws, by what for."""
        return {
            "dropout": self.dropout,
            "order": self.order,
            "augmentation": self.augmentation,
            "mining": self.mining,
        }

    def state(self) -> dict[str, Tensor]:
        """Everything that the next epoch depends on, by name."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"method.{name}": value for name, value in self.method.state_dict().items()}
        tensors |= {name: one.state() for name, one in self._streams().items()}
        tensors["history"] = torch.stack(self.history)
        for player, optimiser in self.optimisers.items():
            for number, values in optimiser.state_dict()["state"].items():
                tensors |= {f"{player}/{number}/{name}": one for name, one in values.items()}
        return tensors

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on where ``state`` was taken."""
        for prefix, module in (("model.", self.model), ("method.", self.method)):
            module.load_state_dict(
                {
                    name.removeprefix(prefix): value
                    for name, value in state.items()
                    if name.startswith(prefix)
                }
            )
        for name, stream in self._streams().items():
            stream.restore(state[name])
        self.history = list(state["history"].to(self.device))
        for player, optimiser in self.optimisers.items():
            moments: dict[int, dict[str, Tensor]] = {}
            for name, value in state.items():
                if name.startswith(f"{player}/"):
                    _, number, quantity = name.split("/")
                    moments.setdefault(int(number), {})[quantity] = value
            optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})

    def train_to_end(self, checkpoint: Checkpoint, stops: Stops = never) -> None:
        """Train all epochs, going on from the checkpoint where there is one.

        Args:
            checkpoint: where the newest state is kept.
            stops: asked after every epoch, also after those that a checkpoint holds, whether this
                was the last one, given the losses on validation rows ``[replica]``.
        """
        state = checkpoint.load()
        if state is not None:
            self.restore(state)
        if any(stops(epoch, losses[-1]) for epoch, losses in enumerate(self.history)):
            return
        start = len(self.history)
        total = self.model.epochs(self.protocol.epochs)
        description = f"{self.cell.dataset}.{self.cell.label} x{len(self.replicas)}"
        saved = time.monotonic()
        for epoch in progress(range(start, total), description, total, start):
            self.run_epoch()
            last = stops(epoch, self.history[-1][-1]) or epoch == total - 1
            if last or time.monotonic() - saved >= self.protocol.checkpoint_seconds:
                checkpoint.save(self.state())
                saved = time.monotonic()
            if last:
                break

    def kept_of_validation(
        self, replicas: Sequence[Replica]
    ) -> dict[tuple[str, int], dict[str, np.ndarray]]:
        """What only the training knows of validation rows, by trial and seed: name to ``[m, d]``.

        Args:
            replicas: as of ``fitted``.
        """
        if type(self.method).embeddings is Method.embeddings:
            return {(one.trial, one.seed): {} for one in replicas}
        self.model.eval()
        self.method.eval()
        with torch.no_grad():
            blocks = [
                self.method.embeddings(self.model, self.batch(rows))
                for rows in self.validation.split(rows_at_once(self.inputs.shape), dim=1)
            ]
        found = {
            name: torch.cat([block[name] for block in blocks], dim=1).float().cpu().numpy()
            for name in blocks[0]
        }
        return {
            (one.trial, one.seed): {name: all_[self._place(n)] for name, all_ in found.items()}
            for n, one in enumerate(replicas)
        }

    def finished_states(self, replicas: Sequence[Replica]) -> list[dict[str, Tensor]]:
        """Weights and buffers of the trained network of every replica."""
        rows = self.downstream[None]
        blocks = (self.batch(some).x for some in rows.split(rows_at_once(self.inputs.shape), dim=1))
        labelled = LabelledRows(blocks, self.y.gather(1, rows), self.group[rows])
        return self.model.finished_states([one.network for one in replicas], labelled)

    def fitted(self, replicas: Sequence[Replica]) -> list[Fitted]:
        """The trained replicas, one by one.

        Args:
            replicas: those of this stack, or all that share the training of its only one.
        """
        found = self.finished_states(replicas)
        preprocessing = self.preprocessing.state_dict()
        states = [
            {f"model.{name}": value for name, value in state.items()}
            | {
                f"preprocessing.{name}": value[self._place(number)]
                for name, value in preprocessing.items()
            }
            for number, state in enumerate(found)
        ]
        return [
            Fitted(
                trial=replica.trial,
                seed=replica.seed,
                split=self.splits[self._place(number)],
                network={"name": self.cell.network.name, **replica.network.model_dump()},
                preprocessing=self.protocol.preprocessing,
                # copies in C order: safetensors writes memory as it lies
                state={key: value.cpu().numpy().copy("C") for key, value in state.items()},
            )
            for number, (replica, state) in enumerate(zip(replicas, states, strict=True))
        ]

    def _place(self, number: int) -> int:
        """Place in the stack of the ``number``-th of the replicas that it trains or shares."""
        return number if len(self.replicas) > 1 else 0

    def curves(self, replicas: Sequence[Replica]) -> list[dict[str, Any]]:
        """Rows of the history table; a player that made no step in an epoch has none there.

        Args:
            replicas: as of ``fitted``.
        """
        quantities = [f"{player}_loss" for player in self.players] + ["validation_loss"]
        values = torch.stack(self.history).tolist()  # [epoch][quantity][replica]
        return [
            {
                "trial": replica.trial,
                "seed": replica.seed,
                "epoch": epoch,
                "quantity": quantity,
                "value": values[epoch][row][self._place(number)],
            }
            for number, replica in enumerate(replicas)
            for row, quantity in enumerate(quantities)
            for epoch in range(len(values))
            if not isnan(values[epoch][row][self._place(number)])
        ]


def part_rows(samples: Samples, splits: Sequence[str], part: str) -> Tensor:
    """Row numbers of a part of every replica's split, int64 ``[replica, m]``.

    Raises:
        InputError: a split has no such rows, or no row of a class.
    """
    found = []
    for split in splits:
        rows = samples.rows(split, part)
        if not len(rows):
            raise InputError(f"split {split!r} has no {part} rows")
        found.append(torch.from_numpy(rows))
    return torch.stack(found)


def mitigated_attributes(samples: Samples, method: MethodParameters) -> list[pd.Series]:
    """The attributes that a method mitigates, ``[n]`` each.

    Args:
        samples: the dataset.
        method: hyperparameters; those of a method that is told attributes may name them
            (``explicit``), else they are the dataset's sensitive ones.

    Raises:
        InputError: no such attribute.
    """
    names = method.bias_variables or samples.sensitive
    for name in names:
        if name not in samples.attributes:
            raise unknown_name("attribute", name, samples.attributes.columns)
    return [samples.attributes[name] for name in names]


def mitigated_groups(samples: Samples, method: MethodParameters) -> Groups:
    """Groups of the attributes that a method mitigates.

    A single group where there are none; no row has a group where one of them is continuous.

    Args:
        samples: the dataset.
        method: hyperparameters, see ``mitigated_attributes``.

    Raises:
        InputError: no such attribute.
    """
    mitigated = mitigated_attributes(samples, method)
    if not mitigated:
        return Groups(np.zeros(len(samples), dtype=np.int64), ("everyone",))
    if not all(isinstance(one.dtype, pd.CategoricalDtype) for one in mitigated):
        return Groups(np.full(len(samples), -1, dtype=np.int64), ())
    return groups_of(samples.attributes, [str(one.name) for one in mitigated])


def cells_of(groups: Groups, samples: Samples, kind: str = GROUP_AND_CLASS) -> np.ndarray:
    """Group and class together as one number for every row, int64 ``[n]``; -1 where missing.

    Only cells that occur are numbered, so that memory grows with them. A continuous outcome has
    no classes: its cells are the groups.

    Args:
        groups: of the rows.
        samples: the rows.
        kind: ``group_and_class``, or ``group`` for the groups alone.
    """
    if not samples.classes or kind != GROUP_AND_CLASS:
        return groups.index
    known = groups.index >= 0
    cells = np.full(len(samples), -1, dtype=np.int64)
    pairs = groups.index[known] * len(samples.classes) + samples.y[known]
    cells[known] = np.unique(pairs, return_inverse=True)[1]
    return cells


def groups_are_classes(groups: Groups, samples: Samples) -> bool:
    """Whether each group has one class and each class one group, over all rows of known group."""
    known = groups.index >= 0
    if not samples.classes or not known.any():
        return False
    group, y = groups.index[known], samples.y[known]
    pairs = len(np.unique(group * len(samples.classes) + y))
    return pairs == len(np.unique(group)) == len(np.unique(y))


def require_plain_training(model: Model, cell: CellParameters, protocol: Protocol) -> None:
    """Check that a network which no step improves is trained by the method that needs none.

    Nor does it see the batches whose pictures are augmented.

    Raises:
        InputError: another method is to train it, or on augmented pictures.
    """
    if model.iterative:
        return
    if cell.method.name != PLAIN_METHOD:
        raise InputError(
            f"method {cell.method.name}: network {cell.network.name} is not iterative, "
            f"allowed: method {PLAIN_METHOD}"
        )
    if protocol.augmentation != "none":
        raise InputError(
            f"augmentation {protocol.augmentation}: network {cell.network.name} is not "
            "iterative, allowed: none"
        )


def require_head(network: BaseModel, cell: CellParameters) -> None:
    """Check that the network's head is either trained by the method or fitted afterwards.

    Args:
        network: parameters of the network of some trial.
        cell: the cell's settings.

    Raises:
        InputError: the method trains no head and nothing fits it, or it trains one in vain.
    """
    afterwards = network_class(cell.network.name).defers_classifier(network)
    trains = method_class(cell.method.name).trains_head
    if trains and afterwards:
        raise InputError(
            f"method {cell.method.name}: trains a head, which network {cell.network.name} has "
            f"fitted afterwards, allowed: classifier linear, or method metric_learning or parade"
        )
    if not trains and not afterwards:
        raise InputError(
            f"method {cell.method.name}: trains no head, which network {cell.network.name} needs, "
            "allowed: network embedding with a classifier that is fitted afterwards, such as "
            "logistic_regression"
        )


def require_validation_loss(cell: CellParameters) -> None:
    """Check that epochs end with a loss on validation rows, by which trials are given up.

    Raises:
        InputError: the method trains no head.
    """
    if not method_class(cell.method.name).trains_head:
        raise InputError(
            f"search of {cell.dataset}.{cell.label}: method {cell.method.name} trains no head and "
            "has no validation loss by which trials are given up, allowed: pruner none"
        )


def digest_of(path: Path) -> str:
    """SHA-256 of a file that may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def method_class(name: str) -> type[Method]:
    """The method ``name``."""
    found: type[Method] = find("method", name)
    return found


def network_class(name: str) -> type[Model]:
    """The network ``name``."""
    found: type[Model] = find("network", name)
    return found


def training_key(samples: Samples, cell: CellParameters, replicas: Sequence[Replica]) -> str:
    """Name of the checkpoint of these replicas: everything that their numbers depend on."""
    splits = samples.splits
    samples = samples.of_split(replicas[0].split(samples.split_names))
    arrays = {
        **samples.arrays,
        "y": samples.y,
        "given": values_of(samples.given_values()),
        **{
            f"attribute.{one.name}": values_of(one)
            for one in mitigated_attributes(samples, replicas[0].method)
        },
        **{f"split.{name}": splits[name].cat.codes.to_numpy() for name in splits},
    }
    settings = {
        "method": cell.method.name,
        "network": cell.network.name,
        "replicas": [repr(replica) for replica in replicas],
        "questions": repr(samples.questions),
        "weights": [
            digest_of(path)
            for path in network_class(cell.network.name).files(replicas[0].network)
            if path.is_file()  # the network tells what is wrong with one that is not
        ],
        "device": str(device_of(replicas[0].protocol)),
    }
    return checkpoints.key(arrays, settings, ROOMS)
