"""Questions of GQA and GQA-OOD, read in blocks, with words and groups as numbers.

A file is one JSON object of questions by id, of more than a gigabyte for the training questions.
It is never in memory as a whole.
"""

import codecs
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.samples.questions import PADDING

UNKNOWN = "<unknown>"  # stands for a word that no training question has
UNKNOWN_TOKEN = 1
# of the groups in the files null and the empty text, which are groups of their own: questions that
# ask for no kind of thing (whether it is there), and answers of no kind that is known (a net)
GROUP_NAMES = {None: "none", "": "unnamed"}
LONGEST_QUESTION = 2**22  # characters of one entry; those of GQA have some thousands
PUNCTUATION = str.maketrans(dict.fromkeys(',?.!;:"', " "))
SPACE = re.compile(r"[ \t\n\r]*")


def words_of(question: str) -> list[str]:
    """Words of a question in lower case, split as in published code of UpDn.

    >>> words_of("What's the man's T-shirt made of, isn't it cotton?")
    ['what', "'s", 'the', 'man', "'s", 't-shirt', 'made', 'of', "isn't", 'it', 'cotton']
    """
    return question.lower().translate(PUNCTUATION).replace("'s", " 's").split()


class Names:
    """Names, numbered in the order of their first occurrence."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._numbers = {name: number for number, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def number(self, name: str) -> int:
        """The number of a name, a new one if it has none yet."""
        return self._numbers.setdefault(name, len(self._numbers))


@dataclass(frozen=True)
class Book:
    """What the numbers of questions stand for; several files share one."""

    words: Names = field(default_factory=lambda: Names(("", UNKNOWN)))
    answers: Names = field(default_factory=Names)
    images: Names = field(default_factory=Names)
    local_groups: Names = field(default_factory=Names)
    global_groups: Names = field(default_factory=Names)


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


def questions_from(files: Files, name: str, book: Book, tokens: int) -> QuestionRows:
    """Questions of one file of GQA or GQA-OOD, in its order; new names are added to ``book``.

    The fields ``question``, ``answer``, ``imageId`` and ``groups`` (``global`` and ``local``, which
    may be null or empty) are read, and the first ``tokens`` words are kept.
    """
    ids: list[str] = []
    known: set[str] = set()
    words, numbers = array("i"), array("i")
    for number, entry in _entries(files, name):
        place = f"{name}, question {number}"
        if number in known:
            raise InputError(f"{place}: occurs twice in the file")
        known.add(number)
        ids.append(number)
        words.extend(_tokens(_text(entry, "question", place), book.words, tokens, place))
        numbers.append(book.answers.number(_text(entry, "answer", place)))
        numbers.append(book.images.number(_text(entry, "imageId", place)))
        groups = _field(entry, "groups", place)
        numbers.append(book.local_groups.number(_group(groups, "local", place)))
        numbers.append(book.global_groups.number(_group(groups, "global", place)))
    if not ids:
        raise InputError(f"{name}: no questions")
    answer, image, local, overall = np.array(numbers, dtype=np.int32).reshape(len(ids), -1).T
    return QuestionRows(
        id=np.array(ids, dtype=np.str_),
        tokens=np.array(words, dtype=np.int32).reshape(len(ids), tokens),
        answer=answer,
        image=image,
        local_group=local,
        global_group=overall,
        tail=np.zeros(len(ids), dtype=bool),
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


def _tokens(question: str, words: Names, tokens: int, place: str) -> list[int]:
    """Numbers of the first words, behind padding; all words get a number."""
    numbers = [words.number(word) for word in words_of(question)]
    if not numbers:
        raise InputError(f"{place}, question: {question!r} has no words")
    kept = numbers[:tokens]
    return [PADDING] * (tokens - len(kept)) + kept


def _field(entry: Any, name: str, place: str) -> Any:
    if not isinstance(entry, dict) or name not in entry:
        raise InputError(
            f"{place}: no field {name!r}; required: question, answer, imageId and groups (global, "
            "local), as in the balanced questions"
        )
    return entry[name]


def _text(entry: Any, name: str, place: str) -> str:
    value = _field(entry, name, place)
    if not isinstance(value, str) or not value:
        raise InputError(f"{place}, {name}: {value!r}, allowed: text")
    return value


def _group(groups: Any, name: str, place: str) -> str:
    value = _field(groups, name, place)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{place}, {name} group: {value!r}, allowed: text or null")
    return GROUP_NAMES.get(value) or str(value)


def _entries(files: Files, name: str) -> Iterator[tuple[str, Any]]:
    """The entries of a file that is one JSON object, one by one, each with its key."""
    text = _Text(files, name)
    text.expect("{")
    if text.next_is("}"):
        text.expect("}")
    else:
        while True:
            key = text.value()
            if not isinstance(key, str):
                raise InputError(f"{text.place}: {key!r}; expected the id of a question, as text")
            text.expect(":")
            yield key, text.value()
            if not text.next_is(","):
                break
            text.expect(",")
        text.expect("}")
    text.expect("")


class _Text:
    """Text of a JSON file, read as far as it is needed."""

    def __init__(self, files: Files, name: str) -> None:
        self._name = name
        self._blocks = files.blocks(name)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scan = json.JSONDecoder().raw_decode
        self._text = ""
        self._at = 0  # in the text that is held
        self._before = 0  # characters that are held no more
        self._ended = False

    @property
    def place(self) -> str:
        """The file and how far it was read."""
        return f"{self._name}, character {self._before + self._at + 1}"

    def next_is(self, mark: str) -> bool:
        """Whether a mark comes after white space; an empty mark is the end."""
        while True:
            space = SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1] == mark

    def expect(self, mark: str) -> None:
        """Skip a mark, which must come next."""
        if not self.next_is(mark):
            result = self._text[self._at : self._at + 1]
            raise InputError(
                f"{self.place}: {repr(result) if result else 'the file ends'}, expected "
                f"{repr(mark) if mark else 'the end of the file'} (one JSON object of questions by "
                "id)"
            )
        self._at += len(mark)

    def value(self) -> Any:
        """The next JSON value, completed from the next blocks."""
        self.next_is("")  # nothing but white space may be held
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                # only the end or the length distinguishes incomplete from damaged text
                if len(self._text) - self._at > LONGEST_QUESTION or not self._more():
                    raise InputError(
                        f"{self._name}, character {self._before + error.pos + 1}: {error.msg}; "
                        "expected one JSON object of questions by id"
                    ) from error
            except RecursionError as error:
                raise InputError(f"{self.place}: nested too deeply to be a question") from error
            else:
                self._at = end
                return value

    def _more(self) -> bool:
        """Read another block, if there is one, and drop what was read."""
        if self._ended:
            return False
        block = next(self._blocks, b"")
        self._ended = not block
        try:
            more = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            raise InputError(f"{self.place} or later: not UTF-8 text ({error.reason})") from error
        self._before += self._at
        self._text = self._text[self._at :] + more
        self._at = 0
        return True
