"""What was tried, survived and went wrong, as SECURITY.md cites it."""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robust_fairness.core.errors import InputError


def flipped(content: bytes, draw: random.Random) -> bytes:
    """The content with one bit flipped."""
    changed = bytearray(content)
    changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def silent_flips(content: bytes, flips: int, read: Callable[[bytes], Any], place: str) -> int:
    """How many flipped bits change what is read without one line that names the place."""
    draw, whole, silent = random.Random(flips), read(content), 0
    for _ in range(flips):
        try:
            silent += read(flipped(content, draw)) != whole
        except InputError as error:
            assert place in str(error) and "\n" not in str(error)
    report(f"flipped bits of {place}", flips, flips - silent, silent)
    return silent


def report(what: str, tried: int, survived: int, wrong: int) -> None:
    """Print the counts, and add them to the file that ``FAULT_COUNTS`` names."""
    line = f"{what}: {tried} tried, {survived} survived, {wrong} wrong\n"
    print(line, end="")
    if path := os.environ.get("FAULT_COUNTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line)
