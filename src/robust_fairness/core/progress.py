"""Progress of long work: a bar on a terminal, a plain line now and then elsewhere."""

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
    """Yield the items and show rate and time left.

    Args:
        items: what is worked through.
        description: name of the work, at the start of the bar or line.
        total: number of all items.
        start: how many of them were done before (a resumed work).
    """
    if sys.stderr.isatty():
        yield from tqdm(items, desc=description, total=total, initial=start, leave=False)
        return
    begun = last = time.monotonic()
    for number, item in enumerate(items, start + 1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            logger.info(
                "%s: %s", description, tqdm.format_meter(number, total, now - begun, initial=start)
            )
