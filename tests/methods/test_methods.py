"""What each method adds, against formulas written out by hand."""

import pytest
import torch
from torch.nn.functional import cross_entropy, one_hot

from robust_fairness.bench.methods.adversarial import AdvDebias, Cuma, Laftr, projected
from robust_fairness.bench.models.layers import loss_of_rows, mean_where
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.bench.models.tables import mlp
from robust_fairness.core.registry import find
from tests.methods.conftest import batch_of, problem_of, stacked

SEEDS = (3, 4)
ALPHA = torch.tensor([0.5, 2.0], dtype=torch.float64)


def build(method, parameters, groups=2, classes=2, rows=24, dropout=0.25):
    """A method on a stack of two, and a batch with one row of unknown group."""
    generator = torch.Generator().manual_seed(0)
    model = mlp.Mlp(
        mlp.Mlp.Parameters(hidden=7, features=5, head_hidden=4, dropout=dropout),
        (6,),
        classes,
        Randomness(SEEDS, "weights"),
    ).double()
    counts = torch.ones(2, groups * classes, dtype=torch.long)
    sizes = {"classes": classes, "groups": groups, "attribute_widths": (groups,)}
    problem = problem_of(model, SEEDS, subgroup_counts=counts, rows=rows, batch_size=rows, **sizes)
    hparams = stacked(parameters, 2, torch.float64).model_copy(update={"alpha": ALPHA})
    built = method(hparams, model, problem).double()
    group = torch.randint(groups, (2, rows), generator=generator)
    group[:, 0] = -1
    x = torch.randn(2, rows, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(classes, (2, rows), generator=generator)
    noise = DropoutNoise(Randomness(SEEDS, "dropout"))
    subgroup = torch.where(group < 0, -1, group * classes + y)
    return built, model, batch_of(x, y, group, subgroup=subgroup, noise=noise)


def test_task_loss_is_cross_entropy_or_squared_error():
    """Over leading axes as torch's own row by row."""
    logits, y = torch.randn(3, 5, 4), torch.randint(4, (3, 5))
    rows = torch.stack([cross_entropy(logits[k], y[k], reduction="none") for k in range(3)])
    torch.testing.assert_close(loss_of_rows(logits, y), rows)
    outcome = torch.randn(3, 5)
    torch.testing.assert_close(
        loss_of_rows(logits[..., :1], outcome), (logits[..., 0] - outcome) ** 2
    )


WITHOUT_PENALTY = {
    "adv_debias": {"alpha": 0.0},
    "coral": {"weight": 0.0},
    "cuma": {"alpha": 0.0, "gamma": 0.0},
    "dann": {"weight": 0.0},
    "donini": {"loss": "cross_entropy"},
    "erm": {},
    "faircocco": {"weight": 0.0},
    "irmv1": {"weight": 0.0, "environments_per_batch": 2},
    "laftr": {"alpha": 0.0},
    "lnl": {"entropy_weight": 0.0},
    "mixup": {"alpha": 1e-6},  # no mixture
    "mmd": {"weight": 0.0},
    "spectral_decoupling": {"weight": 0.0},
    "vrex": {"weight": 0.0, "subgroups": "group_and_class"},
}


@pytest.mark.parametrize("name", WITHOUT_PENALTY)
def test_the_loss_is_the_mean_by_sample_weight(name):
    """Without the penalty: torch's own cross-entropy of rows repeated by whole weights."""
    plugin, seed = find("method", name), (3,)
    network = find("network", "linear" if name == "donini" else "mlp")
    model = network(network.Parameters(), (6,), 2, Randomness(seed, "weights"))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 24, 6, generator=generator)
    y, group = (torch.arange(24) % 2).view(1, -1), (torch.arange(24) // 2 % 2).view(1, -1)
    weight = torch.randint(1, 5, (1, 24), generator=generator)
    many = weight[0]
    expected = cross_entropy(model(x)[0].repeat_interleave(many, 0), y[0].repeat_interleave(many))
    # only erm depends on the size of the weights
    share = weight / weight.float().mean() if name == "erm" else 0.01 * weight
    rows = batch_of(
        x, y, group, subgroup=0 * group, sample_weight=share,
        attributes=one_hot(group, 2).float(), conditioning=one_hot(y, 2).float(),
    )  # fmt: skip
    hparams = stacked(plugin.Parameters(**WITHOUT_PENALTY[name]))
    problem = problem_of(model, seed, rows=24, batch_size=24, training_batches=lambda: [rows])
    steps = list(plugin(hparams, model, problem).steps(model, rows))
    loss = next(step.losses["model"] for step in steps if "model" in step.losses)
    torch.testing.assert_close(loss[0], expected)


def test_mean_where_nothing_holds_is_zero():
    """No row, no loss, and no NaN in the gradient."""
    values = torch.randn(2, 4, requires_grad=True)
    mask = torch.tensor([[True, False, True, False], [False] * 4])
    mean = mean_where(values, mask)
    assert mean[0].item() == pytest.approx(((values[0, 0] + values[0, 2]) / 2).item())
    assert mean[1].item() == 0
    mean.sum().backward()
    assert values.grad.isfinite().all()


@pytest.mark.parametrize("groups", [2, 3])
def test_laftr_is_the_group_normalised_l1_distance(groups):
    """Madras et al. Eq. 3 written out with loops; rows without group do not count."""
    method, _, batch = build(Laftr, Laftr.Parameters(), groups)
    logits = torch.randn(2, 24, groups, dtype=torch.float64)
    losses = method.adversary_loss(logits, batch)
    for replica in range(2):
        total = 0.0
        for number in range(groups):
            rows = (batch.group[replica] == number).nonzero().flatten()
            # half the L1 distance between one-hot and softmax: |a - p| for two groups
            target = one_hot(torch.full((len(rows),), number), groups)
            distance = (target - logits[replica, rows].softmax(-1)).abs().sum(-1) / 2
            total += distance.mean()
        assert losses[replica] == pytest.approx(total.item())


def test_laftr_by_group_and_class_counts_every_cell_equally():
    """Madras et al. Eq. 4: four cells for two groups and classes."""
    method, _, batch = build(Laftr, Laftr.Parameters(weighting="group_and_class"))
    logits = torch.randn(2, 24, 2, dtype=torch.float64)
    distance = 1 - logits.softmax(-1).gather(-1, batch.group.clamp(min=0)[..., None])[..., 0]
    for replica in range(2):
        cells = [
            distance[replica][(batch.group[replica] == a) & (batch.y[replica] == y)].mean()
            for a in (0, 1)
            for y in (0, 1)
        ]
        loss = method.adversary_loss(logits, batch)[replica]
        assert loss == pytest.approx(sum(cells).item())


def test_alternating_adversary_moves_before_the_network_sees_it():
    """The first step is the adversary's own, the second answers the updated adversary."""
    method, model, batch = build(AdvDebias, AdvDebias.Parameters())
    steps = method.steps(model, batch)
    first = next(steps)
    assert set(first.losses) == {"adversary"}
    with torch.no_grad():
        for weight in method.parameters():
            weight.zero_()
    second = next(steps)
    # a zero adversary predicts uniformly: cross-entropy log 2
    task = loss_of_rows(model(batch.x, batch.noise), batch.y).mean(-1)
    torch.testing.assert_close(
        second.losses["model"], task - ALPHA * torch.tensor(2.0, dtype=torch.float64).log()
    )


def test_reversed_update_is_one_step_for_both():
    """A gradient reversal layer: the same pass, opposite signs."""
    method, model, batch = build(AdvDebias, AdvDebias.Parameters(update="reversed"))
    (step,) = method.steps(model, batch)
    task = loss_of_rows(model(batch.x, batch.noise), batch.y).mean(-1)
    torch.testing.assert_close(step.losses["model"] + ALPHA * step.losses["adversary"], task)


def test_adversary_on_outputs_sees_only_the_logits():
    """Zhang et al.: the adversary's input is the prediction."""
    method, model, batch = build(AdvDebias, AdvDebias.Parameters(audits="outputs"))
    assert method.adversary.first.weight.shape[1] == 2
    _, step = method.steps(model, batch)
    assert step.losses["model"].isfinite().all()


def test_projected_gradient_has_no_part_along_the_adversary():
    """With alpha = 0 what remains is orthogonal to h; with alpha it is Zhang et al. Eq. 1."""
    g, h = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(2, 5, 3, dtype=torch.float64)
    rest = projected(g, h, torch.zeros(2, dtype=torch.float64))
    assert (rest * h).sum((1, 2)).abs().max() < 1e-12
    torch.testing.assert_close(projected(g, h, ALPHA), rest - ALPHA[:, None, None] * h)
    assert projected(g, torch.zeros_like(h), ALPHA).equal(g)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("dropout", ["shared", "off"])
@pytest.mark.parametrize("reduction", ["row", "mean"])
def test_cuma_regulariser_is_equations_7_to_9(groups, dropout, reduction):
    """Written out for one replica with loops over rows and pairs of groups."""
    options = Cuma.Parameters(curvature_dropout=dropout, curvature_loss=reduction, h=0.5, gamma=2)
    method, model, batch = build(Cuma, options, groups)
    batch.x.requires_grad_()
    losses = loss_of_rows(model(batch.x, batch.noise), batch.y)
    penalty = method.regulariser(model, batch, losses)
    noise = batch.noise if dropout == "shared" else None
    scale = 24 if reduction == "mean" else 1

    def gradient(x):
        x = x.detach().requires_grad_()
        loss = loss_of_rows(model(x, noise), batch.y).sum() / scale
        return torch.autograd.grad(loss, x)[0]

    g = gradient(batch.x)
    v = g.sign() / g.sign().norm(dim=-1, keepdim=True).clamp(min=1)  # 0 where all units are off
    curvature = (gradient(batch.x + 0.5 * v) - g).norm(dim=-1) / 0.5
    for replica in range(2):
        distances = []
        for a in range(groups):
            for b in range(a):
                p = curvature[replica][batch.group[replica] == a]
                q = curvature[replica][batch.group[replica] == b]

                def kernel(s, t):
                    d = (s[:, None] - t[None, :]) ** 2
                    return sum((-d / (2 * w**2)).exp() for w in (1, 2, 4, 8, 16)).mean()

                distances.append(kernel(p, p) - 2 * kernel(p, q) + kernel(q, q))
        expected = 2 * sum(distances) / len(distances)
        assert penalty[replica].item() == pytest.approx(expected.item(), rel=1e-9, abs=1e-12)


def test_second_gradient_of_the_curvature_reaches_the_weights():
    """The regulariser is differentiated through both gradients, as finite differences show."""
    method, model, batch = build(Cuma, Cuma.Parameters(), dropout=0.0)
    batch.x.requires_grad_()
    weight = model.body.first.weight

    def value():
        return method.regulariser(model, batch, loss_of_rows(model(batch.x, None), batch.y)).sum()

    (gradient,) = torch.autograd.grad(value(), weight)
    index, step = (0, 2, 3), 1e-6
    with torch.no_grad():
        weight[index] += step
    above = value().item()
    with torch.no_grad():
        weight[index] -= 2 * step
    below = value().item()
    assert gradient[index].item() == pytest.approx((above - below) / (2 * step), rel=1e-3)
