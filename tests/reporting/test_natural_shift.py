"""Statistics and views of natural shift, on tables made by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.reporting import Results
from robust_fairness.reporting.natural_shift import against_erm, changes, matrix
from robust_fairness.reporting.statistics import detectable, over_domains, sign_flip_p

STATES = ["HI", "ME", "NE", "RI", "SD", "WV"]


def test_sign_flips_are_those_of_all_signs():
    for differences in ([0.3, -0.1, 0.2], [0.5, 0.4, 0.3, 0.2, 0.6, 0.1]):
        observed = abs(sum(differences))
        flipped = [
            abs(sum(sign * one for sign, one in zip(signs, differences, strict=True)))
            for signs in product([1, -1], repeat=len(differences))
        ]
        expected = np.mean([one >= observed - 1e-12 for one in flipped])
        assert sign_flip_p(np.array(differences)) == expected


def test_sign_flips_cannot_go_below_the_number_of_domains():
    for domains in (3, 4, 8):
        assert sign_flip_p(np.linspace(1, 2, domains)) == 2.0 ** (1 - domains)
    assert sign_flip_p(np.array([1.0, np.nan, 2.0])) == 0.5
    assert np.isnan(sign_flip_p(np.array([np.nan])))


def test_domains_are_resampled_not_cells():
    """A matrix of effects of targets only: nominal coverage with domains, not with cells."""
    rng, held, wide = np.random.default_rng(0), 0, 0
    for _ in range(200):
        effects = pd.Series(rng.normal(0.1, 1, 8), list("abcdefgh"))
        table = pd.DataFrame([effects] * 8, index=effects.index)
        table = table.mask(np.eye(8, dtype=bool))
        found = over_domains(table, draws=500)
        held += found.low <= 0.1 <= found.high
        cells = table.to_numpy()[np.isfinite(table)]
        half = 1.96 * cells.std(ddof=1) / np.sqrt(cells.size)
        wide += abs(cells.mean() - 0.1) <= half
    assert held / 200 == pytest.approx(0.95, abs=0.04)
    assert wide / 200 < 0.65  # what 56 cells as 56 independent numbers would give


def test_a_single_source_has_students_interval_over_targets():
    values = np.array([0.1, 0.4, -0.2, 0.3, 0.05])
    table = pd.DataFrame([values], index=["a + b"], columns=list("cdefg"))
    found = over_domains(table, draws=20_000)
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert found.mean == pytest.approx(values.mean())
    assert found.low == pytest.approx(expected.low, abs=0.01)
    assert found.high == pytest.approx(expected.high, abs=0.01)
    assert found.n == 5


def test_the_detectable_difference_has_its_power():
    rng = np.random.default_rng(1)
    values = rng.normal(detectable(1.0, 8), 1, (4000, 8))
    rejected = stats.ttest_1samp(values, 0, axis=1).pvalue < 0.05
    # the noncentral distribution is slightly wider than the central one of the formula
    assert rejected.mean() == pytest.approx(0.8, abs=0.04)


def run(fall: float) -> Results:
    """Every state to every other: accuracy falls elsewhere, for the method ``robust`` by half."""
    rng, rows, cells = np.random.default_rng(2), [], []
    for source, method in product(STATES, ["erm", "robust"]):
        where = {"dataset": f"income_{source}", "method": method}
        cells.append((where | {"algorithm": method, "network": "mlp"}, source))
        lost = fall if method == "erm" else fall / 2
        for seed, target in product(range(3), ["", *STATES]):
            other = target not in ("", source)
            rows.append(
                where
                | {
                    "network": "mlp",
                    "trial": "default",
                    "seed": seed,
                    "selection": "accuracy",
                    "shift": "domain" if other else "none",
                    "severity": 0.0,
                    "domain": target,
                    "metric": "accuracy",
                    "value": 0.8 - lost * other + rng.normal(0, 0.002),
                    "n": 1000,
                }
            )
    facets = [{"data": "income", "trained_on": source} for _, source in cells]
    described = tables.CELLS.table([cell for cell, _ in cells], facets)
    return Results.of(tables.table(tables.METRICS, rows), cells=described)


def test_a_fall_in_every_state_is_found():
    (line,) = changes(run(0.05)).query("method == 'erm'").to_dict("records")
    assert line["change"] == pytest.approx(-0.05, abs=0.003)
    assert line["low"] < line["change"] < line["high"] < 0
    assert (line["domains"], line["smallest_p"]) == (6, 2.0**-5)
    assert line["p"] == line["smallest_p"]
    assert line["p_holm"] == 2 * line["p"]
    assert line["says"] == "cannot tell"  # two lines, and no p-value below 1 / 32


def test_the_matrix_has_every_pair_without_the_diagonal():
    found = matrix(run(0.05)).query("method == 'erm'")
    pairs = set(zip(found["trained_on"], found["tested_on"], strict=True))
    assert pairs == {(a, b) for a, b in product(STATES, STATES) if a != b}
    assert (found["seeds"] == 3).all()
    assert np.allclose(found["change"], found["ours"] - found["at_home"])


def test_methods_are_compared_with_erm_on_the_same_rows():
    (line,) = against_erm(run(0.04)).to_dict("records")
    assert line["method"] == "robust"
    assert line["difference"] == pytest.approx(0.02, abs=0.003)
    assert line["p"] == 2.0**-5
    assert line["says"] == "higher"


def test_a_method_alone_is_compared_with_nothing():
    both = run(0.05)
    alone = both.by_domain[both.by_domain["method"] == "erm"]
    assert against_erm(Results(both.metrics, cells=both.cells, by_domain=alone)).empty


def test_without_domains_there_is_nothing_to_show():
    metrics = run(0.05).metrics
    for view in (changes, matrix, against_erm):
        assert view(Results.of(metrics)).empty
