"""Curvature of the loss in the inputs (Equalized Robustness, Eqs. 4 and 8).

Inputs are ``[..., n, d]`` or ``[..., n, c, h, w]``; whatever comes before ``n`` is independent.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def input_gradient(losses: Tensor, x: Tensor, create_graph: bool = False) -> Tensor:
    """Gradient of every row's loss ``[..., n]`` in its inputs, of the shape of ``x``."""
    (gradient,) = torch.autograd.grad(losses.sum(), x, create_graph=create_graph)
    return gradient


def _spread(scalars: Tensor, x: Tensor) -> Tensor:
    """Add trailing axes until ``scalars`` broadcast against ``x`` from the left."""
    return scalars.reshape(scalars.shape + (1,) * (x.ndim - scalars.ndim))


def _norm(x: Tensor, rows: int) -> Tensor:
    """Euclidean norm over all but the first ``rows`` axes; its gradient at 0 is 0."""
    square = x.flatten(rows).square().sum(-1)
    positive = square > 0
    return torch.where(positive, torch.where(positive, square, 1).sqrt(), 0)


def one_step(
    losses: Tensor, x: Tensor, step: float | Tensor, create_graph: bool = False
) -> tuple[Tensor, Tensor]:
    """Gradients of every row's loss ``[..., n]`` at x, and x moved by h along their signs (Eq. 8).

    A row whose gradient is zero does not move. Nothing flows through the direction, which is
    constant almost everywhere. ``step`` is h, a number or one for each leading axis.
    """
    gradient = input_gradient(losses, x, create_graph)
    sign = gradient.detach().sign()
    direction = sign / _spread(_norm(sign, losses.ndim).clamp(min=1), x)
    step = torch.as_tensor(step, dtype=x.dtype, device=x.device)
    moved = x + _spread(step, x) * direction
    return gradient, moved if moved.requires_grad else moved.requires_grad_()


def change_of_gradient(
    gradient: Tensor,
    losses: Tensor,
    moved: Tensor,
    step: float | Tensor,
    create_graph: bool = False,
) -> Tensor:
    """Distance of the gradients at x and at x moved, by h, ``[..., n]`` (Eq. 8).

    ``losses`` ``[..., n]`` are those of the moved inputs; the rest is from ``one_step``.
    """
    step = torch.as_tensor(step, dtype=moved.dtype, device=moved.device)
    change = input_gradient(losses, moved, create_graph) - gradient
    return _norm(change, losses.ndim) / _spread(step, losses).abs()


def one_shot_curvature(
    loss: Callable[[Tensor], Tensor], x: Tensor, step: float | Tensor, create_graph: bool = False
) -> Tensor:
    r"""Curvature of every row by one step along the sign of the gradient, ``[..., n]`` (Eq. 8).

    .. math:: \|\nabla L(x + h v) - \nabla L(x)\| / |h|, \quad v = sign(g) / \|sign(g)\|

    Args:
        loss: loss of every row ``[..., n]`` from inputs.
        x: inputs.
        step: h, a number or one for each leading axis.
        create_graph: whether the curvature will be differentiated.
    """
    x = x if x.requires_grad else x.detach().requires_grad_()
    gradient, moved = one_step(loss(x), x, step, create_graph)
    return change_of_gradient(gradient, loss(moved), moved, step, create_graph)


def exact_curvature(outputs: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""Spectral norm of the loss's Hessian for a piecewise-linear network, ``[..., n]`` (Eq. 4).

    With logits z linear around x and J = dz/dx, the Hessian of the cross-entropy is
    :math:`J^T S J` with S = diag(p) - p p^T, whatever the label. For two classes that is
    :math:`p(1-p) g g^T` with g = grad(z1 - z0), of norm p(1-p)|g|^2; for more, the largest
    eigenvalue of :math:`S^{1/2} J J^T S^{1/2}`. For the squared error (f - y)^2 of one continuous
    output it is 2|grad f|^2. ``outputs`` maps inputs to logits or predictions.
    """
    x = x.detach().requires_grad_()
    z = outputs(x)
    rows, classes = z.ndim - 1, z.shape[-1]
    if classes == 1:
        return 2 * _norm(input_gradient(z[..., 0], x), rows).square()
    p = z.detach().softmax(-1)
    if classes == 2:
        gradient = input_gradient(z[..., 1] - z[..., 0], x)
        return p[..., 0] * p[..., 1] * _norm(gradient, rows).square()
    jacobian = torch.stack(
        [
            torch.autograd.grad(z[..., k].sum(), x, retain_graph=k < classes - 1)[0].flatten(rows)
            for k in range(classes)
        ],
        dim=-2,
    )
    # S = R^T R with R = diag(sqrt p)(I - 1 p^T), so that J^T S J, S^(1/2) J J^T S^(1/2) and
    # (R J)(R J)^T share their largest eigenvalue.
    centred = jacobian - (p.unsqueeze(-1) * jacobian).sum(-2, keepdim=True)
    half = p.sqrt().unsqueeze(-1) * centred
    return torch.linalg.eigvalsh(half @ half.mT)[..., -1]


def power_iteration_curvature(
    loss: Callable[[Tensor], Tensor],
    x: Tensor,
    tolerance: float = 1e-6,
    iterations: int = 1000,
    seed: int = 0,
) -> Tensor:
    """Spectral norm of the loss's Hessian for any network, ``[..., n]`` (Eq. 4).

    Power iteration on exact Hessian-vector products of the loss ``[..., n]`` from a random
    direction, until no row's value has a relative change above ``tolerance``.
    """
    x = x.detach().requires_grad_()
    losses = loss(x)
    rows = losses.ndim
    gradient = input_gradient(losses, x, create_graph=True)
    generator = torch.Generator(x.device).manual_seed(seed)
    v = torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
    norm = torch.zeros_like(losses)
    for _ in range(iterations):
        v = v / _spread(_norm(v, rows).clamp(min=torch.finfo(x.dtype).tiny), x)
        (v,) = torch.autograd.grad((gradient * v).sum(), x, retain_graph=True)
        before, norm = norm, _norm(v, rows)
        if ((norm - before).abs() <= tolerance * norm).all():
            break
    return norm.detach()
