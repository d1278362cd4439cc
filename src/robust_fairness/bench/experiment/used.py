"""The names of everything that an experiment uses, by kind."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from robust_fairness.bench.experiment.experiment import Experiment, Protocol
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.core import registry


def used_by(experiment: Experiment) -> dict[str, list[str]]:
    """Sorted names of datasets, shifts, methods, networks, metrics and so on, by kind.

    Trials count; ``augmentation`` is that of training, and ``generator`` the kind of generator.
    """
    from robust_fairness.metrics.criteria import scored_by

    used: defaultdict[str, set[str]] = defaultdict(set)
    cells = list(experiment.cells)
    for dataset in experiment.datasets:
        _note([dataset.source, *dataset.test_sets], used)
    for generator in experiment.generators:
        used["generator"].add("edm")  # the only kind
        _note(generator.source, used)
        cells += [generator.reference] if generator.reference else []
    for cell in cells:
        used["metric"] |= {*cell.metrics, *(item.metric for item in scored_by(cell.selections))}
        used["method"].add(cell.method.name)
        used["network"].add(cell.network.name)
        _note(cell.postprocessing, used)
        samples = [sample for stage in cell.search for sample in stage.samples]
        naming = [
            change
            for change in (*cell.trials, *samples)
            if any(isinstance(value, str | Mapping) for value in change.values())
        ]
        for replica in cell.model_copy(update={"seeds": (0,)}).replicas([{}, *naming]):
            _note([replica.method, replica.network, replica.protocol], used)
    return {kind: sorted(names) for kind, names in used.items()}


def _note(value: Any, used: dict[str, set[str]]) -> None:
    """Note the plug-ins in a value at any depth, and the augmentation of a protocol."""
    if isinstance(value, Named):
        used[value.kind].add(value.name)
        _note(value.parameters, used)
    elif isinstance(value, BaseModel):
        if isinstance(value, Protocol) and value.augmentation != "none":
            used["augmentation"].add(value.augmentation)
        classifier = getattr(value, "classifier", "")  # of embeddings: a network, or ``linear``
        if classifier and classifier in registry.names("network"):
            used["network"].add(classifier)
        _note([getattr(value, name) for name in type(value).model_fields], used)
    elif isinstance(value, Mapping):
        _note([*value.values()], used)
    elif isinstance(value, list | tuple):
        for item in value:
            _note(item, used)
