"""The staged grid search."""

from dataclasses import replace

import numpy as np
import pytest

from robust_fairness.bench import training
from robust_fairness.bench.training import fitting
from robust_fairness.core.errors import InputError

from .conftest import accuracies, make_cell, make_samples


def searching(**changes):
    """A cell that searches learning rate x weight decay, then alpha."""
    search = [
        {"learning_rate": [1e-3, 3e-2], "weight_decay": [1e-5, 0.1]},
        {"alpha": [0.5, 1.0, 2.0]},
    ]
    return make_cell("adv_debias", seeds=(0,), epochs=2, fields={"search": search, **changes})


def test_second_stage_searches_around_the_best_of_the_first():
    """All of the first stage once, then the method's own values with the winner's others."""
    samples, cell = make_samples(), searching()
    fitted, validation, *_ = training.train(samples, cell)
    trials = [model.trial for model in fitted]
    first = [
        "default",  # the first combination is what the default trial is
        "learning_rate=0.001,weight_decay=0.1",
        "learning_rate=0.03,weight_decay=1e-05",
        "learning_rate=0.03,weight_decay=0.1",
    ]
    assert trials[:4] == first
    scores = accuracies(validation, samples)
    winner = max(first, key=lambda trial: scores[trial])  # the first of equal ones
    prefix = "learning_rate=0.001,weight_decay=1e-05" if winner == "default" else winner
    assert trials[4:] == [f"{prefix},alpha=0.5", f"{prefix},alpha=2.0"]  # alpha = 1 was there


def test_a_trial_that_is_not_finite_fails_and_the_search_goes_on(caplog):
    """It is neither predicted nor selected; a search in which all fail is an error."""
    samples, cell = make_samples(), searching(search=[{"learning_rate": [1e-3, 1e200]}])
    fitted, _, _, trials = training.train(samples, cell)
    assert trials.set_index("trial")["state"].to_dict() == {
        "default": "complete",
        "learning_rate=1e+200": "failed",
    }
    assert [model.trial for model in fitted] == ["default"]
    assert "trial learning_rate=1e+200, seed 0: " in caplog.text
    with pytest.raises(InputError, match="every trial of a stage failed"):
        training.train(samples, searching(search=[{"learning_rate": [1e200]}]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groupings": [["kind", "colour"]]}, "groupings, kind & colour: unknown attribute 'col"),
        ({"groupings": [["kind", "size"]]}, "groupings, kind & size: attribute 'size' is cont"),
        ({"groupings": [[]]}, "groupings, : groups: no attribute is given, allowed: kind, size"),
        ({"settings": {"explicit": ["kinds"]}}, "trial default: .*did you mean 'kind'"),
        ({"trials": [{"explicit": ["kind", "hue"]}]}, "trial explicit=kind.hue: unknown .*'hue'"),
        (
            {"search": [{"alpha": [1.0]}, {"explicit": [["kind"], ["tint"]]}]},
            "trial explicit=tint: unknown attribute 'tint'.* Allowed: kind, size",
        ),
    ],
)
def test_unknown_attributes_are_refused_before_anything_is_trained(monkeypatch, changes, message):
    """Wherever the cell names them, in one line that names the place and what is allowed."""

    def too_late(*_) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr(fitting.Stack, "__init__", too_late)
    samples = make_samples()
    samples = replace(samples, attributes=samples.attributes.assign(size=np.zeros(len(samples))))
    cell = searching(**{"search": []} | changes)
    with pytest.raises(InputError, match=rf"^toy(.adv_debias)?: {message}") as error:
        training.train(samples, cell)
    assert "\n" not in str(error.value)
    with pytest.raises(AssertionError, match="trained"):
        training.train(samples, searching(search=[]))
