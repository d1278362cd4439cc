"""Generated scenes: the law of their answers, the form of their questions, what can be known."""

import gzip
import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from robust_fairness.bench.datasets.fetch import modified
from robust_fairness.bench.datasets.questions import generated_scenes
from robust_fairness.bench.datasets.questions._scenes import (
    ASPECTS,
    COLORS,
    FAMILIES,
    FURNITURE,
    MATERIALS,
    PARTS,
    TOYS,
    WorldParameters,
    draw,
    priors,
)
from robust_fairness.bench.datasets.questions.generated_scenes import (
    GeneratedScenes,
    features_of,
    head_and_tail,
    records_of,
)
from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import HOST
from robust_fairness.core.raw_files import Files
from tests.datasets.worlds import best_accuracies

SMALL = {"train_scenes": 60, "val_scenes": 40, "test_scenes": 40}
HALVES = ("head", "tail")
# What a box shows, in the order of its numbers.
SHOWN = (*TOYS, *FURNITURE, *COLORS, *MATERIALS, *FURNITURE)
LEFT_OF_IT = slice(len(SHOWN) - len(FURNITURE), len(SHOWN))


@pytest.fixture(scope="module")
def parameters(tmp_path_factory) -> GeneratedScenes.Parameters:
    """A small world."""
    return GeneratedScenes.Parameters(folder=str(tmp_path_factory.mktemp("worlds")), **SMALL)


def questions(parameters: WorldParameters, part: str) -> dict:
    """The balanced questions of a part by their ids."""
    return records_of(draw(parameters, part)[1], part)


def boxes_of(parameters: WorldParameters) -> dict[str, np.ndarray]:
    """Features of the boxes of each image."""
    return features_of(parameters, {part: draw(parameters, part)[0] for part in PARTS})


def published(shared_data: Path, name: str) -> dict:
    """A real file of GQA-OOD."""
    return json.loads(gzip.decompress((shared_data / "gqa_ood" / f"{name}.json.gz").read_bytes()))


@pytest.mark.parametrize("part", PARTS)
def test_questions_have_the_form_of_the_published_ones(parameters, shared_data, part):
    """What is read of them, with kinds of groups that real files have."""
    real = published(shared_data, "ood_testdev_head") | published(shared_data, "ood_testdev_tail")
    fields = {"question", "imageId", "groups", "answer"}
    groups = {
        (record["groups"]["local"].partition("-")[0], record["groups"]["global"])
        for record in real.values()
    }
    assert all(fields <= set(record) for record in real.values())
    for record in questions(parameters, part).values():
        assert set(record) == fields
        assert {type(record[name]) for name in fields - {"groups"}} == {str}
        # "furniture" stands to the left of things, too, where the question does not name the class
        assert (record["groups"]["local"].partition("-")[0], record["groups"]["global"]) in groups


@pytest.mark.parametrize("part", PARTS[1:])
def test_head_and_tail_follow_the_rule(parameters, part):
    """Exact fractions, question by question; other groups are in neither half."""
    balanced = questions(parameters, part)
    halves = dict(zip(HALVES, head_and_tail(balanced), strict=True))
    groups = defaultdict(Counter)
    for record in balanced.values():
        groups[record["groups"]["local"]][record["answer"]] += 1
    for name, record in balanced.items():
        group = groups[record["groups"]["local"]]
        limit = Fraction(6, 5) * Fraction(group.total(), len(group))
        rare = {answer: number < limit for answer, number in group.items()}
        expected = HALVES[rare[record["answer"]]] if len(set(rare.values())) == 2 else None
        for half in HALVES:
            assert (halves[half].get(name) == record) == (half == expected)
    assert set(halves["head"]) | set(halves["tail"]) <= set(balanced)


def test_published_groups_all_have_a_head_and_a_tail(shared_data):
    """That generated files leave out the other groups is what the published ones do."""
    head, tail = (published(shared_data, f"ood_testdev_{half}") for half in HALVES)
    groups = [{record["groups"]["local"] for record in half.values()} for half in (head, tail)]
    assert groups[0] == groups[1]
    again = head_and_tail(head | tail)
    assert set(again[0]) == set(head)
    assert set(again[1]) == set(tail)


def answer_from(boxes: np.ndarray, record: dict) -> str:
    """What a reader who takes the features at their word answers."""
    shows = boxes[:, : len(SHOWN)] > 0.5
    toy = record["groups"]["local"].split("-")[1].split("_")[0]
    mine = shows[shows[:, TOYS.index(toy)]]
    kind = record["groups"]["local"].split("-")[0]
    if kind == "03" or not len(mine):
        return "yes" if len(mine) else "no"
    names = {SHOWN[place] for place in np.flatnonzero(mine[0])}
    if kind == "06":
        return "yes" if record["groups"]["local"].split("_")[1] in names else "no"
    if kind == "14":
        return FURNITURE[np.flatnonzero(mine[0, LEFT_OF_IT])[0]]
    (answer,) = names & set(COLORS if record["groups"]["global"] == "color" else MATERIALS)
    return answer


def test_without_mistakes_the_features_answer_every_question():
    """The answer is known: features of the asked toy's box tell it, in all parts, at full noise."""
    parameters = WorldParameters(mistakes=0, noise=0.1, objects=4, **SMALL)
    boxes = boxes_of(parameters)
    seen = Counter()
    for part in PARTS:
        for record in questions(parameters, part).values():
            assert answer_from(boxes[record["imageId"]], record) == record["answer"]
            seen[record["groups"]["local"].split("-")[0], record["answer"] == "no"] += 1
    assert set(seen) == {
        ("10q", False), ("14", False), ("06", False), ("06", True), ("03", False), ("03", True)
    }  # fmt: skip


@pytest.mark.parametrize("bias", [0.0, 0.5, 0.9, 1.0])
def test_values_follow_the_prior_of_their_toy(bias):
    """Chi-square of every aspect and toy; the commonest is three times as common as the next."""
    parameters = WorldParameters(train_scenes=6000, bias=bias, questions=1)
    scenes, _ = draw(parameters, "train")
    for aspect, expected in priors(parameters).items():
        assert expected.sum(axis=1) == pytest.approx(1)
        ordered = np.sort(expected, axis=1)[:, ::-1]
        even = (1 - bias) / expected.shape[1]
        np.testing.assert_allclose((ordered[:, 0] - even), 3 * (ordered[:, 1] - even), atol=1e-12)
        for toy in range(len(TOYS)):
            values = scenes.true[aspect][scenes.toys[:, : parameters.objects] == toy]
            counts = np.bincount(values, minlength=len(ASPECTS[aspect]))
            assert stats.chisquare(counts, expected[toy] * len(values)).pvalue > 1e-5


@pytest.mark.parametrize("mistakes", [0.0, 0.2])
def test_boxes_show_another_value_as_often_as_asked_for(mistakes):
    """Of all aspects alike, and any other value alike."""
    parameters = WorldParameters(train_scenes=8000, mistakes=mistakes, questions=1)
    scenes, _ = draw(parameters, "train")
    for aspect, values in ASPECTS.items():
        moved = (scenes.shown[aspect] - scenes.true[aspect]) % len(values)
        counts = np.bincount(moved.ravel(), minlength=len(values))
        expected = np.full(len(values), mistakes / (len(values) - 1))
        expected[0] = 1 - mistakes
        if mistakes:
            assert stats.chisquare(counts, expected * moved.size).pvalue > 1e-5
        else:
            assert counts[0] == moved.size


@pytest.mark.parametrize(
    ("bias", "mistakes", "objects"), [(0.9, 0.02, 3), (0.4, 0.3, 1), (1.0, 0.5, 5), (0.0, 0.0, 2)]
)
def test_best_accuracies_are_those_of_guesses_learned_from_many_questions(bias, mistakes, objects):
    """Tables of the likeliest answer, learned on one half of 40,000 questions, score the other.

    Of a question: its local group. With the image: also what the toy's box shows of what is
    asked. Of an image alone: which toys are there, and what all of them show, is too much for a
    table; an answer to all says how often the commonest is right.
    """
    parameters = WorldParameters(
        train_scenes=4000, questions=10, bias=bias, mistakes=mistakes, objects=objects
    )
    scenes, asked = draw(parameters, "train")
    keys = {"question": [], "both": [], "image": []}
    for question in asked:
        key = (question.family, question.toy, question.color)
        shown = {name: values[question.scene, question.place] for name, values in
                 scenes.shown.items()}  # fmt: skip
        of_family = {"verify": "color"}.get(question.family, question.family)
        sight = question.place >= 0 if question.family == "exist" else shown[of_family]
        keys["question"].append(key)
        keys["both"].append((*key, sight))
        keys["image"].append(())
    expected = best_accuracies(parameters)
    half = len(asked) // 2
    for name, keys_of_guess in keys.items():
        table = defaultdict(Counter)
        for key, question in zip(keys_of_guess[:half], asked[:half], strict=True):
            table[key][question.answer] += 1
        guesses = {key: answers.most_common(1)[0][0] for key, answers in table.items()}
        right = [
            guesses.get(key) == question.answer
            for key, question in zip(keys_of_guess[half:], asked[half:], strict=True)
        ]
        # tables of rare keys are a little worse than the best guess, never better by chance
        value = getattr(expected, name)
        assert -0.015 < np.mean(right) - value < 0.01, name


def test_families_and_toys_are_asked_about_equally_often():
    """And the answers of yes and no questions are in the same share for each toy."""
    parameters = WorldParameters(train_scenes=6000)
    _, asked = draw(parameters, "train")
    for counts in (
        Counter(question.family for question in asked),
        Counter(question.toy for question in asked if question.family == "exist"),
        Counter(question.toy for question in asked if question.answer == "yes"),
    ):
        assert stats.chisquare(list(counts.values())).pvalue > 1e-5
    assert len({question.family for question in asked}) == len(FAMILIES)


def load(folder: Path, **changes):
    """Samples of a small world whose features are kept in a folder."""
    values = {"folder": str(folder), **SMALL, **changes}
    return GeneratedScenes(GeneratedScenes.Parameters(**values)).load(Files(Path("nowhere")), 2)


def test_samples_are_the_same_bytes_in_another_folder(tmp_path, monkeypatch):
    """No absolute path and no time is part of them; another seed gives another world."""
    saved = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        SamplesDataset(filepath="samples.safetensors").save(load("worlds"))
        saved.append(Path("samples.safetensors").read_bytes())
    assert saved[0] == saved[1]
    first, shorter, other = (load("worlds", **c) for c in ({}, {"tokens": 5}, {"seed": 1}))
    assert shorter.questions.boxes == first.questions.boxes
    assert other.questions.boxes.folder != first.questions.boxes.folder
    assert not {*other.sources.values()} & {*first.sources.values()}


def test_a_larger_training_part_leaves_the_others_as_they_are(parameters):
    """Every part has draws of its own."""
    larger = parameters.model_copy(update={"train_scenes": 70})
    for part in PARTS[1:]:
        assert questions(larger, part) == questions(parameters, part)


def test_features_are_complete_or_absent(tmp_path, monkeypatch):
    """An error in the middle leaves nothing behind, and features that are there are not touched.

    What a killed process left of them is removed; another's, which may still write, is not.
    """
    worlds = tmp_path / "worlds"

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(generated_scenes.np, "save", full)
        with pytest.raises(InputError, match="cannot be written: .*No space left on device"):
            load(worlds)
    assert list(worlds.iterdir()) == []
    killed = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                            capture_output=True, text=True, check=True)  # fmt: skip
    name = generated_scenes.key(WorldParameters(**SMALL))
    left = worlds / f".{name}.{HOST}.{int(killed.stdout)}.part"
    other = worlds / f".{name}.{HOST}.{os.getppid()}.part"
    for aside in (left, other):
        (aside / "gqa").mkdir(parents=True)
    first = load(worlds)
    assert set(worlds.iterdir()) == {worlds / name, other}
    monkeypatch.setattr(generated_scenes, "features_of", full)
    assert load(worlds).questions.boxes == first.questions.boxes


def test_a_part_without_head_and_tail_is_refused(tmp_path):
    """One question cannot be common and rare."""
    with pytest.raises(InputError, match="none of the 1 val questions.*use a larger bias"):
        load(tmp_path, val_scenes=1, questions=1)
    assert list(tmp_path.iterdir()) == []


def test_loaded_samples_are_the_questions(parameters):
    """Words, answers, images and groups of all rows; ."""
    samples = GeneratedScenes(parameters).load(Files(Path("nowhere")), 2)
    halves = [half for part in PARTS[1:] for half in head_and_tail(questions(parameters, part))]
    records = questions(parameters, "train")
    for half in halves:
        records |= half
    assert samples.id.tolist() and set(samples.id.tolist()) == set(records)
    images = boxes_of(parameters)
    boxes = samples.questions.boxes
    assert boxes.shape == (len(images), 2 * parameters.objects, 32)
    for row, name in enumerate(samples.id.tolist()):
        record = records[name]
        words = [samples.questions.words[token] for token in samples.x["tokens"][row]]
        assert [word for word in words if word] == record["question"].lower().strip("?").split()
        assert samples.classes[samples.y[row]] == record["answer"]
        assert samples.attributes["local_group"][row] == record["groups"]["local"]
        assert samples.attributes["global_group"][row] == (record["groups"]["global"] or "none")
        features = boxes.features[samples.x["image"][row]]
        np.testing.assert_array_equal(features, images[record["imageId"]].astype(np.float16))
    for part, names in (("val", halves[:2]), ("test", halves[2:])):
        sides = samples.attributes["head_tail"][samples.rows("split_1", part)].value_counts()
        assert sides.to_dict() == dict(zip(HALVES, map(len, names), strict=True))
    assert samples.sensitive == ("head_tail",)
    assert samples.sources.keys() >= {"generated_scenes"}
    assert list(modified(samples.sources)) == []
