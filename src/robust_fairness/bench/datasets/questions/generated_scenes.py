"""Generated scenes with questions whose answers are known, like those of GQA and GQA-OOD.

The questions of a world of toys (``_scenes``) have the fields of GQA's questions that are read, its
test and validation questions the head and tail of GQA-OOD, and their images features of boxes.
Answers follow the prior of their local group as far as ``bias`` says.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import PositiveInt

from robust_fairness.bench.datasets.base import QuestionDataset
from robust_fairness.bench.datasets.questions._boxes import COUNT, HALF, checksum
from robust_fairness.bench.datasets.questions._questions import Book, QuestionRows, questions_of
from robust_fairness.bench.datasets.questions._scenes import (
    ASPECTS,
    FURNITURE,
    LEFT,
    PARTS,
    TOYS,
    Question,
    Scenes,
    WorldParameters,
    draw,
)
from robust_fairness.bench.datasets.questions.gqa_ood import (
    OFFICIAL,
    GqaOod,
    Sensitive,
    by_rule,
    head_then_tail,
    samples_of,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_folder
from robust_fairness.core.questions import COUNTS_FILE, FEATURES_FILE, Boxes, in_tail
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples

EDITION = 3  # raised where the same parameters give other samples
BETA = 0.2  # of the rule by which the published files were made
HALVES = 2  # of the images, drawn one after the other
AT_ONCE = 64  # images

Records = dict[str, dict[str, Any]]  # questions by id, with the fields of GQA that are read

TEXTS = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))


class GeneratedScenes(QuestionDataset):
    """The questions of a world; the features of its images are kept in files."""

    class Parameters(WorldParameters):
        """A world, and how its questions are read.

        Attributes:
            folder: where features are kept, each world's in a folder of its own; a relative path
                starts where the command is run.
            tokens: number of words of a question that are kept.
        """

        folder: str = "data/01_raw/generated_scenes"
        tokens: PositiveInt = 14
        sensitive: Sensitive = ("head_tail",)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        drawn = {part: draw(parameters, part) for part in PARTS}

        def read(part: str, book: Book) -> QuestionRows:
            official = OFFICIAL.get(part, part)
            records = records_of(drawn[official][1], official)

            def rows(records: Records) -> QuestionRows:
                return questions_of(records.items(), self.name, book, parameters.tokens)

            if part == "train":
                return by_rule(rows(records), book, BETA)
            head, tail = head_and_tail(records)
            if not head:  # and then no tail
                raise InputError(
                    f"generated scenes: none of the {len(records)} {official} questions is in the "
                    "head or the tail, since no local group has both; use a larger bias, or more "
                    "questions"
                )
            return head_then_tail([rows(head), rows(tail)])

        def boxes_of(images: Sequence[str]) -> Boxes:
            boxes = kept(parameters, {part: scenes for part, (scenes, _) in drawn.items()}, images)
            files.note(self.name, key(parameters).encode())
            files.sources[f"{self.name}/{FEATURES_FILE}"] = boxes.sha256
            return boxes

        of_questions = GqaOod.Parameters(sensitive=parameters.sensitive)
        return samples_of(read, boxes_of, files, of_questions, splits)


def key(world: WorldParameters) -> str:
    """Name of the folder of a world: 16 digits of a hash of all that it is drawn from."""
    drawn_from = WorldParameters(**world.model_dump(include=set(WorldParameters.model_fields)))
    content = f"{EDITION} {drawn_from.model_dump_json()}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def kept(
    parameters: GeneratedScenes.Parameters, scenes: Mapping[str, Scenes], images: Sequence[str]
) -> Boxes:
    """Features of images, written atomically where they do not exist."""
    folder = Path(parameters.folder) / key(parameters)
    try:
        if not folder.is_dir():
            features = features_of(parameters, scenes)
            half = np.stack([features[image] for image in images]).astype(HALF)
            with atomic_folder(folder) as temporary:
                np.save(temporary / FEATURES_FILE, half)
                np.save(temporary / COUNTS_FILE, np.full(len(half), half.shape[1], COUNT))
        shape = (len(images), 2 * parameters.objects, parameters.features)
        return Boxes(str(folder), shape, checksum(folder))
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error}") from error


def image_name(part: str, scene: int) -> str:
    """GQA's ``imageId``: a number, with an ``n`` before it where it is of testdev."""
    return f"{'n' if part == 'testdev' else ''}{PARTS.index(part) + 1}{scene:06d}"


def records_of(questions: Sequence[Question], part: str) -> Records:
    """Questions of a part by question id."""
    return {
        f"{PARTS.index(part) + 1}{number:07d}": _record(question, part)
        for number, question in enumerate(questions)
    }


def _record(question: Question, part: str) -> dict[str, Any]:
    slots = {"toy": question.toy, "color": question.color}
    texts = TEXTS[question.family]
    return {
        "question": texts["wordings"][question.wording].format(**slots),
        "imageId": image_name(part, question.scene),
        "groups": {
            "global": texts["global_group"],
            "local": texts["local_group"].format(**slots),
        },
        "answer": question.answer,
    }


def head_and_tail(records: Records) -> tuple[Records, Records]:
    """Questions with a frequent and with a rare answer of their local group, as in GQA-OOD.

    An answer is rare if a < (1 + beta) mu, mu being the mean number of questions of the answers
    that the group has here. Groups without a rare or without a frequent answer are left out.
    """
    answers, answer = np.unique(
        [record["answer"] for record in records.values()], return_inverse=True
    )
    groups, group = np.unique(
        [record["groups"]["local"] for record in records.values()], return_inverse=True
    )
    rare = in_tail(answer, group, len(answers), BETA)
    whole = np.ones(len(groups), dtype=bool)
    for rows in (rare, ~rare):
        whole &= np.bincount(group[rows], minlength=len(groups)) > 0
    head, tail = (dict(compress(records.items(), whole[group] & rows)) for rows in (~rare, rare))
    return head, tail


def features_of(world: WorldParameters, parts: Mapping[str, Scenes]) -> dict[str, np.ndarray]:
    """Features of the boxes of every image by its name, float32 ``[box, feature]``.

    Images and their boxes are shuffled, so that their order carries no information.
    """
    generator = np.random.default_rng([world.seed, len(PARTS) + 1])
    images = [(part, n) for part, scenes in parts.items() for n in range(len(scenes.toys))]
    boxes, features = 2 * world.objects, dict[str, np.ndarray]()
    for half in np.array_split(generator.permutation(len(images)), HALVES):
        for start in range(0, len(half), AT_ONCE):
            rows = [images[image] for image in half[start : start + AT_ONCE]]
            shuffled = generator.permuted(np.tile(np.arange(boxes), (len(rows), 1)), axis=1)
            seen = np.stack([_shown(parts[part], n, world) for part, n in rows])
            seen = np.take_along_axis(seen, shuffled[..., None], axis=1)
            seen += generator.normal(scale=world.noise, size=seen.shape)
            names = (image_name(*row) for row in rows)
            features.update(zip(names, seen.clip(min=0).astype(np.float32), strict=True))
    return features


def things_shown(features: int) -> dict[str, np.ndarray]:
    """Which features of a box show which thing, bool ``[thing, number]`` by kind of thing.

    Things have equally many features, up to one.
    """
    kinds = {"toy": TOYS, "furniture": FURNITURE, **ASPECTS}
    ends = np.cumsum([len(names) for names in kinds.values()])
    turns = np.arange(features) % ends[-1] == np.arange(ends[-1])[:, None]
    return dict(zip(kinds, np.split(turns, ends[:-1]), strict=True))


def _shown(scenes: Scenes, number: int, world: WorldParameters) -> np.ndarray:
    """Features of an image without noise: its toys, then its furniture, float64 ``[box, number]``.

    The box of a toy also shows what stands to its left; if wrongly, the other box does likewise.
    """
    shows = things_shown(world.features)
    toys = shows["toy"][scenes.toys[number, : world.objects]].astype(np.float64)
    for aspect, values in scenes.shown.items():
        toys += shows[aspect][values[number]]
    return np.concatenate([toys, shows["furniture"][scenes.shown[LEFT][number]]])
