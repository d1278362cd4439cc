"""The methods of the study of bias mitigation, against its own trainers and closed forms."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from robust_fairness.bench.experiment.experiment import Protocol
from robust_fairness.bench.methods.base import Batch, Problem, TrainingRows
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.methods.group_dro import GroupDro
from robust_fairness.bench.methods.group_upweighting import GroupUpweighting
from robust_fairness.bench.methods.irmv1 import Irmv1, scale_slopes
from robust_fairness.bench.methods.lff import Lff, generalised_cross_entropy
from robust_fairness.bench.methods.lnl import Lnl
from robust_fairness.bench.methods.rubi import Rubi
from robust_fairness.bench.methods.spectral_decoupling import SpectralDecoupling
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import Linear
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.models.tables import mlp
from robust_fairness.bench.training.optimisation import Optimisation
from robust_fairness.core.errors import InputError
from tests.methods.conftest import batch_of, problem_of, stacked

GOLDEN = json.loads((Path(__file__).parent / "bias_mitigators_golden.json").read_text())
PROBLEM = GOLDEN["problem"]
HYPER = PROBLEM["hparams"]


class Net(Model):
    """Linear, ReLU, linear: early layer and features are the hidden one."""

    piecewise_linear = True
    early_width = feature_width = 6

    def __init__(self, weights: dict) -> None:
        super().__init__(None, (8,), 4, Randomness([0], "weights"))
        self.first, self.second = linear(weights, "fc1"), linear(weights, "fc2")

    def early(self, x, noise=None):
        """Hidden activations."""
        return torch.relu(self.first(x))

    def late(self, early, noise=None):
        """The same."""
        return early

    def head(self, features, noise=None):
        """Logits."""
        return self.second(features)

    def new_head(self, outputs, randomness, inputs=None):
        """A linear layer."""
        return Linear(inputs or self.feature_width, outputs, randomness)


def linear(weights: dict, name: str) -> Linear:
    """A stack of one layer with weights as torch.nn.Linear keeps them."""
    layer = Linear(1, 1, Randomness([0], "weights"))
    layer.weight = nn.Parameter(torch.tensor(weights[f"{name}.weight"]).T[None].contiguous())
    layer.bias = nn.Parameter(torch.tensor(weights[f"{name}.bias"])[None, None])
    return layer


def as_published(layer: nn.Module) -> dict[str, torch.Tensor]:
    """A layer's weights as torch.nn.Linear keeps them."""
    return {"weight": layer.weight[0].T, "bias": layer.bias[0, 0]}


def layers(model: Net) -> dict[str, nn.Module]:
    """The layers of a network by their published names."""
    return {"fc1": model.first, "fc2": model.second}


def golden_problem() -> Problem:
    """The reference's problem: 5 groups, 4 classes; its groups stand for group and class."""
    counts = torch.bincount(torch.tensor(PROBLEM["group"]))[None]
    sizes = {"classes": 4, "groups": 5, "attribute_widths": (5,), "batch_size": 16}
    return problem_of(Net(PROBLEM["lff_bias_init"]), subgroup_counts=counts, **sizes)


def golden_batch(rows: list[int]) -> Batch:
    """One of its batches."""
    place = torch.tensor(rows)[None]
    x, y, group = (torch.tensor(PROBLEM[name])[place] for name in ("X", "y", "group"))
    return batch_of(x, y, group, rows=place)


def make(kind, model=None, problem=None, **options):
    """A method on the reference's network and problem by default."""
    hparams = stacked(kind.Parameters(**options))
    return kind(hparams, model or Net(PROBLEM["init"]), problem or golden_problem())


def with_initial_layer(method):
    """RUBi or LNL with the initial bias branch or head of the reference; others as they are."""
    if isinstance(method, Rubi):
        method.bias_branch = linear(PROBLEM["rubi_bias_init"], "fc")
    elif isinstance(method, Lnl):
        method.bias_head = linear(PROBLEM["lnl_bias_init"], "fc")
    return method


CASES = {
    "StdM": (Erm, {}),
    "UpWt": (GroupUpweighting, {"weighting": "total_over_count"}),
    "GDRO": (GroupDro, {"step_size": HYPER["group_weight_step_size"]}),
    "RUBi": (Rubi, {}),
    "LNL": (
        Lnl,
        {
            "entropy_weight": HYPER["entropy_loss_weight"],
            "gradient_factor": HYPER["grad_reverse_factor"],
        },
    ),
    "IRMv1": (
        Irmv1,
        {
            "weight": HYPER["grad_penalty_weight"],
            "environments_per_batch": HYPER["num_envs_per_batch"],
            "reduction": "sum",
        },
    ),
    "LFF": (
        Lff,
        {
            "amplification": HYPER["bias_loss_gamma"],
            "memory": HYPER["bias_ema_gamma"],
            "amplified_gradient": "scaled",
        },
    ),
    "SD": (
        SpectralDecoupling,
        {
            "weight": HYPER["spectral_decoupling_lambda"],
            "shift": HYPER["spectral_decoupling_gamma"],
            "penalised": "target_logit",
        },
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_trajectory_is_that_of_the_published_trainer(name):
    """Three steps of plain gradient descent, weight by weight."""
    kind, options = CASES[name]
    model = Net(PROBLEM["init"])
    method = with_initial_layer(make(kind, model, **options))
    plain = {"optimiser": "sgd", "momentum": 0.0, "weight_decay": 0.0}
    optimisation = Optimisation(method, model, Protocol(learning_rate=PROBLEM["lr"], **plain))
    further = {
        "RUBi": ("bias_model_after", lambda: {"fc": method.bias_branch}),
        "LNL": ("bias_predictor_after", lambda: {"fc": method.bias_head}),
        "LFF": ("bias_model_after", lambda: layers(method.biased)),
    }
    for rows, expected in zip(PROBLEM["batches"], GOLDEN["methods"][name], strict=True):
        for step in method.steps(model, golden_batch(rows)):
            optimisation.apply(step)
        compare = {"params_after": layers(model)}
        if name in further:
            key, owned = further[name]
            compare[key] = owned()
        for key, modules in compare.items():
            for layer, module in modules.items():
                for kind, value in as_published(module).items():
                    close(value, expected[key][f"{layer}.{kind}"])
    if name == "GDRO":
        close(method.group_weight[0], expected["group_weights"])
    if name == "LFF":
        close(method.biased_loss[0], expected["ema_bias"])
        close(method.own_loss[0], expected["ema_main"])


def close(tensor, expected):
    """Equal to 1e-5."""
    torch.testing.assert_close(tensor.detach(), torch.tensor(expected), rtol=0, atol=1e-5)


def random_batch(rows: int = 16) -> Batch:
    """A batch with rows of unknown group."""
    generator = torch.Generator().manual_seed(5)
    group = torch.randint(5, (1, rows), generator=generator)
    group[:, :2] = -1
    x = torch.randn(1, rows, 8, generator=generator)
    return batch_of(x, torch.randint(4, (1, rows), generator=generator), group)


def first_loss(kind, batch: Batch, **options) -> float:
    """Loss of the network in the first step."""
    return next(make(kind, **options).steps(Net(PROBLEM["init"]), batch)).losses["model"].item()


def test_published_and_exact_amplified_gradients_differ_by_gamma():
    """And the exact one is that of the printed formula (golden values for the published one)."""
    logits = torch.tensor(GOLDEN["gce"]["logits"], requires_grad=True)
    y, gamma = torch.tensor(GOLDEN["gce"]["y"]), torch.tensor(GOLDEN["gce"]["q"])
    losses = functional.cross_entropy(logits, y, reduction="none")
    scaled = generalised_cross_entropy(losses, gamma, "scaled")
    close(scaled, GOLDEN["gce"]["loss"])
    (scaled_gradient,) = torch.autograd.grad(scaled.mean(), logits, retain_graph=True)
    close(scaled_gradient, GOLDEN["gce"]["grad_of_mean"])
    exact = generalised_cross_entropy(losses, gamma, "exact")
    probability = logits.softmax(-1)[torch.arange(len(y)), y]
    torch.testing.assert_close(exact, (1 - probability**gamma) / gamma)
    (gradient,) = torch.autograd.grad(exact.mean(), logits)
    torch.testing.assert_close(gamma * gradient, scaled_gradient)


@pytest.mark.parametrize("weighting", ["balanced", "total_over_count", "inverse_count"])
def test_upweighting_counts_training_rows(weighting):
    """Row by row; a row of unknown group keeps its loss."""
    batch = random_batch()
    counts = torch.bincount(torch.tensor(PROBLEM["group"])).tolist()
    logits = Net(PROBLEM["init"])(batch.x)[0]
    total = 0.0
    for row in range(16):
        group = int(batch.subgroup[0, row])
        weight = {
            "balanced": 40 / (5 * counts[group]),
            "total_over_count": 40 / counts[group],
            "inverse_count": 1 / counts[group],
        }[weighting]
        loss = functional.cross_entropy(logits[row], batch.y[0, row])
        total += float(loss.detach()) * (weight if group >= 0 else 1.0)
    mean = first_loss(GroupUpweighting, batch, weighting=weighting)
    assert mean == pytest.approx(total / 16, rel=1e-5)


@pytest.mark.parametrize("penalised", ["all_logits", "target_logit"])
@pytest.mark.parametrize("by_class", [(), (0.1, 0.2, 0.3, 0.4)])
def test_spectral_decoupling_is_its_formula(penalised, by_class):
    """Half the weighted squared distance of all logits, or of the true class's."""
    batch = random_batch()
    options = {"weight": 0.3, "shift": 0.7, "penalised": penalised}
    logits = Net(PROBLEM["init"])(batch.x)[0]
    total = 0.0
    for z, y in zip(logits, batch.y[0].tolist(), strict=True):
        weight, shift = (by_class[y], by_class[y]) if by_class else (0.3, 0.7)
        far = (z - shift).square() if penalised == "all_logits" else (z[y] - shift).square()
        loss = functional.cross_entropy(z, torch.tensor(y)) + weight / 2 * far.sum()
        total += float(loss.detach())
    options |= {"weight_by_class": by_class, "shift_by_class": by_class}
    mean = first_loss(SpectralDecoupling, batch, **options)
    assert mean == pytest.approx(total / 16, rel=1e-5)


@pytest.mark.parametrize("estimator", ["halves", "squared"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_invariance_penalty_is_the_gradient_of_a_scaled_classifier(estimator, reduction):
    """By autograd through the scale, environment by environment."""
    batch = random_batch()
    options = {"environments_per_batch": 4, "estimator": estimator, "reduction": reduction}
    logits = Net(PROBLEM["init"])(batch.x)[0].detach()

    def slope(rows: range) -> float:
        scale = torch.tensor(1.0, requires_grad=True)
        loss = functional.cross_entropy(logits[list(rows)] * scale, batch.y[0, list(rows)])
        return float(torch.autograd.grad(loss, scale)[0])

    penalties = []
    for start in range(0, 16, 4):
        first, second = range(start, start + 2), range(start + 2, start + 4)
        both = slope(first) * slope(second)
        penalties.append(both if estimator == "halves" else slope(range(start, start + 4)) ** 2)
    penalty = sum(penalties) / (4 if reduction == "mean" else 1)
    expected = float(functional.cross_entropy(logits, batch.y[0])) + 2.0 * penalty
    assert first_loss(Irmv1, batch, weight=2.0, **options) == pytest.approx(expected, rel=1e-5)


def test_scaled_outcomes_have_their_slope():
    """The squared error's derivative in the scale, for a continuous outcome."""
    outputs, y = torch.randn(3, 7, 1), torch.randn(3, 7)
    scale = torch.ones(3, 7, 1, requires_grad=True)
    loss = (outputs * scale).squeeze(-1).sub(y).square().sum()
    (expected,) = torch.autograd.grad(loss, scale)
    torch.testing.assert_close(scale_slopes(outputs, y), expected.squeeze(-1))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (SpectralDecoupling, {"weight_by_class": (1.0, 2.0)}, "weight_by_class has 2 values"),
        # an environment would have no two halves
        (Irmv1, {"environments_per_batch": 3}, "batch_size 16, allowed: multiples of 6"),
    ],
)
def test_numbers_that_do_not_fit_the_problem_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        make(kind, **options)


def test_one_pass_of_lnl_is_the_printed_objective():
    """Task loss, negative entropy and reversed bias loss in one step; two players."""
    model, batch = Net(PROBLEM["init"]), random_batch()
    method = make(Lnl, model, passes="one", entropy_weight=0.2, gradient_factor=-0.5)
    (step,) = method.steps(model, batch)
    hidden = model.early(batch.x)[0]
    bias = (hidden @ method.bias_head.weight[0] + method.bias_head.bias[0]).log_softmax(-1)
    known = batch.group[0] >= 0
    bias_loss = functional.nll_loss(bias[known], batch.group[0][known])
    entropy = -(bias.exp() * bias).sum(-1).mean()
    task = functional.cross_entropy(model(batch.x)[0], batch.y[0])
    torch.testing.assert_close(step.losses["adversary"][0], bias_loss)
    expected = task - 0.2 * entropy - 0.5 * bias_loss
    torch.testing.assert_close(step.losses["model"][0], expected)


def test_rubi_with_classifier_predicts_from_the_bias_logits():
    """The original's further layer; rows of unknown group are neither masked nor predicted."""
    batch, model = random_batch(), Net(PROBLEM["init"])
    method = make(Rubi, model, bias_loss="with_classifier")
    (step,) = method.steps(model, batch)
    total = 0.0
    for z, y, group in zip(model(batch.x)[0], batch.y[0], batch.group[0].tolist(), strict=True):
        if group >= 0:
            bias = method.bias_branch.weight[0, group] + method.bias_branch.bias[0, 0]
            total += functional.cross_entropy(z * bias.sigmoid(), y)
            classified = bias @ method.classifier.weight[0] + method.classifier.bias[0, 0]
            total += functional.cross_entropy(classified, y)
        else:
            total += functional.cross_entropy(z, y)
    torch.testing.assert_close(step.losses["model"][0], total / 16)


def test_branch_and_head_may_be_deep():
    """RUBi's branch has three layers on the one-hot group, LNL's head two on the activations."""
    batch, model = random_batch(), Net(PROBLEM["init"])
    method = make(Rubi, model, branch="mlp", branch_width=6)
    (step,) = method.steps(model, batch)
    layers = [method.bias_branch, *method.upper_layers]
    group, known = batch.group[0].clamp(min=0), batch.group[0] >= 0
    bias = functional.one_hot(group, 5).to(model(batch.x).dtype)
    for layer in layers:
        bias = (bias if layer is layers[0] else bias.relu()) @ layer.weight[0] + layer.bias[0]
    z, y = model(batch.x)[0], batch.y[0]
    masked = functional.cross_entropy(
        z * torch.where(known[:, None], bias.sigmoid(), 1), y, reduction="none"
    )
    alone = functional.cross_entropy(bias, y, reduction="none") * known
    torch.testing.assert_close(step.losses["model"][0], (masked + alone).mean())
    head = make(Lnl, model, head="mlp", head_width=9).bias_head
    assert head.first.weight.shape[-1] == 9 and head.second.weight.shape == (1, 9, 5)


def unbalanced_rows() -> TrainingRows:
    """900 rows of subgroup 0, 90 of 1, 9 of 2 and one of unknown group."""
    group = torch.tensor([0] * 900 + [1] * 90 + [2] * 9 + [-1])
    zeros = torch.zeros(1000, dtype=torch.long)
    return TrainingRows(y=zeros, subgroup=group, rows=torch.arange(1000))


def visits(sampler: str) -> torch.Tensor:
    """Visits of every cell over twenty epochs."""
    method = make(GroupDro, sampler=sampler)
    generator = torch.Generator().manual_seed(0)
    rows = unbalanced_rows()
    order = torch.cat([method.visiting_order(rows, generator) for _ in range(20)])
    return torch.bincount(rows.subgroup[order] + 1, minlength=4) / len(order)


def test_balanced_sampler_visits_every_cell_equally():
    """To five standard errors; never a row of unknown group."""
    shares = visits("balanced")
    assert shares[0] == 0
    assert (shares[1:] - 1 / 3).abs().max() < 5 * (2 / 9 / 20_000) ** 0.5


def test_uniform_sampler_visits_every_row_once():
    torch.testing.assert_close(visits("uniform"), torch.tensor([0.001, 0.9, 0.09, 0.009]))


def test_shuffled_weights_draw_the_same_rows_in_every_epoch():
    """30 % of the rows get 90 % of the draws, of every subgroup alike, also after a resume.

    As in Biased MNIST, 70 % of each class have one value of the variable; so that balancing would
    give nine of ten draws to the other 30 %. Shares to five standard errors.
    """
    counts = torch.tensor([210, *[10] * 9] * 10)
    subgroup = torch.arange(100).repeat_interleave(counts)
    places = torch.arange(0, 6000, 2)  # the training rows: half of the dataset
    rows = TrainingRows(y=subgroup // 10, subgroup=subgroup, rows=places)
    majority, error = subgroup % 10 == 0, 5 * (0.9 * 0.1 / 3000) ** 0.5

    def method(seed: int) -> GroupDro:
        problem = problem_of(Net(PROBLEM["init"]), [seed], rows=6000)
        return make(GroupDro, problem=problem, sampler="shuffled_weights")

    started, resumed, other = method(0), method(1), method(2)
    resumed.load_state_dict(started.state_dict())
    generator = torch.Generator().manual_seed(0)
    before, after, unlike = (
        torch.stack([
            torch.bincount(kind.visiting_order(rows, generator), minlength=3000)
            for _ in range(10)
        ])
        for kind in (started, resumed, other)
    )  # fmt: skip
    often = before.sum(0).topk(900).indices
    assert (majority[often].double().mean() - 0.7).abs() < 5 * (0.7 * 0.3 / 900) ** 0.5
    for epoch in (*before, *after):
        assert (epoch[often].sum() / 3000 - 0.9).abs() < error
    assert (unlike[:, often].sum() / 30_000 - 0.3).abs() < 5 * 0.3 / 30  # permuted otherwise


def test_environments_fill_blocks_of_equal_size():
    """Every block is of one environment, each as likely as the others."""
    method = make(Irmv1, environments_per_batch=4)
    generator = torch.Generator().manual_seed(0)
    rows = unbalanced_rows()
    order = torch.cat([method.visiting_order(rows, generator) for _ in range(20)])
    assert len(order) == 20 * (1000 // 16 + 1) * 16
    blocks = rows.subgroup[order].view(-1, 4)
    assert (blocks == blocks[:, :1]).all()
    share = torch.bincount(blocks[:, 0], minlength=3) / len(blocks)
    assert (share - 1 / 3).abs().max() < 5 * (2 / 9 / len(blocks)) ** 0.5
    assert len(order.unique()) > 900  # rows of a large environment are all reached


@pytest.mark.parametrize(("layer", "width"), [("early", 7), ("features", 5)])
def test_bias_head_reads_the_layer_that_is_named(layer, width):
    """Its loss is that of a linear layer on these activations."""
    sizes = mlp.Mlp.Parameters(hidden=7, features=5, head_hidden=4, dropout=0)
    model = mlp.Mlp(sizes, (8,), 4, Randomness([0], "weights"))
    method, batch = make(Lnl, model, layer=layer), random_batch()
    assert method.bias_head.weight.shape == (1, width, 5)
    _, second = method.steps(model, batch)
    seen = (model.early(batch.x) if layer == "early" else model.features(batch.x))[0]
    logits = seen @ method.bias_head.weight[0] + method.bias_head.bias[0]
    known = batch.group[0] >= 0
    expected = functional.cross_entropy(logits[known], batch.group[0][known])
    torch.testing.assert_close(second.losses["adversary"][0], expected)


class ImageNet(Net):
    """The same network, its early layer a image of 1 x 2 places around the activations."""

    def early(self, x, noise=None):
        """``[replica, row, 6, 1, 2]``."""
        return super().early(x, noise)[..., None, None] + torch.tensor([[-1.0, 1.0]])

    def late(self, early, noise=None):
        """The mean over places."""
        return early.mean((-2, -1))


def test_bias_head_reads_the_average_of_a_image():
    """As of the same activations without places."""
    batch, losses = random_batch(), []
    for model in (Net(PROBLEM["init"]), ImageNet(PROBLEM["init"])):
        for step in make(Lnl, model, layer="early").steps(model, batch):
            losses.append(step.losses["model"][0])
    flat, image = losses[:2], losses[2:]
    torch.testing.assert_close(image, flat)


@pytest.mark.parametrize("kind", [GroupUpweighting, GroupDro, Rubi, Lnl, Irmv1])
@pytest.mark.parametrize("cells", [0, 5])
def test_groups_without_any_training_row_are_refused(kind, cells):
    """In one line, before training, though other replicas have such rows."""
    counts = torch.ones(2, cells, dtype=torch.long)
    counts[1] = 0
    problem = replace(golden_problem(), subgroup_counts=counts)
    with pytest.raises(InputError, match=f"method {kind.name}: no training row has a value"):
        make(kind, problem=problem)


COUNTS = st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any)


@given(COUNTS)
def test_balanced_weights_have_the_mean_one_over_training_rows(counts):
    """And every cell that occurs has the same share of them."""
    problem = replace(golden_problem(), subgroup_counts=torch.tensor([counts]))
    method = make(GroupUpweighting, problem=problem)
    shares = method.weight[0] * torch.tensor(counts)
    occurring = shares[torch.tensor(counts) > 0]
    torch.testing.assert_close(shares.sum(), torch.tensor(float(sum(counts))))
    torch.testing.assert_close(occurring, occurring[:1].expand_as(occurring))


def biased_net(bias: float) -> Net:
    """A net whose loss is about ``bias`` on rows of the second class, 0 on others."""
    net = Net(PROBLEM["init"])
    with torch.no_grad():
        net.second.bias[..., 0] += bias
    return net


@pytest.mark.parametrize("loss", [900.0, 1e4, 1e5])
def test_group_weights_survive_huge_losses(loss):
    """In float32, where exp(89) overflows; the closed form in float64."""
    counts = torch.tensor([[8, 8, 8, 8, 8, 0]])
    model, batch = biased_net(loss), random_batch()
    problem = replace(golden_problem(), subgroup_counts=counts)
    method = make(GroupDro, model, problem, step_size=0.1)
    (step,) = method.steps(model, batch)
    losses = functional.cross_entropy(model(batch.x)[0], batch.y[0], reduction="none").double()
    means = torch.zeros(6, dtype=torch.float64)
    for g in range(6):
        if (batch.subgroup[0] == g).any():
            means[g] = losses[batch.subgroup[0] == g].mean()
    assert 0.1 * means.max() > 0.05 * loss
    shares = (0.1 * (means - means.max())).exp() * (counts[0] > 0)
    expected = (shares / shares.sum()).float()
    torch.testing.assert_close(method.group_weight[0], expected, rtol=1e-2, atol=1e-5)
    assert torch.isfinite(step.losses["model"]).all()
    gradients = torch.autograd.grad(step.losses["model"].sum(), list(model.parameters()))
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_a_group_that_lost_all_its_weight_gains_it_again():
    """As exact arithmetic has it, weights go with the sum of all losses so far."""
    model, batch = biased_net(5e3), random_batch()
    y = batch.y.new_tensor([[0, 1] * (batch.y.shape[1] // 2)])
    problem = replace(golden_problem(), subgroup_counts=torch.tensor([[8, 8]]))
    method = make(GroupDro, model, problem, step_size=0.1)
    next(method.steps(model, replace(batch, y=y, subgroup=y)))
    assert method.group_weight[0, 0] == 0
    with torch.no_grad():
        model.second.bias[..., 0] -= 1.1e4  # now the other class is the worse one
    next(method.steps(model, replace(batch, y=y, subgroup=y)))
    assert method.group_weight[0, 0] == 1


@given(COUNTS.filter(lambda counts: len(counts) >= 5), st.floats(0, 10))
def test_group_weights_stay_a_distribution_over_cells_that_occur(counts, step_size):
    """Whatever the step size; a cell without a training row never gains weight."""
    counts = [count + (number < 5) for number, count in enumerate(counts)]
    problem = replace(golden_problem(), subgroup_counts=torch.tensor([counts]))
    model, batch = Net(PROBLEM["init"]), random_batch()
    method = make(GroupDro, model, problem, step_size=step_size)
    for _ in range(3):
        next(method.steps(model, batch))
    weight = method.group_weight[0]
    torch.testing.assert_close(weight.sum(), torch.tensor(1.0))
    assert (weight >= 0).all() and not weight[torch.tensor(counts) == 0].any()
