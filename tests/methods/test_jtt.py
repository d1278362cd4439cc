"""Just Train Twice against a plain PyTorch implementation of its Algorithm 1."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from robust_fairness.bench.training import train
from robust_fairness.bench.training.fitting import Stack
from robust_fairness.core.errors import InputError
from tests.training.conftest import make_cell, make_samples

FIRST, EPOCHS, BATCH = 2, 5, 32
LINEAR = {"name": "linear"}


def make_stack(seeds=(0,), **options):
    """A stack that trains twice: two epochs, then three."""
    cell = make_cell(
        "jtt",
        seeds=seeds,
        network=LINEAR,
        epochs=EPOCHS,
        schedule="constant",
        method_warm_up_epochs=FIRST,
        method_upweight=4.0,
        **options,
    )
    samples = make_samples()
    return samples, Stack(samples, cell, cell.replicas())


def of_torch(model):
    """The first replica's affine map as torch's own layer, with its own optimiser."""
    layer = nn.Linear(*model.top.weight.shape[1:]).double()
    with torch.no_grad():
        layer.weight.copy_(model.top.weight[0].T)
        layer.bias.copy_(model.top.bias[0, 0])
    return layer, torch.optim.Adam(layer.parameters(), lr=1e-3, weight_decay=1e-5)


def test_jtt_is_algorithm_1():
    """Weights after every epoch, to 1e-10, with the loop's order of rows."""
    samples, stack = make_stack()
    rows = samples.rows("split_0", "train")
    raw = samples.x[rows].astype(np.float64)
    x, y = torch.tensor((raw - raw.mean(0)) / raw.std(0)), torch.tensor(samples.y[rows])
    order = deepcopy(stack.data.orders[0].generators[0])
    layer, optimiser = of_torch(stack.model)
    weight = torch.ones(len(y), dtype=torch.float64)
    for epoch in range(EPOCHS):
        if epoch == FIRST:
            wrong = layer(x).argmax(1) != y
            assert 0 < wrong.sum() < len(y)
            weight = torch.where(wrong, 4.0, 1.0).double()
            layer, optimiser = of_torch(stack.method.fresh)
        for places in torch.randperm(len(y), generator=order).split(BATCH):
            losses = functional.cross_entropy(layer(x[places]), y[places], reduction="none")
            optimiser.zero_grad()
            (weight[places] * losses).mean().backward()
            optimiser.step()
        stack.run_epoch()
        torch.testing.assert_close(stack.model.top.weight[0].T, layer.weight, rtol=0, atol=1e-10)
        torch.testing.assert_close(stack.model.top.bias[0, 0], layer.bias, rtol=0, atol=1e-10)


def test_replicas_have_their_own_errors():
    """Each replica upweights the rows that it misclassifies itself; alone it is the same."""
    together = make_stack(seeds=(0, 1))[1]
    alone = make_stack(seeds=(1,))[1]
    for _ in range(FIRST + 1):
        together.run_epoch()
        alone.run_epoch()
    assert together.method.weight[1].equal(alone.method.weight[0])
    assert not together.method.weight[0].equal(together.method.weight[1])


def test_sample_weights_are_those_of_the_loss():
    """ERM with weights 0 on some rows learns nothing from them; other methods refuse weights."""
    samples = make_samples()
    weights = np.ones(len(samples))
    ignored = samples.rows("split_0", "train")[:20]
    weights[ignored] = 0
    flipped = samples.y.copy()
    flipped[ignored] = 1 - flipped[ignored]
    cell = make_cell(seeds=(0,), network=LINEAR)
    weighted = replace(samples, sample_weight=weights)
    (ignoring,), *_ = train(weighted, cell)
    (other,), *_ = train(replace(weighted, y=flipped), cell)
    (plain,), *_ = train(samples, cell)
    (equal,), *_ = train(replace(samples, sample_weight=np.ones(len(samples))), cell)
    key = "model.top.weight"
    assert np.array_equal(ignoring.state[key], other.state[key])
    assert not np.array_equal(ignoring.state[key], plain.state[key])
    assert np.array_equal(equal.state[key], plain.state[key])
    with pytest.raises(InputError, match="method cvar_dro with network mlp: ignores sample_weight"):
        train(weighted, make_cell("cvar_dro"))
