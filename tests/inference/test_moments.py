"""Means of row values and their variances, from sums over blocks."""

import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from robust_fairness.inference.moments import (
    Moments,
    covariance_by_replicates,
    covariance_by_unit,
)


def rows(seed=0, n=500):
    rng = np.random.default_rng(seed)
    return rng.normal(1e6, 1, n), rng.integers(0, 3, n), rng.random(n) + 0.1


def assert_same(one: Moments, other: Moments) -> None:
    np.testing.assert_array_equal(one.n, other.n)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-14)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_computed_in_one_pass_and_blocks_add_up(weighted):
    values, group, weight = rows()
    weight = weight if weighted else np.ones_like(weight)
    found = Moments.of(values, group, 3, weight if weighted else None)
    for number in range(3):
        x, w = values[group == number], weight[group == number]
        mean = np.average(x, weights=w)
        assert found.mean[number] == pytest.approx(mean, rel=1e-14)
        linear = len(x) / (len(x) - 1) * np.sum((w * (x - mean)) ** 2) / w.sum() ** 2
        assert found.variance[number] == pytest.approx(linear, rel=1e-6)
        if not weighted:
            assert found.variance[number] == pytest.approx(x.var(ddof=1) / len(x), rel=1e-6)
    blocks = [slice(0, 7), slice(7, 200), slice(200, 500)]
    parts = [
        Moments.of(values[rows], group[rows], 3, weight[rows] if weighted else None)
        for rows in blocks
    ]
    assert_same(parts[0] + parts[1] + parts[2], found)


def test_rows_without_a_group_and_groups_without_rows():
    found = Moments.of(np.array([1.0, 5.0, 9.0]), np.array([0, -1, 1]), 3)
    np.testing.assert_array_equal(found.n, [1, 0 + 1, 0])
    np.testing.assert_array_equal(found.mean, [1, 9, np.nan])
    assert np.isnan(found.variance).all()


def test_units_of_one_row_are_rows():
    values, group, weight = rows(1)
    found = covariance_by_unit(values, group, 3, np.arange(500), weight)
    n = np.bincount(group)
    own = Moments.of(values, group, 3, weight).variance * (n - 1) / n * 500 / 499
    np.testing.assert_allclose(np.diag(found), own, rtol=1e-6)
    np.testing.assert_allclose(found - np.diag(np.diag(found)), 0, atol=1e-12)


def test_copies_of_rows_in_a_unit_are_one_row():
    rng = np.random.default_rng(2)
    values, group = rng.normal(size=200), rng.integers(0, 2, 200)
    thrice = [np.tile(one, 3) for one in (values, group, np.arange(200))]
    np.testing.assert_allclose(
        covariance_by_unit(thrice[0], thrice[1], 2, thrice[2]),
        covariance_by_unit(values, group, 2, np.arange(200)),
    )


def test_households_that_span_groups_are_simulated():
    """Variance of a difference of two groups whose members share households of 1 to 6."""
    rng = np.random.default_rng(3)
    differences, expected = [], []
    for _ in range(800):
        unit = np.repeat(np.arange(150), rng.integers(1, 7, 150))
        group = rng.integers(0, 2, len(unit))
        values = rng.normal(size=150)[unit] + rng.normal(size=len(unit))
        covariance = covariance_by_unit(values, group, 2, unit)
        differences.append(values[group == 0].mean() - values[group == 1].mean())
        expected.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert np.var(differences) == pytest.approx(np.mean(expected), rel=0.15)


def test_replicates_are_those_of_the_census_bureau():
    """4 / 80 of the sum of squares around the estimate."""
    replicates = np.arange(80.0)[:, None] * [1, -2]
    found = covariance_by_replicates(replicates, np.array([10.0, -20.0]))
    squares = np.square(np.arange(80.0) - 10).sum() / 20
    np.testing.assert_allclose(found, squares * np.array([[1, -2], [-2, 4]]))


REFERENCE = {
    # state: difference of women and men, by replicate weights, by household
    "tpr": (0.1050869484736569, 0.018976936199605065, 0.0226916118147906),
    "fpr": (0.08477609098574101, 0.014967131800484765, 0.015392153089459012),
}


def test_survey_weights_of_hawaii_are_the_reference():
    """ACS 2018, a bachelor's degree as prediction of income: weights, replicates, households."""
    folder = os.environ.get("ROBUST_FAIRNESS_DATA", "")
    path = Path(folder, "acs_2018", "csv_phi.zip")
    if not folder or not path.exists():
        pytest.skip("the official archive is not available")
    with ZipFile(path) as archive, archive.open("psam_p15.csv") as file:
        table = pd.read_csv(file, low_memory=False)
    keep = (
        (table["AGEP"] > 16) & (table["PINCP"] > 100) & (table["WKHP"] > 0) & (table["PWGTP"] >= 1)
    )
    table = table[keep]
    assert len(table) == 7731
    replicates = [f"PWGTP{number}" for number in range(1, 81)]
    for name, label in (("tpr", True), ("fpr", False)):
        among = ((table["PINCP"] > 50_000) == label).to_numpy()
        values = (table["SCHL"] >= 21).to_numpy(float)
        group = np.where(among, table["SEX"].to_numpy() - 1, -1)  # men, women

        def means(weight, values=values, group=group):
            return Moments.of(values, group, 2, weight.to_numpy(float)).mean

        value, error, by_household = REFERENCE[name]
        found = means(table["PWGTP"])
        assert found[1] - found[0] == pytest.approx(value, abs=1e-12)
        drawn = np.array([means(table[one]) for one in replicates])
        covariances = (
            covariance_by_replicates(drawn, found),
            covariance_by_unit(
                values, group, 2, table["SERIALNO"].to_numpy(), table["PWGTP"].to_numpy(float)
            ),
        )
        for covariance, expected in zip(covariances, (error, by_household), strict=True):
            variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
            assert np.sqrt(variance) == pytest.approx(expected, rel=1e-9)
