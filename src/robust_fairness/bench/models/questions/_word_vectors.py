"""Vectors of words from a text file, as GloVe (Pennington et al. 2014) is published."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from robust_fairness.core.errors import InputError

LARGEST = float(np.finfo(np.float32).max)


def word_vectors(path: Path, words: Sequence[str], width: int) -> dict[int, np.ndarray]:
    """Vectors of those words that the file contains, float32 ``[width]``, by their position.

    A line is a word and its numbers, separated by single spaces; of several lines of a word the
    first counts. The file's words may contain spaces, as some of the largest published one do. An
    empty word has no vector.
    """
    places = {word.encode(): place for place, word in enumerate(words) if word}
    vectors: dict[int, np.ndarray] = {}
    for number, line in _lines(path):
        text, *fields = line.rsplit(b" ", width)
        word, *rest = text.split(b" ")
        # a word has spaces except in the first line of a published file, but no numbers after them
        if len(fields) < width or (rest and (number == 1 or any(map(_is_number, rest)))):
            raise InputError(
                f"{path}: line {number} has {len(rest) + len(fields)} numbers, allowed: {width}, "
                "the network's words"
            )
        place = None if rest else places.get(word)
        if place is not None and place not in vectors:
            vectors[place] = _numbers(path, number, fields)
    if not vectors:
        raise InputError(
            f"{path}: contains none of the {len(places)} words of the questions; expected lines of "
            "a word and its numbers"
        )
    return vectors


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Stripped lines with their numbers, from 1."""
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                yield number, line.rstrip()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error})") from error


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(path: Path, line: int, fields: Sequence[bytes]) -> np.ndarray:
    """The numbers of a line, float32."""
    bad = next((field for field in fields if not _is_number(field)), None)
    values = np.array([] if bad is not None else list(map(float, fields)))
    if bad is not None or not (np.abs(values) <= LARGEST).all():
        told = "a number that is not finite" if bad is None else f"{bad.decode(errors='replace')!r}"
        raise InputError(f"{path}: line {line} has {told}, allowed: finite numbers")
    return values.astype(np.float32)
