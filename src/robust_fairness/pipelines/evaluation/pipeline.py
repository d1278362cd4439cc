"""The evaluation pipeline."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure
from robust_fairness.experiment.experiment import Cell, Dataset
from robust_fairness.pipelines import nodes
from robust_fairness.pipelines.nodes import cell_node, fan_in
from robust_fairness.runs.configuration import loader

COLLECTED = ("metrics", "history", "trials")  # parts of a cell


def predict(samples: Any, models: Any, selection: Any, cell: Cell, **shifted: Any) -> Any:
    """Predict every test set with the selected replicas."""
    from robust_fairness import training

    return training.predict(samples, models, selection, cell, shifted)


def evaluate(samples: Any, predictions: Any, selection: Any, cell: Cell, **shifted: Any) -> Any:
    """Score the predictions by every metric."""
    from robust_fairness import training
    from robust_fairness.core.checkpoints import threads

    with threads(cell.protocol.threads):
        return training.evaluate(samples, predictions, selection, cell, shifted)


def collect(**parts: Any) -> tuple[Any, Any]:
    """The metrics of a dataset's cells, and which of them failed and what they trained."""
    from robust_fairness.core import tables

    cells: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        found = names.parse(name)
        cells.setdefault(found.label, {})[found.part] = part
    metrics = {label: cell["metrics"] for label, cell in cells.items()}
    rows = [{"method": label, **state(cell)} for label, cell in cells.items()]
    return nodes.collect("metrics", **metrics), tables.STATES.table(rows)


def state(cell: Mapping[str, Any]) -> dict[str, Any]:
    """State of a cell: done, or failed and why; and how much it has trained."""
    import pandas as pd

    metrics, history, trials = (cell[part] for part in COLLECTED)
    is_done = isinstance(metrics, pd.DataFrame)
    trained = isinstance(history, pd.DataFrame)
    return {
        "state": "done" if is_done else "failed",
        "reason": "" if is_done else str(metrics),
        "trials": len(trials) if isinstance(trials, pd.DataFrame) else 0,
        "epochs": len(history[["trial", "seed", "epoch"]].drop_duplicates()) if trained else 0,
    }


def diagnose(samples: Any, dataset: Dataset, **parts: Any) -> Any:
    """Why scores of a dataset's cells change between domains; a failed cell has no rows."""
    from robust_fairness import diagnosis
    from robust_fairness.core.checkpoints import threads

    done = {name: one for name, one in parts.items() if not isinstance(one, Failure)}
    predicted, validation = (
        {
            names.parse(name).label: one
            for name, one in done.items()
            if names.parse(name).part == part
        }
        for part in ("predictions", "validation")
    )
    plain = {
        label: (validation[label], predicted[label]) for label in validation if label in predicted
    }
    with threads(1):
        found = diagnosis.diagnose(dataset.name, samples, predicted)
        return found | {"frontier": diagnosis.frontier(dataset.name, samples, plain)}


def create_pipeline() -> Pipeline:
    """Predict and evaluate for every cell, collect for every dataset."""
    datasets = loader().selected_experiment.datasets
    cells = [
        node for dataset in datasets for cell in dataset.cells for node in _nodes(dataset, cell)
    ]
    diagnoses = [_diagnosing(dataset) for dataset in datasets if dataset.domains]
    return Pipeline([*cells, *map(_collecting, datasets), *diagnoses])


def shifted_inputs(dataset: Dataset) -> dict[str, str]:
    """The shifted test sets of a dataset as inputs of a node, by test set."""
    return {one.name: names.of_test_set(dataset.name, one.name) for one in dataset.test_sets}


def _nodes(dataset: Dataset, cell: Cell) -> list[Node]:
    own = partial(names.of_cell, cell.name)
    shared = {
        "samples": names.of_dataset(dataset.name, "samples"),
        "selection": own("selection"),
        "cell": f"params:{cell.name}.cell",
        **shifted_inputs(dataset),
    }
    models, predictions = {"models": own("models")}, {"predictions": own("predictions")}
    return [
        cell_node(cell, predict, shared | models, own("predictions"), "predict"),
        cell_node(cell, evaluate, shared | predictions, own("metrics"), "evaluate"),
    ]


def _collecting(dataset: Dataset) -> Node:
    parts = [names.of_cell(cell.name, part) for cell in dataset.cells for part in COLLECTED]
    outputs = [names.of_dataset(dataset.name, part) for part in ("table", "states")]
    inputs = {name: name for name in parts}
    return fan_in(collect, inputs, outputs, "collect", dataset.name)


def _diagnosing(dataset: Dataset) -> Node:
    parts = [names.of_cell(cell.name, "predictions") for cell in dataset.cells]
    # decisions of post-processed cells have no scores to unprocess
    scored = [cell for cell in dataset.cells if cell.postprocessing is None]
    parts += [names.of_cell(cell.name, "validation") for cell in scored]
    inputs = {name: name for name in parts} | {
        "samples": names.of_dataset(dataset.name, "samples"),
        "dataset": f"params:{dataset.name}.dataset",
    }
    outputs = {part: names.of_dataset(dataset.name, part) for part in nodes.DIAGNOSED}
    return fan_in(diagnose, inputs, outputs, "diagnose", dataset.name)
