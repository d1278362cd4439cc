"""Questions of GQA and GQA-OOD, read in blocks, with words and groups as numbers.

A file is one JSON object of questions by id, of more than a gigabyte for the training questions.
It is never in memory as a whole.
"""

import codecs
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, ValidationError

from robust_fairness.bench.experiment.plugins import one_line
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import PADDING
from robust_fairness.core.raw_files import Files

UNKNOWN = "<unknown>"  # stands for a word that no training question has
UNKNOWN_TOKEN = 1
# of the groups in the files null and the empty text, which are groups of their own: questions that
# ask for no kind of thing (whether it is there), and answers of no kind that is known (a net)
GROUP_NAMES = {None: "none", "": "unnamed"}
LONGEST_QUESTION = 2**22  # characters of one entry; those of GQA have some thousands
PUNCTUATION = str.maketrans(dict.fromkeys(',?.!;:"', " "))
# what comes before a question: the beginning or a comma, its id and a colon
KEY = re.compile(r'\s*(?P<mark>[{,])\s*(?P<key>"(?:[^"\\]|\\.)*")\s*:\s*')


def words_of(question: str) -> list[str]:
    """Words of a question in lower case, split as in published code of UpDn.

    >>> words_of("What's the man's T-shirt made of, isn't it cotton?")
    ['what', "'s", 'the', 'man', "'s", 't-shirt', 'made', 'of', "isn't", 'it', 'cotton']
    """
    return question.lower().translate(PUNCTUATION).replace("'s", " 's").split()


Names = defaultdict[str, int]  # names, numbered in the order of their first occurrence


def numbered(*names: str) -> Names:
    """Names that give each further name that is looked up the next number."""
    numbers: Names = defaultdict(None, {name: number for number, name in enumerate(names)})
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass(frozen=True)
class Book:
    """What the numbers of questions stand for; several files share one."""

    words: Names = field(default_factory=lambda: numbered("", UNKNOWN))
    answers: Names = field(default_factory=numbered)
    images: Names = field(default_factory=numbered)
    local_groups: Names = field(default_factory=numbered)
    global_groups: Names = field(default_factory=numbered)


@dataclass(frozen=True)
class QuestionRows:
    """Questions as numbers of a ``Book``, int32 ``[n]`` unless it says otherwise.

    Attributes:
        id: str ``[n]``, as in the file.
        tokens: words, int32 ``[n, token]``, padding in front.
        tail: whether the answer is rare in its group, bool ``[n]``; all False as they are read.
    """

    id: np.ndarray
    tokens: np.ndarray
    answer: np.ndarray
    image: np.ndarray
    local_group: np.ndarray
    global_group: np.ndarray
    tail: np.ndarray

    def __len__(self) -> int:
        return len(self.id)

    def take(self, rows: np.ndarray) -> "QuestionRows":
        """The questions of the given row numbers."""
        return QuestionRows(**{name: array[rows] for name, array in vars(self).items()})


def joined(parts: Iterable[QuestionRows]) -> QuestionRows:
    """The questions of several files, one file after the other."""
    columns = [vars(part) for part in parts]
    return QuestionRows(
        **{name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    )


class _Groups(BaseModel, strict=True):
    local: str | None
    overall: str | None = Field(validation_alias="global")


class _Entry(BaseModel, strict=True):
    """What is read of a question."""

    question: Annotated[str, Field(min_length=1)]
    answer: Annotated[str, Field(min_length=1)]
    image: Annotated[str, Field(min_length=1, validation_alias="imageId")]
    groups: _Groups


def questions_of(
    entries: Iterable[tuple[str, Any]], name: str, book: Book, tokens: int
) -> QuestionRows:
    """Questions of GQA or GQA-OOD by their ids, in their order; new names are added to ``book``.

    The fields ``question``, ``answer``, ``imageId`` and ``groups`` (``global`` and ``local``, which
    may be null or empty) are read, and the first ``tokens`` words are kept; ``name`` is the file,
    for messages.
    """
    ids: dict[str, None] = {}
    words, numbers = array("i"), array("i")
    for number, fields in entries:
        place = f"{name}, question {number}"
        if number in ids:
            raise InputError(f"{place}: occurs twice in the file")
        ids[number] = None
        try:
            entry = _Entry.model_validate(fields)
        except ValidationError as error:
            raise InputError(f"{place}: {one_line(error, fields)}") from error
        of_question = [book.words[word] for word in words_of(entry.question)]
        if not of_question:
            raise InputError(f"{place}, question: {entry.question!r} has no words")
        words.extend([PADDING] * (tokens - len(of_question)) + of_question[:tokens])
        groups = entry.groups
        numbers.append(book.answers[entry.answer])
        numbers.append(book.images[entry.image])
        numbers.append(book.local_groups[str(GROUP_NAMES.get(groups.local, groups.local))])
        numbers.append(book.global_groups[str(GROUP_NAMES.get(groups.overall, groups.overall))])
    if not ids:
        raise InputError(f"{name}: no questions")
    answer, image, local, overall = np.array(numbers, dtype=np.int32).reshape(len(ids), -1).T
    return QuestionRows(
        id=np.array([*ids], dtype=np.str_),
        tokens=np.array(words, dtype=np.int32).reshape(len(ids), tokens),
        answer=answer,
        image=image,
        local_group=local,
        global_group=overall,
        tail=np.zeros(len(ids), dtype=bool),
    )


def entries(files: Files, name: str) -> Iterator[tuple[str, Any]]:
    """The entries of a file that is one JSON object, one by one, each with its key."""
    scan, text, mark = json.JSONDecoder().raw_decode, "", "{"
    try:
        for block in codecs.iterdecode(files.blocks(name), "utf-8"):
            text, at = text + block, 0
            while (key := KEY.match(text, at)) and key["mark"] == mark:
                try:
                    entry, end = scan(text, key.end())
                except (json.JSONDecodeError, RecursionError):  # damaged, or not yet complete
                    break
                yield json.loads(key["key"]), entry
                at, mark = end, ","
            text = text[at:]
            if len(text) > LONGEST_QUESTION:
                break
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not UTF-8 text ({error.reason})") from error
    if text.strip() != ("}" if mark == "," else "{}"):
        raise InputError(
            f"{name}: {text[:60]!r}, expected the rest of one JSON object of questions by id"
        )


def as_attribute(numbers: np.ndarray, names: Names) -> pd.Series:
    """Numbers of a book as a categorical attribute of the names that occur, sorted."""
    result, codes = np.unique(numbers, return_inverse=True)
    occurring = np.array(list(names), dtype=object)[result]
    order = np.argsort(occurring)
    return pd.Series(
        pd.Categorical.from_codes(places(order)[codes], pd.Index(occurring[order], dtype=object))
    )


def places(order: np.ndarray) -> np.ndarray:
    """Inverse of a permutation, int64."""
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.arange(len(order))
    return inverse
