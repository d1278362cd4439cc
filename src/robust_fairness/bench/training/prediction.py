"""Predictions of fitted replicas on sample sets, with the further quantities that metrics need."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from robust_fairness.bench.compute.process import device_named
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.maths.curvature import (
    exact_curvature,
    one_shot_curvature,
    power_iteration_curvature,
)
from robust_fairness.bench.maths.embeddings import clusters, same_class_rank
from robust_fairness.bench.models.base import Model, SingleModel
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training.data import Inputs, part_rows, rows_at_once, shape_of
from robust_fairness.bench.training.preprocessing import Preprocessing
from robust_fairness.bench.training.records import EARLIER, Fitted, Prediction, with_prefix
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from robust_fairness.metrics import find_metric
from robust_fairness.metrics.criteria import scored_by
from robust_fairness.metrics.evaluation import DECISION, probability_of_second

UNSHIFTED = ""
TEST_PARTS = ("test", "ood_test")
ONE_SHOT_STEP = 1.0  # h of Eq. 8, the paper's default


class FittedStack:
    """Trained replicas that predict together: the same network, and rows in equal number.

    ``samples`` is the dataset they were trained on, for the shape of its rows and its classes.
    """

    def __init__(self, fitted: Sequence[Fitted], samples: Samples, device: torch.device) -> None:
        network = dict(fitted[0].network)
        kind: type[Model] = find("network", network.pop("name"))
        hparams = kind.Parameters.model_validate(network)
        self.network = kind.describe(hparams)
        weights = Randomness([item.seed for item in fitted], "weights")
        outputs = len(samples.classes) or 1
        self.model = kind(hparams, shape_of(samples), outputs, weights)
        states = [with_prefix("model.", item.state) for item in fitted]
        self.model.load_replica_states(
            [{name: torch.from_numpy(array) for name, array in state.items()} for state in states]
        )
        self.model.eval().to(device)
        fits = [with_prefix("preprocessing.", item.state) for item in fitted]
        self.preprocessing = Preprocessing(fits).to(device)
        self.device, self.dtype = device, self.preprocessing.centre.dtype

    def inputs(self, samples: Samples, rows: Tensor) -> Tensor:
        """Network inputs ``[replica, m, d]`` of the rows ``[replica, m]``, perturbed after it."""
        raw = Inputs(samples, torch.device("cpu")).of(rows)
        inputs = self.preprocessing(raw.to(self.device, self.dtype))
        if samples.perturbation is None:
            return inputs
        perturbation = torch.from_numpy(samples.perturbation[rows.numpy()])
        return inputs + perturbation.to(self.device, self.dtype)

    @torch.no_grad()
    def outputs(self, samples: Samples, rows: Tensor) -> Tensor:
        """Logits, or outcomes in their own units, ``[replica, m, output]``."""
        outputs = self.model(self.inputs(samples, rows))
        return outputs if samples.classes else self.preprocessing.restore_outcome(outputs)

    @torch.no_grad()
    def embedding(self, samples: Samples, rows: Tensor) -> Tensor:
        """The network's embedding, float32 ``[replica, m, d]``."""
        return self.model.embedding(self.inputs(samples, rows)).to(torch.float32)

    def curvature(self, samples: Samples, rows: Tensor) -> Tensor:
        """Spectral norm of the loss's Hessian in the inputs (Eq. 4), ``[replica, m]``."""
        x = self.inputs(samples, rows)
        if self.model.piecewise_linear:
            return exact_curvature(self.model, x)
        return power_iteration_curvature(self._loss(samples, rows), x)

    def curvature_one_shot(self, samples: Samples, rows: Tensor) -> Tensor:
        """The one-shot approximation of the curvature (Eq. 8), ``[replica, m]``."""
        x = self.inputs(samples, rows).requires_grad_()
        return one_shot_curvature(self._loss(samples, rows), x, ONE_SHOT_STEP).detach()

    def _loss(self, samples: Samples, rows: Tensor) -> Callable[[Tensor], Tensor]:
        y = torch.from_numpy(samples.y[rows.numpy()]).to(self.device)
        y = self.preprocessing.standardise_outcome(y)
        return lambda x: self.model.task_loss(self.model(x), y)


class Predictor:
    """Fitted replicas that predict rows without a split, as a model in use does.

    ``samples`` has the shape and classes of the rows to come.
    """

    def __init__(self, fitted: Sequence[Fitted], samples: Samples, device: torch.device) -> None:
        places = {(item.trial, item.seed): place for place, item in enumerate(fitted)}
        self._stacks = [
            ([places[item.trial, item.seed] for item in stack], FittedStack(stack, samples, device))
            for stack in _stacks(fitted, {}, "")
        ]

    def __call__(self, samples: Samples) -> np.ndarray:
        """Logits, or outcomes in their own units, float32 ``[replica, n, output]``."""
        result: dict[int, np.ndarray] = {}
        for places, stack in self._stacks:
            rows = torch.arange(len(samples)).expand(len(places), -1)
            result |= zip(places, _in_blocks(stack.outputs, samples, rows), strict=True)
        return np.stack([result[place] for place in sorted(result)])


EMBEDDING = "embedding"
# Of single rows: values [replica, m, ...] of the rows [replica, m] of samples.
PER_ROW: dict[str, Callable[[FittedStack, Samples, Tensor], Tensor]] = {
    "curvature": FittedStack.curvature,
    "curvature_one_shot": FittedStack.curvature_one_shot,
    EMBEDDING: FittedStack.embedding,
}
# Of unshifted rows: Delta-ER is a property of the original test set (Equalized Robustness, 5.1).
DERIVATIVES = {"curvature", "curvature_one_shot"}


# Of the rows of a set as a whole: from all embeddings, all classes and a torch device. There are as
# many clusters as classes occur (Definition 15).
OF_SETS: dict[str, Callable[[np.ndarray, np.ndarray, str], np.ndarray]] = {
    "same_class_rank": same_class_rank,
    "cluster": lambda x, y, device: clusters(x, len(np.unique(y)), device=device),
}


def due_quantities(cell: Cell, test_set: str, part: str) -> list[str]:
    """The further quantities that are kept with predictions.

    On test rows those that the cell's metrics need, on validation rows those that its criteria
    need. Where either needs one based on the embedding, the embedding is kept with the validation
    predictions as well, for figures.
    """
    of_metrics = {name for metric in cell.metrics for name in find_metric(metric).needs}
    if part in TEST_PARTS:
        kept = of_metrics if test_set == UNSHIFTED else of_metrics - DERIVATIVES
    else:
        criteria = scored_by(filter(None, [*cell.selections, cell.search_by]))
        of_parts = {item: find_metric(item.metric).needs for item in criteria}
        kept = {
            name for item, needs in of_parts.items() if item.part == part for name in needs
        } - DERIVATIVES
        if of_metrics.union(*of_parts.values()) & {EMBEDDING, *OF_SETS}:
            kept.add(EMBEDDING)
    return [name for name in (*PER_ROW, *OF_SETS) if name in kept]


def predict(
    samples: Samples,
    fitted: Sequence[Fitted],
    cell: Cell,
    test_sets: Mapping[str, Samples],
    part: str = "test",
) -> list[Prediction]:
    """Predictions of all replicas on one part of their own splits in every sample set.

    ``test_sets`` are sample sets by name, of which ``UNSHIFTED`` is the dataset itself.
    """
    predictions = []
    for stack in _stacks(fitted, test_sets, part):
        device = device_named(cell.protocol.device, "protocol.device")
        together = FittedStack(stack, samples, device)
        for name, test_set in test_sets.items():
            rows = part_rows(test_set, [item.split for item in stack], part)
            outputs = _in_blocks(together.outputs, test_set, rows)
            _require_finite(outputs, stack, f"{name or 'unshifted'}, {part}")
            values = _values(together, test_set, rows, due_quantities(cell, name, part))
            if earlier := list(zip(*(item.earlier() for item in stack), strict=True)):
                values[EARLIER] = np.stack([
                    _in_blocks(FittedStack(epoch, samples, device).outputs, test_set, rows)
                    for epoch in earlier
                ], axis=2)  # fmt: skip
                _require_finite(values[EARLIER].reshape(*outputs.shape[:2], -1), stack, "earlier")
            if find("method", cell.method.name).estimators == "only":
                values[DECISION] = np.stack([probability_of_second(output) for output in outputs])
            predictions += [
                Prediction(
                    trial=item.trial,
                    seed=item.seed,
                    split=item.split,
                    test_set=name,
                    part=part,
                    rows=rows[number].numpy(),
                    outputs=outputs[number],
                    values={key: value[number] for key, value in values.items()},
                    network=together.network,
                )
                for number, item in enumerate(stack)
            ]
    return predictions


def _require_finite(outputs: np.ndarray, stack: Sequence[Fitted], rows: str) -> None:
    """Raise if outputs ``[replica, m, output]`` of a stack are not finite."""
    bad = ~np.isfinite(outputs).all(2)
    if bad.any():
        replica = stack[int(bad.any(1).argmax())]
        raise InputError(
            f"trial {replica.trial}, seed {replica.seed}: predictions of {bad.any(0).sum()} of "
            f"{bad.shape[1]} rows ({rows}) are not finite; look for extreme values in the data"
        )


def _values(
    stack: FittedStack, samples: Samples, rows: Tensor, due: Sequence[str]
) -> dict[str, np.ndarray]:
    """The quantities that are due, ``[replica, m, ...]`` by name.

    A continuous outcome has no classes, and so neither neighbours of one nor clusters; a network
    without derivatives has no curvature.
    """
    of_sets = [name for name in due if name in OF_SETS and samples.classes]
    wanted = {*due, *([EMBEDDING] if of_sets else [])}
    if stack.model.piecewise_linear is None:
        wanted -= DERIVATIVES
    per_row = [name for name in PER_ROW if name in wanted]
    values = {name: _in_blocks(partial(PER_ROW[name], stack), samples, rows) for name in per_row}
    for name in of_sets:
        replicas = zip(values[EMBEDDING], rows.numpy(), strict=True)
        result = [
            OF_SETS[name](item, samples.y[part], str(stack.device)) for item, part in replicas
        ]
        values[name] = np.stack(result)
    return {name: values[name] for name in due if name in values}


def _in_blocks(
    quantity: Callable[[Samples, Tensor], Tensor], samples: Samples, rows: Tensor
) -> np.ndarray:
    """A quantity of all rows ``[replica, m]`` from blocks of rows, so that memory is bounded."""
    blocks = rows.split(rows_at_once(shape_of(samples)), dim=1)
    return torch.cat([quantity(samples, block).cpu() for block in blocks], dim=1).numpy()


def _stacks(
    fitted: Sequence[Fitted], test_sets: Mapping[str, Samples], part: str
) -> list[list[Fitted]]:
    """Replicas that can predict at once: the same network, rows in equal number everywhere."""
    alike: dict[str, list[Fitted]] = {}
    for replica in fitted:
        counts = [len(test_set.rows(replica.split, part)) for test_set in test_sets.values()]
        matrix = replica.state["preprocessing.matrix"]
        single = issubclass(find("network", replica.network["name"]), SingleModel)
        alone = (replica.trial, replica.seed) if single else ""
        earlier = [len(value) for value in with_prefix("earlier.", replica.state).values()]
        equal = (replica.network, matrix.ndim, str(matrix.dtype), counts, alone, earlier)
        alike.setdefault(repr(equal), []).append(replica)
    return [alike[key] for key in sorted(alike)]
