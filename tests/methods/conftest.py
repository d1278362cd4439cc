"""Problems, batches and hyperparameters as the training loop hands them to a method."""

from collections.abc import Sequence

import torch
from pydantic import BaseModel
from torch import Tensor

from robust_fairness.bench.methods.base import Batch, Problem
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training.fitting import stack_hparams


def stacked(parameters: BaseModel, replicas: int = 1, dtype=torch.float32) -> BaseModel:
    """The hyperparameters of replicas that all have the same."""
    return stack_hparams([parameters] * replicas, torch.zeros(0, dtype=dtype))


def problem_of(model: Model, seeds: Sequence[int] = (0,), **fields) -> Problem:
    """A problem of two classes and two groups, by default, and of this network."""
    default = {
        "classes": 2,
        "groups": 2,
        "attribute_widths": (2,),
        "subgroup_counts": torch.ones(len(seeds), 4, dtype=torch.long),
        "rows": 40,
        "batch_size": 40,
        "learning_rate": 1e-3,
        "heads": Randomness(seeds, "heads"),
        "mining": Randomness(seeds, "mining"),
    }
    return Problem(seeds=tuple(seeds), new_model=lambda: model, **default | fields)


def batch_of(x: Tensor, y: Tensor, group: Tensor, **fields) -> Batch:
    """A batch of rows of weight 1 without attributes, whose groups are its subgroups by default."""
    nothing = x.new_zeros(*y.shape, 0)
    default = {
        "subgroup": group,
        "attributes": nothing,
        "conditioning": nothing,
        "sample_weight": x.new_ones(y.shape),
        "rows": torch.arange(y.shape[1]).expand(y.shape),
        "noise": None,
    }
    return Batch(x=x, y=y, group=group, **default | fields)
