"""Every classifier of ``rf``: the library's own fits, what ``fit`` takes, and its checks."""

import numpy as np
import pytest
from fairlearn import reductions
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from xgboost import XGBClassifier

import robust_fairness as rf
from robust_fairness.core.errors import InputError

NAMES = [name for name in dir(rf) if name[0].isupper()]


def made():
    return make_classification(500, 12, n_informative=8, weights=[0.75], random_state=0)


def wine():
    x, y = load_wine(return_X_y=True)
    return x, (y == 1).astype(int)


TABLES = {
    "made": made,
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": wine,
}


RAW = {"preprocessing": "none"}  # rounding of standardised features moves rows over thresholds


def library_rows(model, x, y, group):
    """The rows that a classifier was trained on, and the features of all rows."""
    train = (model.trained_.samples.splits["split_0"] == "train").to_numpy()
    x = x.astype(np.float32).astype(float)
    return x[train], y[train], group[train], x


NETWORKS = {
    "default": ("estimator", HistGradientBoostingClassifier()),
    "boosted_trees": ("boosted_trees", HistGradientBoostingClassifier(early_stopping=False)),
    "lightgbm": ("lightgbm", LGBMClassifier(verbose=-1, deterministic=True, force_row_wise=True)),
    "xgboost": ("xgboost", XGBClassifier(tree_method="hist")),
    "slow trees": (
        {"name": "boosted_trees", "params": {"learning_rate": 0.001}},
        HistGradientBoostingClassifier(learning_rate=0.001, early_stopping=False),
    ),
    "logistic": (
        {"name": "estimator", "estimator": "sklearn.linear_model.LogisticRegression"},
        LogisticRegression(),
    ),
    # without a penalty: reductions scale weights to mean 1
    "bayes": ({"name": "estimator", "estimator": "sklearn.naive_bayes.GaussianNB"}, GaussianNB()),
    "forest": (
        {
            "name": "estimator",
            "estimator": "sklearn.ensemble.RandomForestClassifier",
            "params": {"random_state": 3, "n_estimators": 20},
        },
        RandomForestClassifier(20, random_state=3),
    ),
    "perceptron": (
        {
            "name": "estimator",
            "estimator": "sklearn.neural_network.MLPClassifier",
            "params": {"random_state": 3, "max_iter": 20},
        },
        MLPClassifier(random_state=3, max_iter=20),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", NETWORKS)
def test_an_estimator_is_the_librarys_own(name, table):
    network, own = NETWORKS[name]
    x, y = TABLES[table]()
    model = rf.Erm(network=network, **RAW).fit(x, y)
    inputs, labels, _, rows = library_rows(model, x, y, y)
    expected = own.fit(inputs, labels).predict_proba(rows)
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["ExponentiatedGradient", "GridSearch"])
@pytest.mark.parametrize("network", [None, "bayes"])
def test_a_reduction_is_fairlearns_own(name, network, table):
    named, classifier = (None, HistGradientBoostingClassifier())
    if network:
        named, classifier = NETWORKS[network]
    x, y = TABLES[table]()
    group = (x[:, 0] > np.median(x[:, 0])).astype(int)
    exponentiated = name == "ExponentiatedGradient"
    few = {"iterations": 3} if exponentiated else {"grid_size": 4}
    model = getattr(rf, name)(network=named, **few, **RAW).fit(x, y, sensitive_features=group)
    inputs, labels, groups, rows = library_rows(model, x, y, group)
    if exponentiated:
        constraint = reductions.EqualizedOdds(difference_bound=0.01)
        own = reductions.ExponentiatedGradient(classifier, constraint, max_iter=3)
        own.fit(inputs, labels, sensitive_features=groups)
        expected = own._pmf_predict(rows)[:, 1]
    else:
        own = reductions.GridSearch(classifier, reductions.EqualizedOdds(), grid_size=4)
        own.fit(inputs, labels, sensitive_features=groups)
        expected = own.predict(rows)
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], expected, atol=1e-6)


def test_a_default_is_never_a_choice():
    """The learning rate of networks reaches no estimator; a given one reaches the part it is of."""
    x, y = made()

    def params(**options):
        return rf.Erm(**options).fit(x, y).trained_.fitted[0].network["params"]

    assert params(network="boosted_trees") == {"early_stopping": False}
    assert params(network="boosted_trees", learning_rate=0.05)["learning_rate"] == 0.05
    named = {"name": "boosted_trees", "params": {"learning_rate": 0.05}}
    assert params(network=named) == {"early_stopping": False, "learning_rate": 0.05}
    (replica,) = rf.Erm(epochs=1, learning_rate=0.05).fit(x, y).trained_.cell.replicas()
    assert replica.protocol.learning_rate == 0.05
    (replica,) = rf.Erm(epochs=1).fit(x, y).trained_.cell.replicas()
    assert (replica.protocol.learning_rate, replica.protocol.batch_size) == (0.001, 128)


def test_a_name_of_two_parts_has_to_be_written_in_one(caplog):
    heart = rf.load("heart")
    with pytest.raises(InputError, match="device is a field of its network and its protocol"):
        rf.train(heart, network="xgboost", device="cpu")
    rf.train(heart, network="lightgbm", epochs=3)
    assert "epochs has no effect, since one call fits network estimator" in caplog.text
