"""Defaults of methods on a bundled table: better than the largest class, or a warning."""

import logging

import numpy as np
import pytest

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.library import load
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.bench.training import train
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples
from tests.training.conftest import make_cell

FEW = ("jtt", "cvar_dro", "group_dro", "dfr", "spectral_decoupling", "lff")
TABLE = {"epochs": 20, "batch_size": 64}
IMAGES = {"epochs": 3, "batch_size": 64, "learning_rate": 0.003}
# what every method reads besides rows and groups, which only the first dataset has
READS = ("domains", "target rows")


@pytest.fixture(scope="module")
def states() -> Samples:
    """3,000 rows of Income in three states, one held out; a fifth cannot be predicted."""
    samples = hold_out_domains(load("acs_states", states=["SD", "WV", "ME"]), test=["ME"])
    rows = np.random.default_rng(0).choice(len(samples), 3000, replace=False)
    return samples.take(np.sort(rows))


@pytest.fixture(scope="module")
def datasets(states) -> dict[str, tuple[Samples, dict, str]]:
    """Samples, protocol and network."""
    return {
        "acs_states": (states, TABLE, "mlp"),
        "diabetes": (load("diabetes"), TABLE, "mlp"),
        "biased_digits": (load("biased_digits", draws=1), IMAGES, "biased_mnist_cnn"),
    }


@pytest.fixture(scope="module")
def income():
    """2,000 rows of Income in South Dakota, where a fifth cannot be predicted."""
    samples = load("acs_states", states=["SD"])
    return samples.take(np.arange(2000))


def with_defaults(method: str, network: str, protocol: dict) -> Cell:
    """One seed of a method by its defaults, with a network that it trains."""
    plugin, used = find("method", method), {"name": network}
    if plugin.estimators == "only":
        used = {"name": "estimator", "estimator": "sklearn.linear_model.LogisticRegression"}
    elif method == "donini":
        used = {"name": "linear"}
    elif not plugin.trains_head:
        used = {"name": "embedding", "backbone": used, "classifier": "logistic_regression"}
    cell = make_cell(method, seeds=(0,), network=used, precision="float32", **protocol)
    return cell.model_copy(update={"metrics": ("accuracy",), "settings": {}})


def accuracy_and_largest(samples: Samples, cell: Cell) -> tuple[float, float]:
    """On validation rows of the training distribution: accuracy and share of the largest class."""
    _, validation, _, _ = train(samples, cell)
    (prediction,) = [predicted for predicted in validation if predicted.part == "val"]
    y = samples.y[prediction.rows]
    return (prediction.outputs.argmax(1) == y).mean(), np.bincount(y).max() / len(y)


@pytest.mark.parametrize("method", FEW)
def test_defaults_are_no_worse_than_the_largest_class_or_warn(method, states, caplog):
    """On real rows with noisy labels, at the default learning rate."""
    accuracy, largest = accuracy_and_largest(states, with_defaults(method, "mlp", TABLE))
    assert ("is not above the share of the largest class" in caplog.text) == (accuracy <= largest)
    if method in ("jtt", "cvar_dro"):
        assert accuracy >= largest


@pytest.mark.slow
@pytest.mark.parametrize("method", names("method"))
@pytest.mark.parametrize("name", ["acs_states", "diabetes", "biased_digits"])
def test_every_method_by_its_defaults(name, method, datasets, caplog):
    """No method is less accurate than the largest class without a warning; or it is refused."""
    samples, protocol, network = datasets[name]
    cell = with_defaults(method, network, protocol)
    reads = set(cell.method.parameters.sees).intersection(READS)
    reduction = find("method", method).estimators == "only"
    of_images = name == "biased_digits" and (reduction or method == "donini")
    # equalised odds of four groups: more axes than a grid has
    too_many_groups = name == "acs_states" and method == "grid_search"
    if (reads and not samples.domain) or of_images or too_many_groups:
        with pytest.raises(InputError):
            train(samples, cell)
        return
    accuracy, largest = accuracy_and_largest(samples, cell)
    logging.getLogger(__name__).info("%s, %s: %.3f of %.3f", name, method, accuracy, largest)
    assert ("is not above the share of the largest class" in caplog.text) == (accuracy <= largest)


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
