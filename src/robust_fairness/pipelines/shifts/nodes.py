"""The nodes of the shifts pipeline."""

from typing import Any

from robust_fairness.bench.experiment.experiment import DatasetConfig, TestSet
from robust_fairness.catalog import names
from robust_fairness.core.registry import find
from robust_fairness.pipelines.builders import source_of


def shift(samples: Any, test_set: TestSet) -> Any:
    """Shift the rows that some split tests on.

    The noise of a row depends on its place in the dataset, not on the number of splits.
    """
    places = _tested(samples)
    plugin = find("shift", test_set.shift.name)(test_set.shift.parameters)
    return plugin.apply(samples.take(places), test_set.severity, places)


def shift_generated(samples: Any, test_set: TestSet, dataset: DatasetConfig, generator: Any) -> Any:
    """Shift the test rows of a generated dataset: in latent space, or their images."""
    if not find("shift", test_set.shift.name).latent:
        return shift(samples, test_set)
    folder = names.of_test_set(dataset.name, test_set.name)
    return source_of(dataset.source).shifted(
        samples.take(_tested(samples)), test_set, generator, folder
    )


def _tested(samples: Any) -> Any:
    """Row numbers that some split tests on."""
    import numpy as np

    return np.flatnonzero((samples.splits == "test").any(axis=1))
