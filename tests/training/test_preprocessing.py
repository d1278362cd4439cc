"""Whitening, against scikit-learn and its definition."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from robust_fairness.training import preprocessing, train
from tests.training.conftest import make_cell, make_samples


@pytest.fixture
def x() -> np.ndarray:
    """Correlated features, one of them constant."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    return np.column_stack([mixed, np.full(300, 3.0)]).astype(np.float32)


def apply(name: str, x: np.ndarray) -> np.ndarray:
    """The features after the fitted preprocessing."""
    fitted = preprocessing.fit(name, x, np.zeros(len(x), dtype=np.int64))
    return preprocessing.stack([fitted])(torch.from_numpy(x).double()[None])[0].numpy()


def test_standardise_equals_scikit_learn(x):
    """A constant feature is centred only."""
    np.testing.assert_allclose(
        apply("standardise", x), StandardScaler().fit_transform(x.astype(float)), atol=1e-9
    )


def test_pca_equals_scikit_learn_up_to_sign_and_drops_the_constant_direction(x):
    """Same axes as scikit-learn's whitening, largest variance last."""
    ours = apply("pca", x)
    theirs = PCA(4, whiten=True).fit(x.astype(float)).transform(x.astype(float))
    theirs *= np.sqrt(300 / 299)  # scikit-learn divides by n - 1
    np.testing.assert_allclose(np.abs(ours[:, :0:-1]), np.abs(theirs), atol=1e-8)
    assert np.abs(ours[:, 0]).max() < 1e-9


@pytest.mark.parametrize("name", ["pca", "zca"])
def test_whitened_features_are_uncorrelated(x, name):
    """Covariance is the identity but for the direction without variance."""
    eigenvalues = np.linalg.eigvalsh(np.cov(apply(name, x), rowvar=False, bias=True))
    np.testing.assert_allclose(eigenvalues, [0, 1, 1, 1, 1], atol=1e-8)


def test_zca_stays_closest_to_the_features(x):
    """Its matrix is symmetric."""
    matrix = preprocessing.zca(x.astype(float))[1]
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-10)


def test_each_replica_is_whitened_by_its_own_training_rows():
    """Different splits, different means; validation and test rows do not enter."""
    samples = make_samples()
    fitted, _, _, _ = train(samples, make_cell(epochs=1))
    for one in fitted:
        rows = samples.rows(one.split, "train")
        np.testing.assert_allclose(
            one.state["preprocessing.centre"], samples.x[rows].mean(0), rtol=1e-5
        )
    assert len({one.split for one in fitted}) == 3


def test_outcomes_come_back_in_their_own_units():
    """Standardising and restoring are inverse."""
    y = np.random.default_rng(1).normal(150, 70, 50).astype(np.float32)
    module = preprocessing.stack([preprocessing.fit("none", np.zeros((50, 1), np.float32), y)])
    standard = module.standardise_outcome(torch.from_numpy(y).double()[None])
    assert standard.mean().abs() < 1e-9
    assert standard.std(correction=0) == pytest.approx(1)
    np.testing.assert_allclose(module.restore_outcome(standard[..., None])[0, :, 0], y, rtol=1e-6)
