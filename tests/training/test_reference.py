"""The reference classifier: predictions as elsewhere, and measures of images, by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robust_fairness.bench import training
from robust_fairness.bench.datasets.images import digits
from robust_fairness.bench.training import reference as module
from robust_fairness.bench.training.prediction import predict
from robust_fairness.bench.training.reference import ReferenceClassifier, distances, quality
from robust_fairness.catalog.schemas import Schema
from robust_fairness.core import tables
from robust_fairness.core.raw_files import Files
from tests.training.conftest import make_cell

TINY = {"name": "resnet20", "widths": [4, 8], "blocks": 1}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Real digits."""
    return digits.Digits(digits.Digits.Parameters()).load(Files(tmp_path_factory.mktemp("none")), 1)


@pytest.fixture(scope="module")
def trained(real, tmp_path_factory):
    """A tiny network of one epoch, and its settings."""
    cell = make_cell(seeds=(0,), network=TINY, epochs=1, precision="float32", learning_rate=0.01)
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("checkpoints")
        patch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(folder))
        (fitted,) = training.train(real, cell)[0]
    return fitted, cell


@pytest.fixture
def classifier(trained, real) -> ReferenceClassifier:
    """The classifier."""
    fitted, cell = trained
    return ReferenceClassifier(fitted, real, cell)


@pytest.fixture(scope="module")
def made(real):
    """Images with the parts of real ones, fewer of them, in which the classifier may err."""
    return real.take(np.arange(0, 1797, 13))


def test_classes_are_those_of_the_predictions(classifier, trained, real):
    """On the real test rows, which also give its accuracy there."""
    (told,) = predict(real, [trained[0]], trained[1], {"": real})
    expected = told.outputs.argmax(-1)
    assert len(np.unique(expected)) > 2
    np.testing.assert_array_equal(classifier.classes(real.x[told.rows]), expected)
    assert classifier.rows == len(told.rows)
    assert classifier.accuracy == pytest.approx(np.mean(expected == real.y[told.rows]))
    assert 0.15 < classifier.accuracy < 1


def test_features_are_what_the_head_sees(classifier, real):
    """As wide as it takes, and the head makes the classes of them."""
    model = classifier.stack.model
    features = classifier.features(real.x[:50])
    assert features.dtype == np.float32
    assert features.shape == (50, model.feature_width) == (50, 8)
    with torch.no_grad():
        outputs = model.head(torch.from_numpy(features)[None])[0]
    np.testing.assert_array_equal(outputs.argmax(-1).numpy(), classifier.classes(real.x[:50]))


def test_blocks_do_not_matter(classifier, real, monkeypatch):
    """Nor does the last, small one."""
    images = real.x[:40]
    classes, features = classifier.classes(images), classifier.features(images)
    seen = []
    monkeypatch.setattr(module, "rows_at_once", lambda shape: seen.append(shape) or 7)
    np.testing.assert_array_equal(classifier.classes(images), classes)
    np.testing.assert_allclose(classifier.features(images), features, atol=1e-5)
    assert seen == [images.shape[1:]] * 2


def test_quality_counts_the_test_images_that_are_known(classifier, made):
    row = quality("g", "made", {("none", 0.0): made}, classifier)
    assert (
        row.dtypes.astype(str).to_dict()
        == tables.table(tables.GENERATOR_QUALITY, []).dtypes.astype(str).to_dict()
    )
    test = np.flatnonzero(made.splits["split_0"] == "test")
    known = sum(int(classifier.classes(made.x[[number]])[0]) == made.y[number] for number in test)
    assert row.to_dict("records") == [
        {
            "generator": "g",
            "dataset": "made",
            "shift": "none",
            "severity": 0.0,
            "classifier": "resnet20",
            "rows": len(test),
            "accuracy": pytest.approx(known / len(test)),
            "real_rows": classifier.rows,
            "real_accuracy": classifier.accuracy,
        }
    ]


def nearest(seen: np.ndarray, origin: np.ndarray) -> float:
    """By brute force: the mean distance to the nearest."""
    each = [
        min(np.sqrt(((image - other) ** 2).sum()) for other in origin.astype(np.float64))
        for image in seen.astype(np.float64)
    ]
    return float(np.mean(each))


def test_distances_are_those_of_brute_force_in_both_spaces(classifier, made):
    """Of every test set, the unshifted one among them; training images are the origin."""
    parts = made.splits["split_0"].to_numpy()
    test, train = np.flatnonzero(parts == "test")[:20], np.flatnonzero(parts == "train")[:50]
    few = made.take(np.concatenate([train, test]))
    unshifted = made.take(test)
    inverted = replace(unshifted, x=255 - unshifted.x)
    table = distances("d", few, {("extend", 15.0): inverted}, classifier)
    Schema("distances").validate(table)
    assert list(table) == list(tables.DISTANCES)
    sets = list(table[["space", "shift"]].itertuples(index=False, name=None))
    assert sets == [
        (space, shift) for space in ("pixels", "features") for shift in ("none", "extend")
    ]
    assert set(table["dataset"]) == {"d"}
    assert set(table["n"]) == {len(test)}
    values = table.set_index(["space", "shift", "severity"])["value"].to_dict()
    expected = {}
    for key, images in ((("none", 0.0), unshifted.x), (("extend", 15.0), inverted.x)):
        flat, origin = (images.reshape(len(images), -1) / 255 for images in (images, made.x[train]))
        expected["pixels", *key] = nearest(flat, origin)
        expected["features", *key] = nearest(
            classifier.features(images), classifier.features(made.x[train])
        )
    assert values == pytest.approx(expected, rel=1e-4)
    assert values["pixels", "extend", 15.0] > values["pixels", "none", 0.0]


def test_without_a_reference_classifier_there_are_pixels_only(made):
    table = distances("d", made, {}, None)
    assert table[["shift", "space"]].to_numpy().tolist() == [["none", "pixels"]]
