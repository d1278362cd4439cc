"""How long the trainings of a run will take, and how long those that are left."""

import logging
import time
from contextlib import chdir
from statistics import mean

from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from robust_fairness.core.registry import find

logger = logging.getLogger(__name__)

TRAINS = "train"  # tag of nodes that train a cell; their inputs are samples and the cell
SECONDS, SHARE = 1.0, 0.01  # a trial ends after so much CPU time, or that share of the expected


class Forecast:
    """Logs the expected time before the first training, and the time left after every one.

    Some steps of cells are tried, of one cell of every dataset first. Estimators, and cells for
    which no time is left, take as long a training as the mean of those tried; of estimators alone
    nothing is expected before the first is fitted. Beside busy processes all take longer, by the
    ratio of the trial's wall-clock time to its CPU time.
    """

    def __init__(self, pipeline: Pipeline, catalog: CatalogProtocol) -> None:
        nodes = [node for node in pipeline.nodes if TRAINS in node.tags]
        self._cells = {node.name: catalog.load(node.inputs[1]) for node in nodes}
        self._samples = {node.name: node.inputs[0] for node in nodes}
        self._catalog, self._seconds = catalog, dict[str, float]()
        self._start, self._done, self._tried = 0.0, 0.0, False

    def before(self, node: Node, workers: int) -> None:
        """Log how long all trainings will take, before the first one."""
        if node.name not in self._cells or self._seconds:
            return
        self._seconds = self._expected()
        if self._tried:
            logger.info(
                "training %d models of %d cells takes about %s on %d %s",
                sum(cell.budget * len(cell.seeds) for cell in self._cells.values()),
                len(self._cells),
                in_words(sum(self._seconds.values()) / workers),
                workers,
                "workers" if workers > 1 else "core",
            )
        self._start = time.monotonic()

    def after(self, node: Node) -> None:
        """Log how long the trainings that are left will take, at the speed of those done."""
        if node.name not in self._seconds:
            return
        self._done += self._seconds.pop(node.name)
        if self._seconds:
            left = (time.monotonic() - self._start) * sum(self._seconds.values()) / self._done
            logger.info("%d cells left to train, about %s", len(self._seconds), in_words(left))

    def _expected(self) -> dict[str, float]:
        """Seconds by node."""
        from robust_fairness.bench.estimators.base import Estimator
        from robust_fairness.bench.training import expected_seconds

        turns: dict[str, int] = {}
        for name, samples in self._samples.items():
            turns[name] = sum(self._samples[other] == samples for other in turns)
        tried: dict[str, float] = {}
        start, started = time.process_time(), time.perf_counter()
        for name in sorted(turns, key=turns.__getitem__):
            if time.process_time() - start > max(SECONDS, SHARE * sum(tried.values())):
                break
            if issubclass(find("network", self._cells[name].network.name), Estimator):
                continue  # a trial would be all of its training
            try:
                with chdir("."):  # a plug-in may leave it
                    samples = self._catalog.load(self._samples[name])
                    tried[name] = expected_seconds(samples, self._cells[name])
            except (Exception, SystemExit):  # the node itself reports it
                logger.debug("%s: not tried", name, exc_info=True)
        spent = time.process_time() - start
        slower = max(1.0, (time.perf_counter() - started) / spent) if spent else 1.0
        self._tried = bool(tried)
        sizes = {name: cell.budget * len(cell.seeds) for name, cell in self._cells.items()}
        usual = mean(tried[name] / sizes[name] for name in tried) if tried else 1.0
        return {name: slower * tried.get(name, usual * size) for name, size in sizes.items()}


def in_words(seconds: float) -> str:
    """A duration in seconds or minutes.

    >>> in_words(41.4), in_words(200)
    ('41 s', '3 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
