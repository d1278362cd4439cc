"""The nodes of the evaluation pipeline."""

from collections.abc import Iterable, Mapping
from typing import Any

from robust_fairness.bench.experiment.experiment import Cell, DatasetConfig
from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure

JOINED = names.tables_of("cell")  # which a dataset joins


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


def collect(**parts: Any) -> dict[str, Any]:
    """Tables and images of a dataset and its cells, by name, without what failed.

    The table ``states`` says which cells failed and what they trained.
    """
    from robust_fairness.core import tables

    cells: dict[str, dict[str, Any]] = {}
    of_dataset: dict[str, Any] = {}
    for name, part in parts.items():
        parsed = names.parse(name)
        fields = cells.setdefault(parsed.label, {}) if parsed.label else of_dataset
        fields[parsed.part] = part
    joined = {table: [cell[table] for cell in cells.values() if table in cell] for table in JOINED}
    states = [{"method": label, **state(cell)} for label, cell in cells.items()]
    return {
        **{name: part for name, part in of_dataset.items() if not isinstance(part, Failure)},
        **{name: join(name, frames) for name, frames in joined.items()},
        "states": tables.STATES.table(states),
    }


def join(table: str, parts: Iterable[Any]) -> Any:
    """The rows of all parts of a table; a part that failed has none."""
    from robust_fairness.core import tables

    return tables.TABLES[table].joined([part for part in parts if not isinstance(part, Failure)])


def state(cell: Mapping[str, Any]) -> dict[str, Any]:
    """State of a cell: done, or failed and why; and how much it has trained."""
    import pandas as pd

    metrics, history, trials = (cell[part] for part in ("metrics", "history", "trials"))
    is_done = isinstance(metrics, pd.DataFrame)
    trained = isinstance(history, pd.DataFrame)
    return {
        "state": "done" if is_done else "failed",
        "reason": "" if is_done else str(metrics),
        "trials": len(trials) if isinstance(trials, pd.DataFrame) else 0,
        "epochs": len(history[["trial", "seed", "epoch"]].drop_duplicates()) if trained else 0,
    }


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
