"""The dependence score against the formulas of the paper written out in whole matrices."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_fairness.bench.maths.cross_covariance import (
    EPSILON,
    Variable,
    evenly,
    features,
    low_rank_score,
    median_distance,
    pivots,
    variable,
)


def rows(*values) -> torch.Tensor:
    """Rows of columns, float64."""
    return torch.tensor(np.column_stack(values), dtype=torch.float64)


def make_rows(n=120, seed=0, attributes=1):
    """Predictions, attributes and outcomes that depend on one another."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    a = rng.normal(size=(n, attributes)) + 0.5 * y[:, None]
    p = np.tanh(y + 0.5 * a.sum(1) + rng.normal(size=n))
    return rows(p), rows(a), rows(y)


def written_out(x, z, y=None, epsilon=1e-4):
    """Eqs. 12 to 15 and A.2 in NumPy, term by term, for standardised columns."""

    def r(columns):
        columns = np.asarray(columns)
        columns = (columns - columns.mean(0)) / columns.std(0)
        n = len(columns)
        distances = np.sqrt(((columns[:, None] - columns[None]) ** 2).sum(-1))
        off = np.sort(distances[~np.eye(n, dtype=bool)])
        width = off[(len(off) - 1) // 2]
        kernel = np.exp(-(distances**2) / (2 * width**2))
        centre = np.eye(n) - 1 / n
        g = centre @ kernel @ centre
        return g @ np.linalg.inv(g + epsilon * n * np.eye(n))

    norm = np.linalg.norm
    if y is None:
        rx, rz = r(x), r(z)
        return np.trace(rx @ rz) / (norm(rx) * norm(rz))
    rx, rz, ry = r(x), r(np.concatenate([z, y], 1)), r(y)
    shared = np.trace(rx @ rz - 2 * rx @ rz @ ry + rx @ ry @ rz @ ry)
    return shared / (norm(rx - rx @ ry) * norm(rz - rz @ ry))


def exact_score(variables: list[Variable]) -> torch.Tensor:
    """The score ``[...]`` from whole matrices: time grows with n cubed (Eqs. 12 to 15 and A.2).

    A third variable conditions; the second is then the extended one.
    """
    left, right, *given = map(proxy, variables)
    for rest in given:
        identity = torch.eye(rest.shape[-1], dtype=rest.dtype, device=rest.device)
        left, right = left @ (identity - rest), right @ (identity - rest)
    shared = (left * right.mT).sum((-2, -1))
    return shared / (left.square().sum((-2, -1)) * right.square().sum((-2, -1))).sqrt()


def proxy(v: Variable) -> torch.Tensor:
    """R of A.1, ``[..., n, n]``."""
    kernel = v.kernel(v.x, v.x)
    centred = kernel - kernel.mean(-1, keepdim=True)
    centred = centred - centred.mean(-2, keepdim=True)
    count = kernel.shape[-1]
    ridge = EPSILON * count * torch.eye(count, dtype=kernel.dtype, device=kernel.device)
    return torch.linalg.solve(centred + ridge, centred)


def low_rank(variables):
    return low_rank_score(variables, [pivots(v) for v in variables])


@pytest.mark.parametrize("attributes", [1, 3])
def test_exact_score_is_the_printed_formula(attributes):
    """Both forms, with the median heuristic."""
    p, a, y = make_rows(attributes=attributes)
    given_y = [variable(p), variable(a, y), variable(y)]
    assert exact_score(given_y).item() == pytest.approx(written_out(p, a, y), rel=1e-9)
    assert exact_score(given_y[:1] + [variable(a)]).item() == pytest.approx(
        written_out(p, a), rel=1e-9
    )


@pytest.mark.parametrize("attributes", [1, 4])
def test_low_rank_score_is_the_exact_one(attributes):
    """Within a thousandth, as the issue of scale demands."""
    p, a, y = make_rows(400, attributes=attributes)
    for variables in (
        [variable(p), variable(a)],
        [variable(p), variable(a, y), variable(y)],
        [variable(y), variable(a, p), variable(p)],
    ):
        exact = exact_score(variables)
        assert low_rank(variables).item() == pytest.approx(exact.item(), rel=1e-3)


def test_low_rank_score_of_categories_is_the_exact_one():
    """They need no more pivots than there are distinct rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    a = (rng.random((300, 2)) < 0.3 + 0.2 * y[:, None]).astype(float)
    p = ((rng.random(300) + a.sum(1)) > 1).astype(float)
    predicted, attributes, outcome = rows(p), rows(a), rows(np.eye(3)[y])
    for variables in (
        [variable(predicted), variable(attributes)],
        [variable(predicted), variable(attributes, outcome), variable(outcome)],
    ):
        assert max(len(pivots(v).rows) for v in variables) <= 12
        exact = exact_score(variables).item()
        assert low_rank(variables).item() == pytest.approx(exact, rel=1e-6)


def test_low_rank_score_of_many_numbers_is_too_small():
    """Eight continuous attributes and an outcome need more than the most pivots."""
    p, a, y = make_rows(600, attributes=8)
    variables = [variable(p), variable(a, y), variable(y)]
    exact = exact_score(variables).item()
    most = low_rank_score(variables, [pivots(v, most=200) for v in variables]).item()
    assert 0.8 * exact < most < 0.97 * exact
    assert low_rank(variables).item() == pytest.approx(exact, rel=0.01)


def test_blocks_of_rows_change_nothing(monkeypatch):
    """The sum over blocks is the sum over all rows."""
    p, a, y = make_rows(100)
    variables = [variable(p), variable(a, y), variable(y)]
    whole = low_rank(variables)
    monkeypatch.setattr("robust_fairness.bench.maths.cross_covariance.BLOCK", 33)
    torch.testing.assert_close(low_rank(variables), whole)


def test_leading_axes_are_scores_of_their_own():
    """Stacked variables that need different numbers of pivots."""
    numbers, two = make_rows(90, seed=1), make_rows(90, seed=2)
    binary = (two[0] > 0).double(), (two[1] > 0).double(), (two[2] > 0).double()
    stacked = [torch.stack(pair) for pair in zip(numbers, binary, strict=True)]

    def scores(p, a, y):
        return low_rank([variable(p), variable(a, y), variable(y)])

    together = scores(*stacked)
    torch.testing.assert_close(together, torch.stack([scores(*numbers), scores(*binary)]))


def test_pivots_of_discrete_values_are_the_distinct_values():
    """No more are needed, and they explain the kernel matrix to the last digit."""
    values = torch.randint(5, (200, 1), generator=torch.Generator().manual_seed(0)).double()
    v = variable(values)
    chosen = pivots(v, tolerance=1e-13)
    assert sorted(values[chosen.rows, 0].tolist()) == [0, 1, 2, 3, 4]
    assert chosen.rest[0] == 1
    assert (chosen.rest.diff() < 0).all()


def test_features_factor_the_proxy():
    """F F^T is the n x n matrix R of A.1."""
    p, a, _ = make_rows(80)
    for v in (variable(p), variable(a, p)):
        f = features(v, pivots(v, 1e-12))
        torch.testing.assert_close(f @ f.mT, proxy(v), atol=1e-6, rtol=0)


def test_all_rows_as_pivots_are_exact():
    """Chosen without looking, but all of them; the rest is what keeps equal rows apart."""
    p, a, y = make_rows(60)
    variables = [variable(p), variable(a, y), variable(y)]
    score = low_rank_score(variables, [evenly(v, 60) for v in variables])
    assert score.item() == pytest.approx(exact_score(variables).item(), rel=2e-3)


def test_confident_predictions_leave_a_narrow_kernel_that_still_factors():
    """Most probabilities within 1e-8 of 0 and a few at 1, as after training at a high rate."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(128) < 0.06, 1.0, 0.0) + 1e-8 * rng.random(128)
    _, a, y = make_rows(128)
    variables = [variable(rows(p)), variable(a, y), variable(y)]
    values = variables[0].x.requires_grad_()
    score = low_rank_score(variables, [evenly(v, 128) for v in variables])
    (gradient,) = torch.autograd.grad(score, values)
    expected = written_out(rows(p), a, y)
    assert score.item() == pytest.approx(expected, rel=2e-3)
    assert gradient.isfinite().all()


def test_gradient_is_that_of_finite_differences(monkeypatch):
    """In the predictions; widths and pivots held fixed, and well apart so that digits suffice."""
    p, a, y = make_rows(30)
    monkeypatch.setattr("robust_fairness.bench.maths.cross_covariance.EPSILON", 0.01)
    outcome = [variable(a, y), variable(y)]
    fixed = [evenly(v, 6) for v in outcome]
    p = p.requires_grad_()
    width = median_distance(p.detach())

    def score(values):
        moving = Variable(values, width)
        return low_rank_score([moving, *outcome], [evenly(moving, 4), *fixed])

    assert torch.autograd.gradcheck(score, (p,), eps=1e-5, atol=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(4, 40), st.sampled_from(["dp", "eo"]))
def test_score_lies_between_0_and_1_whatever_the_rows(seed, n, notion):
    """Few rows, repeated rows, constants."""
    rng = np.random.default_rng(seed)
    draw = [
        lambda: rng.normal(size=n),
        lambda: rng.integers(0, 2, n),
        lambda: np.full(n, 3.0),
        lambda: rng.integers(0, 3, n) * 1e6,
    ]
    p, a, y = (rows(draw[k]()) for k in rng.integers(0, len(draw), 3))
    variables = [variable(p), variable(a, y), variable(y)]
    if notion == "dp":
        variables = [variable(p), variable(a)]
    assert 0 <= low_rank(variables) <= 1


def test_affine_maps_score_1_and_others_less():
    """What the score is not: 1 for every deterministic relation."""
    x = torch.linspace(-2, 2, 300).double()[:, None]

    def score(of):
        return low_rank([variable(of), variable(x)]).item()

    assert score(3 * x - 1) == pytest.approx(1)
    assert score(-x) == pytest.approx(1)
    assert 0.3 < score(x**3) < 0.8
    assert 0.2 < score(x.sign() + 0.5 * (x == 0)) < 0.5


def test_score_is_invariant_under_order_scale_and_shift():
    """Of all rows together, and of each column."""
    p, a, y = make_rows(80)
    order = torch.randperm(80, generator=torch.Generator().manual_seed(0))
    score = exact_score([variable(p), variable(a, y), variable(y)])
    shuffled = exact_score([variable(columns[order]) for columns in (p, torch.cat([a, y], 1), y)])
    scaled = exact_score([variable(5 - 3 * p), variable(10 * a, y + 7), variable(y)])
    torch.testing.assert_close(shuffled, score)
    torch.testing.assert_close(scaled, score)


def test_without_standardising_the_scale_of_the_attribute_decides():
    """Why it is the default."""
    p, a, y = make_rows(80)

    def score(scale, standardise):
        variables = [
            variable(*columns, standardise=standardise) for columns in ((p,), (scale * a, y), (y,))
        ]
        return exact_score(variables).item()

    assert score(30, False) < 0.95 * score(1, False)
    assert score(30, True) == pytest.approx(score(1, True))


def test_width_is_the_median_and_for_mostly_equal_rows_the_median_of_the_others():
    """A binary variable of unequal halves has the median 0."""
    rng = np.random.default_rng(0)
    x = rows(rng.normal(size=(31, 2)))
    distances = torch.pdist(x).sort().values
    assert median_distance(x) == pytest.approx(distances[(len(distances) - 1) // 2].item())
    assert median_distance(rows([0.0] * 9 + [2.0])) == 2
    assert median_distance(rows([1.0] * 5)) == 1


def test_more_pivots_than_rows_are_all_rows():
    """Whatever is asked for."""
    v = variable(make_rows(12)[0])
    assert len(evenly(v, 99).rows) == 12
    assert len(pivots(v, most=99).rows) <= 12
