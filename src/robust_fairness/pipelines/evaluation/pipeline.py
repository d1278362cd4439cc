"""The evaluation pipeline."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure
from robust_fairness.experiment.experiment import Cell, DatasetConfig
from robust_fairness.pipelines.nodes import cell_node, fan_in
from robust_fairness.runs.configuration import loader

JOINED = names.tables_of("cell")  # which a dataset joins
DIAGNOSED = names.tables_of("domains")


def predict(samples: Any, models: Any, selection: Any, cell: Cell, **shifted: Any) -> Any:
    """Predict every test set with the selected replicas."""
    from robust_fairness import training

    return training.predict(samples, models, selection, cell, shifted)


def evaluate(
    samples: Any, predictions: Any, selection: Any, cell: Cell, **shifted: Any
) -> tuple[Any, Any]:
    """Score the predictions by every metric, and count their rows by group."""
    from robust_fairness import training
    from robust_fairness.compute.checkpoints import threads

    with threads(cell.protocol.threads):
        scores = training.evaluate(samples, predictions, selection, cell, shifted)
        return scores, training.count(samples, predictions, cell, shifted)


def draw(samples: Any, validation: Any, selection: Any, cell: Cell) -> Any:
    """The validation embeddings of one replica of a cell in the plane."""
    from robust_fairness.compute.checkpoints import threads
    from robust_fairness.reporting.embedding_plane import planes, selected

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
    from robust_fairness.compute.checkpoints import threads
    from robust_fairness.diagnosis.runs import diagnose as diagnosed
    from robust_fairness.diagnosis.unprocessing import frontier

    done = {name: value for name, value in parts.items() if not isinstance(value, Failure)}
    predicted, validation = (
        {
            names.parse(name).label: value
            for name, value in done.items()
            if names.parse(name).part == part
        }
        for part in ("predictions", "validation")
    )
    plain = {
        label: (validation[label], predicted[label]) for label in validation if label in predicted
    }
    with threads(1):
        tables = diagnosed(dataset.name, samples, predicted)
        return tables | {"frontier": frontier(dataset.name, samples, plain)}


def create_pipeline() -> Pipeline:
    """Predict and evaluate for every cell, collect for every dataset."""
    datasets = loader().selected_experiment.datasets
    cells = [
        node for dataset in datasets for cell in dataset.cells for node in _nodes(dataset, cell)
    ]
    diagnoses = [_diagnosing(dataset) for dataset in datasets if dataset.domains]
    planes = [_drawing(cell) for dataset in datasets for cell in dataset.drawn_cells]
    return Pipeline([*cells, *planes, *map(_collecting, datasets), *diagnoses])


def shifted_inputs(dataset: DatasetConfig) -> dict[str, str]:
    """The shifted test sets of a dataset as inputs of a node, by test set."""
    named = partial(names.of_test_set, dataset.name)
    return {test_set.name: named(test_set.name) for test_set in dataset.test_sets}


def _nodes(dataset: DatasetConfig, cell: Cell) -> list[Node]:
    named = partial(names.of_cell, cell.name)
    shared = {
        "samples": names.of_dataset(dataset.name, "samples"),
        "selection": named("selection"),
        "cell": f"params:{cell.name}.cell",
        **shifted_inputs(dataset),
    }
    models, predictions = {"models": named("models")}, {"predictions": named("predictions")}
    scored = [named("metrics"), named("counts")]
    return [
        cell_node(cell, predict, shared | models, named("predictions"), "predict"),
        cell_node(cell, evaluate, shared | predictions, scored, "evaluate"),
    ]


def _drawing(cell: Cell) -> Node:
    inputs = {part: names.of_cell(cell.name, part) for part in ("validation", "selection")}
    inputs |= {
        "samples": names.of_dataset(cell.dataset, "samples"),
        "cell": f"params:{cell.name}.cell",
    }
    return cell_node(cell, draw, inputs, names.of_cell(cell.name, "planes"), "draw_planes")


def _collecting(dataset: DatasetConfig) -> Node:
    parts = [*names.tables_of("dataset")]
    parts += DIAGNOSED if dataset.domains else ()
    parts += names.tables_of("generator") if dataset.generator else ()
    parts += ["contact_sheet"] if dataset.contact_sheet else []
    inputs = [names.of_dataset(dataset.name, part) for part in parts]
    for part in ("history", *JOINED):
        cells = dataset.drawn_cells if part == "planes" else dataset.cells
        inputs += [names.of_cell(cell.name, part) for cell in cells]
    output = names.of_dataset(dataset.name, "results")
    return _of_dataset(dataset, collect, {name: name for name in inputs}, output, "collect")


def _of_dataset(
    dataset: DatasetConfig, function: Callable, inputs: Any, outputs: Any, name: str
) -> Node:
    return fan_in(function, inputs, outputs, name, dataset.name, f"dataset.{dataset.name}")


def _diagnosing(dataset: DatasetConfig) -> Node:
    parts = [names.of_cell(cell.name, "predictions") for cell in dataset.cells]
    # decisions of post-processed cells have no scores to unprocess
    scored = [cell for cell in dataset.cells if cell.postprocessing is None]
    parts += [names.of_cell(cell.name, "validation") for cell in scored]
    inputs = {name: name for name in parts} | {
        "samples": names.of_dataset(dataset.name, "samples"),
        "dataset": f"params:{dataset.name}.dataset",
    }
    outputs = {part: names.of_dataset(dataset.name, part) for part in DIAGNOSED}
    return _of_dataset(dataset, diagnose, inputs, outputs, "diagnose")
