"""Which replicas train as a stack, and its training loop, resumable after every epoch."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor

from robust_fairness.bench.compute.checkpoints import Checkpoint
from robust_fairness.bench.compute.process import progress, same_every_time
from robust_fairness.bench.estimators.base import Estimator
from robust_fairness.bench.experiment.experiment import Cell, Replica
from robust_fairness.bench.methods.base import Batch, Method, Problem, Step, plain_steps, shuffled
from robust_fairness.bench.models.base import Model, SingleModel
from robust_fairness.bench.models.precision import in_bfloat16
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training.checks import (
    require_rows,
    require_trainable,
    require_weights,
)
from robust_fairness.bench.training.data import StackData, VisitingOrder
from robust_fairness.bench.training.optimisation import Optimisation
from robust_fairness.bench.training.records import Fitted, with_prefix
from robust_fairness.core.registry import find
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

Steps = Callable[[Model, Batch], Iterator[Step]]
Stops = Callable[[int, Tensor], bool]


ROWS = 2**14  # of a step, of all replicas of a stack: activations of more leave the caches


def never(epoch: int, losses: Tensor) -> bool:
    """False: train for all epochs."""
    return False


class Stack:
    """A stack of replicas in training: data, networks, method and optimisation.

    Attributes:
        history: mean loss of each player and validation loss of every epoch,
            ``[quantity, replica]``; NaN where there is none.
        epochs: number of epochs to train for; an estimator is fitted in one.
        earlier: weights and buffers after the scored epochs before the last one.
        best: weights and buffers of each replica's epoch that ``patience`` keeps.
        failed: first weight or loss that was not finite, and its epoch, by position of the replica.
    """

    def __init__(self, samples: Samples, cell: Cell, replicas: Sequence[Replica]) -> None:
        first, seeds = replicas[0], [replica.seed for replica in replicas]
        self.replicas, self.protocol, self.cell = list(replicas), first.protocol, cell
        require_trainable(cell, self.protocol)
        require_rows(samples, cell)
        method: type[Method] = find("method", cell.method.name)
        self.data = StackData(samples, replicas, "attributes" in method.reads)
        weights = Randomness(seeds, "weights")
        self.model = self._new_model(weights)
        problem = Problem(
            classes=self.data.classes,
            groups=self.data.groups,
            attribute_widths=self.data.attribute_widths,
            group_is_class=self.data.group_is_class,
            subgroup_counts=self.data.subgroup_counts,
            rows=self.data.rows,
            batch_size=self.protocol.batch_size,
            seeds=tuple(seeds),
            heads=Randomness(seeds, "heads"),
            new_model=lambda: self._new_model(weights),
            learning_rate=self.protocol.learning_rate,
            mining=self.data.streams["mining"],
            training_batches=self.data.training_batches,
            epochs=self.protocol.epochs,
            target_inputs=self.data.target_inputs,
            target_batch=self.data.target_batch,
        )
        like = torch.zeros(0, dtype=self.data.dtype, device=self.data.device)
        hparams = stack_hparams([replica.method for replica in replicas], like)
        self.method = method(hparams, self.model, problem).to(self.data.device, self.data.dtype)
        self.optimisation = Optimisation(self.method, self.model, self.protocol)
        is_fitted_once = isinstance(self.model, Estimator)
        self.epochs = 1 if is_fitted_once else self.protocol.epochs
        self._may_stop = self.protocol.patience > 0 and not is_fitted_once
        self._absent = like.new_full((len(replicas),), torch.nan)
        self.history: list[Tensor] = []
        self.earlier: list[dict[str, Tensor]] = []
        self.best: dict[str, Tensor] = {}
        self.failed: dict[int, str] = {}

    def _new_model(self, weights: Randomness) -> Model:
        network, data = find("network", self.cell.network.name), self.data
        model = network(self.replicas[0].network, data.inputs.shape, data.outputs, weights)
        model = model.to(data.device, data.dtype)
        if self.protocol.precision == "bfloat16":
            return in_bfloat16(model, data.device)
        return model

    def run_epoch(self) -> None:
        """Train one epoch, append the losses to the history and note the replicas that failed."""
        epoch = len(self.history)
        losses: dict[str, list[Tensor]] = {name: [] for name in self.optimisation.players}
        if isinstance(self.model, Estimator):
            self._fit_once(self.model)
        else:
            steps, order = self._start_epoch(epoch)
            with same_every_time():
                for rows in self.data.epoch_batches(order):
                    for step in steps(self.model, self.data.batch(rows, epoch, augmented=True)):
                        self.optimisation.apply(step)
                        for player, loss in step.losses.items():
                            losses[player].append(loss.detach())
            if epoch == self.epochs - 1:
                self.model.eval()
                with torch.no_grad():
                    self.method.finish(self.model)
        means = {
            f"{player} loss": torch.stack(values).mean(0)
            for player, values in losses.items()
            if values
        }
        if self.model.has_outputs:
            means["validation loss"] = self.validation_loss()
        quantities = [*(f"{player} loss" for player in losses), "validation loss"]
        self.history.append(torch.stack([means.get(name, self._absent) for name in quantities]))
        self._note_failures(means)
        if 0 < self.epochs - len(self.history) < self.protocol.scored_epochs:
            self.earlier.append(_copy(self.model))
        if self._may_stop:
            is_best = (self._kept_epochs()[0] == epoch).tolist()
            for name, value in self.model.state_dict().items():
                if all(is_best):
                    self.best[name] = value.clone()
                elif any(is_best):  # several replicas, on the first axis
                    self.best[name][is_best] = value[is_best]

    def _kept_epochs(self) -> tuple[Tensor, Tensor]:
        """The epoch that every replica keeps, and whether it has stopped, ``[replica]`` each.

        A replica that has stopped trains on with its stack, and keeps what it kept.
        """
        first = min(self.replicas[0].method.warm_up_epochs, len(self.history) - 1)
        losses = torch.stack(self.history)[first:, -1]
        lowest, kept = losses[0], torch.full_like(losses[0], first, dtype=torch.long)
        stopped = torch.zeros_like(kept, dtype=torch.bool)
        for epoch, loss in enumerate(losses, first):
            better = (loss < lowest) & ~stopped
            lowest, kept = torch.where(better, loss, lowest), torch.where(better, epoch, kept)
            stopped |= epoch - kept >= self.protocol.patience
        return kept, stopped

    @property
    def is_over(self) -> bool:
        """Whether all epochs are trained, or every replica has stopped."""
        if len(self.history) >= self.epochs:
            return True
        return self._may_stop and bool(self.history) and bool(self._kept_epochs()[1].all())

    def expected_seconds(self, steps: int) -> float:
        """CPU seconds of all epochs, by the fastest of some steps and one validation.

        An estimator is fitted. The stack is of no use afterwards.
        """
        start = time.process_time()
        if isinstance(self.model, Estimator):
            self._fit_once(self.model)
            return time.process_time() - start
        make, order = self._start_epoch(
            min(self.replicas[0].method.warm_up_epochs, self.epochs - 1)
        )
        batches = list(self.data.epoch_batches(order))
        times = [time.process_time()]
        for rows in batches[:steps]:
            for step in make(self.model, self.data.batch(rows, augmented=True)):
                self.optimisation.apply(step)
            times.append(time.process_time())
        fastest = min(after - before for before, after in pairwise(times))
        if self.model.has_outputs:
            self.validation_loss()
        return self.epochs * (len(batches) * fastest + time.process_time() - times[-1])

    def _start_epoch(self, epoch: int) -> tuple[Steps, VisitingOrder]:
        """The steps and the order of an epoch at its learning rates: plain during the warm-up."""
        warm_up = self.replicas[0].method.warm_up_epochs
        if epoch < warm_up:
            self.optimisation.schedule(epoch / warm_up)
        else:
            self.model.eval()
            with torch.no_grad():
                self.optimisation.restart(self.method.start_epoch(self.model, epoch))
            self.optimisation.schedule((epoch - warm_up) / (self.protocol.epochs - warm_up))
        self.model.train()
        self.method.train()
        if epoch < warm_up:
            return plain_steps, shuffled
        return self.method.steps, self.method.visiting_order

    def _note_failures(self, losses: dict[str, Tensor]) -> None:
        """Note the replicas with losses or weights that are not finite."""
        count = len(self.replicas)
        quantities = losses | {f"weight {k}": v for k, v in self.model.state_dict().items()}
        quantities |= {f"weight {k} of the method": v for k, v in self.method.named_parameters()}
        finite = torch.stack([
            value.detach().isfinite().reshape(count, value.numel() // count).all(1)
            for value in quantities.values()
        ])  # fmt: skip
        if finite.all():
            return
        for place in (~finite.all(0)).nonzero()[:, 0].tolist():
            name = list(quantities)[int(finite[:, place].int().argmin())]
            self.failed.setdefault(place, f"{name} is not finite after epoch {len(self.history)}")

    def _fit_once(self, model: Estimator) -> None:
        """Fit to the rows that the method visits in an epoch, weighted as it weights them."""
        order = torch.cat(list(self.data.epoch_batches(self.method.visiting_order)), dim=1)
        rows = order.unique(dim=1)  # sorted
        batch = self.data.batch(rows)
        weight = batch.sample_weight * self.method.row_weight(batch)
        model.feature_columns = self.data.columns
        if (weight == weight[:, :1]).all():
            self.method.fit(model, batch, None)
            return
        require_weights(self.cell)
        self.method.fit(model, batch, weight / weight.mean())

    @torch.no_grad()
    def validation_loss(self) -> Tensor:
        """Mean task loss on each replica's validation rows, ``[replica]``."""
        self.model.eval()
        data = self.data
        losses = []
        for rows in data.blocks(data.validation):
            outputs = self.model(data.network_inputs(rows))
            losses.append(self.model.task_loss(outputs, data.y.gather(1, rows)))
        return torch.cat(losses, dim=1).mean(1)

    def state(self) -> dict[str, Tensor]:
        """Everything that the next epoch depends on, by name."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"method.{name}": value for name, value in self.method.state_dict().items()}
        tensors["history"] = torch.stack(self.history)
        tensors |= _stacked("earlier.", self.earlier)
        tensors |= {f"best.{name}": value for name, value in self.best.items()}
        return tensors | self.data.state() | self.optimisation.state()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what ``state`` returned."""
        for prefix, module in (("model.", self.model), ("method.", self.method)):
            module.load_state_dict(with_prefix(prefix, state))
        self.history = list(state["history"].to(self.data.device))
        kept = with_prefix("earlier.", state)
        self.earlier = [
            {name: values[epoch].to(self.data.device) for name, values in kept.items()}
            for epoch in range(max(map(len, kept.values()), default=0))
        ]
        best = with_prefix("best.", state)
        self.best = {name: value.to(self.data.device) for name, value in best.items()}
        self.data.restore(state)
        self.optimisation.restore(state)
        self._note_failures({})

    def train_to_end(self, checkpoint: Checkpoint, stops: Stops = never) -> None:
        """Train until ``is_over``, continuing from the checkpoint if there is one.

        ``stops`` is called with the number of every epoch, also of those in the checkpoint, and its
        validation losses ``[replica]``; it returns whether to stop.
        """
        state = checkpoint.load()
        if state is not None:
            self.restore(state)
        if any(stops(epoch, losses[-1]) for epoch, losses in enumerate(self.history)):
            return
        start, total = len(self.history), self.epochs
        description = f"{self.cell.dataset}.{self.cell.label} x{len(self.replicas)}"
        saved = time.monotonic()
        for epoch in progress(range(start, total), description, total, start):
            if self.is_over:
                break
            self.run_epoch()
            last = stops(epoch, self.history[-1][-1]) or self.is_over
            if last or time.monotonic() - saved >= self.protocol.checkpoint_seconds:
                checkpoint.save(self.state())
                saved = time.monotonic()
            if last:
                break
        if self.best:
            self.model.load_state_dict(self.best)

    def fitted(self, replicas: Sequence[Replica]) -> list[Fitted]:
        preprocessing = self.data.preprocessing.state_dict().items()
        hparams = [item.network for item in replicas]
        earlier = self._earlier_states(hparams) if self.earlier else []
        states = self.model.finished_states(hparams, self.data.labelled())
        result = []
        for number, (replica, state) in enumerate(zip(replicas, states, strict=True)):
            place = number % len(self.replicas)  # 0 if they share a training
            tensors = {f"model.{name}": value for name, value in state.items()}
            tensors |= _stacked("earlier.model.", [epoch[number] for epoch in earlier])
            tensors |= {f"preprocessing.{name}": value[place] for name, value in preprocessing}
            result.append(
                Fitted(
                    trial=replica.trial,
                    seed=replica.seed,
                    split=self.data.splits[place],
                    network={"name": self.cell.network.name, **replica.network.model_dump()},
                    preprocessing=self.protocol.preprocessing,
                    # copies in C order: safetensors writes memory as it lies
                    state={key: value.cpu().numpy().copy("C") for key, value in tensors.items()},
                )
            )
        return result

    def _earlier_states(self, hparams: Sequence[BaseModel]) -> list[list[dict[str, Tensor]]]:
        """Weights and buffers after the scored epochs before the last one, of every replica."""
        result = []
        last = _copy(self.model)
        for state in self.earlier:
            self.model.load_state_dict(state)
            states = self.model.finished_states(hparams, self.data.labelled())
            result.append([
                {name: value.clone() for name, value in replica.items()} for replica in states
            ])  # fmt: skip
        self.model.load_state_dict(last)
        return result

    @torch.no_grad()
    def kept_of_validation(
        self, replicas: Sequence[Replica]
    ) -> dict[tuple[str, int], dict[str, np.ndarray]]:
        """The method's embeddings of validation rows ``[m, d]``, by trial and seed and by name."""
        self.model.eval()
        self.method.eval()
        result: dict[str, list[Tensor]] = {}
        for rows in self.data.blocks(self.data.validation):
            values = self.method.embeddings(self.model, self.data.batch(rows))
            for name, item in values.items():
                result.setdefault(name, []).append(item)
        arrays = {
            name: torch.cat(blocks, dim=1).float().cpu().numpy() for name, blocks in result.items()
        }
        return {
            (item.trial, item.seed): {
                name: rows[number % len(self.replicas)] for name, rows in arrays.items()
            }
            for number, item in enumerate(replicas)
        }

    def curves(self, replicas: Sequence[Replica]) -> list[dict[str, Any]]:
        """Rows of the history table, without those of players that made no step in an epoch."""
        players = [f"{player}_loss" for player in self.optimisation.players]
        values = torch.stack(self.history).tolist()  # [epoch][quantity][replica]
        return [
            {
                "trial": replica.trial,
                "seed": replica.seed,
                "epoch": epoch,
                "quantity": quantity,
                "value": value,
            }
            for number, replica in enumerate(replicas)
            for row, quantity in enumerate([*players, "validation_loss"])
            for epoch in range(len(values))
            if not isnan(value := values[epoch][row][number % len(self.replicas)])
        ]


def _copy(model: Model) -> dict[str, Tensor]:
    """A copy of the weights and buffers."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def _stacked(prefix: str, states: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """States of several epochs as tensors ``[epoch, ...]``; none without an epoch."""
    names = states[0] if states else ()
    return {f"{prefix}{name}": torch.stack([state[name] for state in states]) for name in names}


def trainings(
    replicas: Sequence[Replica], samples: Samples, network: str
) -> list[tuple[list[Replica], list[Replica]]]:
    """What trains as a stack, and all replicas that it trains.

    Replicas of a ``SingleModel`` share a training if they differ only in what is fitted afterwards.
    Others train together if they are equal except for seeds and the method's float fields. Splits
    whose attributes differ train separately. A stack has at most ``ROWS`` rows in a step, unless a
    single replica has more.
    """
    model = find("network", network)
    is_single = issubclass(model, SingleModel)
    alike: dict[str, list[Replica]] = {}
    for replica in replicas:
        if is_single:
            trained = model.trained_as(replica.network)
            equal = [replica.seed, replica.method, trained, replica.protocol]
        else:
            split = replica.split(samples.split_names)
            fields = {
                name: value
                for name, value in replica.method.model_dump().items()
                if not is_per_replica(replica.method, name)
            }
            counts = [len(samples.rows(split, part)) for part in REQUIRED_PARTS]
            separate = split if samples.split_attributes else ""
            equal = [fields, replica.network, replica.protocol, counts, separate]
        alike.setdefault(repr(equal), []).append(replica)
    if is_single:
        return [(equals[:1], equals) for equals in alike.values()]
    most = {key: max(1, ROWS // group[0].protocol.batch_size) for key, group in alike.items()}
    stacks = [
        group[first : first + most[key]]
        for key, group in sorted(alike.items())
        for first in range(0, len(group), most[key])
    ]
    return [(stack, stack) for stack in stacks]


def is_per_replica(hparams: BaseModel, name: str) -> bool:
    """Whether a hyperparameter may differ within a stack: float fields may."""
    return type(hparams).model_fields[name].annotation is float


def stack_hparams(hparams: Sequence[BaseModel], like: Tensor) -> BaseModel:
    """Hyperparameters of a stack, with tensors ``[replica]`` like ``like`` instead of floats."""
    first = hparams[0]
    values = {
        name: like.new_tensor([getattr(values, name) for values in hparams])
        if is_per_replica(first, name)
        else getattr(first, name)
        for name in type(first).model_fields
    }
    return type(first).model_construct(None, **values)
