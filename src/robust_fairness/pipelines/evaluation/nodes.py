"""The nodes of the evaluation pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig
from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure


def predict(samples: Any, models: Any, selection: Any, cell: Cell, **shifted: Any) -> Any:
    """Predict every test set with the selected replicas."""
    from robust_fairness.bench import training

    return training.predict(samples, models, selection, cell, shifted)


def evaluate(
    samples: Any, predictions: Any, selection: Any, cell: Cell, **shifted: Any
) -> tuple[Any, Any]:
    """Score the predictions by every metric, and count their rows by group."""
    from robust_fairness.bench import training
    from robust_fairness.bench.compute.checkpoints import threads

    with threads(cell.protocol.threads):
        scores = training.evaluate(samples, predictions, selection, cell, shifted)
        return scores, training.count(samples, predictions, cell, shifted)


def draw(samples: Any, validation: Any, selection: Any, cell: Cell) -> Any:
    """The validation embeddings of one replica of a cell in the plane."""
    from robust_fairness.bench.compute.checkpoints import threads
    from robust_fairness.report.embedding_plane import planes, selected

    trial, seed = selected(selection)
    values = next(
        part for part in validation if (part.trial, part.seed, part.part) == (trial, seed, "val")
    )
    with threads(cell.protocol.threads):
        seen = samples.of_split(values.split)
        return planes(cell.dataset, cell.label, seen, seed, values.rows, values.values)


def diagnose(samples: Any, dataset: DatasetConfig, **parts: Any) -> Any:
    """Why scores of a dataset's cells change between domains; a failed cell has no rows."""
    from robust_fairness.bench.compute.checkpoints import threads
    from robust_fairness.bench.diagnosis import diagnose as diagnosed

    predicted = {
        names.parse(name).label: value
        for name, value in parts.items()
        if not isinstance(value, Failure)
    }
    with threads(1):
        return diagnosed(dataset.name, samples, predicted)
