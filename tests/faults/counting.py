"""What was tried, survived and went wrong, as SECURITY.md cites it."""

import os
from pathlib import Path


def report(what: str, tried: int, survived: int, wrong: int) -> None:
    """Print the counts, and add them to the file that ``FAULT_COUNTS`` names."""
    line = f"{what}: {tried} tried, {survived} survived, {wrong} wrong\n"
    print(line, end="")
    if path := os.environ.get("FAULT_COUNTS"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line)
