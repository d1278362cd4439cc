"""Baselines of robustness: golden numbers of independent programs, and closed forms."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from scipy import optimize, stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from robust_fairness.bench.maths.kernels import indicators, mean_over_pairs
from robust_fairness.bench.methods.alignment import (
    covariance_distances,
    mmd_distances,
    moment_distances,
    reversal,
)
from robust_fairness.bench.methods.base import Batch
from robust_fairness.bench.methods.dfr import averaged_regressions
from robust_fairness.bench.methods.dro import worst_rows, worst_weights
from robust_fairness.bench.methods.group_upweighting import GroupUpweighting
from robust_fairness.bench.methods.importance_weighting import density_ratio, normalised
from robust_fairness.bench.methods.lisa import partners
from robust_fairness.bench.methods.mixup import mixed_loss, symmetric_beta
from robust_fairness.bench.methods.subsampling import Subsampling, balanced
from robust_fairness.bench.methods.vrex import mean_and_variance
from robust_fairness.bench.models.layers import ABSENT, loss_of_rows
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.models.tables.linear import LinearNetwork
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.bench.training import train
from robust_fairness.bench.training.fitting import Stack
from robust_fairness.core.registry import find, names
from tests.methods.conftest import batch_of, problem_of
from tests.project import ROOT
from tests.training.conftest import make_cell, make_samples, with_sites

GOLDEN = json.loads((Path(__file__).parent / "robustness_golden.json").read_text())


def doubles(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def environments(*numbers) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of environments of the reference as a stack of one, in another order, and members."""
    rows = [GOLDEN["coral"]["inputs"][f"env_{number}"] for number in numbers]
    place = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(list(map(len, rows))))
    order = torch.randperm(len(place), generator=torch.Generator().manual_seed(0))
    features = doubles(np.concatenate(rows))[order][None]
    return features, indicators(place[order][None], len(rows), torch.float64)


def batch_of_replica(x, y, subgroup) -> Batch:
    """A batch of one replica."""
    return batch_of(x[None], y[None], subgroup[None])


def test_coral_is_the_reference():
    features, members = environments(0, 1)
    two = GOLDEN["coral"]["env0_env1"]
    distance = covariance_distances(features, members)[0, 0, 1]
    assert distance.item() == pytest.approx(two["sun_saenko"])
    distance = moment_distances(features, members)[0, 0, 1]
    assert distance.item() == pytest.approx(two["domainbed_penalty"])
    features, members = environments(0, 1, 2)
    penalty = mean_over_pairs(moment_distances(features, members), members.sum(1))
    assert penalty.item() == pytest.approx(GOLDEN["coral"]["mean_over_three_pairs_domainbed"])


def test_mmd_is_the_reference():
    golden = GOLDEN["mmd"]
    gammas = tuple(golden["gammas"])
    distance = mmd_distances(*environments(0, 1), gammas)[0, 0, 1]
    assert distance.item() == pytest.approx(golden["env0_env1_biased"])
    features, members = environments(0, 1, 2)
    penalty = mean_over_pairs(mmd_distances(features, members, gammas), members.sum(1))
    assert penalty.item() == pytest.approx(golden["mean_over_three_pairs_biased"])


def test_vrex_is_the_reference():
    """Also with an environment that has no row in the batch."""
    golden = GOLDEN["vrex"]
    losses = doubles([golden["environment_losses"] * 2])
    members = indicators(torch.tensor([[0, 3, 2, 0, 3, 2]]), 4, torch.float64)
    mean, variance = mean_and_variance(losses, members)
    assert mean.item() == pytest.approx(golden["mean"])
    assert variance.item() == pytest.approx(golden["penalty_population_variance"])


@pytest.mark.parametrize(
    ("name", "parameter", "weights_of"),
    [("cvar_dro", "alpha=", worst_rows), ("chi2_dro", "rho=", worst_weights)],
)
def test_weights_of_the_worst_rows_are_the_reference(name, parameter, weights_of):
    golden = GOLDEN[name]
    values = [key for key in golden if key.startswith(parameter)]
    losses = doubles([golden["losses"]] * len(values))
    by_value = weights_of(losses, doubles([float(key.removeprefix(parameter)) for key in values]))
    for key, weights, row in zip(values, by_value, losses, strict=True):
        assert weights.tolist() == pytest.approx(golden[key]["weights"], abs=1e-9)
        assert (weights @ row).item() == pytest.approx(golden[key]["value"])


def test_a_share_below_a_row_is_the_worst_row():
    losses = doubles([GOLDEN["cvar_dro"]["losses"]])
    assert worst_rows(losses, doubles([0.01]))[0].argmax() == losses[0].argmax()


@pytest.mark.parametrize("radius", [0.0, 0.02, 0.3, 1.4, 3.0, 50.0])
def test_chi_square_value_is_that_of_its_dual(radius):
    """Levy et al.: min over eta of eta + sqrt((1 + 2 rho) mean((l - eta)_+^2)), ties included."""
    for losses in ([1.0, 3.0, 3.0, 0.5, 0.5, 2.0], [2.0] * 5, [0.0, 0.0, 0.0, 1.0]):
        values = np.array(losses)

        def dual(eta, values=values):
            mean = np.square(np.maximum(values - eta, 0)).mean()
            return eta + np.sqrt((1 + 2 * radius) * mean)

        weights = worst_weights(doubles([losses]), doubles([radius]))[0].numpy()
        best = optimize.minimize_scalar(
            dual,
            bounds=(-1e4 if radius == 0 else -100, values.max()),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert weights.sum() == pytest.approx(1)
        assert np.square(len(values) * weights - 1).mean() / 2 <= radius + 1e-9
        assert weights @ values == pytest.approx(min(best.fun, values.max()), abs=2e-4)


def test_importance_weights_are_the_reference():
    golden = GOLDEN["importance_weighting"]
    ratio = np.array(golden["weights"])
    assert normalised(ratio, 1.0, 1.0) == pytest.approx(np.array(golden["normalised_mean_one"]))
    flat = np.array(golden["flattened_gamma_half"])
    assert normalised(ratio, 0.5, 1.0) == pytest.approx(flat / flat.mean())
    assert normalised(ratio, 0.0, 0.5).tolist() == [1] * 5


def test_density_ratio_of_shifted_normals():
    """log t(x) / s(x) = x - 1/2 for means 0 and 1, whatever the numbers of rows."""
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(8000, 1)), rng.normal(1, 1, size=(2000, 1))
    log_ratio = np.log(density_ratio(source, target, 1e6, 0))
    assert np.abs(log_ratio - (source[:, 0] - 0.5)).mean() < 0.1


def test_balanced_rows_are_the_reference():
    golden = GOLDEN["balancing"]
    y, group = torch.tensor(golden["y"]), torch.tensor(golden["a"])
    priority = torch.rand(len(y), generator=torch.Generator().manual_seed(0))
    by_group = balanced(2 * y + group, priority)
    assert torch.bincount((2 * y + group)[by_group]).tolist() == [golden["subg_rows_per_cell"]] * 4
    by_class = balanced(y, priority)
    assert torch.bincount(y[by_class]).tolist() == [golden["suby_rows_per_class"]] * 2
    assert not (torch.where(y == 1, -1, y)[balanced(torch.where(y == 1, -1, y), priority)]).any()


@pytest.mark.parametrize(("subgroups", "name"), [("group_and_class", "rwg"), ("class", "rwy")])
def test_upweighting_is_the_reference(subgroups, name):
    """RWG and RWY, with weights of mean 1."""
    golden = GOLDEN["balancing"]
    y, group = torch.tensor(golden["y"]), torch.tensor(golden["a"])
    subgroup = 2 * y + group if subgroups == "group_and_class" else y
    model = LinearNetwork(LinearNetwork.Parameters(), (1,), 2, Randomness([0], "weights"))
    problem = problem_of(model, subgroup_counts=torch.bincount(subgroup)[None], rows=len(subgroup))
    method = GroupUpweighting(GroupUpweighting.Parameters(subgroups=subgroups), model, problem)
    row_weights = method.row_weight(batch_of_replica(doubles(golden["y"])[:, None], y, subgroup))
    assert row_weights[0].tolist() == pytest.approx(golden[f"{name}_weight_mean_one"])


def test_subsampling_visits_its_rows_equally_often():
    """The subset stays the same from epoch to epoch; epochs have as many rows as with erm."""
    samples = make_samples(groups=3)
    stack = Stack(samples, make_cell("subsampling"), make_cell("subsampling").replicas()[:1])
    assert isinstance(stack.method, Subsampling)
    seen = []
    for _ in range(2):
        rows = torch.cat(list(stack.data.epoch_batches(stack.method.visiting_order)), 1)[0]
        assert len(rows) == len(stack.data.train[0])
        visited, counts = rows.unique(return_counts=True)
        assert counts.max() - counts.min() <= 1
        sizes = torch.bincount(stack.data.subgroup[visited])
        assert (sizes == stack.data.subgroup_counts.min()).all()
        seen.append(visited.tolist())
    assert seen[0] == seen[1]


def test_mixed_loss_is_the_reference():
    golden = GOLDEN["mixup"]

    class Answers(LinearNetwork):
        """The logits of the reference, for the input that it mixes."""

        def head(self, features, noise=None):
            assert features[0, 0].tolist() == pytest.approx(golden["mixed_x"])
            return doubles([golden["logits_at_mixed_x"]] * 2)[None]

    model = Answers(LinearNetwork.Parameters(), (3,), 2, Randomness([0], "weights"))
    y = torch.tensor([golden["y_i"], golden["y_j"]])
    batch = batch_of_replica(doubles([golden["x_i"], golden["x_j"]]), y, y)
    share = doubles([[golden["lam"], 1 - golden["lam"]]])
    loss = mixed_loss(model, batch, torch.tensor([[1, 0]]), share)
    assert loss.item() == pytest.approx(golden["loss"])


def test_symmetric_beta_has_its_distribution():
    uniform = torch.rand(2, 4000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for alpha, draws in zip((0.2, 2.0), symmetric_beta(uniform, doubles([0.2, 2.0])), strict=True):
        assert stats.kstest(draws.numpy(), stats.beta(alpha, alpha).cdf).pvalue > 1e-3


def test_partners_of_lisa():
    """The same class in another domain, or another class in the same domain; none if unknown."""
    y, domain = torch.tensor([[0, 0, 1, 1, 0]] * 2), torch.tensor([[0, 1, 0, 1, -1]] * 2)
    in_class, in_domain = partners(y, domain, torch.tensor([[True], [False]]))
    pairs = {tuple(pair) for pair in in_class.nonzero().tolist()}
    assert pairs == {(0, 1), (1, 0), (2, 3), (3, 2)}
    pairs = {tuple(pair) for pair in in_domain.nonzero().tolist()}
    assert pairs == {(0, 2), (2, 0), (1, 3), (3, 1)}


def test_reversal_of_dann_is_the_reference():
    golden = GOLDEN["dann"]
    factors = [reversal(progress) for progress in golden["progress"]]
    assert factors == pytest.approx(golden["reversal_coefficient_gamma_10"])


def weights(samples, method, **options) -> dict[str, np.ndarray]:
    network = {"name": "mlp", "hidden": 8, "features": 6, "head_hidden": 4, "dropout": 0.0}
    cell = make_cell(method, seeds=(1,), network=network, epochs=2, **options)
    return train(samples, cell)[0][0].state


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("vrex", {"method_subgroups": "group", "method_weight": 0.0}),
        ("faircocco", {"method_weight": 0.0}),
        ("facl", {"method_weight": 0.0}),
        ("farmi", {"method_weight": 0.0}),
        ("coral", {"method_weight": 0.0}),
        ("mmd", {"method_weight": 0.0, "method_align": "target"}),
        ("dann", {"method_weight": 0.0}),
        ("cvar_dro", {"method_worst_share": 1.0}),
        ("chi_square_dro", {"method_radius": 0.0}),
        ("mixup", {"method_alpha": 1e-9}),
        ("importance_weighting", {"method_flattening": 0.0}),
    ],
)
def test_without_its_term_a_method_is_plain_training(method, options):
    samples = make_samples(domains=3)
    if method == "vrex":  # one environment: its mean loss is that of the batch
        samples = make_samples(groups=1)
    plain, without_term = weights(samples, "erm"), weights(samples, method, **options)
    assert all(without_term[name] == pytest.approx(plain[name], abs=1e-6) for name in plain)


def test_dfr_averages_the_regressions_of_the_reference():
    """l1 without a penalty of the intercept, on embeddings standardised by all rows."""
    golden = GOLDEN["dfr"]
    x, y = np.array(golden["embeddings"]), np.array(golden["y"])
    subsets = [np.array(rows) for rows in golden["subsets"]]
    slopes, intercepts = averaged_regressions(x, y, np.ones(len(y)), subsets, 3, 1.0)
    assert (slopes[:, 2] == 0).all() and intercepts[2] == ABSENT
    coefficients = (slopes[:, 1] - slopes[:, 0]) * golden["scaler_scale"]
    intercept = (
        intercepts[1] - intercepts[0] + golden["scaler_mean"] @ (slopes[:, 1] - slopes[:, 0])
    )
    np.testing.assert_allclose(coefficients, golden["coef"], atol=5e-3)
    assert intercept == pytest.approx(golden["intercept"], abs=5e-3)


def test_dfr_fits_the_last_layer_to_rows_that_the_features_have_not_seen():
    """Other labels of the held-out rows change the last layer alone; those not trained on nothing.

    The last layer gives the logits of a pipeline of scikit-learn on the activations before it.
    """
    samples = make_samples(groups=3)
    options = {"method_subgroups": "group", "method_regressions": 1, "seeds": (0,)}
    cell = make_cell("dfr", **options)
    stack = Stack(samples, cell, cell.replicas())
    data, method = stack.data, stack.method
    rows = data.train[0]
    places = method.held_out(data.subgroup[rows], method.priority[0, rows])
    fold = rows[places].numpy()
    trained = data.subgroup[rows]
    assert (torch.bincount(trained[places]) - torch.bincount(trained) / 5).abs().max() < 1
    other, outside = samples.y.copy(), samples.y.copy()
    other[fold] = 1 - other[fold]
    outside[~np.isin(np.arange(len(outside)), rows)] *= 0
    fitted, flipped, unread = (
        train(replace(samples, y=y), cell)[0][0].state for y in (samples.y, other, outside)
    )
    changed = {name for name in fitted if not np.array_equal(fitted[name], flipped[name])}
    assert changed == {"model.top.second.weight", "model.top.second.bias"}
    assert all(np.array_equal(fitted[name], unread[name]) for name in fitted)
    for _ in range(stack.epochs):
        stack.run_epoch()
    with torch.no_grad():
        model = stack.model.eval()
        features = model.features(data.batch(data.train).x)
        x = torch.relu(model.top.first(features))[0].double().numpy()
        outputs = model(data.batch(data.train).x)[0].numpy()
    draw = Randomness([0], "heads")
    draw.uniform((len(samples),), 1.0)  # which rows are held out
    priority = draw.uniform((len(samples),), 1.0)[0, fold]
    chosen = places[balanced(data.subgroup[fold], priority)]
    scaler = StandardScaler().fit(x[places])
    regression = LogisticRegression(l1_ratio=1, solver="liblinear", intercept_scaling=1e4, tol=1e-8)
    regression.fit(scaler.transform(x[chosen]), data.y[0, rows[chosen]])
    expected = regression.decision_function(scaler.transform(x))
    np.testing.assert_allclose(outputs[:, 1] - outputs[:, 0], expected, atol=5e-3)


def test_dfr_train_trains_a_new_head_on_balanced_rows():
    """Adam's first step on the loss of the visited rows and the l1 norm; features do not move."""
    samples = make_samples(groups=3)
    options = {"epochs": 2, "batch_size": 1000, "schedule": "constant"}
    cell = make_cell(
        "dfr_train", seeds=(0,), method_warm_up_epochs=1, method_penalty=0.1, **options
    )
    stack = Stack(samples, cell, cell.replicas())
    stack.run_epoch()
    before = {name: tensor.clone() for name, tensor in stack.model.body.state_dict().items()}
    state = stack.data.state()
    rows = torch.cat(list(stack.data.epoch_batches(stack.method.visiting_order)), 1)
    assert (torch.bincount(stack.data.subgroup[rows.unique()]).diff() == 0).all()
    batch = stack.data.batch(rows, 1)
    fresh = stack.method.fresh.top.requires_grad_(True)
    expected = [parameter.detach().clone() for parameter in fresh.parameters()]
    with torch.no_grad():
        features = stack.model.eval().features(batch.x)
    loss = loss_of_rows(fresh(features, batch.noise), batch.y).mean()
    (loss + 0.1 * sum(parameter.abs().sum() for parameter in fresh.parameters())).backward()
    slopes = [parameter.grad + 1e-5 * parameter.detach() for parameter in fresh.parameters()]
    stack.data.restore(state)
    stack.run_epoch()
    for parameter, start, slope in zip(stack.model.top.parameters(), expected, slopes, strict=True):
        step = 1e-3 * slope / (slope.abs() + 1e-8)
        torch.testing.assert_close(parameter.detach(), start - step, rtol=0, atol=1e-9)
    after = stack.model.body.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_domains_that_are_trained_on_are_environments():
    """Numbered from 0, the others missing; what the cell says about it."""
    samples = hold_out_domains(with_sites(make_samples(), 3), test=["site 1"])
    cell = make_cell("group_dro", ({"subgroups": "group"},), method_subgroups="domain")
    stack = Stack(samples, cell, cell.replicas([{}])[:1])
    expected = np.array([0, -1, 1])[np.arange(len(samples)) % 3]
    assert stack.data.subgroup.tolist() == expected.tolist()
    assert stack.method.group_weight.tolist()[0] == pytest.approx([0.5, 0.5])
    assert cell.sees == ("domains", "groups")
    assert make_cell("coral", method_align="target").sees == ("target rows",)
    assert make_cell("jtt").sees == ()


SPACES = yaml.safe_load((ROOT / "conf/base/parameters.yml").read_text())["spaces"]


@pytest.mark.parametrize("name", sorted({*SPACES} & {*names("method")}))
def test_ends_of_a_search_space_are_hyperparameters(name):
    parameters = find("method", name).Parameters
    for field, values in SPACES[name].items():
        ends = values if isinstance(values, list) else [values["low"], values["high"]]
        for value in ends:
            parameters.model_validate({field: value})
