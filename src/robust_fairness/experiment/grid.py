"""The grid: which datasets, shifts, methods and seeds a run has.

``conf/<env>/experiment.yml`` says it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.registry import names

OPTIONS = ("facets", "groupings", "search_by", "contact_sheet", "embedding_planes", "seeds")
GENERATED = "generated"  # the dataset source whose pictures a generator makes
CELL = ("facets", "method", "network", "settings", "trials", "search")  # fields of a cell
SHARED = ("metrics", "selections")  # given for all datasets, or by one for itself
AXES = ("datasets", "methods", "shifts", "seeds")
LABEL = re.compile(r"\w[\w-]*", re.ASCII)  # part of names of files, of nodes and in MLflow
# what stands beside the cells of a dataset in parameters, catalog and pipelines
TAKEN = ("attributes", "samples", "shifted", "source", "states", "table")


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
    """A method on a dataset, with the trials beside the default one and the stages of a search.

    ``label`` is what the cell is called wherever methods are shown; ``method`` and ``network`` are
    the configured ones that it trains. ``settings`` are fields of the method, network or protocol
    that are other than configured on this dataset, in every trial. ``facets`` are facts by which
    reports filter and group, those of its dataset among them.
    """

    dataset: str
    label: str
    method: str
    network: str
    trials: tuple[dict[str, Any], ...]
    search: tuple[dict[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    facets: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Namespace of its nodes."""
        return f"{self.dataset}.{self.label}"


@dataclass(frozen=True)
class Generator:
    """A generator of pictures, trained on a dataset of real ones or read from a file.

    The referee is a classifier of the same real pictures, which tells what generated ones are
    worth; there is none where no ``source`` is named.
    """

    name: str
    source: str = ""
    network: str = ""
    protocol: str = ""
    trained: bool = True


@dataclass(frozen=True)
class DatasetGrid:
    """Everything that runs on one dataset; metrics and selections are the grid's by default.

    ``contact_sheet`` asks for a picture of some rows, of every class or, where it names an
    attribute, of every value of that; ``groupings`` are combinations of
    attributes that group metrics are scored for, beside each attribute on its own. ``seeds`` is
    the number of its seeds. ``embedding_planes`` are labels of cells whose embeddings of validation
    rows are drawn. ``generator`` is what makes its pictures, where they are made.
    """

    name: str
    protocol: str
    seeds: int
    metrics: tuple[str, ...]
    selections: tuple[str, ...]
    test_sets: tuple[TestSet, ...]
    cells: tuple[Cell, ...]
    groupings: tuple[tuple[str, ...], ...] = ()
    search_by: str | None = None
    contact_sheet: bool | str = False
    embedding_planes: tuple[str, ...] = ()
    generator: Generator | None = None

    @property
    def drawn_cells(self) -> tuple[Cell, ...]:
        """The cells of ``embedding_planes`` that this grid has."""
        return tuple(cell for cell in self.cells if cell.label in self.embedding_planes)


@dataclass(frozen=True)
class Grid:
    """All that a run has."""

    datasets: tuple[DatasetGrid, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, dataset by dataset."""
        return tuple(cell for dataset in self.datasets for cell in dataset.cells)

    @property
    def generators(self) -> tuple[Generator, ...]:
        """The generators of its datasets, each once."""
        found = [dataset.generator for dataset in self.datasets if dataset.generator]
        return tuple(dict.fromkeys(found))

    def narrowed(self, wanted: Mapping[str, Any]) -> "Grid":
        """The part of the grid that was asked for.

        Args:
            wanted: names of ``datasets``, ``methods`` (labels of cells) and ``shifts`` (comma
                separated or lists) and the number of ``seeds``; whatever is left out stays.

        Raises:
            InputError: a name is not in the grid, or nothing would be left.
        """
        for axis in wanted:
            if axis not in AXES:
                raise unknown_name("axis of the grid", axis, AXES)
        datasets = _chosen("dataset", wanted.get("datasets"), [d.name for d in self.datasets])
        methods = _chosen("method", wanted.get("methods"), [c.label for c in self.cells])
        shifts = _chosen(
            "shift", wanted.get("shifts"), [t.shift for d in self.datasets for t in d.test_sets]
        )
        narrowed = tuple(
            replace(
                dataset,
                seeds=_seeds(wanted.get("seeds", dataset.seeds)),
                test_sets=tuple(t for t in dataset.test_sets if t.shift in shifts),
                cells=tuple(c for c in dataset.cells if c.label in methods),
            )
            for dataset in self.datasets
            if dataset.name in datasets
        )
        kept = tuple(dataset for dataset in narrowed if dataset.cells)
        if not kept:
            raise InputError("grid: no dataset asked for has a method asked for")
        return replace(self, datasets=kept)


def _chosen(kind: str, wanted: Any, allowed: list[str]) -> set[str]:
    if wanted is None:
        return set(allowed)
    given = wanted.split(",") if isinstance(wanted, str) else list(wanted)
    chosen = [str(name).strip() for name in given]
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
        InputError: a name is unknown, or a field does not exist or holds what is not allowed.
    """
    content = _fields(experiment, "experiment.yml", ("seeds", *SHARED, "datasets"))
    datasets = _mapping(content.get("datasets"), "datasets in experiment.yml")
    if not datasets:
        raise InputError("experiment.yml: datasets: none given, allowed: at least one")
    shared = {name: content[name] for name in ("seeds", *SHARED) if name in content}
    return Grid(
        datasets=tuple(
            _dataset(name, fields, shared, parameters) for name, fields in datasets.items()
        ),
    )


def _dataset(
    name: str, given: Any, shared: Mapping[str, Any], parameters: Mapping[str, Any]
) -> DatasetGrid:
    place = f"{name} in experiment.yml"
    known = ("protocol", "network", "shifts", "methods", *SHARED, *OPTIONS)
    fields = {**shared, **_fields(given, place, known)}
    _require("dataset", name, parameters.get("datasets"), "dataset")
    _require_configured("protocol", fields.get("protocol"), place, parameters)
    if "network" in fields:
        _require_configured("network", fields["network"], place, parameters)
    methods = _mapping(fields.get("methods"), f"methods of {place}")
    if not methods:
        raise InputError(f"{place}: methods: none given, allowed: at least one")
    shifts = _mapping(fields.get("shifts"), f"shifts of {place}")
    for shift in shifts:
        _require("shift", shift, parameters.get("shifts"), "shift")
    planes = _list(fields.get("embedding_planes", []), f"embedding_planes of {place}")
    for label in planes:
        if label not in methods:
            raise unknown_name(f"embedding_planes of {place}", str(label), methods)
    return DatasetGrid(
        name=name,
        protocol=fields["protocol"],
        seeds=_seeds(fields.get("seeds", 1)),
        metrics=_list(fields.get("metrics", ["accuracy"]), f"metrics of {place}"),
        selections=_list(fields.get("selections", ["accuracy"]), f"selections of {place}"),
        test_sets=tuple(
            test_set
            for shift, severities in shifts.items()
            for test_set in _test_sets(shift, severities, f"{shift} of {place}")
        ),
        cells=tuple(
            _cell(name, str(label), options, fields, parameters)
            for label, options in methods.items()
        ),
        groupings=tuple(
            _list(columns, f"groupings of {place}")
            for columns in _list(fields.get("groupings", []), f"groupings of {place}")
        ),
        search_by=fields.get("search_by"),
        contact_sheet=_contact_sheet(fields.get("contact_sheet", False), name, parameters),
        embedding_planes=planes,
        generator=_generator(name, parameters),
    )


def _contact_sheet(value: Any, dataset: str, parameters: Mapping[str, Any]) -> bool | str:
    """Whether there is one, or the attribute that it is of."""
    if isinstance(value, bool) or (
        isinstance(value, str) and not _is_generated(dataset, parameters)
    ):
        return value
    allowed = "true, false" + ("" if _is_generated(dataset, parameters) else ", an attribute")
    raise InputError(f"contact_sheet of {dataset} in experiment.yml: {value!r}, allowed: {allowed}")


def _generator(dataset: str, parameters: Mapping[str, Any]) -> Generator | None:
    """The generator of a dataset whose source is ``generated``."""
    options = (parameters.get("datasets") or {}).get(dataset) or {}
    if not _is_generated(dataset, parameters):
        return None
    configured = _mapping(parameters.get("generators"), "generators in parameters")
    name = str(options.get("generator"))
    if name not in configured:
        raise unknown_name(f"generator of {dataset} in parameters", name, configured)
    place = f"generator {name} in parameters"
    _require_own_name(name, place, parameters)
    fields = _fields(configured[name], place, ("source", "file", "training", "referee"))
    if not fields.get("source"):
        if not fields.get("file"):
            raise InputError(f"{place}: neither source nor file, allowed: one of them, or both")
        if fields.get("referee"):
            raise InputError(f"{place}: referee without source, allowed: both, or no referee")
        return Generator(name, trained=False)
    source = str(fields["source"])
    _require("dataset", source, parameters.get("datasets"), "dataset", place)
    if _is_generated(source, parameters):
        raise InputError(f"{place}: source {source} is generated, allowed: a dataset that is read")
    referee = _fields(fields.get("referee"), f"referee of {place}", ("network", "protocol"))
    for kind in ("network", "protocol"):
        _require_configured(kind, referee.get(kind), f"referee of {place}", parameters)
    return Generator(
        name, source, referee["network"], referee["protocol"], trained=not fields.get("file")
    )


def _is_generated(dataset: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a generator makes the pictures of a dataset."""
    options = (parameters.get("datasets") or {}).get(dataset) or {}
    return bool(options.get("source", dataset) == GENERATED)


def _require_own_name(generator: str, place: str, parameters: Mapping[str, Any]) -> None:
    """A generator is called as no dataset is: both have parameters and nodes of their name."""
    if not LABEL.fullmatch(generator):
        raise InputError(
            f"{place}: name {generator!r}, allowed: letters, digits, '_' and, after the first, '-'"
        )
    if generator in (parameters.get("datasets") or {}) or generator in names("dataset"):
        raise InputError(f"{place}: a dataset is called {generator}, allowed: a name of its own")


def _test_sets(shift: str, severities: Any, place: str) -> tuple[TestSet, ...]:
    values = _list(severities, place)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{place}: {value!r}, allowed: numbers")
    test_sets = tuple(TestSet(shift, float(value)) for value in values)
    if len({test_set.name for test_set in test_sets}) < len(test_sets):
        raise InputError(f"{place}: {list(values)}, allowed: each severity once")
    return test_sets


def _cell(
    dataset: str,
    label: str,
    options: Any,
    shared: Mapping[str, Any],
    parameters: Mapping[str, Any],
) -> Cell:
    """A cell; its method is called as the cell is, and its network is the dataset's, by default."""
    place = f"{label} of {dataset} in experiment.yml"
    if not LABEL.fullmatch(label) or label in TAKEN:
        raise InputError(
            f"{place}: label {label!r}, allowed: letters, digits, '_' and, after the first, '-', "
            f"but none of {', '.join(TAKEN)}"
        )
    fields = _fields(options, place, CELL)
    method = str(fields.get("method", label))
    _require("method", method, parameters.get("methods"), "method", place)
    network = fields.get("network", shared.get("network"))
    facets = {
        str(facet): str(value)
        for given in (shared, fields)
        for facet, value in _mapping(given.get("facets"), f"facets of {place}").items()
    }
    _require_configured("network", network, place, parameters)
    return Cell(
        dataset,
        label,
        method,
        str(network),
        trials=_list(fields.get("trials", []), f"trials of {place}"),
        search=_list(fields.get("search", []), f"search of {place}"),
        settings=_mapping(fields.get("settings"), f"settings of {place}"),
        facets=facets,
    )


def _fields(value: Any, place: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping without other fields than those known."""
    fields = _mapping(value, place)
    for name in fields:
        if name not in known:
            raise unknown_name(f"field of {place}", str(name), known)
    return fields


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    """A mapping; what is left empty has nothing in it."""
    if not isinstance(value, Mapping | None):
        raise InputError(f"{place}: {value!r}, allowed: names and their settings")
    return value or {}


def _list(value: Any, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{place}: {value!r}, allowed: a list")
    return tuple(value)


def _require(
    kind: str,
    name: str,
    configured: Mapping[str, Any] | None,
    room: str,
    place: str = "experiment.yml",
) -> None:
    """A name of the grid is a key of the parameters, or the file of its room itself."""
    if name not in (configured or {}) and name not in names(room):
        raise unknown_name(f"{kind} in {place}", name, {*(configured or {}), *names(room)})


def _require_configured(kind: str, name: Any, place: str, parameters: Mapping[str, Any]) -> None:
    """A network or protocol of the grid is a key of the parameters."""
    configured = parameters.get(f"{kind}s") or {}
    if name is None:
        raise InputError(f"{place}: {kind}: none given, allowed: {', '.join(sorted(configured))}")
    if str(name) not in configured:
        raise unknown_name(f"{kind} of {place}", str(name), configured)
