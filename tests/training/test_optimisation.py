"""Optimisers against torch's classes, and memory that the process keeps."""

import subprocess
import sys

import pytest
import torch
from torch import nn, optim

from robust_fairness.bench.compute.optimisers import Adam, Descent

OPTIMISERS = {
    "adam": (lambda w: optim.Adam(w, fused=True, weight_decay=0.1), lambda w: Adam(w, 0, 0.1)),
    "adamw": (
        lambda w: optim.AdamW(w, fused=True, weight_decay=0.1),
        lambda w: Adam(w, 0, 0.1, decoupled=True),
    ),
    "of a generator": (
        lambda w: optim.Adam(w, foreach=True),
        lambda w: Adam(w, 0, fused=False),
    ),
    "sgd": (lambda w: optim.SGD(w, fused=True), lambda w: Descent(w, 0)),
    "momentum": (
        lambda w: optim.SGD(w, fused=True, momentum=0.9, weight_decay=0.1),
        lambda w: Descent(w, 0, 0.1, momentum=0.9),
    ),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_have_the_bits_of_torchs_classes_also_when_they_are_restored(name):
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=generator) for shape in ((7, 5), (3,))]
    theirs = [nn.Parameter(weight.clone()) for weight in weights]
    ours = [weight.clone() for weight in weights]
    make, make_ours = OPTIMISERS[name]
    expected, optimiser = make(theirs), make_ours(ours)
    for step in range(6):
        for group in expected.param_groups:
            group["lr"] = 0.1 / (step + 1)
        optimiser.lr = 0.1 / (step + 1)
        gradients = [torch.randn(weight.shape, generator=generator) for weight in weights]
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        expected.step()
        optimiser.step(gradients)
        state = {key: value.clone() for key, value in optimiser.state().items()}
        optimiser = make_ours(ours)
        optimiser.restore(state)
    assert all(torch.equal(a, b) for a, b in zip(theirs, ours, strict=True))


MEMORY = """
import resource, sys
import numpy as np
from robust_fairness.bench.compute.process import keep_freed_memory
if not keep_freed_memory():
    sys.exit("another C library")
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(2**23)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_large_arrays_are_made_in_memory_that_was_freed():
    """64 MiB are 16,384 pages."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False
    )
    if "another C library" in done.stderr:
        pytest.skip("not glibc")
    assert int(done.stdout) < 1000, done.stderr
