"""Every classifier of ``rf``: the library's own fits, what ``fit`` takes, and its checks."""

import re
import subprocess
import sys

import numpy as np
import pytest
from fairlearn import reductions
from lightgbm import LGBMClassifier
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from xgboost import XGBClassifier

import robust_fairness as rf
from robust_fairness.core.errors import InputError
from tests.library.rules import documented, failed, with_argument

NAMES = [name for name in dir(rf) if name[0].isupper() and name != "Thresholds"]


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


REDUCED = 200  # rows of a reduction with boosted trees, which are fitted many times
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
    x, y = (part[: None if network else REDUCED] for part in TABLES[table]())
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


WITHOUT_TORCH = """
import sys, numpy as np, robust_fairness as rf
from sklearn.datasets import load_breast_cancer
x, y = load_breast_cancer(return_X_y=True)
group = (x[:, 0] > np.median(x[:, 0])).astype(int)
few = {"name": "boosted_trees", "params": {"max_iter": 3}}
for model in (rf.Erm(network=few), rf.ExponentiatedGradient(network=few, iterations=2),
              rf.GridSearch(network=few, grid_size=2)):
    print(model.fit(x, y, sensitive_features=group).score(x, y) > 0.8)
print("torch" in sys.modules)
"""


def test_reductions_and_estimators_load_no_torch():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["True", "True", "True", "False"], done.stderr


@pytest.mark.parametrize("network", ["default", "bayes"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_estimator_without_torch_is_that_of_a_run(network, weighted):
    """``rf.train`` of the same rows, standardised and weighted."""
    x, y = (part[:REDUCED] for part in made())
    rng = np.random.default_rng(0)
    given = {"sensitive_features": rng.integers(0, 2, len(y))}
    if weighted:
        given["sample_weight"] = rng.integers(0, 3, len(y)).astype(float)
    options = {"network": NETWORKS[network][0]}
    for name, fields in {"Erm": {}, "ExponentiatedGradient": {"iterations": 3}}.items():
        model = getattr(rf, name)(**options, **fields).fit(x, y, **given)
        ours, samples = model.predict_proba(x), model.trained_.samples
        model.trained_ = rf.train(samples, model.method, seeds=[0], **options, **fields)
        np.testing.assert_allclose(ours, model.predict_proba(x), atol=1e-5)


def test_a_default_is_never_a_choice():
    """The learning rate of networks reaches no estimator; a given one reaches the part it is of."""
    x, y = made()

    def params(**options):
        return rf.Erm(**options).fit(x, y).trained_

    trees = params(network="boosted_trees").model
    assert (trees.early_stopping, trees.learning_rate) == (False, 0.1)
    by_training = params(network="boosted_trees", learning_rate=0.05)
    assert by_training.fitted[0].network["params"]["learning_rate"] == 0.05
    named = {"name": "boosted_trees", "params": {"learning_rate": 0.05}}
    trees = params(network=named).model
    assert (trees.early_stopping, trees.learning_rate) == (False, 0.05)
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


# What ``fit`` needs beside features and labels, by the names of the classifiers.
NEEDS = {
    **dict.fromkeys(("Coral", "Dann", "Mmd", "Vrex"), "domain"),
    "ImportanceWeighting": "X_target",
    **dict.fromkeys(
        ("ChiSquareDro", "CvarDro", "Erm", "Jtt", "Lff", "MetricLearning", "Mixup",
         "SpectralDecoupling"), "",
    ),
}  # fmt: skip


def needed(name):
    """The one argument that a classifier needs, by default groups."""
    return NEEDS.get(name, "sensitive_features")


@pytest.mark.filterwarnings("ignore:.*A constant predictor")
@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_fits_by_default_or_names_what_it_needs(name):
    x, y = make_classification(60, 4, random_state=0)
    halves = np.arange(60) // 2 % 2
    values = {"sensitive_features": halves, "domain": halves, "X_target": x + 0.1}
    model, argument = getattr(rf, name)(), needed(name)
    quick = {"iterations": 2} if name == "ExponentiatedGradient" else {}
    model.set_params(**quick)
    if argument:
        with pytest.raises(InputError, match=f": needs {argument} in fit"):
            model.fit(x, y)
        model.fit(x, y, **{argument: values[argument]})
    else:
        model.fit(x, y)
    assert model.predict_proba(x).shape == (60, 2)
    assert callable(model.score)  # no hyperparameter hides a method


def test_hyperparameters_decide_what_is_needed():
    x, y = make_classification(60, 4, random_state=0)
    with pytest.raises(InputError, match="needs X_target in fit"):
        rf.Coral(align="target", epochs=1).fit(x, y)
    rf.GroupUpweighting(subgroups="class", epochs=9).fit(x, y)


def test_weights_by_domains_and_rows_of_another_distribution():
    """Importance weighting moves the error to where the target rows are."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 1))
    y = ((x[:, 0] > 0) ^ (x[:, 0] < -1)).astype(int)
    target = rng.normal(-1.5, 0.5, size=(400, 1))
    truth = (target[:, 0] < -1).astype(int)
    options = {"network": "linear", "epochs": 30, "batch_size": 64, "learning_rate": 0.02}
    plain = rf.Erm(**options).fit(x, y)
    weighted = rf.ImportanceWeighting(**options).fit(x, y, X_target=target)
    assert weighted.score(target, truth) > plain.score(target, truth) + 0.2


@pytest.mark.parametrize("network", ["boosted_trees", "lightgbm", "xgboost"])
def test_trees_take_missing_values_as_their_library_does(network):
    x, y = made()
    x = np.where(np.random.default_rng(0).random(x.shape) < 0.2, np.nan, x)
    model = rf.Erm(network=network, **RAW).fit(x, y)
    assert get_tags(model).input_tags.allow_nan
    _, own = NETWORKS[network]
    inputs, labels, _, rows = library_rows(model, x, y, y)
    expected = own.fit(inputs, labels).predict_proba(rows)
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=1e-6)
    assert not get_tags(rf.Erm()).input_tags.allow_nan
    with pytest.raises(ValueError, match="contains NaN"):
        rf.Erm(epochs=1).fit(x, y)


def test_a_constant_predictor_warns():
    x, y = make_classification(300, 4, weights=[0.95], random_state=0)
    slow = {"name": "boosted_trees", "params": {"learning_rate": 1e-5}}
    with pytest.warns(UserWarning, match="Erm: 100.0% of the rows are predicted as class 0. A con"):
        rf.Erm(network=slow).fit(x, y)


@pytest.mark.parametrize("labels", [[1], ["yes"], [True], [2.0]])
def test_one_class_is_refused_whatever_its_type(labels):
    with pytest.raises(ValueError, match="y has one class"):
        rf.Erm().fit(np.eye(10), labels * 10)


def test_tags_say_which_classifiers_take_two_classes_only():
    x, y = load_wine(return_X_y=True)
    tags = {name: get_tags(getattr(rf, name)()).classifier_tags for name in NAMES}
    binary = {name for name in NAMES if not tags[name].multi_class}
    assert binary == {"ExponentiatedGradient", "GridSearch"}
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        rf.GridSearch().fit(x, y, sensitive_features=y % 2)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"hidden": 3}, "network {'hidden': 3}, allowed: a name"),
        ({"name": "mlpp"}, "did you mean 'mlp'"),
        ({"name": "mlp", "hiden": 3}, "hiden: Extra inputs are not permitted"),
        ("embedding", "resnet20: rows have shape"),
    ],
)
def test_a_wrong_network_is_one_line(network, message):
    with pytest.raises(InputError, match=re.escape(message)):
        rf.Erm(network=network).fit(*made())


# Short trainings for scikit-learn's checks, which fit every classifier about a hundred times.
LINEAR = {"name": "estimator", "estimator": "sklearn.linear_model.LogisticRegression"}
SHORT = {
    "ExponentiatedGradient": {"network": LINEAR, "iterations": 3},
    "GridSearch": {"network": LINEAR, "grid_size": 3},
    "Dfr": {"folds": 2, "regressions": 2},
    "DfrTrain": {"warm_up_epochs": 5},
}
QUICK = ("Erm", "Laftr")  # the others are slow tests


def allowed(name):
    """The failing checks of a classifier by the table of docs/library.md."""
    weighted = has_fit_parameter(getattr(rf, name)(), "sample_weight")
    return {
        check
        for check, classifiers in documented("library.md")
        if f"`{name}`" in classifiers or (weighted and classifiers == "all that take weights")
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in NAMES],
)
def test_a_classifier_keeps_scikit_learns_rules(name):
    """All checks of ``check_estimator``, but for those in the documents' table."""
    options = {} if "network" in SHORT.get(name, {}) else {"epochs": 8, "batch_size": 32}
    options |= {"learning_rate": 0.01} if options else {}
    model = with_argument(getattr(rf, name), needed(name))(**options | SHORT.get(name, {}))
    errors = failed(model, 51)
    assert set(errors) == allowed(name), errors
