"""The squared MMD against its definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.maths.kernels import (
    BANDWIDTHS,
    blocked_group_mmd,
    gathered_at_nodes,
    group_mmd,
    mean_pairwise_mmd,
)


def brute_force(values, group, a, b, bandwidths):
    """Eq. 7 with loops."""

    def mean(xs, ys):
        return np.mean(
            [sum(np.exp(-((x - y) ** 2) / (2 * s**2)) for s in bandwidths) for x in xs for y in ys]
        )

    p, q = values[group == a], values[group == b]
    return mean(p, p) - 2 * mean(p, q) + mean(q, q)


@pytest.mark.parametrize("bandwidths", [BANDWIDTHS, (0.25, 0.5, 1, 2, 4), (1, 3, 4)])
def test_group_mmd_is_equation_7(bandwidths):
    """Powers of one exponential, or plain ones where widths do not double."""
    rng = np.random.default_rng(0)
    values, group = rng.gamma(1, 3, 30), rng.integers(0, 3, 30)
    distances, counts = group_mmd(torch.tensor(values), torch.tensor(group), 3, bandwidths)
    for a in range(3):
        for b in range(3):
            expected = brute_force(values, group, a, b, bandwidths)
            assert distances[a, b].item() == pytest.approx(expected, abs=1e-12)
    assert counts.tolist() == np.bincount(group).tolist()


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_blocks_give_the_same(seed, block):
    """Whatever the size of a block; missing groups are left out of both."""
    rng = np.random.default_rng(seed)
    values, group = torch.tensor(rng.gamma(1, 3, 25)), torch.tensor(rng.integers(-1, 3, 25))
    whole, _ = group_mmd(values, group, 3)
    blocked, counts = blocked_group_mmd(values, group, 3, block=block)
    present = counts > 0
    both = present[:, None] & present[None]
    torch.testing.assert_close(blocked[both], whole[both], atol=1e-12, rtol=0)


@pytest.mark.parametrize("spread", [0.01, 1, 50, 1e5])
def test_gathering_at_nodes_changes_nothing(spread):
    """Against the whole kernel matrix, for tight, wide and heavy-tailed values."""
    rng = np.random.default_rng(2)
    values = torch.tensor(spread * rng.gamma(0.3, 1, 3000))
    group = torch.tensor(rng.integers(0, 3, 3000))
    whole, _ = group_mmd(values, group, 3)
    blocked, _ = blocked_group_mmd(values, group, 3)
    torch.testing.assert_close(blocked, whole, atol=1e-11, rtol=0)


def test_gathering_leaves_fewer_points_and_the_same_weight():
    """Twenty thousand values of a narrow range need some hundred points."""
    values = torch.tensor(np.random.default_rng(3).gamma(1, 2, 20000))
    weights = torch.rand(20000, 2, dtype=torch.float64)
    points, gathered = gathered_at_nodes(values, weights, 1.0)
    assert len(points) < 1000
    torch.testing.assert_close(gathered.sum(0), weights.sum(0))


def test_leading_axes_are_independent():
    """A stack of replicas gives what each gives alone."""
    values, group = torch.rand(4, 20, dtype=torch.float64), torch.randint(3, (4, 20))
    together = mean_pairwise_mmd(values, group, 3)
    alone = [mean_pairwise_mmd(v, g, 3) for v, g in zip(values, group, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone))


def test_distance_is_zero_for_the_same_values_and_never_negative():
    """A squared norm; at distance zero the kernel is one for each width."""
    values = torch.rand(10, dtype=torch.float64)
    distances, _ = group_mmd(values.repeat(2), torch.arange(2).repeat_interleave(10), 2)
    assert distances.abs().max() < 1e-14
    far, _ = group_mmd(torch.tensor([0.0, 1e6]), torch.tensor([0, 1]), 2)
    assert far[0, 1].item() == pytest.approx(2 * len(BANDWIDTHS))


def test_absent_group_leaves_value_and_gradient_finite():
    """Nothing of a group that has no row, or one row, enters."""
    values = torch.rand(2, 6, dtype=torch.float64, requires_grad=True)
    group = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 1]])
    distances = mean_pairwise_mmd(values, group, 3)
    distances.sum().backward()
    assert distances[1].item() == 0
    assert values.grad.isfinite().all()
    assert values.grad[0].abs().max() > 0


def test_gradient_equals_finite_differences():
    """Of the mean over pairs, through shared exponentials."""
    values = torch.rand(9, dtype=torch.float64, requires_grad=True)
    group = torch.arange(9) % 3
    assert torch.autograd.gradcheck(lambda v: mean_pairwise_mmd(v, group, 3), values)
