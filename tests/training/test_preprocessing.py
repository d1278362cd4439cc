"""Whitening, against scikit-learn and its definition."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from fairlearn.preprocessing import CorrelationRemover
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from robust_fairness.bench.experiment.experiment import Protocol
from robust_fairness.bench.training import preprocessing, train
from robust_fairness.core.errors import InputError
from tests.training.conftest import make_cell, make_samples


@pytest.fixture
def x() -> np.ndarray:
    """Correlated features, one of them constant."""
    rng = np.random.default_rng(0)
    mixed = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    return np.column_stack([mixed, np.full(300, 3.0)]).astype(np.float32)


def apply(name: str, x: np.ndarray) -> np.ndarray:
    """The features after the fitted preprocessing."""
    fitted = preprocessing.fit(Protocol(preprocessing=name), x, np.zeros(len(x), dtype=np.int64))
    return preprocessing.Preprocessing([fitted])(torch.from_numpy(x).double()[None])[0].numpy()


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


@pytest.mark.parametrize("name", ["none", "standardise"])
def test_correlation_is_removed_as_by_fairlearn(x, name):
    """Also on further rows; sensitive features are 0, where fairlearn drops them."""
    protocol = Protocol(preprocessing=name, remove_correlation=0.7)
    fitted = preprocessing.fit(protocol, x[:200], np.zeros(200, dtype=np.int64), sensitive=[1, 3])
    ours = preprocessing.Preprocessing([fitted])(torch.from_numpy(x).double()[None])[0].numpy()
    plain = x.astype(float)
    if name == "standardise":
        plain = StandardScaler().fit(plain[:200]).transform(plain)
    theirs = CorrelationRemover(sensitive_feature_ids=[1, 3], alpha=0.7).fit(plain[:200])
    np.testing.assert_allclose(ours[:, [0, 2, 4]], theirs.transform(plain), atol=1e-9)
    assert not ours[:, [1, 3]].any()


def test_correlation_is_removed_from_the_features_of_a_cell():
    """With the columns of sensitive attributes only, which must be among the features."""
    samples, cell = make_samples(), make_cell(epochs=1, seeds=(0,), remove_correlation=1.0)
    assert cell.sees == ("groups", "groups at prediction")
    with pytest.raises(InputError, match="remove_correlation: attribute kind is no column"):
        train(samples, cell)
    columns = ("kind", "kind", *samples.features[2:])
    (fitted,), *_ = train(replace(samples, columns=columns), cell)
    x = samples.x.astype(np.float64)
    mapped = (x - fitted.state["preprocessing.centre"]) @ fitted.state["preprocessing.matrix"]
    rows = samples.rows("split_0", "train")
    np.testing.assert_allclose(mapped[rows].T @ (x[rows, :2] - x[rows, :2].mean(0)), 0, atol=1e-6)


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
    for model in fitted:
        rows = samples.rows(model.split, "train")
        np.testing.assert_allclose(
            model.state["preprocessing.centre"], samples.x[rows].mean(0), rtol=1e-5
        )
    assert len({model.split for model in fitted}) == 3


def test_outcomes_come_back_in_their_own_units():
    """Standardising and restoring are inverse."""
    y = np.random.default_rng(1).normal(150, 70, 50).astype(np.float32)
    plain, x = Protocol(preprocessing="none"), np.zeros((50, 1), np.float32)
    module = preprocessing.Preprocessing([preprocessing.fit(plain, x, y)])
    standard = module.standardise_outcome(torch.from_numpy(y).double()[None])
    assert standard.mean().abs() < 1e-9
    assert standard.std(correction=0) == pytest.approx(1)
    np.testing.assert_allclose(module.restore_outcome(standard[..., None])[0, :, 0], y, rtol=1e-6)


def test_missing_features_are_imputed_by_each_replicas_own_training_rows():
    """Median of the observed training values; a feature that is never observed there is 0."""
    samples = make_samples()
    x = samples.x.copy()
    x[::5, 0] = np.nan
    split = samples.split_names[0]
    x[samples.rows(split, "train"), 1] = np.nan
    fitted, _, _, _ = train(replace(samples, x=x), make_cell(epochs=1))
    for model in fitted:
        seen = x[samples.rows(model.split, "train"), 0]
        expected = np.median(seen[~np.isnan(seen)])
        assert model.state["preprocessing.fill"][0] == pytest.approx(expected, rel=1e-6)
    first = next(model for model in fitted if model.split == split)
    state = {name: first.state[f"preprocessing.{name}"] for name in ("centre", "matrix", "fill")}
    outcome = first.state["preprocessing.outcome"]
    module = preprocessing.Preprocessing([{**state, "outcome": outcome}])
    made = module(torch.from_numpy(x)[None])[0]
    assert made.isfinite().all()
    assert (made[:, 1] == 0).all()


def test_features_constant_in_training_are_centred_or_dropped(x):
    """A value that only other rows have reaches the network unless it is dropped."""
    y, elsewhere = np.zeros(len(x), dtype=np.int64), x.copy()
    elsewhere[:, 4] = 5
    for choice, expected in (("centre", 2.0), ("drop", 0.0)):
        fitted = preprocessing.fit(Protocol(constant_features=choice), x, y)
        made = preprocessing.Preprocessing([fitted])(torch.from_numpy(elsewhere).double()[None])[0]
        assert made[:, 4].tolist() == [expected] * len(x)
