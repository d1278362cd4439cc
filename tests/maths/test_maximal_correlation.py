"""Chi-squared against tables, contingency tests and Gaussian pairs."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, multivariate_normal

from robust_fairness.bench.maths.maximal_correlation import (
    bandwidth,
    chi_squared,
    conditional,
    density_cover,
    grid_cells,
    joint_distribution,
    standardised,
)


def density(*numbers: torch.Tensor, known: torch.Tensor | None = None) -> torch.Tensor:
    """Joint distribution of numbers by their kernel density, which smooths all."""
    known = torch.ones_like(numbers[0], dtype=torch.bool) if known is None else known
    covers = [density_cover(values, known, len(numbers)) for values in numbers]
    return joint_distribution(known, *covers)


def table(seed: int, rows: int, columns: int) -> np.ndarray:
    """A random joint distribution with an empty cell."""
    counts = np.random.default_rng(seed).integers(1, 20, (rows, columns)).astype(float)
    counts[0, 0] = 0
    return counts


def gaussian_pair(rho: float, rows: int, seed: int = 0) -> torch.Tensor:
    """Two standard normal numbers of correlation rho, ``[2, rows]`` float64."""
    a, b = np.random.default_rng(seed).normal(size=(2, rows))
    return torch.tensor(np.stack([a, rho * a + np.sqrt(1 - rho**2) * b]))


def divergence(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Chi-squared of two numbers."""
    return chi_squared(density(a, b))


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5))
def test_chi_squared_of_a_table_is_pearsons_over_n(seed, rows, columns):
    """As scipy's contingency test has it, which knows nothing of kernels."""
    counts = table(seed, rows, columns)
    value = chi_squared(torch.tensor(counts / counts.sum()))
    statistic = chi2_contingency(counts, correction=False).statistic
    assert value.item() == pytest.approx(statistic / counts.sum(), rel=1e-9, abs=1e-12)


def test_tables_over_leading_axes_equal_one_by_one():
    """Any axes before the two of a table."""
    joints = torch.rand(2, 3, 4, 5, dtype=torch.float64)
    joints /= joints.sum((-2, -1), keepdim=True)
    together = chi_squared(joints)
    assert together.shape == (2, 3)
    torch.testing.assert_close(together[1, 2], chi_squared(joints[1, 2]))


def gaussian_table(rho: float, variance: float, reach: float, cells: int) -> torch.Tensor:
    """Density of a Gaussian pair at the points of a grid, as a joint distribution."""
    points = np.linspace(-reach, reach, cells)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    covariance = [[variance, rho], [rho, variance]]
    joint = multivariate_normal([0, 0], covariance).pdf(grid)
    return torch.tensor(joint / joint.sum())


@pytest.mark.parametrize("rho", [0.0, -0.3, 0.6, 0.8])
def test_gaussian_density_has_the_closed_form(rho):
    """rho^2 / (1 - rho^2), where the grid leaves out no tail."""
    joint = gaussian_table(rho, 1.0, 7.0, 120)
    assert chi_squared(joint).item() == pytest.approx(rho**2 / (1 - rho**2), rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("rho", [0.0, -0.3, 0.6, 0.9])
def test_gaussian_pairs_are_estimated_blurred_and_without_their_tails(rho):
    """A kernel of width h adds h^2 to the variances; the grid ends at 2.5 standard deviations.

    The rest is the error of the sample.
    """
    rows = 20000
    a, b = gaussian_pair(rho, rows)
    width = bandwidth(torch.tensor(float(rows)), 2).item()
    assert width == pytest.approx(rows ** (-1 / 6), rel=1e-6)
    seen = gaussian_table(rho, 1 + width**2, 2.5, grid_cells(rows, 2))
    expected = chi_squared(seen).item()
    assert divergence(a, b).item() == pytest.approx(expected, rel=0.05, abs=0.01)


def test_nonlinear_dependence_without_correlation_is_seen():
    """A number and its square: no correlation, but dependence on one another is total."""
    a = gaussian_pair(0.0, 4000)[0]
    assert abs(np.corrcoef(a, a**2)[0, 1]) < 0.1
    assert divergence(a, a**2).item() > 0.5


def test_density_is_a_mean_of_gaussians():
    """One round each row, of the bandwidth's width, as scipy draws them."""
    a, b = gaussian_pair(0.5, 60)
    known = torch.ones(60, dtype=torch.bool)
    joint = density(a, b).numpy()
    data = np.stack([standardised(values, known).numpy() for values in (a, b)])
    width = 60 ** (-1 / 6)
    points = np.linspace(-2.5, 2.5, int(5 / width))
    assert joint.shape == (len(points), len(points))
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1)
    expected = sum(multivariate_normal(row, width**2).pdf(grid) for row in data.T)
    np.testing.assert_allclose(joint, expected / expected.sum(), rtol=1e-6)


@given(st.floats(0.01, 100), st.floats(-100, 100), st.booleans())
def test_scale_shift_sign_and_order_do_not_matter(scale, shift, mirrored):
    """Numbers are standardised, and rows are a sample; swapping the variables transposes."""
    a, b = gaussian_pair(0.7, 50)
    order = torch.randperm(50, generator=torch.Generator().manual_seed(1))
    sign = -1 if mirrored else 1
    changed = divergence((sign * scale * a + shift)[order], b[order])
    torch.testing.assert_close(changed, divergence(b, a), rtol=1e-3, atol=0)


def test_independence_constants_and_no_rows_give_zero():
    """To the estimation error, exactly, and exactly."""
    a, b = gaussian_pair(0.0, 5000)
    assert divergence(a, b).item() < 0.02
    flat = torch.full_like(a, 3.0)
    for first, other in ((a, flat), (flat, b), (flat, flat)):
        assert divergence(first, other).item() == pytest.approx(0, abs=1e-9)
    nobody = torch.zeros(5000, dtype=torch.bool)
    assert chi_squared(density(a, b, known=nobody)).item() == 0


def test_unknown_rows_count_as_if_they_were_not_there():
    """But for the number of grid points, which all replicas share."""
    a, b = gaussian_pair(0.6, 70)
    known = torch.arange(70) < 68
    assert grid_cells(70, 2) == grid_cells(68, 2)
    with_gaps = torch.where(known, torch.stack([a, b]), 99.0)
    of_known = chi_squared(density(*with_gaps, known=known))
    torch.testing.assert_close(of_known, divergence(a[:68], b[:68]))


def test_condition_splits_the_joint_distribution():
    """Given classes, the tables are those of the rows of each class; an empty class is told."""
    generator = torch.Generator().manual_seed(0)
    u, v, w = (torch.randint(size, (200,), generator=generator) for size in (3, 4, 2))
    covers = [
        torch.nn.functional.one_hot(values, size).mT.double()
        for values, size in ((u, 3), (v, 4), (w, 3))
    ]
    known = torch.ones(200, dtype=torch.bool)
    tables, present = conditional(joint_distribution(known, *covers))
    assert present.tolist() == [True, True, False]
    for number in range(2):
        expected = np.zeros((3, 4))
        np.add.at(expected, (u[w == number].numpy(), v[w == number].numpy()), 1)
        np.testing.assert_allclose(tables[number].numpy(), expected / expected.sum())
    assert not tables[2].any()


@pytest.mark.parametrize("numbers", [2, 3])
def test_gradient_is_that_of_finite_differences(numbers):
    """Also through mean, deviation and the condition."""
    a, b = gaussian_pair(0.5, 9)
    c = gaussian_pair(0.0, 9, seed=4)[0]
    known = torch.arange(9) != 4

    def measure(values):
        joint = density(*(values, b, c)[:numbers], known=known)
        return chi_squared(joint if numbers == 2 else conditional(joint)[0]).sum()

    assert torch.autograd.gradcheck(measure, a.requires_grad_())


@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-4, 1.0, 1e4])
def test_gradient_is_finite_in_single_precision(spread):
    """Also for nearly constant numbers, and with a row far from all others."""
    a, b = gaussian_pair(0.5, 40).float()
    a = (spread * a + 0.5).requires_grad_()
    b[0] = 1e3
    value = divergence(a, b)
    value.backward()
    assert value.isfinite() and a.grad.isfinite().all()
