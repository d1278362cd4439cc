"""Damaged copies of real files: the same numbers, or one line; none is silent."""

import gzip
import random
from pathlib import Path

import numpy as np
import pytest

from robust_fairness.bench.datasets.fetch import modified
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find

# Loaders of files that have official checksums.
LOADERS = ("adult", "communities", "compas", "credit_card", "drugs", "german", "iowa_recidivism",
           "law_school", "oulad", "students")  # fmt: skip


def changed(content: bytes, draw: random.Random) -> bytes:
    """The content with one digit, line, pair of lines or byte changed, or its end cut off."""
    lines = content.splitlines(keepends=True)
    first, second = sorted(draw.sample(range(1, len(lines)), 2))
    match draw.randrange(5):
        case 0:
            place = draw.choice([i for i, byte in enumerate(lines[first]) if 48 <= byte < 58])
            line = bytearray(lines[first])
            line[place] = 48 + (line[place] - 47) % 10
            lines[first] = bytes(line)
        case 1:
            del lines[first]
        case 2:
            lines[first], lines[second] = lines[second], lines[first]
        case 3:
            return content[: draw.randrange(len(content))]
        case 4:
            place = draw.randrange(len(content))
            return content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]
    return b"".join(lines)


def outcomes(name: str, root: Path, folder: Path, count: int) -> list[str]:
    """What becomes of some mutations of the files of a loader."""
    loader, originals, result = find("dataset", name), Files(root), []
    whole = loader().load(originals, 1)
    assert not list(modified(whole.sources))
    contents = {file: originals.content(file) for file in loader().required_files()}
    for number in range(count):
        draw = random.Random(number)
        victim = draw.choice([*contents])
        for file, content in contents.items():
            path = folder / f"{file}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            mutated = changed(content, draw) if file == victim else content
            path.write_bytes(gzip.compress(mutated, 1))
        try:
            samples = loader().load(Files(folder), 1)
        except InputError as error:
            result.append("one line" if len(str(error).splitlines()) == 1 else str(error))
            continue
        named = bool(list(modified(samples.sources)))
        same = np.array_equal(samples.x, whole.x) and np.array_equal(samples.y, whole.y)
        result.append("one line" if named else "same" if same else f"silent: {number}")
    return result


@pytest.mark.parametrize("name", ["students"])
def test_mutations_of_real_files_are_noticed(name, shared_data, tmp_path):
    assert set(outcomes(name, shared_data, tmp_path, 4)) <= {"one line", "same"}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADERS)
def test_many_mutations_of_real_files_are_noticed(name, shared_data, tmp_path):
    assert set(outcomes(name, shared_data, tmp_path, 100)) <= {"one line", "same"}
