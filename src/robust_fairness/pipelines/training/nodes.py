"""The nodes of the training pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import Cell


def train(samples: Any, cell: Cell) -> tuple[Any, Any, Any, Any]:
    """Fit all trials and seeds of a cell."""
    from robust_fairness.bench import training

    return training.train(samples, cell)


def select(samples: Any, validation: Any, cell: Cell) -> list[Any]:
    """The trials selected on validation rows; of several, what every criterion would select."""
    from robust_fairness.bench import training
    from robust_fairness.bench.compute.checkpoints import threads

    with threads(cell.protocol.threads):
        selected = training.select(samples, validation, cell)
        if cell.budget == 1:
            return [selected]
        return [selected, training.compare(samples, validation, cell)]
