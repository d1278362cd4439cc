"""The names of everything that an experiment uses, by kind."""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from robust_fairness.core import registry
from robust_fairness.experiment.experiment import Cell, Experiment, Protocol

# Fields of parameters that hold the name of a plug-in, and its kind.
NAMING = {
    "source": "dataset", "of": "dataset", "shift": "shift", "method": "method",
    "network": "network", "backbone": "network", "classifier": "network",
    "objective": "objective", "miner": "miner", "augmentation": "augmentation",
    "postprocessing": "postprocessing",
}  # fmt: skip


def used_by(experiment: Experiment) -> dict[str, list[str]]:
    """Sorted names of datasets, shifts, methods, networks, metrics and so on, by kind.

    Trials count; ``augmentation`` is that of training, and ``generator`` the kind of generator.
    """
    result: dict[str, set[str]] = {}
    cells = list(experiment.cells)
    for dataset in experiment.datasets:
        _note({"source": dataset.source.model_dump()}, result)
        for test_set in dataset.test_sets:
            _note({"shift": test_set.shift.model_dump()}, result)
    for generator in experiment.generators:
        result.setdefault("generator", set()).add("edm")  # the only kind
        if generator.source and generator.reference:
            _note({"source": generator.source.model_dump()}, result)
            cells.append(generator.reference)
    for cell in cells:
        _note_cell(cell, result)
    return {kind: sorted(names) for kind, names in result.items()}


def _note_cell(cell: Cell, used: dict[str, set[str]]) -> None:
    """Note the names of a cell: of its metrics, and of its method and network in every trial."""
    from robust_fairness.metrics.criteria import scored_by

    scored = {selection.metric for selection in scored_by(cell.selections)}
    used.setdefault("metric", set()).update(cell.metrics, scored)
    _note({"method": {"name": cell.method.name}, "network": {"name": cell.network.name}}, used)
    if cell.postprocessing:
        _note({"postprocessing": {"name": cell.postprocessing.name}}, used)
    changes = [
        *({field: value} for trial in cell.trials for field, value in trial.items()),
        *(sample for stage in cell.search for sample in stage.samples),
    ]
    naming = [change for change in changes if not NAMING.keys().isdisjoint(change)]
    for replica in cell.model_copy(update={"seeds": (0,)}).replicas([{}, *naming]):
        for part in (replica.method, replica.network, replica.protocol):
            _note(part.model_dump(), used)


def _note(fields: Mapping[str, Any], used: dict[str, set[str]]) -> None:
    """Note the names in the fields of ``NAMING``, alone or with parameters, at any depth."""
    for field, value in fields.items():
        kind = NAMING.get(field, "")
        name = value.get("name") if isinstance(value, Mapping) else value
        if kind and isinstance(name, str) and name in _names(kind):
            used.setdefault(kind, set()).add(name)
        if isinstance(value, Mapping):
            _note(value, used)


@cache
def _names(kind: str) -> frozenset[str]:
    """Names of a kind; augmentations are those of the protocol."""
    if kind == "augmentation":
        offered = Protocol.model_fields["augmentation"].annotation
        return frozenset(get_args(offered)) - {"none"}
    return frozenset(registry.names(kind))
