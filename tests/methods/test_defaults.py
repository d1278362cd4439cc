"""Defaults of methods on a bundled table: better than the largest class, or a warning."""

import logging

import numpy as np
import pytest

from robust_fairness.library.training import load
from robust_fairness.training import train
from tests.training.conftest import make_cell

METHODS = ("jtt", "cvar_dro", "group_dro", "spectral_decoupling", "lff")


@pytest.fixture(scope="module")
def income():
    """2,000 rows of Income in South Dakota, where a fifth cannot be predicted."""
    samples = load("acs_states", states=["SD"])
    return samples.take(np.arange(2000))


@pytest.mark.parametrize("method", METHODS)
def test_defaults_are_no_worse_than_the_largest_class_or_warn(method, income, caplog):
    """On real rows with noisy labels, at the default learning rate."""
    cell = make_cell(method, seeds=(0,), network={"name": "mlp"}, epochs=10, precision="float32")
    _, validation, _, _ = train(income, cell)
    (prediction,) = [one for one in validation if one.part == "val"]
    y = income.y[prediction.rows]
    accuracy, largest = (prediction.outputs.argmax(1) == y).mean(), np.bincount(y).max() / len(y)
    warned = "is below the share of the largest class" in caplog.text
    assert warned == (accuracy < largest)
    if method in ("jtt", "cvar_dro"):
        assert accuracy >= largest


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("jtt", {"method_upweight": 50.0}, "weigh more than all others, which can invert labels"),
        ("group_dro", {"method_step_size": 1e-6}, "this is balanced sampling"),
    ],
)
def test_settings_that_defeat_a_method_are_logged(method, options, message, income, caplog):
    """With the hyperparameter to change; the defaults of both say nothing of the kind."""
    settings = {"seeds": (0,), "network": {"name": "mlp"}, "epochs": 10, "precision": "float32"}
    train(income, make_cell(method, **settings))
    assert message not in caplog.text
    with caplog.at_level(logging.WARNING):
        train(income, make_cell(method, **settings, **options))
    assert message in caplog.text
