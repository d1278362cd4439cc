"""The evaluation pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.experiment.grid import DatasetGrid
from robust_fairness.experiment.parameters import CellParameters
from robust_fairness.pipelines._cells import for_every_cell, shifted_inputs
from robust_fairness.runs.configuration import selected_grid

# What else is collected of a cell, and how it is called beside the metrics, which have its label.
OF = {part: f"{part} of " for part in ("history", "trials")}


def predict(samples: Any, models: Any, selection: Any, cell: CellParameters, **shifted: Any) -> Any:
    """Predict every test set with the chosen replicas."""
    from robust_fairness import training

    return training.predict(samples, models, selection, cell, shifted)


def evaluate(
    samples: Any, predictions: Any, selection: Any, cell: CellParameters, **shifted: Any
) -> Any:
    """Score the predictions by every metric."""
    from robust_fairness import training

    return training.evaluate(samples, predictions, selection, cell, shifted)


def collect(**parts: Any) -> tuple[Any, Any]:
    """Join the rows of a dataset's cells, and note which of them failed and what they trained.

    Args:
        parts: of every cell its metrics by its label, and its history and trials, see ``OF``.
    """
    from robust_fairness.pipelines._collecting import join, states

    trained = {
        part: {name.removeprefix(of): one for name, one in parts.items() if name.startswith(of)}
        for part, of in OF.items()
    }
    metrics = {name: one for name, one in parts.items() if " " not in name}
    return join(metrics), states(metrics, **trained)


def create_pipeline() -> Pipeline:
    """Predict and evaluate for every cell, collect for every dataset of the grid."""
    collecting = [_collecting(dataset) for dataset in selected_grid().datasets]
    return Pipeline([for_every_cell(_nodes), *collecting])


def _nodes(dataset: DatasetGrid) -> list[Node]:
    shared = {"samples": "samples", "selection": "selection", "cell": "params:cell"}
    shared |= shifted_inputs(dataset)
    return [
        Node(predict, {**shared, "models": "models"}, "predictions", name="predict"),
        Node(evaluate, {**shared, "predictions": "predictions"}, "metrics", name="evaluate"),
    ]


def _collecting(dataset: DatasetGrid) -> Pipeline:
    parts = {cell.label: f"{cell.name}.metrics" for cell in dataset.cells}
    for part, of in OF.items():
        parts |= {f"{of}{cell.label}": f"{cell.name}.{part}" for cell in dataset.cells}
    return Pipeline(
        [
            Node(
                collect,
                {name: name for name in parts},
                ["table", "states"],
                name="collect",
            )
        ],
        namespace=dataset.name,
        inputs=parts,
        outputs={"table": f"{dataset.name}_table", "states": f"{dataset.name}_states"},
        tags=[f"dataset.{dataset.name}", "fan_in"],
    )
