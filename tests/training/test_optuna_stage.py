"""Search by drawn trials: what is drawn, what is given up, and what a killed search finds again."""

import numpy as np
import optuna
import pandas as pd
import pytest

from robust_fairness.bench import training
from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.experiment.search import Stage
from robust_fairness.bench.training import fitting
from robust_fairness.bench.training.optuna_stage import OptunaStage

from .conftest import accuracies, assert_same_bits, make_cell, make_samples

RATES = {"low": 1e-4, "high": 1e-1, "log": True}
DECAYS = (1e-5, 1e-3, 0.1)


def drawn(space: dict, score=None, **stage) -> list[dict]:
    """Overrides of all trials of a stage, told what ``score`` makes of each."""
    drawn_stage = OptunaStage(Stage(space=space, **stage), higher=False, earlier={})
    overrides = []
    while asked := drawn_stage.ask():
        for candidate in asked:
            overrides.append(candidate.override)
            drawn_stage.tell(candidate, score(candidate.override) if score else 0.0)
    return overrides


def test_a_further_field_changes_no_draw_of_the_others():
    """Each field has draws of its own, whatever is drawn beside it and in whatever order."""
    alone = drawn({"learning_rate": RATES}, sampler="random", trials=8)
    space = {"weight_decay": DECAYS, "learning_rate": RATES, "batch_size": {"low": 16, "high": 64}}
    together = drawn(space, sampler="random", trials=8)
    table = pd.DataFrame(together)
    assert table["learning_rate"].equals(pd.DataFrame(alone)["learning_rate"])
    assert set(table["weight_decay"]) == set(DECAYS)
    assert table["batch_size"].dtype == int and table["batch_size"].between(16, 64).all()
    assert drawn(space, sampler="random", trials=3) == together[:3]
    assert drawn({"learning_rate": RATES}, sampler="random", trials=8, seed=1) != alone


def test_estimator_comes_nearer_to_the_best_than_even_draws():
    """A bowl in two fields: mean of the last draws over several seeds."""

    def bowl(override):
        return (np.log10(override["learning_rate"]) + 3) ** 2 + (override["alpha"] - 0.7) ** 2

    space = {"learning_rate": RATES, "alpha": {"low": 0.0, "high": 4.0}}
    means = {}
    for sampler in ("random", "tpe"):
        draws = [drawn(space, bowl, sampler=sampler, trials=40, seed=seed) for seed in range(5)]
        means[sampler] = np.mean([bowl(pd.DataFrame(overrides[-12:])) for overrides in draws])
    assert means["tpe"] < means["random"] / 2


def test_a_grid_is_tried_in_order():
    """The last field fastest; lists are values like others."""
    space = {"explicit": [["kind"], ["size", "kind"]], "alpha": [1.0, 2.0]}
    assert drawn(space) == [
        {"explicit": ["kind"], "alpha": 1.0},
        {"explicit": ["kind"], "alpha": 2.0},
        {"explicit": ["size", "kind"], "alpha": 1.0},
        {"explicit": ["size", "kind"], "alpha": 2.0},
    ]


@pytest.mark.parametrize("pruner", ["median", "successive_halving"])
@pytest.mark.parametrize("higher", [True, False])
def test_pruner_stops_what_learns_least(pruner, higher):
    """The bad half of trials, whose losses are higher throughout, whichever way scores go."""
    stage = Stage(space={"alpha": {"low": 0.0, "high": 1.0}}, sampler="random", trials=12,
                  at_once=1, pruner=pruner, first_trials=2, first_epochs=2)  # fmt: skip
    drawn_stage = OptunaStage(stage, higher, {})
    given_up, losses = {}, [0.1, 0.2] + [5.0, 0.05] * 5
    for number, loss in enumerate(losses):
        (candidate,) = drawn_stage.ask()
        epochs = [drawn_stage.should_prune(candidate, epoch, loss) for epoch in range(8)]
        given_up[number] = epochs.index(True) if True in epochs else None
        drawn_stage.tell(candidate, 1 - loss if higher else loss)
    assert given_up[0] is None  # nothing to compare it with
    assert given_up[3] is None  # the best so far
    assert all(given_up[number] is not None and given_up[number] >= 1 for number in (2, 4, 6))


def searching(**stage):
    """A cell that draws learning rates and the method's alpha."""
    space = {"learning_rate": {"low": 1e-5, "high": 1e-1, "log": True}, "alpha": [0.5, 1.0]}
    search = [{"space": space, "sampler": "random", "trials": 6, **stage}]
    return make_cell("adv_debias", seeds=(0, 1), epochs=6, fields={"search": search})


def test_pruned_trials_are_told_of_and_not_chosen():
    """Their curves end early, they have no model, and the table says so."""
    samples = make_samples()
    cell = searching(pruner="median", at_once=1, first_trials=1, first_epochs=2)
    models, validation, history, trials = training.train(samples, cell)
    assert list(trials["stage"]) == [0] + [1] * 6
    pruned = set(trials[trials["state"] == "pruned"]["trial"])
    assert 0 < len(pruned) < 6
    completed = {model.trial for model in models}
    assert pruned.isdisjoint(completed | {prediction.trial for prediction in validation})
    assert completed | pruned == set(trials["trial"])
    lengths = history.groupby("trial")["epoch"].max() + 1
    assert lengths[list(pruned)].between(2, 5).all()
    assert (lengths[list(completed)] == 6).all()
    scored = trials.set_index("trial")["score"]
    assert scored[list(pruned)].isna().all()
    assert accuracies(validation, samples) == pytest.approx(scored.drop(list(pruned)).to_dict())
    assert training.select(samples, validation, cell)["trial"].isin(scored.index).all()


def test_trials_that_are_drawn_together_train_together(monkeypatch):
    """Six values of a float field of the method, two seeds: one stack of twelve."""
    stacks = []
    original = fitting.Stack.__init__

    def noted(self, samples, cell, replicas):
        stacks.append(len(replicas))
        original(self, samples, cell, replicas)

    monkeypatch.setattr(fitting.Stack, "__init__", noted)
    cell = searching(space={"alpha": {"low": 0.1, "high": 4.0}})
    training.train(make_samples(), cell)
    assert stacks == [2, 12]


class Killed(BaseException):
    """What ends a process at an epoch."""


def test_a_search_that_was_killed_ends_as_an_undisturbed_one(monkeypatch, tmp_path):
    """Bit for bit, wherever it was stopped: the same trials, given up at the same epochs."""
    samples = make_samples()
    cell = searching(sampler="tpe", at_once=2, pruner="median", first_trials=2, first_epochs=2)
    protocol = cell.protocol.model_copy(update={"checkpoint_seconds": 0})
    cell = cell.model_copy(update={"protocol": protocol})
    undisturbed = training.train(samples, cell)
    monkeypatch.setenv(checkpoints.ROOT_VARIABLE, str(tmp_path))
    original = fitting.Stack.run_epoch
    for last in (5, 7, 4):
        left = iter(range(last))

        def run_epoch(self, left=left):
            if next(left, None) is None:
                raise Killed
            original(self)

        monkeypatch.setattr(fitting.Stack, "run_epoch", run_epoch)
        with pytest.raises(Killed):
            training.train(samples, cell)
    monkeypatch.setattr(fitting.Stack, "run_epoch", original)
    completed = training.train(samples, cell)
    pd.testing.assert_frame_equal(completed[3], undisturbed[3], check_exact=True)
    pd.testing.assert_frame_equal(completed[2], undisturbed[2], check_exact=True)
    for model, expected in zip(completed[0], undisturbed[0], strict=True):
        assert (model.trial, model.seed) == (expected.trial, expected.seed)
        assert_same_bits(model.state, expected.state)


def test_optuna_says_nothing_of_its_own():
    """Its messages would stand among those of the run."""
    assert optuna.logging.get_verbosity() >= optuna.logging.WARNING
