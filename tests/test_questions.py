"""Questions on images: rows share the features of their images, which are mapped."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench.models.packing import packed, unpacked
from robust_fairness.bench.training.data import Inputs, rows_at_once, shape_of
from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import Boxes, Questions, QuestionShape
from robust_fairness.core.samples import Samples

TOKENS = np.array([[1, 2, 0], [2, 0, 0], [1, 1, 2]], dtype=np.int32)
IMAGES = np.array([1, 0, 1], dtype=np.int32)


@pytest.fixture
def samples(tmp_path) -> Samples:
    """Three questions on two images of two boxes at most."""
    features = np.random.default_rng(0).normal(size=(2, 2, 4)).astype(np.float16)
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "counts.npy", np.array([2, 1], dtype=np.int16))
    splits = pd.DataFrame({"split_0": pd.Categorical(["train", "val", "test"])})
    return Samples(
        x={"tokens": TOKENS, "image": IMAGES},
        y=np.zeros(3, dtype=np.int64),
        attributes=pd.DataFrame(index=range(3)),
        id=np.arange(3),
        splits=splits,
        classes=("yes",),
        questions=Questions(("", "is", "it"), Boxes(str(tmp_path), (2, 2, 4), "abc")),
    )


def test_inputs_hold_each_row_s_words_and_its_image(samples):
    """Whatever rows are asked for, in whatever order."""
    inputs = Inputs(samples, torch.device("cpu"))
    rows = torch.tensor([[2, 1]])
    tokens, counts, features = unpacked(inputs.of(rows), inputs.shape)
    np.testing.assert_array_equal(tokens[0], TOKENS[[2, 1]])
    assert counts.tolist() == [[1, 2]]
    stored = samples.questions.boxes.features
    np.testing.assert_array_equal(features[0], stored[IMAGES[[2, 1]]].astype(np.float32))
    assert inputs.of(torch.zeros(0, dtype=torch.int64)).shape == (0, 3 + 1 + 2 * 4)


def test_packing_can_be_undone_in_single_precision():
    """The largest vocabularies and images keep their numbers."""
    shape = QuestionShape(("",) * 5000, 2, 3, 5)
    tokens, counts = torch.tensor([[4999, 0], [17, 3]]), torch.tensor([3, 0])
    features = torch.randn(2, 3, 5)
    row = packed(tokens, counts, features, torch.float32)
    assert row.shape == (2, shape.numbers)
    arrays = unpacked(row, shape)
    for array, expected in zip(arrays, (tokens, counts, features), strict=True):
        torch.testing.assert_close(array, expected, rtol=0, atol=0)


def test_saved_samples_point_to_the_same_file(samples, tmp_path):
    """The features are not copied."""
    dataset = SamplesDataset(filepath=str(tmp_path / "samples.safetensors"))
    dataset.save(samples)
    loaded = dataset.load()
    assert loaded.questions == samples.questions
    np.testing.assert_array_equal(loaded.x["image"], IMAGES)
    assert shape_of(loaded) == QuestionShape(("", "is", "it"), 3, 2, 4)
    assert samples.without_inputs().questions is None


def test_blocks_of_rows_are_bounded_by_their_features(samples):
    """36 boxes of 2,048 features are 73,728 numbers a row."""
    assert rows_at_once(QuestionShape(("",), 14, 36, 2048)) == 28
    assert rows_at_once((10,)) == 8192


def test_a_file_that_is_not_the_ingested_one_is_refused(samples, tmp_path):
    """Missing, cut, or of another shape."""
    boxes = samples.questions.boxes
    with pytest.raises(InputError, match=r"features.npy: shape \(2, 2, 4\), allowed: \(3, 2, 4\)"):
        _ = replace(boxes, shape=(3, 2, 4)).features
    content = (tmp_path / "features.npy").read_bytes()
    (tmp_path / "features.npy").write_bytes(content[:-3])
    with pytest.raises(InputError, match="features.npy: cannot be read"):
        _ = replace(boxes).features
    (tmp_path / "counts.npy").unlink()
    with pytest.raises(InputError, match="counts.npy: cannot be read"):
        _ = replace(boxes).counts
