"""How much CPU time a run's trainings will take, from one epoch of each."""

import logging
import time

from robust_fairness import training
from robust_fairness.compute.checkpoints import not_kept
from robust_fairness.core.registry import find
from robust_fairness.estimators.base import Estimator
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples


def seconds_of(samples: Samples, cell: Cell) -> float:
    """Expected CPU seconds of the trainings of a cell.

    The default trial is trained for an epoch with every seed, or fitted if it is no network;
    nothing of it is kept.
    """
    protocol = cell.protocol.model_copy(update={"epochs": 1})
    logging.disable(logging.WARNING)  # of a training that is too short
    start = time.process_time()
    try:
        with not_kept():
            training.train(
                samples, cell.model_copy(update={"trials": (), "search": (), "protocol": protocol})
            )
    finally:
        logging.disable(logging.NOTSET)
    once = issubclass(find("network", cell.network.name), Estimator)
    seconds = time.process_time() - start
    return seconds * cell.budget * (1 if once else cell.protocol.epochs)
