"""UpDn on generated scenes: it reads the question and the image."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robust_fairness.bench.datasets.questions.generated_scenes import GeneratedScenes
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.training import train
from robust_fairness.bench.training.prediction import predict
from robust_fairness.core.questions import COUNTS_FILE, FEATURES_FILE, PADDING
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples
from tests.datasets.worlds import best_accuracies

CELL = {
    "dataset": "scenes",
    "label": "erm",
    "method": "erm",
    "network": {
        "name": "updn", "words": 32, "question": 48, "fusion": 128, "hidden": 64,
        "dropout": 0.2, "attention_dropout": 0.0,
    },
    "protocol": {"epochs": 8, "batch_size": 64, "learning_rate": 0.02, "weight_decay": 0},
    "seeds": (0,),
}  # fmt: skip


@pytest.fixture(scope="module")
def parameters(tmp_path_factory) -> GeneratedScenes.Parameters:
    """A world of four boxes a image."""
    return GeneratedScenes.Parameters(
        folder=str(tmp_path_factory.mktemp("worlds")), objects=2, tokens=8
    )


@pytest.fixture(scope="module")
def samples(parameters) -> Samples:
    """Its questions."""
    return GeneratedScenes(parameters).load(Files(Path("nowhere")), 1)


def right(samples: Samples) -> np.ndarray:
    """Whether each test question is answered right once the network is trained, bool ``[n]``."""
    cell = Cell.model_validate(CELL)
    fitted, *_ = train(samples, cell)
    (prediction,) = predict(samples, fitted, cell, {"none": samples})
    assert np.array_equal(prediction.rows, samples.rows("split_0", "test"))
    answered: np.ndarray = prediction.outputs.argmax(axis=-1) == samples.y[prediction.rows]
    return answered


def without_images(samples: Samples, folder: Path) -> Samples:
    """The same questions on images of one box, which is the same in all."""
    boxes = samples.questions.boxes
    shape = (boxes.shape[0], 1, boxes.shape[2])
    np.save(folder / FEATURES_FILE, np.ones(shape, dtype=np.float16))
    np.save(folder / COUNTS_FILE, np.ones(len(boxes.counts), dtype=np.int16))
    same = replace(boxes, folder=str(folder), shape=shape)
    return replace(samples, questions=replace(samples.questions, boxes=same))


def without_questions(samples: Samples) -> Samples:
    """The same images and answers, with no word of the question."""
    nothing = np.full((len(samples), 1), PADDING, dtype=np.int32)
    return replace(samples, x=samples.x | {"tokens": nothing})


def from_priors(samples: Samples) -> np.ndarray:
    """Whether the commonest answer of its local group in training is right, bool ``[n]``."""
    group = samples.attributes["local_group"].to_numpy()
    seen = defaultdict(Counter)
    for row in samples.rows("split_0", "train"):
        seen[group[row]][samples.y[row]] += 1
    return np.array(
        [
            seen[group[row]].most_common(1)[0][0] == samples.y[row]
            for row in samples.rows("split_0", "test")
        ]
    )


def test_updn_reads_the_question_and_the_image(parameters, samples):
    """Nearly as often right as can be, where either alone is right as often as priors say.

    Without images the network answers as the priors of local groups do: right on most of the
    head and on one in twenty of the tail, where the rare answer of a part is not that of
    training. Without questions it says yes.
    """
    folder = Path(parameters.folder)
    best = best_accuracies(parameters)
    test = samples.rows("split_0", "test")
    tail = samples.attributes["head_tail"].to_numpy()[test] == "tail"
    full, question = right(samples), right(without_images(samples, folder))
    image, prior = right(without_questions(samples)), from_priors(samples)
    assert 0.9 < full.mean() < best.both + 0.01
    assert full[tail].mean() > 0.75
    assert abs(question.mean() - prior.mean()) < 0.03
    assert question[tail].mean() < 0.1
    assert image.mean() < best.image + 0.04
    assert full.mean() > question.mean() + 0.15
