"""Reductions: golden mixtures of fairlearn, expected decisions, storage and refusals."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fairlearn import reductions
from fairlearn.reductions import EqualizedOdds, GridSearch
from safetensors.numpy import load, save
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from robust_fairness.bench import training
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.methods._reductions import CONSTRAINTS, moment
from robust_fairness.bench.training import prediction
from robust_fairness.bench.training.records import Fitted, from_arrays, to_arrays
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.metrics.evaluation import DECISION
from tests.training.conftest import make_cell, make_samples, samples_of

HERE = Path(__file__).parent
ROWS = pd.read_csv(HERE.parent / "postprocessing" / "rows.csv")
GOLDEN = json.loads((HERE / "reductions_golden.json").read_text())
TREE = {"max_depth": 3, "random_state": 0}
LOGISTIC = {"C": 1e4, "tol": 1e-10, "max_iter": 2000}


def reduction_cell(method: str, estimator: str, params: dict, **options) -> Cell:
    network = {"name": "estimator", "estimator": estimator, "params": params}
    return make_cell(method, network=network, **{"seeds": (0,), **options})


def tree_cell(method: str = "exponentiated_gradient", **options) -> Cell:
    return reduction_cell(method, "sklearn.tree.DecisionTreeClassifier", TREE, **options)


def golden_samples() -> Samples:
    """The golden rows, as training, as validation and as test rows."""
    group, y = ROWS["group"].to_numpy(), ROWS["y"].to_numpy()
    x = np.stack([ROWS["score"] / 999, group == 1, group == 2], axis=1).astype(np.float64)
    parts = pd.Categorical(np.repeat(["train", "val", "test"], len(y)))
    kind = pd.Categorical(np.tile(group.astype(str), 3))
    return samples_of(np.tile(x, (3, 1)), np.tile(y, 3), kind, pd.DataFrame({"all": parts}))


def test_the_mixture_is_the_golden_one():
    """Expected accuracy and rates by group, on the rows that it is fitted on."""
    cell = reduction_cell(
        "exponentiated_gradient",
        "sklearn.linear_model.LogisticRegression",
        LOGISTIC,
        preprocessing="none",
        method_constraint="equalized_odds",
        method_difference_bound=0.02,
    )
    _, (validation,), *_ = training.train(golden_samples(), cell)
    rows = ROWS.assign(positive=validation.values[DECISION])
    accuracy = np.where(rows["y"] == 1, rows["positive"], 1 - rows["positive"]).mean()
    assert accuracy == pytest.approx(GOLDEN["expected_accuracy"], abs=2e-3)
    for rate, counted in (("selection_rate", rows), ("tpr", rows[rows["y"] == 1])):
        rates = counted.groupby("group")["positive"].mean()
        np.testing.assert_allclose(rates, GOLDEN[rate], atol=5e-3)


def test_a_mixture_is_stored_without_pickle_and_scored_by_its_expectation():
    samples, cell = make_samples(), tree_cell(method_difference_bound=0.02)
    (fitted,), (validation,), *_ = training.train(samples, cell)
    positive = validation.values[DECISION]
    assert ((positive > 0.01) & (positive < 0.99)).any()  # random for some rows
    arrays, rest = to_arrays([fitted])
    again = from_arrays(Fitted, load(save(arrays)), rest)
    (seen,) = prediction.predict(samples, again, cell, {"": samples}, "val")
    np.testing.assert_array_equal(seen.values[DECISION], positive)
    chosen = training.select(samples, [validation], cell)
    y = samples.y[validation.rows]
    expected = np.where(y == 1, positive, 1 - positive).mean()
    assert chosen["score"].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_grid_search_is_fairlearns():
    samples = make_samples()
    _, (validation,), *_ = training.train(samples, tree_cell("grid_search"))
    train, val = (samples.rows("split_0", part) for part in ("train", "val"))
    x = samples.x.astype(np.float64)
    x = (x - x[train].mean(0)) / x[train].std(0)
    group = samples.attributes["kind"].cat.codes.to_numpy()
    search = GridSearch(DecisionTreeClassifier(**TREE), EqualizedOdds())
    search.fit(x[train], samples.y[train], sensitive_features=group[train])
    np.testing.assert_allclose(validation.values[DECISION], search.predict(x[val]), atol=1e-9)


def with_one_class(samples: Samples) -> Samples:
    """The second group has class 0 only."""
    second = samples.attributes["kind"].cat.codes.to_numpy() == 1
    return replace(samples, y=np.where(second, 0, samples.y))


def test_a_group_of_one_class_needs_demographic_parity():
    samples = with_one_class(make_samples())
    with pytest.raises(InputError, match="a group has training rows of one class only"):
        training.train(samples, tree_cell())
    training.train(samples, tree_cell(method_constraint="demographic_parity"))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("name", ["grid_search", "exponentiated_gradient"])
def test_a_weight_is_a_number_of_equal_rows(name, constraint):
    """fairlearn's own reduction of the repeated rows, of a classifier that takes any weights."""
    rng = np.random.default_rng(0)
    group, weight = np.arange(400) % 2, rng.integers(1, 4, 400)
    y = (rng.random(400) < 0.3 + 0.3 * group).astype(int)
    x = np.stack([y + rng.normal(size=400), group + rng.normal(size=400)], axis=1)
    rows = np.repeat(np.arange(400), weight)
    theirs = {"grid_search": reductions.GridSearch,
              "exponentiated_gradient": reductions.ExponentiatedGradient}[name]  # fmt: skip
    options = {"grid_size": 7} if name == "grid_search" else {"nu": 1e-6, "max_iter": 8}
    moments = (
        moment(constraint, weight / weight.mean(), difference_bound=0.02),
        getattr(reductions, CONSTRAINTS[constraint])(difference_bound=0.02),
    )
    ours, repeated = (theirs(ScaledBayes(), of, **options) for of in moments)
    ours.fit(x, y, sensitive_features=group)
    repeated.fit(x[rows], y[rows], sensitive_features=group[rows])
    if name == "grid_search":
        assert ours.best_idx_ == repeated.best_idx_
        np.testing.assert_allclose(ours.gammas_, repeated.gammas_, atol=1e-12)
        np.testing.assert_allclose(ours.objectives_, repeated.objectives_, atol=1e-12)
    decided = [model._pmf_predict(x)[:, 1] if name != "grid_search" else model.predict(x)
               for model in (ours, repeated)]  # fmt: skip
    np.testing.assert_allclose(*decided, atol=1e-6)


class ScaledBayes(GaussianNB):
    """Weights are multiples: a row of weight 2 is two rows."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, np.asarray(sample_weight) / np.mean(sample_weight))


def test_a_cell_with_weights_is_that_of_repeated_rows():
    """Through the whole training: a group that weighs three times as much moves the decisions."""
    samples = make_samples(400)
    heavy = np.where(samples.y == 1, 3.0, 1.0)
    cell = reduction_cell("exponentiated_gradient", "sklearn.naive_bayes.GaussianNB", {},
                          preprocessing="none")  # fmt: skip
    shares = {}
    for name, weight in {"plain": None, "equal": np.full(400, 2.0), "heavy": heavy}.items():
        weighted = replace(samples, sample_weight=weight)
        _, (validation,), *_ = training.train(weighted, cell)
        shares[name] = validation.values[DECISION]
    np.testing.assert_array_equal(shares["plain"], shares["equal"])
    assert shares["heavy"].mean() > shares["plain"].mean() + 0.05
