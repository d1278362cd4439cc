"""E-processes of gaps: exact means, projections, error rates and coverage at every look."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from robust_fairness.auditing.followed import DEVIATIONS
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.rates import LinearGap, linear_gap
from robust_fairness.numbers.sequential import (
    Batches,
    Reference,
    growth,
    lower_bound,
    projected,
    start_weights,
)

GAPS = {
    "two groups": (linear_gap("largest", 2), (5, 3)),
    "three groups": (linear_gap("largest", 3), (3, 2, 2)),
    "sum of two rates": (linear_gap("sum", 2, 2), (2, 2, 2, 1)),
    "worst group": (LinearGap(-np.eye(2), 0.5), (5, 3)),
    "worst gap": (linear_gap("worst_gap", 3), (3, 2, 2)),
}


@pytest.mark.parametrize("bound", [-0.2, 0.0, 0.1, 0.35])
@pytest.mark.parametrize("name", GAPS)
def test_mean_of_an_e_value_is_at_most_one_under_all_rates_of_the_hypothesis(name, bound):
    of, n = GAPS[name]
    outcomes = np.array(list(product(*(range(rows + 1) for rows in n))), float)
    level = np.linspace(0.35, 0.6, len(n))
    batches = Batches(
        outcomes,
        np.tile(np.array(n, float), (len(outcomes), 1)),
        np.tile(level, (len(outcomes), 1)),
    )
    e_values = np.exp(batches.log_e(of.functions, np.asarray(bound - of.constant)))
    grid = np.array(list(product(np.linspace(0, 1, 7), repeat=len(n))))
    chances = np.prod(stats.binom.pmf(outcomes[None], n, grid[:, None]), -1)  # [rates, outcomes]
    means = np.einsum("ro,fog->rfg", chances, e_values)
    allowed = grid @ of.functions.T <= bound - of.constant + 1e-12
    assert means[allowed].max() <= 1 + 1e-9
    assert means[~allowed].max() > 1.01


def test_projection_is_that_of_a_general_optimiser():
    rng = np.random.default_rng(0)
    for functions in (np.array([1.0, -1.0]), np.array([-0.5, 1.0, -0.5])):
        for value in (-0.3, 0.05, 0.4):
            rates, n = rng.uniform(0.1, 0.9, len(functions)), rng.uniform(10, 1000, len(functions))

            def divergence(theta, rates=rates, n=n):
                hits = rates * np.log(rates / theta)
                return float(n @ (hits + (1 - rates) * np.log((1 - rates) / (1 - theta))) / n.sum())

            solved = optimize.minimize(
                divergence, np.full(len(functions), 0.5) + 0.4 * functions,
                constraints={"type": "eq", "fun": lambda theta: functions @ theta - value},  # noqa: B023
                bounds=[(1e-6, 1 - 1e-6)] * len(functions), options={"ftol": 1e-14},
            )  # fmt: skip
            closest = projected(rates, n, functions, np.asarray(value))
            assert functions @ closest == pytest.approx(value, abs=1e-12)
            assert divergence(closest) <= solved.fun + 1e-9
            np.testing.assert_allclose(closest, solved.x, atol=1e-4)


def test_e_value_of_one_group_is_the_likelihood_ratio_of_its_bound():
    """A single rate is at most .3: the closest rate is .3, and the alternatives are above it."""
    batches = Batches(np.array([[7.0]]), np.array([[10.0]]), np.array([[0.5]]))
    log_e = batches.log_e(np.array([[1.0]]), np.asarray(0.3))[0, 0]
    other = 0.3 + np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.32])
    np.testing.assert_allclose(log_e, 7 * np.log(other / 0.3) + 3 * np.log((1 - other) / 0.7))


def test_process_is_the_mean_over_functions_growths_and_starts():
    rng = np.random.default_rng(1)
    of = linear_gap("largest", 2)
    n = np.full((4, 2), 50.0)
    batches = Batches.of(rng.binomial(50, [0.3, 0.5], (4, 2)).astype(float), n, n[0] / 2, n[0])
    log_e = batches.log_e(of.functions, np.asarray(0.05))
    expected = []
    for last in range(1, 5):
        value = 1 / (last + 1)  # of starts that are still to come
        for start in range(last):
            value += start_weights(4)[start] * np.exp(log_e[:, start:last].sum(1)).mean()
        expected.append(np.log(value))
    np.testing.assert_allclose(growth(batches, of, 0.05).log_e, expected)


def streams(rng, rows, reference, difference, grown):
    """24 batches of two groups whose common level drifts, and the bound of their reference."""
    n = np.array([rows, rows // 4])
    drift = np.cumsum(rng.normal(0, 0.02, 24)).clip(-0.15, 0.15)
    extra = np.where(np.arange(24) >= 8, grown, 0)
    rates = np.stack([0.4 + drift, 0.4 + difference + drift + extra], 1)
    n_then = np.array([reference, reference // 4], float)
    then = rng.binomial(n_then.astype(int), [0.4, 0.4 + difference]).astype(float)
    of = linear_gap("largest", 2)
    bound = Reference(then[None], n_then[None]).most(of.functions, LEVEL / 2).max()
    hits = rng.binomial(n, rates).astype(float)
    return Batches.of(hits, np.tile(n.astype(float), (24, 1)), then, n_then), float(bound)


@pytest.mark.parametrize(
    ("rows", "reference", "difference"), [(100, 400, 0.0), (400, 400, 0.1), (1000, 10_000, 0.0)]
)
def test_monitor_without_growth_ever_alarms_in_at_most_5_percent(rows, reference, difference):
    rng = np.random.default_rng(rows)
    alarms = 0
    for _ in range(200):
        batches, bound = streams(rng, rows, reference, difference, 0.0)
        alarms += growth(batches, linear_gap("largest", 2), bound).alarm(LEVEL / 2) is not None
    assert alarms <= stats.binom.ppf(0.99, 200, LEVEL)


@pytest.mark.parametrize(
    ("rows", "level"),
    [((30, 30), 0.05), ((50, 20), 0.05), ((50, 20), 0.025 / 60), ((300, 300), 0.025 / 60)],
)
@pytest.mark.parametrize("rates", [(0.09, 0.01), (0.5, 0.4), (1.0, 0.98), (0.3, 0.3)])
def test_a_reference_of_any_size_is_below_its_bound(rates, rows, level):
    """By all outcomes: rates with rows added fail 14 to 20 times as often in the tail."""
    outcomes = np.array(list(product(*(range(n + 1) for n in rows))), float)
    chance = np.prod(stats.binom.pmf(outcomes, rows, rates), -1)
    likely = chance > 1e-12
    functions = linear_gap("largest", 2).functions
    most = [
        Reference(hits[None], np.array([rows], float)).most(functions, level).max()
        for hits in outcomes[likely]
    ]
    below = np.array(most) < abs(rates[0] - rates[1])
    many = rows == (300, 300) and rates == (0.5, 0.4)  # hits from which bounds are normal
    assert chance[likely][below].sum() + chance[~likely].sum() <= level * (1.2 if many else 1)


@pytest.mark.parametrize("moved", ["season", "chance"])
def test_gaps_that_vary_between_periods_of_the_reference_raise_no_alarm(moved):
    """3,000 rows of a group in a month; without a margin nearly all seasons are alarms."""
    rng, of, months = np.random.default_rng(0), linear_gap("largest", 2), np.arange(48)
    alarms = dict.fromkeys([DEVIATIONS, 0.0], 0)
    n = np.full((48, 2), 3000.0)
    for _ in range(40):
        season = 0.05 * np.sin((months + rng.integers(12)) * np.pi / 6)
        move = season if moved == "season" else rng.normal(0, 0.02, 48)
        hits = rng.binomial(3000, np.stack([0 * move + 0.4, 0.45 + move], 1)).astype(float)
        reference = Reference(hits[:12], n[:12])
        batches = Batches.of(hits[12:], n[12:], hits[:12].sum(0), n[:12].sum(0))
        most, varied = reference.most(of.functions, LEVEL / 2), reference.variation(of.functions)
        for deviations in alarms:
            bound = float((most + deviations * varied).max())
            alarms[deviations] += growth(batches, of, bound).alarm(LEVEL / 2) is not None
    assert alarms[DEVIATIONS] <= stats.binom.ppf(0.99, 40, LEVEL)
    assert alarms[0.0] >= (30 if moved == "season" else 2)


def test_variation_between_periods_is_what_rows_do_not_explain():
    rng, functions = np.random.default_rng(0), linear_gap("largest", 2).functions
    n = np.full((500, 2), 2000.0)
    for deviation in (0.0, 0.03):
        rates = 0.4 + np.stack([np.zeros(500), rng.normal(0, deviation, 500)], 1)
        reference = Reference(rng.binomial(2000, rates).astype(float), n)
        assert reference.variation(functions) == pytest.approx(deviation, rel=0.1)
    assert (Reference(reference.hits[:5], n[:5]).variation(functions) == 0).all()


def test_growth_is_found_in_its_batch_and_measured():
    rng, of, alarms, covered = np.random.default_rng(3), linear_gap("largest", 2), [], 0
    for _ in range(30):
        batches, bound = streams(rng, 2000, 20_000, 0.05, 0.1)
        grown = growth(batches, of, bound)
        alarms.append(grown.alarm(LEVEL / 2))
        start = int(grown.start.argmax())
        covered += start < 8 or 0.05 < lower_bound(batches, of, start, LEVEL / 2) <= 0.15
    assert None not in alarms
    assert np.median(alarms) <= 11
    assert min(alarms) >= 8
    assert covered >= 28


@pytest.mark.parametrize("grown", [0.0, 0.15])
def test_lower_bound_of_the_largest_gap_holds_at_every_look(grown):
    """Of a gap that stays as it is, and of one that grows: never above the largest one so far."""
    rng, of, missed = np.random.default_rng(4), linear_gap("largest", 2), 0
    for _ in range(60):
        batches, _ = streams(rng, 400, 400, 0.1, grown)
        above = False
        for end in (1, 4, 24):
            looked = Batches(batches.hits[:end], batches.n[:end], batches.level[:end])
            bound = lower_bound(looked, of, 0, LEVEL / 2)
            above |= bound > 0.1 + grown * (end > 8)
        missed += above
    assert missed <= stats.binom.ppf(0.99, 60, LEVEL / 2)
    assert bound > 0.05


def test_group_without_rows_and_impossible_bounds_are_no_evidence():
    hits, n = np.array([[3.0, 0.0], [3.0, 0.0]]), np.array([[5.0, 0.0], [5.0, 4.0]])
    batches = Batches.of(hits, n, np.array([2.0, 2.0]), np.array([5.0, 5.0]))
    functions = linear_gap("largest", 2).functions
    log_e = batches.log_e(functions, np.asarray(0.0))
    assert (log_e[:, 0] == 0).all()
    assert (log_e[:, 1] != 0).any()
    for bound in (1.0, 1.5, -1.0):
        assert (batches.log_e(functions, np.asarray(bound)) == 0).all()
    assert growth(batches, LinearGap(functions), 0.0).start.sum() == pytest.approx(1)
