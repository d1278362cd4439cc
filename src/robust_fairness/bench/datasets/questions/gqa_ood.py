"""GQA-OOD: questions on photographs, with answers that are frequent or rare in their group.

Training questions are those of GQA (Hudson and Manning, CVPR 2019), validation and test questions
the head and the tail of GQA-OOD (Kervadec et al., CVPR 2021). Source: "An Investigation of Critical
Issues in Bias Mitigation Techniques" (WACV 2022), 4.3 and A.1.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel, Field, NonNegativeInt, PositiveInt

from robust_fairness.bench.datasets.base import Listed, QuestionDataset
from robust_fairness.bench.datasets.questions._boxes import convert
from robust_fairness.bench.datasets.questions._questions import (
    UNKNOWN_TOKEN,
    Book,
    Names,
    QuestionRows,
    as_attribute,
    entries,
    joined,
    places,
    questions_of,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import IMAGE, TOKENS, Boxes, Questions, in_tail
from robust_fairness.core.raw_files import ROOT_VARIABLE, Files, below_the_root
from robust_fairness.core.samples import REQUIRED_PARTS, Samples

SIDES = ("head", "tail")
UNSEEN = "<unseen>"  # the class of answers that no training question has
OFFICIAL = {"val": "val", "test": "testdev"}  # what the parts are called in the files

logger = logging.getLogger(__name__)


def _anywhere(folder: str) -> str:
    """A folder below the data root, or one that is named in full."""
    return folder if PurePath(folder).is_absolute() else below_the_root(folder)


Folder = Annotated[str, AfterValidator(_anywhere)]
Sensitive = Listed[Literal["head_tail", "answer", "global_group", "local_group"]]


class GqaOod(QuestionDataset):
    """Questions with their words, the row of their image, and the answer as the class.

    Classes are the answers of the training questions, sorted; a last one, ``<unseen>``, stands
    for all other answers of validation and test questions, if any, which are therefore never
    answered correctly. The vocabulary is the sorted words of the training questions, after padding
    and the unknown word.

    Attributes are ``head_tail``, ``answer`` (the class), ``global_group`` and ``local_group``; a
    group that is null in the files is called ``none``, an empty one ``unnamed``. ``id`` is that of
    the question. Training questions that no split draws are left out.
    """

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of GQA-OOD. Folders are below the data root unless they are absolute.

        Attributes:
            folder: contains ``train_balanced_questions.json`` and, where files of GQA-OOD are
                missing, ``val_balanced_questions.json`` and ``testdev_balanced_questions.json``.
            ood_folder: contains ``ood_val_head.json``, ``ood_val_tail.json`` and the two of
                testdev. A part without both is the balanced questions, labelled by the rule.
            features_folder: contains ``gqa_objects_info.json`` and the files that it names.
            boxes_folder: where converted features are kept (12 GB for all of GQA); a relative path
                starts where the command is run.
            boxes: number of boxes of an image that are kept, the first ones.
            tokens: number of words of a question that are kept, the first ones.
            train_share: fraction of the training questions used, drawn anew for every split. Words,
                answers and the rule are those of all of them.
            beta: size of the tail by the rule: of training questions, and of parts without files of
                GQA-OOD, whose own labels are of 0.2.
            limit_in_tail: whether answers at the limit of the rule are in its tail, as A.1 prints
                and the study's code has it for training questions; the labels of GQA-OOD are not.
            seed: seed of the draws; that of split k depends on it and on k only.
        """

        folder: Folder = "gqa"
        ood_folder: Folder = "gqa_ood"
        features_folder: Folder = "gqa/objects"
        boxes_folder: str = "data/01_raw/gqa_boxes"
        boxes: Annotated[int, Field(ge=1, lt=2**15)] = 36
        tokens: PositiveInt = 14
        train_share: float = Field(1.0, gt=0, le=1)
        beta: float = Field(0.2, gt=-1, allow_inf_nan=False)
        limit_in_tail: bool = False
        sensitive: Sensitive = ("head_tail",)
        seed: NonNegativeInt = 0

    def required_files(self) -> tuple[str, ...]:
        questions = f"{self.parameters.folder}/train_balanced_questions.json"
        return (questions, self.parameters.features_folder)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters

        def read(part: str, book: Book) -> QuestionRows:
            return _read(parameters, files, book, part)

        def converted(images: tuple[str, ...]) -> Boxes:
            features = files.root / parameters.features_folder
            boxes = convert(features, images, parameters.boxes, Path(parameters.boxes_folder))
            files.sources[parameters.features_folder] = boxes.sha256
            return boxes

        return samples_of(read, converted, files, parameters, splits)


def samples_of(
    read: Callable[[str, Book], QuestionRows],
    boxes_of: Callable[[tuple[str, ...]], Boxes],
    files: Files,
    parameters: GqaOod.Parameters,
    splits: int,
) -> Samples:
    """Samples of questions.

    Args:
        read: the questions of a part, whose names it adds to the book; training is read first.
        boxes_of: features of the boxes of images, in their order.
        files: has the sources.
        parameters: which training questions are drawn, and the sensitive attributes.
        splits: number of named splits.
    """
    book = Book()
    train = read("train", book)
    seen, words = len(book.answers), len(book.words)
    parts = {"train": train} | {part: read(part, book) for part in OFFICIAL}
    images, image_of = _sorted(book.images, len(book.images))
    boxes = boxes_of(images)  # of all questions, so that every train_share uses the same ones
    drawn = _drawn(len(train), splits, parameters)
    parts["train"] = train.take(np.flatnonzero(drawn.any(axis=1)))
    rows = joined(parts.values())
    vocabulary, token_of = _sorted(book.words, words, fixed=UNKNOWN_TOKEN + 1)
    token_of[words:] = UNKNOWN_TOKEN
    answers, class_of = _sorted(book.answers, seen)
    class_of[seen:] = seen
    y = class_of[rows.answer]
    unseen = y == seen
    if unseen.any():
        answers = (*answers, UNSEEN)
        logger.info(
            "%d validation and test questions have an answer unseen in training", unseen.sum()
        )
    sides = pd.Categorical.from_codes(rows.tail.astype(np.int8), pd.Index(SIDES, dtype=object))
    return Samples(
        x={
            TOKENS: token_of[rows.tokens].astype(np.int32),
            IMAGE: image_of[rows.image].astype(np.int32),
        },
        y=y,
        attributes=pd.DataFrame(
            {
                "head_tail": sides,
                "answer": pd.Categorical.from_codes(y, pd.Index(answers, dtype=object)),
                "global_group": as_attribute(rows.global_group, book.global_groups),
                "local_group": as_attribute(rows.local_group, book.local_groups),
            }
        ),
        id=rows.id,
        splits=_splits(drawn, [len(part) for part in parts.values()]),
        classes=answers,
        sensitive=parameters.sensitive,
        sources=files.sources,
        questions=Questions(vocabulary, boxes),
    )


def by_rule(rows: QuestionRows, book: Book, beta: float, limit: bool = False) -> QuestionRows:
    """Questions whose answers are rare in their local group by the rule of GQA-OOD."""
    answer, group = rows.answer.astype(np.int64), rows.local_group.astype(np.int64)
    return replace(rows, tail=in_tail(answer, group, len(book.answers), beta, limit))


def head_then_tail(sides: Sequence[QuestionRows]) -> QuestionRows:
    """The questions of the head, then of the tail."""
    return replace(joined(sides), tail=np.repeat([False, True], list(map(len, sides))))


def _read(parameters: GqaOod.Parameters, files: Files, book: Book, part: str) -> QuestionRows:
    """Questions of a part: those of GQA-OOD, else the balanced ones by the rule."""
    official = OFFICIAL.get(part, part)
    names = [f"{parameters.ood_folder}/ood_{official}_{side}.json" for side in SIDES]
    balanced = f"{parameters.folder}/{official}_balanced_questions.json"

    def questions(name: str) -> QuestionRows:
        return questions_of(entries(files, name), name, book, parameters.tokens)

    if part in OFFICIAL and any(map(files.has, names)):
        sides = [questions(name) for name in names]
        both = np.intersect1d(sides[0].id, sides[1].id)
        if len(both):
            raise InputError(
                f"{names[0]} and {names[1]}: question {both[0]} is in both; it must be in one of "
                "them"
            )
        return head_then_tail(sides)
    if part in OFFICIAL and not files.has(balanced):
        raise InputError(
            f"{names[0]}, {names[1]} and {balanced} are missing below {files.root}; needed are the "
            f"first two, or the third, plain or with .gz; set {ROOT_VARIABLE} to their folder"
        )
    if part in OFFICIAL:
        logger.info("%s: head and tail by the rule of GQA-OOD, whose files are missing", balanced)
    limit = parameters.limit_in_tail and part == "train"
    return by_rule(questions(balanced), book, parameters.beta, limit)


def _sorted(names: Names, count: int, fixed: int = 0) -> tuple[tuple[str, ...], np.ndarray]:
    """The first ``count`` names, sorted after ``fixed`` ones, and the place of each by its number.

    Places of the other numbers are to be set.
    """
    kept = np.array(list(names), dtype=object)[:count]
    order = np.concatenate([np.arange(fixed), fixed + np.argsort(kept[fixed:])]).astype(np.int64)
    place = np.zeros(len(names), dtype=np.int64)
    place[:count] = places(order)
    return tuple(kept[order]), place


def _drawn(rows: int, count: int, parameters: GqaOod.Parameters) -> np.ndarray:
    """Which training questions each split has, bool ``[question, split]``."""
    if count < 1:
        raise InputError(f"splits: {count}, allowed: 1 or more")
    size = round(parameters.train_share * rows)
    if not size:
        raise InputError(
            f"train_share: {parameters.train_share} of {rows} training questions is none; at least "
            f"{1 / rows:.2g} is needed"
        )
    drawn = np.zeros((rows, count), dtype=bool)
    for k in range(count):
        generator = np.random.default_rng([parameters.seed, k])
        drawn[generator.permutation(rows)[:size], k] = True
    return drawn


def _splits(drawn: np.ndarray, sizes: list[int]) -> pd.DataFrame:
    """Named splits: training questions that are drawn, then all of validation and test."""
    part = np.repeat(np.arange(len(REQUIRED_PARTS), dtype=np.int8), sizes)
    kept = drawn[drawn.any(axis=1)]
    names = pd.Index(REQUIRED_PARTS, dtype=object)
    splits = {}
    for k in range(drawn.shape[1]):
        codes = part.copy()
        codes[: sizes[0]][~kept[:, k]] = -1
        splits[f"split_{k}"] = pd.Categorical.from_codes(codes, names)
    return pd.DataFrame(splits)
