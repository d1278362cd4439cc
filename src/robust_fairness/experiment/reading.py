"""From the files ``experiment*.yml`` and the parameters to an ``Experiment``.

All mistakes are collected and reported together, each with file and line.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import (
    Cell,
    Dataset,
    Experiment,
    GeneratorConfig,
    Protocol,
    TestSet,
)
from robust_fairness.experiment.plugins import (
    OUTLINE,
    Named,
    message,
    parameters_of,
)
from robust_fairness.experiment.search import Stage
from robust_fairness.experiment.yaml_source import Node, deep_merged, without

GENERATED = "generated"  # the dataset plug-in whose images a generator makes
QUESTION = "question"  # the kind of data that only some networks read
SECTIONS = ("datasets", "searches", "trials")  # of a file; all else are fields of its datasets
CELL_FIELDS = ("facets", "method", "network", "search", "settings", "trials")
DATASET_FIELDS = (
    "contact_sheet", "embedding_planes", "facets", "groupings", "methods", "metrics", "network",
    "protocol", "search_by", "seeds", "selections", "shifts",
)  # fmt: skip
CELL_FIELDS_OF_DATASET = ("groupings", "metrics", "search_by", "selections")
GENERATOR_FIELDS = ("file", "reference", "source", "training")
# Names beside the cells of a dataset in the parameters, the catalog and the pipelines.
RESERVED = ("attributes", "dataset", "samples", "shifted", "states", "table")
RENAMED = {"referee": "reference"}
NOTHING = Node(None)


def layered(base: Sequence[Node], environment: Sequence[Node], local: Sequence[Node]) -> Node:
    """The sections of an experiment, of the files of its layers.

    Fields at the top of a file are defaults of its datasets; those of ``base`` are defaults of
    all. The datasets of the environment replace those of ``base``; those of ``local`` are added,
    and add methods and shifts where a dataset has the same name.
    """
    defaults: dict[str, Node] = {}
    for file in base:
        defaults |= without(file, SECTIONS)
    chosen = environment if any("datasets" in file.fields for file in environment) else base
    if chosen is base:
        for file in environment:
            defaults |= without(file, SECTIONS)
    sections = Node({"datasets": Node({}), "searches": Node({}), "trials": Node({})})
    for file in (*base, *environment, *local):
        named = {name: file.fields[name] for name in SECTIONS[1:] if name in file.fields}
        sections = deep_merged(sections, Node(named))
    datasets: dict[str, Node] = {}
    for file in chosen:
        own = {**defaults, **without(file, SECTIONS)}
        for name, fields in file.fields.get("datasets", NOTHING).fields.items():
            if name in datasets:
                raise InputError(
                    f"Dataset {name!r} stands twice ({datasets[name].place}, {fields.place})"
                )
            datasets[name] = _with_defaults(fields, own)
    for file in local:
        own = {**defaults, **without(file, SECTIONS)}
        for name, fields in file.fields.get("datasets", NOTHING).fields.items():
            known = name in datasets
            datasets[name] = (
                deep_merged(datasets[name], fields) if known else _with_defaults(fields, own)
            )
    return Node({**sections.value, "datasets": Node(datasets)})


def _with_defaults(fields: Node, defaults: Mapping[str, Node]) -> Node:
    if not isinstance(fields.value, dict | None):
        return fields
    return Node({**defaults, **fields.fields}, fields.place)


def read(
    experiment: Node, parameters: Mapping[str, Any], places: Node, *, fully: bool
) -> Experiment:
    """The experiment."""
    reader = Reader(experiment, parameters, places, fully)
    found = reader.experiment()
    if reader.mistakes and not fully:
        reader = Reader(experiment, parameters, places, fully=True)
        found = reader.experiment()
    if reader.mistakes:
        raise mistakes_of(reader.mistakes)
    return found


def missing_files(
    experiment: Experiment, names: Collection[str], written: Node, places: Node, files: Any
) -> list[str]:
    """A line for each raw file that is missing, with its dataset and how to get it.

    Args:
        experiment: its datasets and generators.
        names: the datasets, and generators with a dataset of their own, whose files are read.
        written: the sections of the experiment, as ``layered`` returns them.
        places: the parameters as they are written.
        files: finds the raw files, a ``datasets.files.Files``.
    """
    nodes = {**written.fields["datasets"].fields}
    for section in ("generators", "datasets"):
        nodes |= places.fields.get(section, NOTHING).fields
    sources: dict[str, Named | None] = {one.name: one.source for one in experiment.datasets}
    sources |= {one.name: one.source for one in experiment.generators}
    found = []
    for name, source in sources.items():
        if name not in names or source is None:
            continue
        for file in registry.find("dataset", source.name)(source.parameters).missing_files(files):
            keys = [key for key, value in source.options.items() if file in _listed(value)][:1]
            of, place = " of ".join([*keys, f"dataset {name!r}"]), nodes[name].place_of(keys)
            found.append(f"Raw file {file!r} of {of} is missing ({place}). {files.remedy(file)}")
    return found


def mistakes_of(mistakes: Iterable[str]) -> InputError:
    """All mistakes as one error, a line each."""
    lines = list(dict.fromkeys(mistakes))
    if len(lines) == 1:
        return InputError(lines[0])
    return InputError("\n".join([f"{len(lines)} mistakes in the configuration:", *lines]))


class Reader:
    """Reads an experiment and collects the mistakes."""

    def __init__(
        self, written: Node, parameters: Mapping[str, Any], places: Node, fully: bool
    ) -> None:
        self.written, self.parameters, self.places, self.fully = written, parameters, places, fully
        self.context = None if fully else OUTLINE
        self.mistakes: list[str] = []
        self.names = cache(registry.names)
        self.plugin = cache(self._plugin)

    def note(self, text: str, place: str, hint: str = "") -> None:
        """Note a mistake."""
        where = f" ({place})" if place else ""
        self.mistakes.append(f"{text}{where}{'. ' if hint else ''}{hint}")

    def unknown(self, kind: str, name: str, of: str, place: str, allowed: Collection[str]) -> None:
        """Note a name that is not one of ``allowed``."""
        self.note(f"Unknown {kind} {name!r} for {of}", place, nearest(name, allowed))

    def section(self, name: str) -> dict[str, Any]:
        """A section of the parameters, such as ``methods``."""
        found = self.parameters.get(name) or {}
        if isinstance(found, dict):
            return found
        self.note(f"{name}: {found!r}, allowed: names with fields", self.places.place_of([name]))
        return {}

    def experiment(self) -> Experiment:
        """The experiment of all datasets without mistakes."""
        datasets = self.written.fields["datasets"].fields
        if not datasets:
            self.note("The experiment has no datasets, allowed: at least one", "")
        found = [self.dataset(name, node) for name, node in datasets.items()]
        return Experiment(datasets=tuple(one for one in found if one is not None))

    def mapping(self, node: Node, what: str) -> dict[str, Node]:
        """The fields of a mapping; none, and a mistake, where it is something else."""
        if isinstance(node.value, dict | None):
            return node.fields
        self.note(f"{what}: {node.plain!r}, allowed: names with fields", node.place)
        return {}

    def elements(self, node: Node, what: str) -> list[Node]:
        """The nodes of a list; none, and a mistake, where it is something else."""
        if isinstance(node.value, list | None):
            return node.value or []
        self.note(f"{what}: {node.plain!r}, allowed: a list", node.place)
        return []

    def known_fields(self, fields: Mapping[str, Node], of: str, allowed: Sequence[str]) -> None:
        """Note fields that do not exist."""
        for name, node in fields.items():
            if name in RENAMED and RENAMED[name] in allowed:
                self.note(f"Field {name!r} of {of} is now {RENAMED[name]!r}", node.place)
            elif name not in allowed:
                self.unknown("field", name, of, node.place, allowed)

    def dataset(self, name: str, node: Node) -> Dataset | None:
        """A dataset with its cells; None where it has mistakes."""
        before, of = len(self.mistakes), f"dataset {name!r}"
        fields = self.mapping(node, of)
        self.known_fields(fields, of, DATASET_FIELDS)
        source = self.source(name, of, node.place)
        generator = self.generator(name, source) if source else None
        test_sets = self.test_sets(fields.get("shifts", NOTHING), of, source)
        cells = self.cells(name, node, test_sets, source)
        written: dict[str, Any] = {
            "name": name,
            "source": source,
            "test_sets": test_sets,
            "cells": cells,
            "generator": generator,
            "facets": texts(fields.get("facets", NOTHING)),
            **{
                field: fields[field].plain
                for field in ("contact_sheet", "embedding_planes", "seeds")
                if field in fields
            },
        }
        found = None
        if source is not None:
            found = self.validated(Dataset, written, of, node)
        for label in self.elements(fields.get("embedding_planes", NOTHING), "embedding_planes"):
            if label.plain not in fields.get("methods", NOTHING).fields:
                known = fields.get("methods", NOTHING).fields
                self.unknown("embedding_planes", str(label.plain), of, label.place, known)
        if isinstance(written.get("contact_sheet"), str) and generator is not None:
            place = fields["contact_sheet"].place
            self.note(f"contact_sheet of {of}: an attribute, allowed: true, false", place)
        return found if len(self.mistakes) == before else None

    def validated(self, model: type[BaseModel], written: Any, of: str, node: Node) -> Any:
        """The model of a dictionary; None, and mistakes, where it is invalid."""
        try:
            return TypeAdapter(model).validate_python(written, context=self.context)
        except ValidationError as error:
            for found in error.errors(include_url=False):
                self.note(f"{field_of(found, of)}: {message(found)}", node.place_of(found["loc"]))
            return None

    def _plugin(self, kind: str, name: str, of: str, place: str) -> Named | None:
        """A plug-in that the experiment names: one of the parameters, or of the registry."""
        section = f"{kind}s"
        configured = self.section(section)
        options = configured.get(name) or {}
        where = self.places.place_of([section, name])
        if not isinstance(options, dict):
            self.note(f"{kind} {name!r}: {options!r}, allowed: fields", where)
            return None
        options = dict(options)
        original = str(options.pop("source" if kind == "dataset" else "name", name))
        if original not in self.names(kind):
            if name in configured:
                self.unknown(kind, original, f"{kind} {name!r}", where, self.names(kind))
            else:
                self.unknown(kind, name, of, place, {*configured, *self.names(kind)})
            return None
        if self.fully and not self.valid_options(kind, original, name, options):
            return None
        return Named(kind=kind, name=original, options=options)

    def valid_options(self, kind: str, original: str, name: str, options: dict[str, Any]) -> bool:
        """Whether the parameters of a plug-in are valid."""
        try:
            parameters_of(kind, original, options)
        except ValidationError as error:
            allowed = registry.find(kind, original).Parameters.model_fields
            for found in error.errors(include_url=False):
                keys = [str(key) for key in found["loc"]]
                place = self.places.place_of([f"{kind}s", name, *found["loc"]])
                if found["type"] == "extra_forbidden" and len(keys) == 1:
                    self.unknown("field", keys[0], f"{kind} {name!r}", place, allowed)
                else:
                    field = field_of(found, f"{kind} {name!r}")
                    self.note(f"{field}: {message(found)}", place)
            return False
        return True

    def source(self, name: str, of: str, place: str) -> Named | None:
        """The plug-in that a dataset comes from."""
        if name not in self.section("datasets") and name not in self.names("dataset"):
            known = {*self.section("datasets"), *self.names("dataset")}
            self.note(f"Unknown dataset {name!r}", place, nearest(name, known))
            return None
        return self.plugin("dataset", name, of, place)

    def kind_of(self, source: Named | None) -> str:
        """The kind of data of a source; "" where it is not known."""
        if source is None or not self.fully:
            return ""
        found: str = registry.find("dataset", source.name)(source.parameters).data_kind
        return found

    def test_sets(self, node: Node, of: str, source: Named | None) -> list[TestSet]:
        """The shifted test sets of a dataset."""
        found: dict[str, TestSet] = {}
        kind = self.kind_of(source)
        for name, severities in self.mapping(node, f"shifts of {of}").items():
            shift = self.plugin("shift", name, of, severities.place)
            if shift is None:
                continue
            allowed = registry.find("shift", shift.name).applies_to if kind else (kind,)
            if kind not in allowed:
                text = f"Shift {name!r} does not apply to {of}, whose data are of kind {kind!r}"
                self.note(text, severities.place, f"Allowed: {', '.join(allowed)}.")
                continue
            for one in self.elements(severities, f"{name} of {of}"):
                written = {"shift": shift, "severity": one.plain, "label": name}
                made = self.validated(TestSet, written, f"shift {name!r} of {of}", one)
                if made is not None and made.name in found:
                    self.note(f"Severity {one.plain} of {name!r} stands twice for {of}", one.place)
                elif made is not None:
                    found[made.name] = made
        return list(found.values())

    def protocol(self, node: Node, of: str, place: str) -> Protocol | None:
        """The protocol that is named."""
        configured = self.section("protocols")
        if node.plain is None:
            self.note(f"{of} has no protocol", place, f"Allowed: {', '.join(configured)}.")
            return None
        name = str(node.plain)
        if name not in configured:
            self.unknown("protocol", name, of, node.place, configured)
            return None
        where = Node(self.places.place_of(["protocols", name]))
        where = self.places.fields.get("protocols", where).fields.get(name, where)
        found: Protocol | None = self.validated(
            Protocol, configured[name] or {}, f"protocol {name!r}", where
        )
        return found

    def cells(
        self, dataset: str, node: Node, test_sets: list[TestSet], source: Named | None
    ) -> list[Cell]:
        """The cells of a dataset without mistakes."""
        fields, of = node.fields, f"dataset {dataset!r}"
        if not isinstance(node.value, dict | None):
            return []
        methods = self.mapping(fields.get("methods", NOTHING), f"methods of {of}")
        if not methods:
            self.note(f"The {of} has no methods, allowed: at least one", node.place)
        protocol = self.protocol(fields.get("protocol", NOTHING), of, node.place)
        seeds = fields.get("seeds", Node(1)).plain
        shared = {
            "dataset": dataset,
            "protocol": protocol or Protocol(),
            "seeds": range(seeds) if isinstance(seeds, int) and seeds > 0 else (0,),
            "test_sets": {one.name: (one.called, one.severity) for one in test_sets},
            **{name: fields[name].plain for name in CELL_FIELDS_OF_DATASET if name in fields},
        }
        found = [self.cell(label, own, node, shared, source) for label, own in methods.items()]
        return [one for one in found if one is not None]

    def cell(
        self,
        label: str,
        node: Node,
        dataset: Node,
        shared: Mapping[str, Any],
        source: Named | None,
    ) -> Cell | None:
        """A cell; by default its method is called like it, and its network is the dataset's."""
        of = f"{label!r} of dataset {shared['dataset']!r}"
        if not is_label(label):
            self.note(
                f"Label {of}", node.place, "Allowed: letters, digits, '_' and, after the first, "
                f"'-', but none of {', '.join(RESERVED)}.",
            )  # fmt: skip
            return None
        fields = self.mapping(node, of)
        self.known_fields(fields, of, CELL_FIELDS)
        method_node = fields.get("method", Node(label, node.place))
        data = f"dataset {shared['dataset']!r}"
        method = self.plugin("method", str(method_node.plain), data, method_node.place)
        network = self.network(fields, dataset, of, node.place, source)
        trials = self.expanded(fields.get("trials", NOTHING), "trials", of)
        search = self.expanded(fields.get("search", NOTHING), "searches", of)
        if method is None or network is None:
            return None
        written = {
            **shared,
            "label": label,
            "method": method,
            "network": network,
            "settings": self.plain_mapping(fields.get("settings", NOTHING), f"settings of {of}"),
            "trials": [one.plain for one in trials],
            "search": [one for one in (self.stage(stage, of) for stage in search) if one],
            "facets": texts(dataset.fields.get("facets", NOTHING))
            | texts(fields.get("facets", NOTHING)),
        }
        before, settings = len(self.mistakes), fields.get("settings", NOTHING)
        if self.fully:
            spaces = [one.fields.get("space", one) for one in search]
            parts = (shared["protocol"], network.parameters, method.parameters)
            self.hparams([settings, *trials, *spaces], parts, of)
        if len(self.mistakes) > before:
            return None
        places = Node({**dataset.fields, **fields, "trials": Node(trials)}, node.place)
        found: Cell | None = self.validated(Cell, written, of, places)
        if found is not None and self.fully:
            self.replicas(found, settings, trials)
        return found if len(self.mistakes) == before else None

    def plain_mapping(self, node: Node, what: str) -> dict[str, Any]:
        """The values of a mapping."""
        return {name: one.plain for name, one in self.mapping(node, what).items()}

    def network(
        self, fields: Mapping[str, Node], dataset: Node, of: str, place: str, source: Named | None
    ) -> Named | None:
        """The network of a cell."""
        node = fields.get("network", dataset.fields.get("network", NOTHING))
        if node.plain is None:
            known = {*self.section("networks"), *self.names("network")}
            self.note(f"{of} has no network", place, f"Allowed: {', '.join(sorted(known))}.")
            return None
        found = self.plugin("network", str(node.plain), of, node.place)
        kind = self.kind_of(source)
        if found is None or not kind:
            return found
        if registry.find("network", found.name).reads_questions != (kind == QUESTION):
            self.note(
                f"Network {node.plain!r} of {of} does not fit data of kind {kind!r}", node.place
            )
            return None
        return found

    def expanded(self, node: Node, section: str, of: str) -> list[Node]:
        """The trials or stages of a cell; a name stands for those of a section of the file."""
        known = self.written.fields[section].fields
        elements = (
            [node] if isinstance(node.value, str) else self.elements(node, f"{section} of {of}")
        )
        found: list[Node] = []
        for one in elements:
            if not isinstance(one.value, str):
                found.append(one)
            elif one.value in known:
                found += self.elements(known[one.value], f"{section} {one.value!r}")
            else:
                self.unknown(section, one.value, of, one.place, known)
        return [one for one in found if self.mapping(one, f"{section} of {of}")]

    def stage(self, node: Node, of: str) -> Stage | None:
        """A stage of a search."""
        found: Stage | None = self.validated(Stage, node.plain, f"search of {of}", node)
        return found

    def hparams(self, nodes: Sequence[Node], parts: Sequence[BaseModel], of: str) -> None:
        """Note fields of settings, trials and stages that do not exist."""
        allowed = {name for part in parts for name in type(part).model_fields}
        for node in nodes:
            for name, one in node.fields.items():
                if name not in allowed:
                    self.unknown("hyperparameter", name, of, one.place, allowed)

    def replicas(self, cell: Cell, settings: Node, trials: Sequence[Node]) -> None:
        """Note settings and trials with invalid values; the cell has checked its search."""
        for trial in (Node({}, settings.place), *trials):
            try:
                cell.replicas([trial.plain])
            except InputError as error:
                self.note(str(error), trial.place)

    def generator(self, dataset: str, source: Named) -> GeneratorConfig | None:
        """The generator of a dataset whose images are generated."""
        if source.name != GENERATED:
            return None
        configured = self.section("generators")
        name = str(source.options.get("generator"))
        if name not in configured:
            place = self.places.place_of(["datasets", dataset, "generator"])
            self.unknown("generator", name, f"dataset {dataset!r}", place, configured)
            return None
        node = self.places.fields.get("generators", NOTHING).fields.get(name, NOTHING)
        of = f"generator {name!r}"
        if not is_label(name) or name in self.section("datasets") or name in self.names("dataset"):
            self.note(
                f"Name of {of}", node.place, "Allowed: letters, digits, '_' and, after the first, "
                "'-', but no name of a dataset.",
            )  # fmt: skip
            return None
        fields = configured[name] or {}
        self.known_fields({key: node.fields.get(key, node) for key in fields}, of, GENERATOR_FIELDS)
        if not fields.get("source") and not fields.get("file"):
            self.note(
                f"{of} has neither source nor file, allowed: one of them, or both", node.place
            )
            return None
        if fields.get("reference") and not fields.get("source"):
            self.note(f"{of} has a reference without a source", node.place)
            return None
        written = {
            "name": name,
            **{key: fields[key] for key in ("file", "training") if key in fields},
            **self.real_images(name, fields, node),
        }
        found: GeneratorConfig | None = self.validated(GeneratorConfig, written, of, node)
        return found

    def real_images(self, name: str, fields: Mapping[str, Any], node: Node) -> dict[str, Any]:
        """The source of a generator and the classifier of its images."""
        if not fields.get("source"):
            return {}
        of = f"generator {name!r}"
        source = self.source(str(fields["source"]), of, node.place_of(["source"]))
        if source is not None and source.name == GENERATED:
            text = f"The source of {of} is generated, allowed: a dataset that is read"
            self.note(text, node.place_of(["source"]))
            return {}
        reference = node.fields.get("reference", node)
        own = self.mapping(reference, f"reference of {of}") if "reference" in node.fields else {}
        self.known_fields(own, f"reference of {of}", ("network", "protocol"))
        network = self.network(own, NOTHING, f"reference of {of}", reference.place, source)
        protocol = self.protocol(
            own.get("protocol", NOTHING), f"reference of {of}", reference.place
        )
        if network is None or protocol is None or source is None:
            return {}
        cell = {
            "dataset": name,
            "label": "reference",
            "method": "erm",
            "network": network,
            "protocol": protocol,
            "seeds": (0,),
        }
        return {"source": source, "reference": self.validated(Cell, cell, of, reference)}


def nearest(name: str, allowed: Collection[str]) -> str:
    """The end of a message about an unknown name: the nearest ones, or all."""
    near = get_close_matches(name, list(allowed), n=3, cutoff=0.65)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"Allowed: {', '.join(sorted(allowed))}."


def _listed(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def field_of(found: Any, of: str) -> str:
    """The field of an error of pydantic, and what it belongs to."""
    return " of ".join(filter(None, [".".join(map(str, found["loc"])), of]))


def is_label(text: str) -> bool:
    """Whether nodes and files can be called so."""
    plain = text.replace("-", "").replace("_", "")
    return plain.isalnum() and text.isascii() and text[0] != "-" and text not in RESERVED


def texts(node: Node) -> dict[str, str]:
    """Facets as text."""
    return {name: str(one.plain) for name, one in node.fields.items()}
