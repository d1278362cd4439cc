"""The configuration loader: environments, the experiment, and the parameters of every node.

A node gets a model as a parameter of its own namespace: ``params:<dataset>.dataset``,
``params:<dataset>.shifted.<test set>``, ``params:<dataset>.<label>.cell``,
``params:<generator>.generator``. Nodes of the report get ``params:experiment``.

Kedro passes no configuration to ``create_pipeline()``: ``loader()`` returns that of the context (in
the sense of ``contextvars``). Each request to a server has a context, and each run of a session.
"""

import atexit
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cached_property, reduce
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import click
import fsspec
from kedro.config import OmegaConfigLoader
from omegaconf.errors import OmegaConfBaseException

from robust_fairness.bench.experiment.experiment import DatasetConfig, Experiment, used_by
from robust_fairness.bench.experiment.reading import layered, read, require_files
from robust_fairness.bench.experiment.yaml_source import Node, deep_merged, located, parse
from robust_fairness.catalog import names
from robust_fairness.core.errors import (
    Collected,
    InputError,
    Mistake,
    first_line,
    together,
    unknown_name,
)
from robust_fairness.core.files import CONF, require_plain
from robust_fairness.core.raw_files import unpack

OF_PACKAGE = ("robust_fairness", "conf")  # where the package's files are shown to be
OF_MACHINE = ("credentials", "mlflow")  # which no manifest has
RAW = "{dataset}.raw"  # entry of the catalog
SUFFIXES = (".yml", ".yaml", ".json")
DEFAULT = "conf"  # name of the folder of a project


class ConfigurationError(click.ClickException, InputError):
    """A mistake in the configuration; Kedro's commands show its message without a traceback."""


@contextmanager
def _shown_by_all_commands() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        shown = ConfigurationError(str(error))
        shown.mistakes = error.mistakes
        raise shown from None


class ConfigLoader(OmegaConfigLoader):
    """Kedro's loader, plus an environment that must exist and parameters from the experiment.

    ``conf_source`` is a folder, an archive of one, or the manifest of a run.

    What ``conf/local`` (``default_run_env``) has is added to every environment, which overrides it:
    parameters, entries of the catalog, credentials, ``mlflow.yml``, datasets, and methods and
    shifts of a dataset. It overrides ``base``, as in every Kedro project.
    """

    @_shown_by_all_commands()
    def __init__(self, conf_source: str | Path, env: str | None = None, **options: Any) -> None:
        self.source = str(conf_source)
        folder, self._package = Path(conf_source), CONF
        is_default = folder.name == DEFAULT and "://" not in str(conf_source)
        self._is_of_run = folder.suffix == ".json" and folder.is_file()
        if self._is_of_run:
            folder, self._package = self._of_run(folder, env)
        elif folder.is_file():
            folder = self._unpacked(folder)
        elif not folder.is_dir() and not is_default:  # outside of a project there is none
            raise InputError(
                f"configuration {str(conf_source)!r}, allowed: a folder of this machine, "
                "or a tar or zip archive of one"
            )
        for place in (folder, Path.cwd()):
            require_plain(place)
        self._conf = folder = folder.absolute()
        known = {path.name for conf in (folder, self._package) for path in conf.glob("*/")}
        if env is not None and env not in known:
            raise unknown_name("environment", env, known)
        super().__init__(folder, env, ignore_hidden=False, **options)
        self._grid: Mapping[str, Any] = (self.runtime_params or {}).get("grid") or {}
        self.pipelines: dict[str, Any] = {}  # made of this configuration, by name
        _loader.set(self)

    def _of_run(self, manifest: Path, env: str | None) -> tuple[Path, Path]:
        """The folders of a project's and of the package's files, as a run read them."""
        try:
            texts = json.loads(manifest.read_text(encoding="utf-8"))["configuration_files"].items()
        except (ValueError, LookupError, AttributeError, TypeError):
            raise InputError(f"{manifest}: no manifest that has a configuration") from None
        root = _temporary_folder()
        for name, text in texts:
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                raise InputError(f"{manifest}: {name}, allowed: files of a configuration")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        of_project = [path for path in root.iterdir() if path != root / OF_PACKAGE[0]]
        conf = of_project[0] if of_project else root / "conf"
        (conf / (env or "")).mkdir(parents=True, exist_ok=True)
        return conf, root.joinpath(*OF_PACKAGE)

    def _unpacked(self, archive: Path) -> Path:
        """The folder ``conf`` of an archive, unpacked until the process ends."""
        root = _temporary_folder()
        unpack(archive, root)
        folders = [path for path in root.iterdir() if path.is_dir()]
        return folders[0] if len(folders) == 1 else root

    def _read_dir_configs(
        self, conf_path: str, patterns: Collection[str], *options: Any
    ) -> dict[Path, Any]:
        """The files of an environment.

        In ``base`` those of the project come after the package's, and in another environment than
        ``conf/local`` those of ``conf/local`` after these.
        """
        configs: dict[Path, Any] = {}
        environment = str((self._conf / conf_path).relative_to(self._conf))
        folders = self._folders(environment)
        local = self.default_run_env
        if environment == self.base_env and self.env not in (None, local):
            folders += filter(Path.is_dir, self._folders(local))
        for folder in folders:
            names = [str(path.relative_to(folder)) for path in self._paths(folder, patterns)]
            configs |= super()._read_dir_configs(str(folder), names, *options)
        return configs

    def _folders(self, environment: str) -> list[Path]:
        """The folders of an environment, the project's or else the package's; of ``base`` both."""
        folder, package = self._conf / environment, self._package / environment
        if environment == self.base_env and package.resolve() != folder.resolve():
            return [path for path in (package, folder) if path.is_dir()]
        return [folder if folder.is_dir() else package]

    def _paths(self, folder: Path, patterns: Collection[str]) -> list[Path]:
        """The YAML and JSON files of a folder that match a pattern and are not hidden."""
        files = fsspec.filesystem("file")
        paths = {Path(path) for name in patterns for path in files.glob(f"{folder}/{name}")}
        return sorted(
            path
            for path in paths
            if path.is_file()
            and path.suffix in SUFFIXES
            and not any(part[0] == "." for part in path.relative_to(folder).parts)
        )

    @_shown_by_all_commands()
    def __getitem__(self, key: str) -> dict[str, Any]:
        """Configuration of one kind; ``parameters`` are complete with those of all nodes."""
        if key in OF_MACHINE and self._is_of_run:
            return loader_of(None)[key]
        if key in self.config_patterns:
            self._layers(key)  # reports mistakes of YAML with file and line
        if key == "parameters":
            written = {
                name: value for name, value in self.written_parameters.items() if name != "grid"
            }
            return written and written | self.of_nodes()
        if key != "catalog":
            return super().__getitem__(key)
        with self._resolving(key):
            catalog: dict[str, Any] = super().__getitem__(key)
        if RAW not in catalog or "experiment" not in self.config_patterns:
            return catalog
        # an entry of raw files for every dataset and generator, with the source that it reads
        experiment = self.selected_experiment
        sources = {dataset.base: dataset.source for dataset in experiment.datasets}
        sources |= {made.name: made.source for made in experiment.generators if made.source}
        entries = {
            names.of_dataset(name, "raw"): catalog[RAW]
            | {"source": {"name": source.name, **source.options}}
            for name, source in sources.items()
        }
        return entries | catalog

    def of_nodes(self) -> dict[str, Any]:
        """The models that nodes get, by dataset and generator."""
        experiment = self.validated_experiment
        parameters: dict[str, Any] = {
            generator.name: {"generator": generator, "reference": generator.reference}
            for generator in experiment.generators
        }
        for dataset in experiment.datasets:
            parameters[dataset.name] = {
                "dataset": dataset.model_copy(update={"cells": ()}),
                "shifted": {test_set.name: test_set for test_set in dataset.test_sets},
                **{cell.label: {"cell": cell} for cell in dataset.cells},
            }
        return parameters | {"experiment": self.full_experiment}

    @contextmanager
    def _resolving(self, key: str) -> Iterator[None]:
        """Report a value with ``${...}`` that has no meaning with file and line."""
        try:
            yield
        except OmegaConfBaseException as error:
            field = str(error.full_key)
            place = self._merged(key).at(field.split(".")).place
            hint = (
                "Kedro reads environment variables in credentials.yml only, unless the settings "
                "have a resolver of that name."
            )
            text = f"{field}: {first_line(error)}"
            mistake = Mistake(text, place, hint if "oc.env" in text else "")
            raise together([mistake], "the configuration") from None

    @cached_property
    @_shown_by_all_commands()
    def written_parameters(self) -> dict[str, Any]:
        with self._resolving("parameters"):
            return dict(super().__getitem__("parameters"))

    def _layers(self, key: str) -> list[list[Node]]:
        """The files of a kind: those of the base, of the environment, and of ``local``."""
        return [[parse(text, name) for name, text in layer] for layer in self._files(key)]

    def _merged(self, key: str) -> Node:
        """What the files of a kind have together, without what Kedro resolves."""
        return reduce(deep_merged, chain.from_iterable(self._layers(key)), Node({}))

    def _files(self, key: str) -> list[list[tuple[str, bytes]]]:
        """Shown name and content of the files of a kind: of base, environment and ``local``."""
        base, local = self.base_env, self.default_run_env
        environments = [
            base,
            self.env if self.env not in (base, local) else None,
            local if local != base else None,
        ]
        is_apart = self._package.resolve() != self._conf.resolve()
        layers = []
        for environment in environments:
            files: list[tuple[str, bytes]] = []
            for folder in self._folders(environment) if environment else ():
                paths = self._paths(folder, self.config_patterns[key])
                if paths and key == "experiment":  # a grid replaces that of the package
                    files.clear()
                is_packages = is_apart and folder.is_relative_to(self._package)
                shown = Path(*(OF_PACKAGE if is_packages else (folder.parent.name,)), folder.name)
                files += [
                    (str(shown / path.relative_to(folder)), path.read_bytes()) for path in paths
                ]
            layers.append(files)
        return layers

    def _all_files(self) -> Iterator[tuple[str, bytes]]:
        """Shown name and content of every file that the configuration is read from."""
        for key in ("globals", "catalog", "parameters", "experiment"):
            yield from chain.from_iterable(self._files(key))

    def texts(self) -> dict[str, str]:
        """Texts of all files that the configuration is read from, by their shown names."""
        return {name: content.decode() for name, content in self._all_files()}

    def unreadable_files(self) -> list[Mistake]:
        """Mistakes of YAML in all files of the configuration, at most one for each file."""
        collected = Collected()
        for name, content in self._all_files():
            with collected.noting():
                parse(content, name)
        return collected.mistakes

    @property
    def written_experiment(self) -> dict[str, Any]:
        """The sections of the experiment as they are written, joined over files and layers."""
        written: dict[str, Any] = self._written[0].plain
        return written

    @cached_property
    def _written(self) -> tuple[Node, Node]:
        """The sections of the experiment, and the parameters with their lines."""
        experiment = layered(*self._layers("experiment"))
        return experiment, located(self.written_parameters, self._merged("parameters"))

    @cached_property
    @_shown_by_all_commands()
    def full_experiment(self) -> Experiment:
        """The experiment of the environment, in outline.

        Raises:
            InputError: a mistake in it, or a runtime parameter that changes nothing of it.
        """
        experiment, parameters = self._written
        allowed = {*self._merged("parameters").fields, "grid", "run_id"}
        for name in sorted({*(self.runtime_params or {})} - allowed):
            raise unknown_name("runtime parameter", name, allowed)
        return read(experiment, parameters, fully=False)

    @cached_property
    @_shown_by_all_commands()
    def selected_experiment(self) -> Experiment:
        """The part of the experiment that the runtime parameter ``grid`` selects, in outline."""
        return self.full_experiment.narrowed(self._grid)

    @cached_property
    @_shown_by_all_commands()
    def validated_experiment(self) -> Experiment:
        """The selected experiment with plug-ins that have checked their parameters.

        Plug-ins that only other datasets use are not imported.
        """
        experiment, parameters = self._written
        selected = {dataset.base for dataset in self.selected_experiment.datasets}
        datasets = {
            name: node
            for name, node in experiment.fields["datasets"].fields.items()
            if name in selected
        }
        part = Node({**experiment.fields, "datasets": Node(datasets)})
        return read(part, parameters, fully=True).narrowed(self._grid)

    @_shown_by_all_commands()
    def require_raw_files(self, names: Collection[str]) -> None:
        """Check that the raw files of these datasets, and sources of generators, are available."""
        from robust_fairness.bench.datasets.fetch import dataset_files

        written, files = self._written, dataset_files()
        require_files(self.validated_experiment, names, *written, files)

    def place_of(self, dataset: DatasetConfig) -> str:
        """Where the columns, or otherwise the grid, of a dataset are written: ``file:line``."""
        grid, parameters = self._written
        sections = parameters.fields.get("datasets", Node({})), grid.fields["datasets"]
        return next(
            (
                section.fields[dataset.base].place
                for section in sections
                if dataset.base in section.fields
            ),
            "",
        )

    def place_of_domain(self, base: str, name: str) -> str:
        """Where a domain of a dataset is written."""
        grid, _ = self._written
        domains = grid.at(["datasets", base, "domains"])
        listed = [node.value for node in domains.fields.values() if isinstance(node.value, list)]
        places = {str(node.plain): node.place for nodes in listed for node in nodes}
        return places.get(name, domains.place)

    @property
    def used(self) -> dict[str, list[str]]:
        """Names of everything that this run uses, by kind."""
        return used_by(self.validated_experiment)


def _temporary_folder() -> Path:
    """A folder that exists until the process ends."""
    folder = Path(mkdtemp(prefix="robust_fairness_")).resolve()
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder


def loader_of(environment: str | None, grid: Mapping[str, Any] | None = None) -> ConfigLoader:
    """A loader of the project in the current folder; ``grid`` selects a part of the experiment."""
    from kedro.framework.project import settings
    from kedro.utils import find_kedro_project

    root = find_kedro_project(Path.cwd()) or Path.cwd()
    return _apart(root / settings.CONF_SOURCE, environment, {"grid": dict(grid)} if grid else {})


def loader_of_run(path: Path, manifest: Mapping[str, Any]) -> ConfigLoader:
    """A loader of the configuration in the manifest of a run, the content of ``path``."""
    return _apart(path, manifest["environment"], manifest["runtime_parameters"])


def _apart(source: Path, environment: str | None, parameters: Mapping[str, Any]) -> ConfigLoader:
    """A loader beside that of this context, which stays the one that pipelines are made of."""
    from kedro.framework.project import settings

    options = {"runtime_params": parameters, **settings.CONFIG_LOADER_ARGS}
    return copy_context().run(ConfigLoader, source, environment, **options)


_loader: ContextVar[ConfigLoader | None] = ContextVar("loader", default=None)


def loader() -> ConfigLoader:
    """The newest loader of this context; one of the environment KEDRO_ENV where none was made."""
    newest = _loader.get()
    if newest is None:
        newest = loader_of(os.getenv("KEDRO_ENV"))
        _loader.set(newest)
    return newest
