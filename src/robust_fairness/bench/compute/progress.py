"""Progress of long loops: a bar on a terminal, otherwise a log line every few seconds."""

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

logger = logging.getLogger(__name__)
SECONDS_BETWEEN_LINES = 10.0

Item = TypeVar("Item")


def progress(items: Iterable[Item], description: str, total: int, start: int = 0) -> Iterator[Item]:
    """Yield the items and show rate and remaining time."""
    if sys.stderr.isatty():
        yield from tqdm(items, desc=description, total=total, initial=start, leave=False)
        return
    started = last = time.monotonic()
    for number, item in enumerate(items, start + 1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            logger.info(
                "%s: %s",
                description,
                tqdm.format_meter(number, total, now - started, initial=start),
            )
