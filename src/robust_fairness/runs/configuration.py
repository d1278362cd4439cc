"""The configuration loader: checks the environment and completes the parameters of every node.

Each node gets one typed parameter of its own namespace, put together here from what a person
writes once: ``datasets``, ``shifts``, ``methods``, ``networks``, ``protocols`` and the grid.

Kedro does not tell ``create_pipeline()`` the environment, so the loader in use is kept here; every
way into the project (run, registry, viz, notebooks) makes one.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, get_args

import click
from kedro.config import OmegaConfigLoader

import robust_fairness
from robust_fairness.core import registry
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.experiment import grid

# The configuration that comes with the package.
DEFAULT = Path(robust_fairness.__file__).with_name("conf")


class ConfigurationError(click.ClickException, InputError):
    """A mistake in the configuration; commands of Kedro, too, show it as one line."""


@contextmanager
def _shown_by_all_commands() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise ConfigurationError(str(error)) from None


class ConfigLoader(OmegaConfigLoader):
    """Kedro's loader, plus an environment that must exist and parameters made from the grid."""

    @_shown_by_all_commands()
    def __init__(self, conf_source: str | Path, env: str | None = None, **options: Any) -> None:
        folder = Path(conf_source)
        if not folder.is_file():  # an archive holds all of its environments
            found = {path.name for conf in (folder, DEFAULT) for path in conf.glob("*/")}
            if env is not None and env not in found:
                raise unknown_name("environment", env, found)
        super().__init__(conf_source, env, **options)
        use(self)

    def _get_conf_env_path(self, env: str) -> str:
        """The folder of an environment: the project's own, or else that of the package."""
        own: str = super()._get_conf_env_path(env)
        is_missing = self._protocol == "file" and not Path(own).is_dir()
        return str(DEFAULT / env) if is_missing else own

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Configuration of one kind; ``parameters`` are complete with those of all nodes."""
        found: dict[str, Any] = super().__getitem__(key)
        if key != "parameters" or not found:
            return found
        written = {name: value for name, value in found.items() if name != "grid"}
        return written | node_parameters(self.selected_grid, written)

    @property
    def written_parameters(self) -> dict[str, Any]:
        """The parameters as people wrote them."""
        return super().__getitem__("parameters")

    @cached_property
    @_shown_by_all_commands()
    def full_grid(self) -> grid.Grid:
        """The grid of the environment."""
        return grid.read(super().__getitem__("experiment"), self.written_parameters)

    @cached_property
    @_shown_by_all_commands()
    def selected_grid(self) -> grid.Grid:
        """The grid narrowed by the runtime parameter ``grid``."""
        return self.full_grid.narrowed((self.runtime_params or {}).get("grid") or {})

    @property
    def names_of_cells(self) -> dict[str, dict[str, str]]:
        """Names of the method (``algorithm``) and of the network of every cell of the full grid."""
        written = self.written_parameters
        return {
            one.name: {
                "algorithm": _named(written, "methods", one.method)["name"],
                "network": _named(written, "networks", one.network)["name"],
            }
            for one in self.full_grid.cells
        }

    @property
    @_shown_by_all_commands()
    def used(self) -> dict[str, list[str]]:
        """Names of everything that this run uses, by kind; see ``used_by``."""
        return used_by(node_parameters(self.selected_grid, self.written_parameters))


def loader_of(environment: str | None) -> ConfigLoader:
    """A loader of the project in the current folder.

    Args:
        environment: its name; None for the default one.
    """
    from kedro.framework.project import settings
    from kedro.utils import find_kedro_project

    root = find_kedro_project(Path.cwd()) or Path.cwd()
    source = str(root / settings.CONF_SOURCE)
    return ConfigLoader(source, environment, **settings.CONFIG_LOADER_ARGS)


def node_parameters(selected: grid.Grid, written: dict[str, Any]) -> dict[str, Any]:
    """Parameters by dataset: ``source``, ``shifted`` by test set, and ``cell`` by label.

    A generated dataset has ``family`` as well, what is measured of it; one whose contact sheet is
    of an attribute has ``contact_sheet``. Parameters of generators
    stand beside those of datasets: ``generator``, ``source`` and ``referee``, a cell.
    """
    complete = {one.name: _generator_parameters(one, written) for one in selected.generators}
    for dataset in selected.datasets:
        source = _source(written, dataset.name, dataset.name, dataset.seeds)
        made_by = {"source": source} if dataset.generator else {}
        own: dict[str, Any] = {
            "source": source,
            "shifted": {
                test_set.name: {
                    "shift": _named(written, "shifts", test_set.shift),
                    "severity": test_set.severity,
                    **made_by,
                }
                for test_set in dataset.test_sets
            },
        }
        if isinstance(dataset.contact_sheet, str):
            own["contact_sheet"] = {"attribute": dataset.contact_sheet}
        test_sets = {t.name: [t.shift, t.severity] for t in dataset.test_sets}
        if dataset.generator:
            referee = complete[dataset.generator.name].get("referee")
            own["family"] = {**made_by, "test_sets": test_sets, "referee": referee}
        for cell in dataset.cells:
            own[cell.label] = {
                "cell": {
                    "dataset": dataset.name,
                    "label": cell.label,
                    "method": _named(written, "methods", cell.method),
                    "network": _named(written, "networks", cell.network),
                    "protocol": (written.get("protocols") or {}).get(dataset.protocol) or {},
                    "settings": dict(cell.settings),
                    "trials": list(cell.trials),
                    "search": list(cell.search),
                    "search_by": dataset.search_by,
                    "groupings": [list(columns) for columns in dataset.groupings],
                    "seeds": list(range(dataset.seeds)),
                    "metrics": list(dataset.metrics),
                    "selections": list(dataset.selections),
                    "test_sets": test_sets,
                }
            }
        complete[dataset.name] = own
    return complete


# Fields of parameters that name a thing, and its kind.
NAMING = {
    "source": "dataset", "of": "dataset", "shift": "shift", "method": "method",
    "network": "network", "backbone": "network", "classifier": "network",
    "objective": "objective", "miner": "miner", "augmentation": "augmentation",
}  # fmt: skip


def used_by(complete: Mapping[str, Any]) -> dict[str, list[str]]:
    """Names of datasets, shifts, methods, networks, metrics and so on that parameters name.

    Args:
        complete: parameters by dataset and generator, as ``node_parameters`` gives them.

    Returns:
        Sorted names by kind, as the registry calls them. Trials count; ``augmentation`` is that
        of training, and ``generator`` the kind of generator.
    """
    from robust_fairness.experiment.parameters import CellParameters, SourceParameters

    found: dict[str, set[str]] = {}
    for own in complete.values():
        if "generator" in own:
            found.setdefault("generator", set()).add("edm")
        for fields in own.get("shifted", {}).values():
            _note_names({"shift": fields["shift"]}, found)
        if "source" in own:
            _note_names(SourceParameters.model_validate(own["source"]).model_dump(), found)
        cells = [fields["cell"] for fields in own.values() if "cell" in fields]
        for fields in (*cells, *filter(None, [own.get("referee")])):
            _note_cell(CellParameters.model_validate(fields), found)
    return {kind: sorted(names) for kind, names in found.items()}


def _note_cell(cell: Any, found: dict[str, set[str]]) -> None:
    """Names of a cell: of its metrics, and of its method and network in every trial."""
    from robust_fairness.metrics.criteria import scored_by

    scored = {one.metric for one in scored_by(cell.selections)}
    found.setdefault("metric", set()).update(cell.metrics, scored)
    names = {"method": {"name": cell.method.name}, "network": {"name": cell.network.name}}
    _note_names(names, found)
    changes = [
        *({field: value} for trial in cell.trials for field, value in trial.items()),
        *({field: one} for stage in cell.search for field, some in stage.items() for one in some),
    ]
    naming = [one for one in changes if not NAMING.keys().isdisjoint(one)]
    for replica in cell.model_copy(update={"seeds": (0,)}).replicas([{}, *naming]):
        for part in (replica.method, replica.network, replica.protocol):
            _note_names(part.model_dump(), found)


def _note_names(fields: Mapping[str, Any], found: dict[str, set[str]]) -> None:
    """Names that the fields of ``NAMING`` hold, alone or with fields of their own, at any depth."""
    for field, value in fields.items():
        kind = NAMING.get(field, "")
        name = value.get("name") if isinstance(value, Mapping) else value
        if kind and isinstance(name, str) and name in _names(kind):
            found.setdefault(kind, set()).add(name)
        if isinstance(value, Mapping):
            _note_names(value, found)


@cache
def _names(kind: str) -> frozenset[str]:
    """Names of a kind; augmentations are those of the protocol but for none at all."""
    if kind == "augmentation":
        from robust_fairness.experiment.parameters import Protocol

        offered = Protocol.model_fields["augmentation"].annotation
        return frozenset(get_args(offered)) - {"none"}
    return frozenset(registry.names(kind))


def _source(written: dict[str, Any], dataset: str, name: str, splits: int) -> dict[str, Any]:
    """Where samples called ``name`` come from: a configured dataset, or a file of datasets/."""
    options = dict((written.get("datasets") or {}).get(dataset) or {})
    source = {"name": options.pop("source", dataset), **options}
    return {"dataset": name, "source": source, "splits": splits}


def _generator_parameters(generator: grid.Generator, written: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a generator: ``generator`` and, where it has real pictures, its referee's."""
    options = written["generators"][generator.name]
    own: dict[str, Any] = {
        "generator": {
            "name": generator.name,
            **{name: options[name] for name in ("training", "file") if name in options},
        }
    }
    if generator.source:
        own["source"] = _source(written, generator.source, generator.name, 1)
        own["referee"] = {
            "dataset": generator.name,
            "label": "referee",
            "method": {"name": "erm"},
            "network": _named(written, "networks", generator.network),
            "protocol": written["protocols"][generator.protocol] or {},
            "seeds": [0],
        }
    return own


def _named(written: dict[str, Any], section: str, name: str) -> dict[str, Any]:
    """Parameters of a thing; its ``name`` is the key unless they say otherwise."""
    return {"name": name, **((written.get(section) or {}).get(name) or {})}


_loader: Any = None


def use(loader: Any) -> None:
    """Read the grid from this configuration loader from now on."""
    global _loader  # noqa: PLW0603 - Kedro gives create_pipeline() no argument to pass it by
    if _loader is not None:
        from kedro.framework.project import pipelines

        # Kedro keeps pipelines for the whole process, but these were made of another grid
        pipelines.configure("robust_fairness.pipeline_registry")
    _loader = loader


def loader() -> Any:
    """The configuration loader in use; one of the environment KEDRO_ENV where none was made."""
    if _loader is None:
        loader_of(os.getenv("KEDRO_ENV"))
    return _loader


def full_grid() -> grid.Grid:
    """The grid of the environment."""
    found: grid.Grid = loader().full_grid
    return found


def selected_grid() -> grid.Grid:
    """The part of it that this run was asked for."""
    found: grid.Grid = loader().selected_grid
    return found
