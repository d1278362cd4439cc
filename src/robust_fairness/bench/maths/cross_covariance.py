r"""Dependence of variables by normalised cross-covariance operators (FairCOCCO, appendix A).

:math:`G` is the centred Gaussian kernel matrix of n rows of a variable X. Its *proxy*
:math:`R_X = G (G + \epsilon n I)^{-1}` is symmetric with eigenvalues in [0, 1), and the dependence
of X and Z, given Y or not, is (Eqs. 13 and 15)

.. math:: Tr[R_X (I - R_Y) R_Z (I - R_Y)], \qquad Tr[R_X R_Z]

``low_rank_score`` replaces every kernel
matrix by its incomplete Cholesky decomposition on few rows, the *pivots*: time is linear in n and
memory bounded, since two variables only need the small matrix :math:`K_{PX}^T H K_{QZ}` between
their pivots, a sum over blocks of rows. It divides by the norms of the two factors, so that the
score lies in [0, 1] (A.2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import torch
from torch import Tensor

EPSILON = 1e-4  # of A.1, times the number of rows
TOLERANCE = 1e-7  # unexplained share of the kernel matrix's trace at which pivots suffice
MOST_PIVOTS = 400
WIDTH_ROWS = 1024  # rows whose distances give the width of the kernel
EXACT_DISTANCES = "donot_use_mm_for_euclid_dist"
BLOCK = 8192  # rows of the kernel matrix at once
JITTER = 1e-6  # on the diagonal of the kernel between evenly spaced rows
ROUNDING = 1e-10  # on that between pivots that were chosen one by one


@dataclass(frozen=True)
class Variable:
    """A variable: values ``[..., n, d]`` and the width of its Gaussian kernel ``[...]``."""

    x: Tensor
    width: Tensor

    def kernel(self, rows: Tensor, others: Tensor) -> Tensor:
        """Gaussian kernel between values ``[..., n, d]`` and ``[..., m, d]``, ``[..., n, m]``.

        Distances are computed from differences: from products of the values, nearly equal rows far
        from the origin of a narrow kernel would give a matrix that is not positive definite.
        """
        distances = torch.cdist(rows, others, compute_mode=EXACT_DISTANCES)
        return torch.exp(-0.5 * (distances / self.width[..., None, None]).square())

    def at(self, rows: Tensor) -> Tensor:
        """Values ``[..., r, d]`` of the rows ``[..., r]``."""
        return self.x.gather(-2, rows.unsqueeze(-1).expand(*rows.shape, self.x.shape[-1]))


def variable(
    *columns: Tensor,
    standardise: bool = True,
    rows: int = WIDTH_ROWS,
    width: Callable[[Tensor, int], Tensor] | None = None,
) -> Variable:
    """One variable of several blocks of columns ``[..., n, d_k]``, in float64.

    Several blocks make the *extended* variable of A.1. ``standardise`` gives every column mean 0
    and standard deviation 1 first: the paper does not say; without it the scale of A decides how
    much of (A, Y) is A. ``width`` gives the width of the kernel from values and a number of rows,
    by default the median distance.
    """
    x = torch.cat([column.double() for column in columns], dim=-1)
    if standardise:
        deviation = x.std(-2, correction=0, keepdim=True)
        x = (x - x.mean(-2, keepdim=True)) / torch.where(deviation > 0, deviation, 1)
    return Variable(x, (width or median_distance)(x.detach(), rows))


def median_distance(x: Tensor, rows: int = WIDTH_ROWS) -> Tensor:
    """The median distance between two rows, ``[...]``, the usual width of a kernel (A.1).

    Where it is 0, as for a binary variable of two unequal halves, it is the median of the
    distances that are not, and 1 for a constant. The paper leaves that case open.

    At most ``rows`` rows of ``x`` ``[..., n, d]`` are used, evenly spaced.
    """
    some = evenly_spaced(x, rows)
    distances = torch.cdist(some, some, compute_mode=EXACT_DISTANCES)
    first, second = torch.triu_indices(some.shape[-2], some.shape[-2], 1, device=x.device)
    pairs = distances[..., first, second]
    if not pairs.shape[-1]:
        return torch.ones_like(x[..., 0, 0])
    median = pairs.nanmedian(-1).values
    if (median > 0).all():
        return median
    apart = pairs.masked_fill(pairs == 0, torch.nan).nanmedian(-1).values
    return torch.where(median > 0, median, apart).nan_to_num(1.0)


def evenly_spaced(x: Tensor, rows: int) -> Tensor:
    """So many rows of ``[..., n, d]``, or all if there are fewer."""
    count = x.shape[-2]
    return x[..., torch.linspace(0, count - 1, min(rows, count), device=x.device).long(), :]


@dataclass(frozen=True)
class Pivots:
    """Rows int64 ``[..., r]`` that span a kernel matrix up to a small rest, in order of choice.

    ``rest`` ``[..., r]`` is the share of the trace that was left before each was chosen, 0 where a
    matrix needed fewer pivots than others of the batch. ``jitter`` is added to the diagonal of the
    kernel between them, so that equal rows may be among them.
    """

    rows: Tensor
    rest: Tensor
    jitter: float = 0.0


@torch.no_grad()
def pivots(v: Variable, tolerance: float = TOLERANCE, most: int = MOST_PIVOTS) -> Pivots:
    """Choose pivots greedily: always the row that is explained least (Harbrecht et al. 2012).

    Stops when this share of the trace is left, or at ``most`` pivots.
    """
    x = v.x.detach()
    count = x.shape[-2]
    most = min(most, count)
    unexplained = x.new_ones(x.shape[:-1])
    # Cholesky columns [pivot, ..., n]; memory is taken as they are written
    columns = x.new_empty(most, *x.shape[:-1])
    # small tensors made between large ones would keep the allocator from using these again
    rows = torch.empty(most, *x.shape[:-2], dtype=torch.int64, device=x.device)
    rests = x.new_empty(most, *x.shape[:-2])
    chosen = 0
    for number in range(most):
        rest = unexplained.mean(-1)
        rest = torch.where(rest > tolerance, rest, 0.0)
        if not rest.any():
            break
        worst, row = unexplained.max(-1, keepdim=True)
        column = v.kernel(x, v.at(row).detach()).squeeze(-1)
        before = columns[:number]
        at_row = before.gather(-1, row.expand(number, *row.shape)).squeeze(-1)
        # a product of a matrix and a vector: the terms of the sum would be another such matrix
        column = column - torch.einsum("k...n,k...->...n", before, at_row)
        column = column / worst.clamp(min=tolerance).sqrt() * (rest > 0).unsqueeze(-1)
        columns[number] = column
        unexplained = (unexplained - column.square()).clamp(min=0).scatter(-1, row, 0.0)
        rows[number], rests[number] = row.squeeze(-1), rest
        chosen = number + 1
    return Pivots(rows[:chosen].movedim(0, -1), rests[:chosen].movedim(0, -1))


def evenly(v: Variable, count: int) -> Pivots:
    """Evenly spaced rows as pivots: random ones of a shuffled batch."""
    rows = v.x.shape[-2]
    places = torch.linspace(0, rows - 1, min(count, rows), device=v.x.device).long()
    leading = v.x.shape[:-2]
    rest = v.x.new_ones(*leading, len(places))
    return Pivots(places.expand(*leading, -1), rest, JITTER)


def low_rank_score(variables: Sequence[Variable], chosen: Sequence[Pivots]) -> Tensor:
    """The score ``[...]`` of the first two variables, conditioned on a third if there is one.

    Time grows with n times the square of the number of pivots; differentiable in the values, the
    choice of the pivots and the widths held fixed.
    """
    a = _inner_products(variables, chosen)
    x, z, shared = a[0, 0], a[1, 1], a[0, 1]
    left, right = x, z
    if len(variables) > 2:
        y, xy, zy = a[2, 2], a[0, 2], a[1, 2]
        shared = shared - xy @ zy.mT
        left = x - 2 * xy @ xy.mT + xy @ y @ xy.mT
        right = z - 2 * zy @ zy.mT + zy @ y @ zy.mT
    squares = (x * left).sum((-2, -1)) * (z * right).sum((-2, -1))
    return _ratio(shared.square().sum((-2, -1)), squares)


def _inner_products(
    variables: Sequence[Variable], chosen: Sequence[Pivots]
) -> dict[tuple[int, int], Tensor]:
    """``F_u^T F_v`` of every two variables u <= v, where ``R_u = F_u F_u^T``, ``[..., r_u, r_v]``.

    Kept apart, so that nothing is differentiated that does not depend on the predictions.
    """
    count = variables[0].x.shape[-2]
    pairs = list(combinations_with_replacement(range(len(variables)), 2))
    products, sums = _column_products(variables, chosen, pairs, slice(0, BLOCK))
    for start in range(BLOCK, count, BLOCK):
        more = _column_products(variables, chosen, pairs, slice(start, start + BLOCK))
        products = {pair: product + more[0][pair] for pair, product in products.items()}
        sums = [total + added for total, added in zip(sums, more[1], strict=True)]
    centred = {
        (u, v): product - sums[u].unsqueeze(-1) * (sums[v].unsqueeze(-2) / count)
        for (u, v), product in products.items()
    }
    factors = [
        _factor(item, few, centred[u, u], count)
        for u, (item, few) in enumerate(zip(variables, chosen, strict=True))
    ]
    inner = {}
    for (u, v), product in centred.items():
        half = torch.linalg.solve_triangular(factors[u], product, upper=False)
        inner[u, v] = torch.linalg.solve_triangular(factors[v], half.mT, upper=False).mT
    return inner


def _column_products(
    variables: Sequence[Variable],
    chosen: Sequence[Pivots],
    pairs: Sequence[tuple[int, int]],
    rows: slice,
) -> tuple[dict[tuple[int, int], Tensor], list[Tensor]]:
    """Products of the variables' kernel columns over some rows, by pair, and the columns' sums."""
    columns = [
        item.kernel(item.x[..., rows, :], item.at(few.rows)) * (few.rest > 0).unsqueeze(-2)
        for item, few in zip(variables, chosen, strict=True)
    ]
    products = {(u, v): columns[u].mT @ columns[v] for u, v in pairs}
    return products, [column.sum(-2) for column in columns]


def _factor(v: Variable, few: Pivots, gram: Tensor, count: int) -> Tensor:
    r"""Lower triangular C, ``[..., r, r]``: :math:`C C^T = K_{Pn} H K_{nP} + \epsilon n K_{PP}`.

    With it :math:`F = H K_{nP} C^{-T}` for the kernel matrix that the pivots span.
    """
    at = v.at(few.rows)
    needed = few.rest > 0
    identity = torch.eye(at.shape[-2], dtype=at.dtype, device=at.device)
    both = needed.unsqueeze(-1) & needed.unsqueeze(-2)
    kernel = torch.where(both, v.kernel(at, at), identity)
    return torch.linalg.cholesky(gram + EPSILON * count * (kernel + few.jitter * identity))


def features(v: Variable, chosen: Pivots) -> Tensor:
    """Features F ``[n, r]`` of a variable without leading axes, with :math:`R = F F^T`."""
    kernel = v.kernel(v.x, v.at(chosen.rows))
    centred = kernel - kernel.mean(0)
    factor = _factor(v, chosen, centred.mT @ centred, len(kernel))
    return torch.linalg.solve_triangular(factor, centred.mT, upper=False).mT


def kernel_features(v: Variable, chosen: Pivots) -> Tensor:
    """Features F ``[n, r]`` of a variable without leading axes: its kernel matrix is ``F F^T``."""
    kernel = v.kernel(v.x, v.at(chosen.rows))
    at = v.at(chosen.rows)
    identity = torch.eye(at.shape[-2], dtype=at.dtype, device=at.device)
    factor = torch.linalg.cholesky(v.kernel(at, at) + ROUNDING * identity)
    return torch.linalg.solve_triangular(factor, kernel.mT, upper=False).mT


def _ratio(shared: Tensor, squares: Tensor) -> Tensor:
    """``shared / sqrt(squares)`` in [0, 1], and 0 where a variable is constant."""
    varies = squares > 0
    norm = torch.where(varies, squares, 1.0).sqrt()
    return torch.where(varies, shared / norm, 0.0).clamp(0, 1)
