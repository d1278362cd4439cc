"""Metric learning and PARADE in the training loop, against restatements with torch's own parts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

from robust_fairness.bench.methods import parade
from robust_fairness.bench.training import fitting, select, train
from robust_fairness.core.registry import find, names
from tests.training.conftest import EMBEDDING, make_cell, make_samples


class Reversal(torch.autograd.Function):
    """The identity, whose gradient has the other sign."""

    @staticmethod
    def forward(context, x):
        """The same numbers."""
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        """The gradient reversed."""
        return -gradient


def make_stack(method: str, samples=None, seeds=(0,), **changes) -> fitting.Stack:
    """A stack of one before its first step."""
    samples = samples or make_samples(groups=3, classes=3)
    cell = make_cell(method, seeds=seeds, **changes)
    return fitting.Stack(samples, cell, cell.replicas([{}]))


def first_batch(stack: fitting.Stack):
    """The first batch of an epoch."""
    return stack.data.batch(next(iter(stack.data.epoch_batches(stack.method.visiting_order))))


def parameters_of(stack: fitting.Stack) -> dict[str, nn.Parameter]:
    """Parameters of the network and of the method by name."""
    named = {f"model.{name}": weight for name, weight in stack.model.named_parameters()}
    return named | {f"method.{name}": weight for name, weight in stack.method.named_parameters()}


def gradients(stack: fitting.Stack, step) -> dict[str, torch.Tensor]:
    """Gradient of every parameter of every player, by its name."""
    by_weight = {}
    for player, loss in step.losses.items():
        weights = stack.optimisation.players[player]
        slopes = torch.autograd.grad(loss.sum(), weights, retain_graph=True, materialize_grads=True)
        by_weight |= zip(map(id, weights), slopes, strict=True)
    return {
        name: by_weight[id(weight)]
        for name, weight in parameters_of(stack).items()
        if id(weight) in by_weight
    }


@pytest.mark.parametrize("over", ["mean", "sum"])
def test_parade_is_one_loss_with_gradient_reversal(over):
    """L_targ + alpha L_SA - rho c with R before both embeddings, in one backward pass (section 4).

    Every parameter has the gradient of that loss: those of both heads and of the network below
    through the reversal, those of the adversary directly.
    """
    options = {"method_alpha": 0.3, "method_rho": 40.0, "method_separation": over}
    stack = make_stack("parade", method_objective="multisimilarity", **options)
    method, model, batch = stack.method, stack.model, first_batch(stack)
    (step,) = method.steps(model, batch)
    ours = gradients(stack, step)

    shared = model.shared(batch.x, batch.noise)
    target = model.embed(shared)[0]
    attribute = model.embed(shared, method.attribute_heads[0])[0]
    first = normalize(Reversal.apply(target), dim=-1)
    second = normalize(method.adversaries[0](normalize(Reversal.apply(attribute), dim=-1)), dim=-1)
    c = (first * second).square()
    c = (c.sum(-1) if over == "sum" else c.mean(-1)).mean()
    loss = (
        method.target(target, batch.y[0])
        + 0.3 * method.attribute_objectives[0](attribute, batch.group[0])
        - 40.0 * c
    )
    named = parameters_of(stack)
    theirs = torch.autograd.grad(loss, list(named.values()), materialize_grads=True)
    for name, gradient in zip(named, theirs, strict=True):
        torch.testing.assert_close(ours[name], gradient, rtol=1e-9, atol=1e-12)
    assert ours["method.adversaries.0.0.weight"].abs().max() > 0


@pytest.mark.parametrize("method", ["metric_learning", "parade"])
def test_the_saved_model_is_the_network_and_nothing_of_the_method(method):
    """Neither the attribute's head, nor the adversary, nor proxies and boundaries."""
    samples = make_samples(groups=3, classes=3)
    (fitted,), validation, _, _ = train(samples, make_cell(method, seeds=(0,)))
    stack = make_stack(method, samples)
    hparams = [replica.network for replica in stack.replicas]
    (state,) = stack.model.finished_states(hparams, stack.data.labelled())
    expected = {f"model.{name}" for name in state}
    saved = {name for name in fitted.state if name.startswith("model.")}
    assert saved == expected
    assert not any(word in name for name in saved for word in ("attribute", "adversar", "beta"))
    kept = {"metric_learning": {"embedding"}, "parade": {"embedding", "attribute_embedding"}}
    assert kept[method] <= set(validation[0].values)
    lengths = np.linalg.norm(validation[0].values["embedding"], axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)


def test_trials_of_what_is_fitted_afterwards_share_one_training(monkeypatch):
    """One training for all classifiers; their features are the same bits, their outputs differ."""
    epochs = []
    run_epoch = fitting.Stack.run_epoch
    monkeypatch.setattr(
        fitting.Stack, "run_epoch", lambda stack: (epochs.append(1), run_epoch(stack))[1]
    )
    trials = (
        {"classifier": "random_forest"},
        {"classifier": "k_means"},
        {"rebalancing": "oversampling"},
        {"objective": "triplet"},
    )
    cell = make_cell("metric_learning", trials, seeds=(0, 1), epochs=2)
    samples = make_samples(groups=3, classes=3)
    fitted, validation, curves, _ = train(samples, cell)
    assert len(epochs) == 2 * 2 * 2  # epochs, seeds, objectives
    by_trial = {(model.trial, model.seed): model for model in fitted}
    assert len(by_trial) == 2 * 5
    predicted = {(prediction.trial, prediction.seed): prediction for prediction in validation}
    for seed in (0, 1):
        first = by_trial["default", seed]
        features = {name for name in first.state if "backbone" in name}
        assert features
        for trial in ("classifier=random_forest", "classifier=k_means", "rebalancing=oversampling"):
            other = by_trial[trial, seed]
            assert all(np.array_equal(first.state[n], other.state[n]) for n in features)
            pair = (predicted["default", seed].outputs, predicted[trial, seed].outputs)
            assert not np.array_equal(*pair)
        other = by_trial["objective=triplet", seed]
        assert not all(np.array_equal(first.state[n], other.state[n]) for n in features)
    assert set(curves["trial"]) == {model.trial for model in fitted}
    alone, _, _, _ = train(samples, make_cell("metric_learning", seeds=(1,), epochs=2))
    for name, array in alone[0].state.items():
        np.testing.assert_array_equal(array, by_trial["default", 1].state[name])


def test_of_trials_with_one_embedding_the_first_is_chosen():
    """By a criterion of the embedding they are equal, whatever their names."""
    trials = ({"classifier": "k_means"}, {"classifier": "random_forest"})
    fields = {"metrics": ("recall_at",), "selections": ("recall_at",)}
    cell = make_cell("metric_learning", trials, seeds=(0, 1), epochs=1, fields=fields)
    samples = make_samples(groups=3, classes=3)
    _, validation, _, _ = train(samples, cell)
    assert [prediction.trial for prediction in validation] == [
        trial
        for trial in ("default", "classifier=k_means", "classifier=random_forest")
        for _ in (0, 1)
    ]
    chosen = select(samples, validation, cell)
    assert set(chosen["trial"]) == {"default"}


def test_classifiers_are_fitted_on_the_downstream_rows_alone():
    """Other downstream rows, another classifier of the same embedding."""
    samples = make_samples(groups=3, classes=3, splits=1)
    cell = make_cell("metric_learning", seeds=(0,), epochs=2)
    (usual,), _, _, _ = train(samples, cell)
    rows = samples.rows("split_0", "train")[::2]
    chosen = np.isin(np.arange(len(samples)), rows)
    fewer = replace(samples, downstream=pd.DataFrame({"split_0": chosen}))
    (other,), _, _, _ = train(fewer, cell)
    stack = fitting.Stack(fewer, cell, cell.replicas())
    assert stack.data.downstream.tolist() == rows.tolist()
    differ = {
        name for name in usual.state if not np.array_equal(usual.state[name], other.state[name])
    }
    assert differ
    assert all(name.startswith("model.top.") for name in differ)


def test_proxies_and_boundaries_learn_at_rates_of_their_own():
    """One step of Adam moves a parameter by its learning rate, whatever the gradient."""
    options = {"method_objective": "margin", "weight_decay": 0.0, "learning_rate": 1e-3}
    stack = make_stack("parade", method_embedding_learning_rate=1e-2, **options)
    named = parameters_of(stack)
    before = {name: weight.detach().clone() for name, weight in named.items()}
    (step,) = stack.method.steps(stack.model, first_batch(stack))
    stack.optimisation.apply(step)
    moved = {name: (named[name] - before[name]).abs().max().item() for name in named}
    rates = {"target": 5e-4, "attribute_objectives": 5e-4, "attribute_heads": 1e-2}
    rates |= {"adversaries": 1e-5}
    for start, rate in rates.items():
        some = [far for name, far in moved.items() if name.startswith(f"method.{start}.")]
        assert max(some) == pytest.approx(rate, rel=1e-3), start
    last = {id(parameter) for parameter in stack.model.projection.parameters()}
    for name, parameter in stack.model.named_parameters():
        rate = 1e-2 if id(parameter) in last else 1e-3
        assert moved[f"model.{name}"] == pytest.approx(rate, rel=1e-2), name
    assert set(stack.optimisation.players) == {
        "model", "embedding", "objective", "attribute_heads", "attribute_objectives", "adversary",
    }  # fmt: skip


def test_several_attributes_have_a_head_each_and_rows_without_value_are_left_out():
    """Their terms are means; the gradient knows nothing of missing values."""
    samples = make_samples(groups=3, classes=3)
    rng = np.random.default_rng(0)
    second = pd.Categorical.from_codes(rng.integers(-1, 4, len(samples)), list("abcd"))
    samples = replace(
        samples,
        attributes=samples.attributes.assign(second=second),
        sensitive=("kind", "second"),
    )
    stack = make_stack("parade", samples)
    shared = stack.model.shared(first_batch(stack).x)
    assert [head(shared).shape[-1] for head in stack.method.attribute_heads] == [5, 5]
    assert [mined.objective.beta.numel() for mined in stack.method.attribute_objectives] == [3, 4]
    batch = first_batch(stack)
    (step,) = stack.method.steps(stack.model, batch)
    assert all(gradient.isfinite().all() for gradient in gradients(stack, step).values())
    labels = parade.attribute_labels(batch.attributes[0], (3, 4))
    rows = batch.rows[0].numpy()
    assert np.array_equal(labels[1][1].numpy(), second.codes[rows] >= 0)
    known = labels[1][1].numpy()
    assert np.array_equal(labels[1][0].numpy()[known], second.codes[rows][known])
    spaces = stack.method.embeddings(stack.model, batch)
    assert spaces["attribute_embedding"].shape == (1, len(rows), 10)


@pytest.mark.parametrize("miner", names("miner"))
@pytest.mark.parametrize("objective", names("objective"))
def test_parade_works_with_any_objective_and_miner(objective, miner):
    """Every player has a finite gradient, and the embedding one that is not 0."""
    normalised = find("objective", objective).normalised
    network = {**EMBEDDING, "normalised": normalised}
    stack = make_stack("parade", network=network, method_objective=objective, method_miner=miner)
    (step,) = stack.method.steps(stack.model, first_batch(stack))
    by_name = gradients(stack, step)
    assert all(gradient.isfinite().all() for gradient in by_name.values())
    for name in ("model.projection", "method.attribute_heads", "method.adversaries"):
        assert any(by_name[path].abs().max() > 0 for path in by_name if path.startswith(name))


def test_metric_learning_brings_a_class_together():
    """After training more nearest neighbours are of the same class than before."""
    samples = make_samples(rows=480, classes=3, splits=1)
    rows = samples.rows("split_0", "val")

    def recall(epochs: int) -> float:
        cell = make_cell("metric_learning", seeds=(0,), epochs=epochs, learning_rate=0.01)
        stack = fitting.Stack(samples, cell, cell.replicas())
        for _ in range(epochs - 1):
            stack.run_epoch()
        stack.model.eval()
        with torch.no_grad():
            embedding = stack.model.features(stack.data.batch(torch.from_numpy(rows)[None]).x)[0]
        distances = torch.cdist(embedding, embedding).fill_diagonal_(np.inf)
        y = torch.from_numpy(samples.y[rows])
        return (y[distances.argmin(1)] == y).double().mean().item()

    assert recall(20) > recall(1) + 0.05


def test_separation_of_unrelated_embeddings_is_that_of_chance():
    """Of random unit vectors the sum of squared products is 1 / d on average, the mean 1 / d^2."""
    generator = torch.Generator().manual_seed(0)
    d, rows = 16, 20_000
    first, second = torch.randn(2, rows, d, generator=generator, dtype=torch.float64)
    identity = nn.Identity()
    total = parade.separation(first, second, identity, "sum").item()
    assert total == pytest.approx(1 / d, rel=0.02)
    assert parade.separation(first, second, identity, "mean").item() == pytest.approx(total / d)
