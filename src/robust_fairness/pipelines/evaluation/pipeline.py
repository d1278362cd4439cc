"""The evaluation pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.grid import DatasetGrid, selected_grid
from robust_fairness.parameters import CellParameters
from robust_fairness.pipelines._cells import for_every_cell, shifted_inputs


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


def collect(**metrics: Any) -> tuple[Any, Any]:
    """Join the rows of a dataset's cells, and note which of them failed."""
    from robust_fairness.pipelines._collecting import join, states

    return join(metrics), states(metrics)


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
    return Pipeline(
        [
            Node(
                collect,
                {cell.label: cell.label for cell in dataset.cells},
                ["table", "states"],
                name="collect",
            )
        ],
        namespace=dataset.name,
        inputs={cell.label: f"{cell.name}.metrics" for cell in dataset.cells},
        outputs={"table": f"{dataset.name}_table", "states": f"{dataset.name}_states"},
        tags=[f"dataset.{dataset.name}", "fan_in"],
    )
