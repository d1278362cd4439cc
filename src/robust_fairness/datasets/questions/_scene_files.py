"""Generated scenes in the files of GQA, GQA-OOD and GQA's object features.

The files have what ``gqa_ood`` reads of them.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.questions._scenes import (
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
from robust_fairness.samples.questions import in_tail

QUESTIONS_FOLDER, OOD_FOLDER, FEATURES_FOLDER = "gqa", "gqa_ood", "gqa/objects"
OOD_PARTS = PARTS[1:]
BETA = 0.2  # of the rule by which the published files were made

FILES = 2  # of features; GQA has 16
SLOTS = 100  # boxes of an image in GQA's files; those behind its last one are zero
AT_ONCE = 64  # images

Records = dict[str, dict[str, Any]]

TEXTS = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))


def write(world: WorldParameters, folder: Path) -> None:
    """Write all files of a world."""
    parts = {part: draw(world, part) for part in PARTS}
    named = {part: records_of(drawn[1], part) for part, drawn in parts.items()}
    halves = {part: _halves(named[part], part) for part in OOD_PARTS}
    for part, records in named.items():
        _write_json(records, folder / QUESTIONS_FOLDER / f"{part}_balanced_questions.json")
    for part, head_tail in halves.items():
        for half, records in zip(("head", "tail"), head_tail, strict=True):
            _write_json(records, folder / OOD_FOLDER / f"ood_{part}_{half}.json")
    scenes = {part: drawn[0] for part, drawn in parts.items()}
    _write_features(world, scenes, folder / FEATURES_FOLDER)


def _halves(records: Records, part: str) -> tuple[Records, Records]:
    head, tail = head_and_tail(records)
    if not head:  # and then no tail
        raise InputError(
            f"generated scenes: none of the {len(records)} {part} questions is in the head or the "
            "tail, since no local group has both; use a larger bias, or more questions"
        )
    return head, tail


def _write_json(content: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, sort_keys=True), encoding="utf-8")


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
    kept = np.ones(len(groups), dtype=bool)
    for rows in (rare, ~rare):
        kept &= np.bincount(group[rows], minlength=len(groups)) > 0
    head, tail = (dict(compress(records.items(), kept[group] & rows)) for rows in (~rare, rare))
    return head, tail


def _write_features(world: WorldParameters, parts: Mapping[str, Scenes], folder: Path) -> None:
    """Files of features, and which image is where in them.

    Images and their boxes are shuffled, so that their order carries no information.
    """
    import h5py

    generator = np.random.default_rng([world.seed, len(PARTS) + 1])
    images = [(part, n) for part, scenes in parts.items() for n in range(len(scenes.toys))]
    order = generator.permutation(len(images))
    boxes = 2 * world.objects
    information = {}
    folder.mkdir(parents=True)
    for number, chosen in enumerate(np.array_split(order, FILES)):
        with h5py.File(folder / f"gqa_objects_{number}.h5", "w") as file:
            shape = (len(chosen), SLOTS, world.features)
            features = file.create_dataset("features", shape, "f4", compression=1)
            for start in range(0, len(chosen), AT_ONCE):
                rows = [images[image] for image in chosen[start : start + AT_ONCE]]
                shuffled = generator.permuted(np.tile(np.arange(boxes), (len(rows), 1)), axis=1)
                seen = np.stack([_shown(parts[part], n, world) for part, n in rows])
                seen = np.take_along_axis(seen, shuffled[..., None], axis=1)
                seen += generator.normal(scale=world.noise, size=seen.shape)
                at = slice(start, start + len(rows))
                features[at, :boxes] = seen.clip(min=0)
        for index, image in enumerate(chosen.tolist()):
            information[image_name(*images[image])] = {
                "objectsNum": boxes,
                "file": number,
                "idx": index,
            }
    _write_json(information, folder / "gqa_objects_info.json")


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
