"""The constraint of Donini et al., against its definition and direct solutions."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import linprog, minimize

from robust_fairness.bench.methods.donini import hinge_loss
from robust_fairness.bench.training import train
from robust_fairness.bench.training.fitting import Stack, trainings
from robust_fairness.core.samples import Samples
from tests.training.conftest import largest_difference, make_cell, make_samples, samples_of

NETWORKS = {"linear": {"name": "linear"}, "kernel_features": {"name": "kernel_features"}}


def trained(samples, method="donini", **options):
    """The stack after training."""
    cell = make_cell(method, seeds=options.pop("seeds", (0, 1)), **options)
    ((replicas, _),) = trainings(cell.replicas(), samples, cell.network.name)
    stack = Stack(samples, cell, replicas)
    for _ in range(cell.protocol.epochs):
        stack.run_epoch()
    return stack


def mean_scores(stack, samples, replica):
    """Mean logits of training rows by group and class, ``[group, class, logit]``, with loops."""
    rows = samples.rows(stack.data.splits[replica], "train")
    with torch.no_grad():
        same = torch.tensor(rows).expand(len(stack.data.splits), -1)
        outputs = stack.model(stack.data.batch(same).x)
    scores = outputs[replica].double().numpy()
    group = samples.attributes["kind"].cat.codes.to_numpy()[rows]
    y = samples.y[rows]
    groups, classes = group.max() + 1, y.max() + 1
    means = [
        [scores[(group == a) & (y == c)].mean(0) for c in range(classes)] for a in range(groups)
    ]
    overall = [scores[group == a].mean(0) for a in range(groups)]
    return np.array(means), np.array(overall)


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("loss", ["hinge", "cross_entropy"])
@pytest.mark.parametrize(("groups", "classes"), [(2, 2), (3, 2), (3, 3)])
def test_constrained_scores_are_the_same_in_all_groups(network, loss, groups, classes):
    """Exactly so on the training rows, and only those that the notion names."""
    samples = make_samples(groups=groups, classes=classes)
    options = {"network": NETWORKS[network], "method_loss": loss, "learning_rate": 0.05}
    for notion in ("opportunity", "eo", "dp"):
        stack = trained(samples, method_notion=notion, **options)
        for replica in range(2):
            means, overall = mean_scores(stack, samples, replica)
            gaps = np.ptp(means, axis=0).max(-1)  # of each class
            if notion == "dp":
                assert np.ptp(overall, axis=0).max() < 1e-9
            elif notion == "eo":
                assert gaps.max() < 1e-9
            else:
                assert gaps[1] < 1e-9
                assert np.delete(gaps, 1).min() > 1e-3


def test_constraint_holds_at_the_end_of_every_step_with_every_optimiser():
    """Adam scales coordinates, momentum remembers, decay pulls: the projection is the last."""
    samples = make_samples()
    for optimiser in ("adam", "adamw", "sgd"):
        stack = trained(samples, optimiser=optimiser, weight_decay=0.1, epochs=2)
        weights = stack.model.top.weight
        assert (stack.method.forbidden.mT @ weights).abs().max() < 1e-12
        assert weights.abs().max() > 1e-3


def test_single_precision_keeps_the_constraint_to_rounding():
    """As protocols train by default."""
    samples = make_samples()
    stack = trained(samples, precision="float32", learning_rate=0.05)
    means, _ = mean_scores(stack, samples, 0)
    assert np.ptp(means, axis=0)[1].max() < 1e-5


def small_samples(seed: int = 0) -> Samples:
    """Thirty training rows of three features whose classes overlap."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 3))
    group = (x[:, 0] + rng.normal(size=60) > 0).astype(int)
    y = (x[:, 0] + x[:, 1] + 1.5 * rng.normal(size=60) > 0).astype(np.int64)
    parts = pd.Categorical(["train"] * 30 + ["val"] * 15 + ["test"] * 15)
    kind = pd.Categorical.from_codes(group, ["a", "b"])
    return samples_of(x.astype(np.float32), y, kind, pd.DataFrame({"split_0": parts}))


def difference_of_means(samples):
    """The vector u, signs and features of the training rows, in double precision."""
    x, y = samples.x[:30].astype(np.float64), samples.y[:30]
    group = samples.attributes["kind"].cat.codes.to_numpy()[:30]
    u = x[(group == 0) & (y == 1)].mean(0) - x[(group == 1) & (y == 1)].mean(0)
    return x, 2.0 * y - 1, u


def solution(loss, epochs, **options):
    """Weights and constant of the difference of the logits after training on all thirty rows."""
    stack = trained(
        small_samples(),
        seeds=(0,),
        method_loss=loss,
        preprocessing="none",
        batch_size=30,
        epochs=epochs,
        weight_decay=0,
        **options,
    )
    weight, bias = stack.model.top.weight[0], stack.model.top.bias[0, 0]
    return (weight[:, 1] - weight[:, 0]).detach().numpy(), (bias[1] - bias[0]).item()


def test_logistic_loss_ends_where_the_papers_transformed_features_end():
    """Donini et al. remove one feature: x_j - x_i u_j / u_i; then any solver is unconstrained."""
    x, sign, u = difference_of_means(small_samples())
    i = np.abs(u).argmax()
    others = [j for j in range(3) if j != i]
    transformed = x[:, others] - x[:, [i]] * u[others] / u[i]

    def objective(parameters):
        margin = sign * (transformed @ parameters[:2] + parameters[2])
        return np.logaddexp(0, -margin).mean()

    direct = minimize(objective, np.zeros(3), tol=1e-10)
    weight, bias = solution("cross_entropy", 800, learning_rate=0.1)
    assert abs(u @ weight) < 1e-12
    expected = transformed @ direct.x[:2] + direct.x[2]
    np.testing.assert_allclose(x @ weight + bias, expected, atol=1e-3)
    free = minimize(
        lambda p: np.logaddexp(0, -sign * (x @ p[:3] + p[3])).mean(), np.zeros(4), tol=1e-10
    )
    assert direct.fun > free.fun + 0.01  # the constraint costs something here


def test_hinge_loss_ends_at_the_linear_programme():
    """Least mean hinge loss subject to u . w = 0, solved exactly."""
    x, sign, u = difference_of_means(small_samples())
    cost = np.concatenate([np.zeros(4), np.full(30, 1 / 30)])
    margins = -np.concatenate([sign[:, None] * x, sign[:, None], np.eye(30)], axis=1)
    programme = linprog(
        cost,
        A_ub=margins,
        b_ub=-np.ones(30),
        A_eq=[np.concatenate([u, np.zeros(31)])],
        b_eq=[0],
        bounds=[(None, None)] * 4 + [(0, None)] * 30,
    )
    weight, bias = solution("hinge", 1500, learning_rate=0.05)
    loss = np.maximum(0, 1 - sign * (x @ weight + bias)).mean()
    assert abs(u @ weight) < 1e-12
    assert programme.fun <= loss + 1e-9
    assert loss == pytest.approx(programme.fun, abs=2e-3)


def test_hinge_loss_is_that_of_the_difference_for_two_classes():
    """And for more what the best other class lacks of a lead of 1."""
    logits = torch.randn(2, 7, 2, dtype=torch.float64)
    y = torch.randint(2, (2, 7))
    margin = (2 * y - 1) * (logits[..., 1] - logits[..., 0])
    torch.testing.assert_close(hinge_loss(logits, y), (1 - margin).clamp(min=0))
    three = torch.tensor([[2.0, 1.5, -1.0], [0.0, 3.0, 0.5]])
    expected = torch.tensor([0.5, 3.5])
    torch.testing.assert_close(hinge_loss(three, torch.tensor([0, 2])), expected)


def test_rows_of_unknown_group_train_but_do_not_constrain():
    """The mean features are those of the rows whose group is known."""
    samples = make_samples()
    frame = samples.attributes.copy()
    frame.loc[::3, "kind"] = None
    stack = trained(replace(samples, attributes=frame))
    for replica, split in enumerate(stack.data.splits):
        rows = samples.rows(split, "train")
        kind = frame["kind"].cat.codes.to_numpy()[rows]
        x = samples.x[rows].astype(np.float64)
        x = (x - x.mean(0)) / x.std(0)
        positive = samples.y[rows] == 1
        u = x[(kind == 0) & positive].mean(0) - x[(kind == 1) & positive].mean(0)
        direction = stack.method.forbidden[replica]
        assert direction.norm().item() == pytest.approx(1)
        parallel = np.abs(u @ direction.numpy()).max() / np.linalg.norm(u)
        assert parallel == pytest.approx(1, abs=1e-6)


def test_equal_groups_leave_training_alone():
    """Groups whose rows are the same have no direction to forbid."""
    samples = make_samples(rows=240)
    half = np.arange(240) // 2
    twins = replace(
        samples,
        x=samples.x[half],
        y=samples.y[half],
        attributes=pd.DataFrame(
            {"kind": pd.Categorical.from_codes(np.arange(240) % 2, ["a", "b"])}
        ),
        splits=samples.splits.iloc[half].reset_index(drop=True),
    )
    options = {"network": NETWORKS["linear"], "precision": "float64"}
    fair, _, _, _ = train(twins, make_cell("donini", method_loss="cross_entropy", **options))
    plain, _, _, _ = train(twins, make_cell("erm", **options))
    assert max(largest_difference(*pair) for pair in zip(fair, plain, strict=True)) < 1e-12
