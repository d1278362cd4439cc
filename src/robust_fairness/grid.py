"""The grid: which datasets, shifts, methods and seeds a run has.

``conf/<env>/experiment.yml`` says it. Kedro does not tell ``create_pipeline()`` the environment,
so the configuration loader hands itself over here when it is made; every way into the project
(run, registry, viz, notebooks) makes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from robust_fairness.errors import InputError, unknown_name
from robust_fairness.registry import names

SHARED = ("metrics", "selections")  # given for all datasets, or by one for itself
AXES = ("datasets", "methods", "shifts", "seeds")


@dataclass(frozen=True)
class TestSet:
    """A shift and its severity."""

    __test__ = False  # no test case, whatever its name

    shift: str
    severity: float

    @property
    def name(self) -> str:
        """Name in the catalog, for example ``gaussian_noise_0_03``."""
        return f"{self.shift}_{self.severity:g}".replace(".", "_").replace("-", "_")


@dataclass(frozen=True)
class Cell:
    """A method on a dataset, with the trials beside the default one."""

    dataset: str
    method: str
    trials: tuple[dict[str, Any], ...]

    @property
    def name(self) -> str:
        """Namespace of its nodes."""
        return f"{self.dataset}.{self.method}"


@dataclass(frozen=True)
class DatasetGrid:
    """Everything that runs on one dataset; metrics and selections are the grid's by default."""

    name: str
    protocol: str
    network: str
    metrics: tuple[str, ...]
    selections: tuple[str, ...]
    test_sets: tuple[TestSet, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Grid:
    """All that a run has."""

    seeds: int
    datasets: tuple[DatasetGrid, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, dataset by dataset."""
        return tuple(cell for dataset in self.datasets for cell in dataset.cells)

    def narrowed(self, wanted: Mapping[str, Any]) -> "Grid":
        """The part of the grid that was asked for.

        Args:
            wanted: names of ``datasets``, ``methods`` and ``shifts`` (comma separated or lists)
                and the number of ``seeds``; whatever is left out stays.

        Raises:
            InputError: a name is not in the grid, or nothing would be left.
        """
        for axis in wanted:
            if axis not in AXES:
                raise unknown_name("axis of the grid", axis, AXES)
        datasets = _chosen("dataset", wanted.get("datasets"), [d.name for d in self.datasets])
        methods = _chosen("method", wanted.get("methods"), [c.method for c in self.cells])
        shifts = _chosen(
            "shift", wanted.get("shifts"), [t.shift for d in self.datasets for t in d.test_sets]
        )
        narrowed = tuple(
            replace(
                dataset,
                test_sets=tuple(t for t in dataset.test_sets if t.shift in shifts),
                cells=tuple(c for c in dataset.cells if c.method in methods),
            )
            for dataset in self.datasets
            if dataset.name in datasets
        )
        kept = tuple(dataset for dataset in narrowed if dataset.cells)
        if not kept:
            raise InputError("grid: no dataset asked for has a method asked for")
        return replace(self, seeds=_seeds(wanted.get("seeds", self.seeds)), datasets=kept)


def _chosen(kind: str, wanted: Any, allowed: list[str]) -> set[str]:
    if wanted is None:
        return set(allowed)
    chosen = wanted.split(",") if isinstance(wanted, str) else list(wanted)
    for name in chosen:
        if name not in allowed:
            raise unknown_name(f"{kind} of the grid", name, set(allowed))
    return set(chosen)


def _seeds(value: Any) -> int:
    text = str(value)
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"seeds: {value!r}, allowed: a whole number from 1")
    return int(text)


def read(experiment: Mapping[str, Any], parameters: Mapping[str, Any]) -> Grid:
    """The grid of an ``experiment.yml``.

    Args:
        experiment: its content.
        parameters: the parameters that its names refer to.

    Raises:
        InputError: a name is unknown or a field does not exist.
    """
    known = ("seeds", *SHARED, "datasets")
    for field in experiment:
        if field not in known:
            raise unknown_name("field of experiment.yml", field, known)
    datasets = experiment.get("datasets") or {}
    if not datasets:
        raise InputError("experiment.yml: datasets: none given, allowed: at least one")
    shared = {name: experiment[name] for name in SHARED if name in experiment}
    return Grid(
        seeds=_seeds(experiment.get("seeds", 1)),
        datasets=tuple(
            _dataset(name, shared | (fields or {}), parameters) for name, fields in datasets.items()
        ),
    )


def _dataset(name: str, fields: Mapping[str, Any], parameters: Mapping[str, Any]) -> DatasetGrid:
    known = ("protocol", "network", "shifts", "methods", *SHARED)
    for field in fields:
        if field not in known:
            raise unknown_name(f"field of {name} in experiment.yml", field, known)
    _require("dataset", name, parameters.get("datasets"), "dataset")
    for kind, section in (("protocol", "protocols"), ("network", "networks")):
        if fields.get(kind) not in (parameters.get(section) or {}):
            raise unknown_name(
                f"{kind} of {name} in experiment.yml",
                str(fields.get(kind)),
                parameters.get(section) or {},
            )
    methods = fields.get("methods") or {}
    for method in methods:
        _require("method", method, parameters.get("methods"), "method")
    shifts = fields.get("shifts") or {}
    for shift in shifts:
        _require("shift", shift, parameters.get("shifts"), "shift")
    return DatasetGrid(
        name=name,
        protocol=fields["protocol"],
        network=fields["network"],
        metrics=tuple(fields.get("metrics", ["accuracy"])),
        selections=tuple(fields.get("selections", ["accuracy"])),
        test_sets=tuple(
            TestSet(shift, float(severity))
            for shift, severities in shifts.items()
            for severity in severities
        ),
        cells=tuple(
            Cell(name, method, tuple((options or {}).get("trials", ())))
            for method, options in methods.items()
        ),
    )


def _require(kind: str, name: str, configured: Mapping[str, Any] | None, room: str) -> None:
    """A name of the grid is a key of the parameters, or the file of its room itself."""
    if name not in (configured or {}) and name not in names(room):
        raise unknown_name(f"{kind} in experiment.yml", name, {*(configured or {}), *names(room)})


_loader: Any = None


def use(loader: Any) -> None:
    """Read the grid from this configuration loader from now on."""
    global _loader  # noqa: PLW0603 - Kedro gives create_pipeline() no argument to pass it by
    _loader = loader


def loader() -> Any:
    """The configuration loader in use; one of the environment KEDRO_ENV where none was made."""
    if _loader is None:
        from robust_fairness.configuration import default_loader

        default_loader()
    return _loader


def full_grid() -> Grid:
    """The grid of the environment."""
    found: Grid = loader().full_grid
    return found


def selected_grid() -> Grid:
    """The part of it that this run was asked for."""
    found: Grid = loader().selected_grid
    return found
