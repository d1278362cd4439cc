"""Decisions of the permutation test against those of KCI (Zhang et al. 2011) of causal-learn.

``kci.csv`` holds KCI's p-values on generated problems, so that the tests need no library for them;
``make_independence_oracle.py`` writes it.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench.maths.cross_covariance import variable
from robust_fairness.bench.maths.permutation import permutation_test, strata_of

FIXTURE = Path(__file__).with_name("kci.csv")
LEVEL = 0.05
NOISE = 0.5


def problem(
    seed: int, rows: int, outcome: str, relation: str, strength: float
) -> tuple[np.ndarray, ...]:
    """Prediction, attribute and outcome ``[n]``, the first two dependent given the last or not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows) - 1.0 if outcome == "classes" else rng.normal(size=rows)
    e, f = NOISE * rng.normal(size=(2, rows))
    a = y + 2 * e
    p = {
        "none, linear": lambda: y + f,
        "none, nonlinear": lambda: np.sin(2 * y) + f,
        "sum": lambda: y + strength * e + f,
        "square": lambda: y + 4 * strength * e**2 + f,
        "product": lambda: y + 4 * strength * y * e + f,
    }[relation]()
    return p, a, y


def our_p_value(p: np.ndarray, a: np.ndarray, y: np.ndarray, outcome: str) -> float:
    """Of the test within classes, or within strata of an outcome that is a number."""
    given = (y[:, None] == np.unique(y)).astype(float) if outcome == "classes" else y[:, None]
    p, a, y = (torch.from_numpy(columns) for columns in (p[:, None], a[:, None], given))
    return permutation_test([variable(p), variable(a, y), variable(y)], strata_of(given), 199)


@pytest.fixture(scope="module")
def decisions() -> pd.DataFrame:
    """Every problem with both p-values."""
    known = pd.read_csv(FIXTURE)
    p_values = []
    for row in known.itertuples():
        drawn = problem(row.seed, row.rows, row.outcome, row.relation, row.strength)
        assert drawn[0][0] == pytest.approx(row.first_prediction), "the problems are others now"
        p_values.append(our_p_value(*drawn, row.outcome))
    return known.assign(ours=p_values)


def test_problems_are_of_both_kinds_and_of_both_outcomes(decisions):
    """KCI is of two minds about them; else agreement would mean nothing."""
    rejected = (decisions["kci"] <= LEVEL).groupby(decisions["outcome"]).mean()
    assert set(rejected.index) == {"classes", "numbers"}
    assert rejected.between(0.3, 0.7).all()
    assert len(decisions) == 40


def test_decisions_are_those_of_kci(decisions):
    """At 5 %, on most: against weak dependence the tests differ in power, and each one errs."""
    agree = (decisions["kci"] <= LEVEL) == (decisions["ours"] <= LEVEL)
    assert agree.mean() >= 0.8
    assert agree[decisions["strength"] == 1].mean() >= 0.9


def test_strong_dependence_is_found_by_both(decisions):
    """Of every kind, given classes and given numbers."""
    dependent = ~decisions["relation"].str.startswith("none")
    strong = decisions[dependent & (decisions["strength"] == 1)]
    assert len(strong) == 12
    assert (strong[["kci", "ours"]] <= LEVEL).all(axis=None)
