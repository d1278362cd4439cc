"""Curvature against the full Hessian."""

import pytest
import torch
from torch import nn

from robust_fairness.bench.maths.curvature import (
    exact_curvature,
    one_shot_curvature,
    power_iteration_curvature,
)
from robust_fairness.bench.models.layers import loss_of_rows

ROWS, WIDTH = 7, 5


def network(outputs, activation=nn.ReLU):
    """A small network in float64."""
    torch.manual_seed(outputs)
    return nn.Sequential(
        nn.Linear(WIDTH, 16), activation(), nn.Linear(16, 8), activation(), nn.Linear(8, outputs)
    ).double()


def problem(outputs):
    """Inputs, labels and the loss of rows."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float64)
    if outputs == 1:
        return x, torch.randn(ROWS, generator=generator, dtype=torch.float64)
    return x, torch.randint(outputs, (ROWS,), generator=generator)


def spectral_norms(net, x, y):
    """Largest absolute eigenvalue of each row's full Hessian."""
    norms = []
    for row, label in zip(x, y, strict=True):
        hessian = torch.autograd.functional.hessian(
            lambda inputs, label=label: loss_of_rows(net(inputs[None]), label[None])[0], row
        )
        norms.append(torch.linalg.eigvalsh(hessian).abs().max())
    return torch.stack(norms)


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_closed_form_is_the_norm_of_the_hessian(outputs):
    """For a piecewise-linear network: squared error, two classes, more classes."""
    net, (x, y) = network(outputs), problem(outputs)
    torch.testing.assert_close(exact_curvature(net, x), spectral_norms(net, x, y))


@pytest.mark.parametrize("outputs", [1, 2, 4])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.Tanh])
def test_power_iteration_converges_to_it(outputs, activation):
    """For any network."""
    net, (x, y) = network(outputs, activation), problem(outputs)
    norms = power_iteration_curvature(lambda inputs: loss_of_rows(net(inputs), y), x, 1e-12, 20000)
    torch.testing.assert_close(norms, spectral_norms(net, x, y), rtol=1e-5, atol=1e-9)


def test_one_shot_curvature_is_equation_8():
    """Two gradients, written out; with and without what the caller knows already."""
    net, (x, y) = network(2, nn.Tanh), problem(2)

    def loss(inputs):
        return loss_of_rows(net(inputs), y)

    def gradient(at):
        at = at.detach().requires_grad_()
        return torch.autograd.grad(loss(at).sum(), at)[0]

    g = gradient(x)
    v = g.sign() / g.sign().norm(dim=1, keepdim=True)
    expected = (gradient(x + 0.3 * v) - g).norm(dim=1) / 0.3
    torch.testing.assert_close(one_shot_curvature(loss, x, 0.3).detach(), expected)
    leaf = x.clone().requires_grad_()
    known = one_shot_curvature(loss, leaf, torch.tensor(0.3).double(), create_graph=True)
    torch.testing.assert_close(known.detach(), expected)
    assert known.requires_grad


def test_one_shot_curvature_differentiates_by_the_weights():
    """Through both gradients, against finite differences."""
    net, (x, y) = network(2, nn.Tanh), problem(2)
    weight = net[0].weight

    def total(w):
        state = {**dict(net.named_parameters()), "0.weight": w}

        def loss(inputs):
            return loss_of_rows(torch.func.functional_call(net, state, inputs), y)

        return one_shot_curvature(loss, x.clone().requires_grad_(), 1.0, create_graph=True).sum()

    assert torch.autograd.gradcheck(total, weight.detach().clone().requires_grad_())


def test_images_and_replicas_have_their_own_axes():
    """[replica, row, c, h, w] gives [replica, row], as the flattened features do."""
    net = network(2)
    x = torch.randn(3, ROWS, WIDTH, dtype=torch.float64)
    y = torch.randint(2, (3, ROWS))
    images = x.reshape(3, ROWS, 1, WIDTH, 1)

    def on_images(inputs):
        return net(inputs.flatten(2))

    torch.testing.assert_close(exact_curvature(on_images, images), exact_curvature(net, x))
    step = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    torch.testing.assert_close(
        one_shot_curvature(lambda z: loss_of_rows(on_images(z), y), images, step),
        one_shot_curvature(lambda z: loss_of_rows(net(z), y), x, step),
    )


def test_row_without_gradient_has_no_curvature():
    """A dead network: 0, not NaN, also in the gradient."""
    net = network(2)
    nn.init.zeros_(net[4].weight)
    x, y = problem(2)
    leaf = x.clone().requires_grad_()
    curvature = one_shot_curvature(lambda z: loss_of_rows(net(z), y), leaf, 1.0, create_graph=True)
    assert curvature.abs().max() == 0
    curvature.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
    assert exact_curvature(net, x).abs().max() == 0
