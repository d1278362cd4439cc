"""What does not fit together is refused in one line: cells, settings and parameters of plug-ins."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from robust_fairness import training
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.samples import Samples
from robust_fairness.samples.domains import hold_out_domains

from .conftest import EMBEDDING, MLP, make_cell, make_samples
from .test_images import make_image_cell, make_images

SVM = {"name": "rbf_svm"}
TREE = {"name": "estimator", "estimator": "sklearn.tree.DecisionTreeClassifier"}
NEIGHBOURS = {"name": "estimator", "estimator": "sklearn.neighbors.KNeighborsClassifier"}
CLASSIFIERS = ("dfr", "donini", "jtt", "lff", "lisa", "rubi", "spectral_decoupling")
METHODS = {name: find("method", name) for name in names("method")}
OF_STEPS = [name for name, method in METHODS.items() if method.estimators == "no"]
WHY = {True: "network rbf_svm is fitted in one call", False: "trains no head"}
AUGMENTED = {"augmentation": "randaugment"}
NOT_AUGMENTED = "augmentation randaugment: network rbf_svm is fitted in one call, allowed: none"
UNFIXED = "method donini: the features .* trained, allowed: network linear or kernel_features"


def with_kinds(kinds, **options) -> Samples:
    """Samples whose sensitive attribute is another one."""
    samples = make_samples(**options)
    return replace(samples, attributes=pd.DataFrame({"kind": kinds(samples)}))


def with_sites(count: int) -> Samples:
    """Samples with a domain column."""
    samples = make_samples()
    site = pd.Categorical.from_codes(
        np.arange(len(samples)) % count, [f"site {number}" for number in range(count)]
    )
    return replace(samples, attributes=samples.attributes.assign(site=site), domain="site")


def with_value(value: float) -> Samples:
    """Samples with one training cell of that value; 1e39 is infinite in float32."""
    samples = make_samples()
    samples.x[samples.rows("split_0", "train")[0], 1] = value
    return samples


def with_postprocessing(**options):
    """A cell whose decisions have equalised odds."""
    cell = make_cell(seeds=(0,))
    named = {"name": "equalized_odds", **options}
    return type(cell).model_validate({**cell.model_dump(), "postprocessing": named})


def changed(cell, **fields):
    """The cell with other fields, which are not validated."""
    return cell.model_copy(update=fields)


PLAIN, CONTINUOUS, THREE = make_samples(), make_samples(classes=0), make_samples(3 * 80, 6, 3, 3)
IMAGES, SVM_CELL = make_images(), make_cell(seeds=(0,), network=SVM, precision="float32")
CELLS = [
    # a continuous outcome
    *(
        (CONTINUOUS, make_cell(name), f"method {name}: not applicable to a continuous outcome")
        for name in CLASSIFIERS
    ),
    (CONTINUOUS, make_cell("metric_learning"), "not applicable to a continuous outcome"),
    (CONTINUOUS, SVM_CELL, "network rbf_svm: not applicable to a continuous outcome"),
    (
        CONTINUOUS,
        make_cell("vrex", method_subgroups="class"),
        "not applicable to a continuous outcome",
    ),
    # what a method reads, or is
    (PLAIN, make_cell("dfr", method_warm_up_epochs=1), "allowed: 0, or method dfr_train"),
    (PLAIN, make_cell("coral"), "reads domains, which the dataset does not have"),
    (PLAIN, make_cell("mmd", method_align="target"), "no rows out of distribution"),
    (with_sites(2), make_cell("importance_weighting"), "no rows out of distribution"),
    (
        hold_out_domains(with_sites(2), test=["site 1"]),
        make_cell("group_dro", method_subgroups="domain"),
        "all training rows of split 'split_0' are of site 0",
    ),
    (
        with_kinds(lambda samples: np.linspace(0, 1, len(samples))),
        make_cell("parade"),
        "method parade: an attribute to mitigate is continuous",
    ),
    (
        with_kinds(
            lambda samples: samples.attributes["kind"].mask(
                (samples.y == 1) & (samples.attributes["kind"] == "group 1")
            )
        ),
        make_cell("donini"),
        "method donini: the training rows to constrain are in",
    ),
    (PLAIN, make_cell("donini", method_positive=2), "method donini: positive 2, allowed: 0 to 1"),
    (
        PLAIN,
        make_cell("adv_debias", method_explicit=("kid",)),
        "unknown attribute 'kid'.*'?kind'?",
    ),
    # methods and networks
    (PLAIN, make_cell("donini", network=MLP), UNFIXED),
    (IMAGES, make_image_cell("donini", "resnet20"), UNFIXED),
    (PLAIN, make_image_cell(), "network biased_mnist_cnn: rows have shape"),
    *(
        (
            make_samples(domains=3),
            make_cell(name, seeds=(0,), network=SVM, precision="float32"),
            f"method {name}: {WHY[METHODS[name].trains_head]}",
        )
        for name in OF_STEPS
    ),
    *(
        (
            PLAIN,
            make_cell("adv_debias", seeds=(0,), network={"name": name}),
            f"method adv_debias: network {name} is fitted in one call",
        )
        for name in ("k_means", "logistic_regression", "random_forest")
    ),
    (
        PLAIN,
        make_cell("exponentiated_gradient"),
        "but network mlp is trained in steps, allowed: network estimator",
    ),
    (
        PLAIN,
        make_cell("exponentiated_gradient", seeds=(0,), network=NEIGHBOURS),
        "weights rows",
    ),
    (
        THREE,
        make_cell("exponentiated_gradient", seeds=(0,), network=TREE),
        "defined for two classes",
    ),
    (
        make_samples(groups=4),
        make_cell("grid_search", seeds=(0,), network=TREE),
        "4 groups make a grid of 6 axes, allowed: up",
    ),
    # embeddings
    (
        THREE,
        make_cell("metric_learning", network=MLP),
        "trains no head, but network mlp needs",
    ),
    (
        THREE,
        make_cell("erm", network=EMBEDDING),
        "method erm: trains a head, but the classifier of network embedding is fitted .*: "
        "classifier linear, or",
    ),
    (
        THREE,
        make_cell("parade", ({"classifier": "linear"},)),
        "trial classifier=linear: method parade: trains no head, but network embedding needs",
    ),
    (THREE, make_cell("metric_learning", method_warm_up_epochs=1), "warm_up_epochs 1"),
    (THREE, make_cell("metric_learning", method_objective="n_pair"), "normalised false"),
    (THREE, make_cell("parade", method_attribute_objective="n_pair"), "normalised false"),
    (
        THREE,
        make_cell("metric_learning", network={**EMBEDDING, "normalised": False}),
        "objective margin: takes embeddings of length 1",
    ),
    # the protocol
    (
        IMAGES,
        changed(SVM_CELL, protocol=changed(SVM_CELL.protocol, precision="bfloat16")),
        "precision bfloat16: network rbf_svm is fitted in one call, allowed: float32, float64",
    ),
    (IMAGES, changed(SVM_CELL, settings=AUGMENTED), NOT_AUGMENTED),
    (IMAGES, changed(SVM_CELL, trials=(AUGMENTED,)), NOT_AUGMENTED),
    (IMAGES, changed(SVM_CELL, protocol=changed(SVM_CELL.protocol, **AUGMENTED)), NOT_AUGMENTED),
    *(
        (
            PLAIN,
            make_cell(augmentation=name),
            f"augmentation: {name} and rows are float32 of shape",
        )
        for name in ("crop_and_flip", "flip")
    ),
    # decisions
    (
        make_samples(classes=3),
        with_postprocessing(),
        "postprocessing equalized_odds: defined for two classes",
    ),
    (
        PLAIN,
        with_postprocessing(attributes=["age"]),
        "unknown attribute of postprocessing 'age'",
    ),
    (
        make_samples(24, groups=12),
        with_postprocessing(),
        "rows of group group .*lacks validation rows of both",
    ),
    # numbers that are not finite: with the trial, the seed, the epoch and the quantity
    (PLAIN, make_cell(seeds=(0,), learning_rate=1e200), "model loss.* after epoch 1"),
    (
        PLAIN,
        make_cell("cuma", seeds=(0,), precision="float32", learning_rate=1e30),
        "trial default, seed 0: .* is not finite after epoch 1",
    ),
    (with_value(np.inf), make_cell(), "feature 'feature 1', row [0-9]+: .* up to 3.4e"),
    (with_value(np.nan), make_cell(seeds=(0,), imputation="none"), "features are missing"),
    # of a stack of four, one replica fails
    (
        PLAIN,
        make_cell("spectral_decoupling", ({"weight": 1e200},), seeds=(0, 1), optimiser="sgd"),
        r"trial weight=1e\+200, seed 0: ",
    ),
]


@pytest.mark.parametrize(("samples", "cell", "message"), CELLS)
def test_a_cell_that_does_not_fit_is_refused_in_one_line(samples, cell, message):
    with pytest.raises(InputError, match=message) as error:
        training.train(samples, cell)
    assert "\n" not in str(error.value)


SETTINGS = [
    (
        {"augmentation": "trivialaugment"},
        "augmentation: Input should be 'none', 'randaugment', 'crop_and_flip' or 'flip'",
    ),
    ({"network": {"name": "rbf_svm", "gamma": -1.0}}, "network rbf_svm: gamma"),
    ({"network": {"name": "embedding", "backbone": "resnet21"}}, "did you mean 'resnet20'"),
    (
        {"network": {"name": "embedding", "backbone": {"name": "resnet20", "depth": 3}}},
        "network resnet20: depth: Extra inputs",
    ),
    (
        {"network": {"name": "embedding", "backbone": "embedding"}},
        "network embedding, allowed: one that is trained in steps",
    ),
    (
        {"network": {"name": "embedding", "backbone": "rbf_svm"}},
        "network rbf_svm, allowed: one that is trained in steps",
    ),
    (
        {"network": {"name": "embedding", "classifier": "resnet20"}},
        "network resnet20 is trained in steps, allowed: linear, or",
    ),
    ({"network": {"name": "embedding", "classifier": "rbf_smv"}}, "did you mean 'rbf_svm'"),
    (
        {"network": {"name": "embedding", "rebalancing": "oversampling"}},
        "rebalancing oversampling: allowed with a classifier",
    ),
    ({"network": {"name": "embedding", "dimensions": 0}}, "greater than or equal to 1"),
    (
        {"network": {"name": "vgg", "widths": (4, 8), "convolutions": (1,)}},
        "network vgg: ",
    ),
    (
        {"network": {"name": "vgg", "widths": (4, 8), "convolutions": (1, 0)}},
        "network vgg: ",
    ),
    (
        {"network": {"name": "vision_transformer", "width": 10, "heads": 3}},
        "network vision_transformer: ",
    ),
    ({"network": {"name": "shake_shake", "width": 3}}, "network shake_shake: "),
    ({"network": {"name": "resnet20", "widths": (4,)}}, "network resnet20: "),
    ({"network": {"name": "mlp_mixer", "depth": 1}}, "network mlp_mixer: "),
]


@pytest.mark.parametrize(("changes", "message"), SETTINGS)
def test_settings_are_refused_when_they_are_read(changes, message):
    with pytest.raises(InputError, match=message) as error:
        make_cell(**changes)
    assert "\n" not in str(error.value)


PARAMETERS = [
    ("miner", "random", {"margin": 0.1}),
    ("miner", "semi_hard", {"margin": 0.0}),
    ("miner", "distance_weighted", {"smallest_distance": 0.0}),
    ("miner", "distance_weighted", {"largest_distance": 2.5}),
    ("miner", "distance_weighted", {"smallest_distance": 1.4}),
    *(("objective", name, {"unknown": 1}) for name in names("objective")),
    *(
        ("objective", name, {field: -1.0})
        for name in names("objective")
        for field in ("margin", "scale", "alpha")
        if field in find("objective", name).Parameters.model_fields
    ),
    ("shift", "gaussian_noise", {"seed": -1}),
    ("shift", "gaussian_noise", {"sed": 1}),
    ("shift", "uniform_noise", {"seed": -1}),
    ("shift", "uniform_noise", {"sed": 1}),
    ("shift", "extend", {"form": "printed"}),
    ("shift", "overlap", {"second_target": "t2"}),
    ("shift", "full_support", {"form": "ball"}),
    ("shift", "truncation", {"radius": 1}),
    *(
        ("shift", name, {"seed": 1})
        for name in ("brightness", "contrast", "gaussian_blur", "pixelate", "jpeg_compression")
    ),
]


@pytest.mark.parametrize(("kind", "name", "options"), PARAMETERS)
def test_parameters_are_refused_with_the_name_of_the_field(kind, name, options):
    with pytest.raises(ValidationError, match=next(iter(options))):
        find(kind, name).Parameters(**options)


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("miner", "semihard", "unknown miner 'semihard': did you mean 'semi_hard'"),
        ("objective", "proxynca", "unknown objective 'proxynca': did you mean 'proxy_nca'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind, name, message):
    with pytest.raises(InputError, match=message):
        find(kind, name)
