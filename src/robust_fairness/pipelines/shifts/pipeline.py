"""The shifts pipeline."""

from inspect import signature
from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.errors import InputError
from robust_fairness.grid import DatasetGrid, selected_grid
from robust_fairness.parameters import TestSetParameters
from robust_fairness.registry import find


def shift(samples: Any, test_set: TestSetParameters) -> Any:
    """Shift the rows that some split tests on; no other row is asked for.

    Shifts that draw random numbers name ``places`` among their arguments, the places of these
    rows in the dataset: a row's noise depends on its place, not on the number of splits.

    Raises:
        InputError: the shift is a subset of latent space, which given samples do not have.
    """
    import numpy as np

    module = find("shift", test_set.shift.name)
    if not hasattr(module, "apply"):
        raise InputError(
            f"shift {test_set.shift.name}: of the latents of a generated dataset, "
            "allowed here: shifts of given samples"
        )
    places = np.flatnonzero((samples.splits == "test").any(axis=1))
    offered = {"places": places} if "places" in signature(module.apply).parameters else {}
    return module.apply(
        samples.take(places), test_set.severity, test_set.shift.parameters, **offered
    )


def create_pipeline() -> Pipeline:
    """One node a test set of every dataset of the grid."""
    return Pipeline([_of_dataset(dataset) for dataset in selected_grid().datasets])


def _of_dataset(dataset: DatasetGrid) -> Pipeline:
    return Pipeline(
        [
            Node(
                shift,
                ["samples", f"params:shifted.{test_set.name}"],
                test_set.name,
                name=f"shift_{test_set.name}",
                tags=[f"shift.{test_set.shift}"],
            )
            for test_set in dataset.test_sets
        ],
        namespace=dataset.name,
        outputs={t.name: f"{dataset.name}.shifted.{t.name}" for t in dataset.test_sets},
        tags=[f"dataset.{dataset.name}"],
    )
