"""From the files ``experiment*.yml`` and the parameters to an ``Experiment``.

All mistakes are collected and reported together, each with file and line.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError
from robust_fairness.experiment.domains import Design
from robust_fairness.experiment.experiment import (
    Cell,
    DatasetConfig,
    Experiment,
    GeneratorConfig,
    Protocol,
    TestSet,
)
from robust_fairness.experiment.lookup import Lookup
from robust_fairness.experiment.mistakes import Mistakes
from robust_fairness.experiment.plugins import Named
from robust_fairness.experiment.search import Stage
from robust_fairness.experiment.yaml_source import Node, deep_merged, without

GENERATED = "generated"  # the dataset plug-in whose images a generator makes
SECTIONS = ("datasets", "searches", "trials")  # of a file; all else are fields of its datasets
CELL_FIELDS = (
    "facets", "method", "network", "postprocessing", "search", "settings", "trials",
)  # fmt: skip
DATASET_FIELDS = (
    "budget", "contact_sheet", "domains", "embedding_planes", "facets", "groupings", "margin",
    "methods", "metrics", "network", "protocol", "search_by", "seeds", "selections", "shifts",
)  # fmt: skip
CELL_FIELDS_OF_DATASET = ("groupings", "metrics", "search_by", "selections")
GENERATOR_FIELDS = ("file", "reference", "source", "training")
# Names beside the cells of a dataset in the parameters, the catalog and the pipelines.
RESERVED = ("attributes", "dataset", "samples", "shifted", "states", "table")
LETTERS = "Allowed: letters, digits, '_' and, after the first, '-', but"
PLAIN = "erm"  # the method that a budget compares others with
FEWEST_SEARCHED = 2  # trials of a budget: the default one and one that is drawn
NOTHING = Node(None)


def layered(base: Sequence[Node], environment: Sequence[Node], local: Sequence[Node]) -> Node:
    """The sections of an experiment, of the files of its layers.

    Fields at the top of a file are defaults of its datasets; those of ``base`` are defaults of
    all. The datasets of the environment replace those of ``base``; those of ``local`` are added,
    and add methods and shifts where a dataset has the same name.

    Raises:
        InputError: a section is not a mapping, or a field is unknown or belongs to no dataset; a
            line each.
    """
    mistakes = Mistakes(fully=True)
    for file in (*base, *environment, *local):
        mistakes.unknown_fields(file.fields, "the experiment", (*SECTIONS, *DATASET_FIELDS))
        for name in SECTIONS:
            mistakes.mapping(file.fields.get(name, NOTHING), name)
    if mistakes.found:
        raise mistakes.error()
    chosen = environment if any("datasets" in file.fields for file in environment) else base
    for file in (*(environment if chosen is environment else []), *local):
        if not file.fields.get("datasets", NOTHING).fields:
            for name, node in without(file, SECTIONS).items():
                text = f"Field {name!r} is of no dataset, since its file has none"
                mistakes.note(text, node.place, "Write it as a field of a dataset, in `datasets`.")
    if mistakes.found:
        raise mistakes.error()
    defaults: dict[str, Node] = {}
    for file in [*base, *(environment if chosen is base else [])]:
        defaults |= without(file, SECTIONS)
    sections = Node({"datasets": Node({}), "searches": Node({}), "trials": Node({})})
    for file in (*base, *environment, *local):
        named = {name: file.fields[name] for name in SECTIONS[1:] if name in file.fields}
        sections = deep_merged(sections, Node(named))
    datasets: dict[str, Node] = {}
    for name, fields, complete in _datasets(chosen, defaults):
        if name in datasets:
            places = f"{datasets[name].place}, {fields.place}"
            raise InputError(f"Dataset {name!r} is defined twice ({places})")
        datasets[name] = complete
    for name, fields, complete in _datasets(local, defaults):
        datasets[name] = deep_merged(datasets[name], fields) if name in datasets else complete
    return Node({**sections.value, "datasets": Node(datasets)})


def _datasets(
    files: Sequence[Node], defaults: Mapping[str, Node]
) -> Iterator[tuple[str, Node, Node]]:
    """Names and fields of the datasets of files, the fields also with their defaults."""
    for file in files:
        with_defaults = {**defaults, **without(file, SECTIONS)}
        for name, fields in file.fields.get("datasets", NOTHING).fields.items():
            if isinstance(fields.value, dict | None):
                yield name, fields, Node({**with_defaults, **fields.fields}, fields.place)
            else:
                yield name, fields, fields


def read(
    experiment: Node, parameters: Mapping[str, Any], places: Node, *, fully: bool
) -> Experiment:
    """The experiment; raises an error with one line for each mistake.

    ``experiment`` are its sections, as ``layered`` returns them; ``places`` are the parameters with
    their lines. ``fully``: whether plug-ins are imported, so that they check their parameters.
    """
    mistakes = Mistakes(fully)
    lookup = Lookup(parameters, places, mistakes)
    lookup.require_known_sections()
    result = Reader(experiment, lookup).experiment()
    if mistakes.found and not fully:
        return read(experiment, parameters, places, fully=True)
    if mistakes.found:
        raise mistakes.error()
    return result


def require_files(
    experiment: Experiment, names: Collection[str], written: Node, places: Node, files: Any
) -> None:
    """Check that raw files are available; the error has a line for each one that is missing.

    ``names`` are the datasets, and generators with a dataset of their own, whose files are read;
    ``written`` the sections of the experiment, as ``layered`` returns them; ``places`` the
    parameters with their lines; and ``files`` a ``datasets.files.Files``.
    """
    nodes = {**written.fields["datasets"].fields}
    for section in ("generators", "datasets"):
        nodes |= places.fields.get(section, NOTHING).fields
    sources: dict[str, Named | None] = {
        dataset.base: dataset.source for dataset in experiment.datasets
    }
    sources |= {generator.name: generator.source for generator in experiment.generators}
    mistakes = Mistakes(fully=True)
    for name, source in sources.items():
        if name not in names or source is None:
            continue
        for file in registry.find("dataset", source.name)(source.parameters).missing_files(files):
            keys = [key for key, value in source.options.items() if file in _listed(value)][:1]
            of, place = " of ".join([*keys, f"dataset {name!r}"]), nodes[name].place_of(keys)
            mistakes.note(f"Raw file {file!r} of {of} is missing", place, files.remedy(file))
    if mistakes.found:
        raise mistakes.error()


class Reader:
    """Reads datasets with their cells and generators."""

    def __init__(self, written: Node, lookup: Lookup) -> None:
        self.written, self.lookup, self.mistakes = written, lookup, lookup.mistakes

    def experiment(self) -> Experiment:
        datasets = self.written.fields["datasets"].fields
        if not datasets:
            self.mistakes.note("The experiment has no datasets, allowed: at least one", "")
        result = [
            training for name, node in datasets.items() for training in self.trainings(name, node)
        ]
        counts = Counter(dataset.name for dataset in result)
        for dataset in result:
            if counts[dataset.name] > 1 and dataset.name != dataset.base:
                text = (
                    f"Dataset {dataset.base!r} has a training called {dataset.name!r}, as another "
                    "dataset is; domains differ in letters a to z and digits"
                )
                self.mistakes.note(text, datasets[dataset.base].place)
        return Experiment(datasets=tuple(result))

    def trainings(self, base: str, node: Node) -> Iterator[DatasetConfig]:
        """The trainings of a dataset, one unless a design of domains has several."""
        dataset = self.dataset(base, node)
        written = node.at(["domains"]) if isinstance(node.value, dict) else NOTHING
        if written is node or written.value is None:
            yield from [dataset] if dataset else []
            return
        of = f"domains of dataset {base!r}"
        self.mistakes.mapping(written, of)
        if not isinstance(written.value, dict):
            return
        design = self.mistakes.validated(Design, written.plain, of, written)
        if dataset is None or design is None:
            return
        for ending, domains in design.trainings().items():
            name = "_".join(filter(None, [base, as_label(ending)]))
            facts = {"data": base, "trained_on": domains.trained_on}
            if design.is_ordered:
                facts["trained_until"] = domains.train[-1]
            yield dataset.trained_on(name, domains, facts)

    def dataset(self, base: str, node: Node) -> DatasetConfig | None:
        """A dataset with its cells, without its domains; None where it has mistakes."""
        before, of = len(self.mistakes.found), f"dataset {base!r}"
        hint = "Fields of all datasets of a file are at its top." if base in DATASET_FIELDS else ""
        fields = self.mistakes.mapping(node, of, hint)
        if len(self.mistakes.found) > before:
            return None
        self.mistakes.unknown_fields(fields, of, DATASET_FIELDS)
        if not is_label(base):
            self.mistakes.note(
                f"Name of {of}", node.place, f"{LETTERS} none of {', '.join(RESERVED)}."
            )
        source = self.lookup.plugin("dataset", base, "", node.place)
        test_sets = self.test_sets(fields.get("shifts", NOTHING), of, source)
        methods = self.mistakes.mapping(fields.get("methods", NOTHING), f"methods of {of}")
        written: dict[str, Any] = {
            "name": base,
            "source": source,
            "test_sets": test_sets,
            "cells": self.cells(base, node, methods, test_sets, source),
            "generator": self.generator(base, source) if source else None,
            "base": base,
            "facets": self.facets(fields, of),
            **{
                field: fields[field].plain
                for field in ("budget", "contact_sheet", "embedding_planes", "margin", "seeds")
                if field in fields
            },
        }
        result = self.mistakes.validated(DatasetConfig, written, of, node) if source else None
        if result is not None and result.budget:
            self.require_budget(result, result.budget, methods, fields["budget"].place)
        planes = fields.get("embedding_planes", NOTHING)
        for label in planes.value if isinstance(planes.value, list) else ():
            if str(label.plain) not in methods:
                self.mistakes.unknown(
                    "embedding_planes", str(label.plain), of, label.place, methods
                )
        if isinstance(written.get("contact_sheet"), str) and written["generator"] is not None:
            text = f"contact_sheet of {of}: an attribute, allowed: true, false"
            self.mistakes.note(text, fields["contact_sheet"].place)
        return result if len(self.mistakes.found) == before else None

    def test_sets(self, node: Node, of: str, source: Named | None) -> list[TestSet]:
        result: dict[str, TestSet] = {}
        for name, severities in self.mistakes.mapping(node, f"shifts of {of}").items():
            shift = self.lookup.shift(name, source, of, severities.place)
            if shift is None:
                continue
            for element in self.mistakes.elements(severities, f"{name} of {of}"):
                written = {"shift": shift, "severity": element.plain, "label": name}
                made = self.mistakes.validated(TestSet, written, f"shift {name!r} of {of}", element)
                if made is not None and made.name in result:
                    text = f"Severity {element.plain} of {name!r} occurs twice for {of}"
                    self.mistakes.note(text, element.place)
                elif made is not None:
                    result[made.name] = made
        return list(result.values())

    def cells(
        self,
        dataset: str,
        node: Node,
        methods: Mapping[str, Node],
        test_sets: Sequence[TestSet],
        source: Named | None,
    ) -> list[Cell]:
        fields, of = node.fields, f"dataset {dataset!r}"
        if not methods:
            self.mistakes.note(f"The {of} has no methods, allowed: at least one", node.place)
        protocol = self.lookup.protocol(fields.get("protocol", NOTHING), of, node.place)
        seeds = fields.get("seeds", Node(1)).plain
        shared = {
            "dataset": dataset,
            "protocol": protocol or Protocol(),
            "seeds": range(seeds) if isinstance(seeds, int) and seeds > 0 else (0,),
            "test_sets": {item.name: (item.called, item.severity) for item in test_sets},
            "facets": self.facets(fields, of),
            **{name: fields[name].plain for name in CELL_FIELDS_OF_DATASET if name in fields},
        }
        result = [self.cell(label, part, node, shared, source) for label, part in methods.items()]
        return [item for item in result if item is not None]

    def cell(
        self, label: str, node: Node, dataset: Node, shared: Mapping[str, Any], source: Named | None
    ) -> Cell | None:
        """A cell; by default its method is called like it, and its network is the dataset's."""
        data = f"dataset {shared['dataset']!r}"
        of = f"{label!r} of {data}"
        if not is_label(label):
            hint = f"{LETTERS} none of {', '.join(RESERVED)}."
            self.mistakes.note(f"Label {of}", node.place, hint)
            return None
        before = len(self.mistakes.found)
        fields = self.mistakes.mapping(node, of)
        named = fields.get("method", Node(label, node.place))
        called = self.mistakes.name(named, f"method of {of}")
        method = self.lookup.plugin("method", called, data, named.place) if called else None
        trained = fields.get("network", dataset.fields.get("network", NOTHING))
        network = self.lookup.network(trained, source, of, node.place)
        settings = fields.get("settings", NOTHING)
        trials = self.expanded(fields.get("trials", NOTHING), "trials", of)
        search = self.expanded(fields.get("search", NOTHING), "searches", of)
        plugins = [item for item in (network, method) if item and self.mistakes.fully]
        parts = [shared["protocol"], *(plugin.parameters for plugin in plugins)]
        known = {name for part in parts for name in part.searched}
        hints = {
            name: f"Write `{label}: {{settings: {{{name}: {item.plain}}}}}`."
            for name, item in fields.items()
            if name in known
        }
        self.mistakes.unknown_fields(fields, of, CELL_FIELDS, hints=hints)
        if method is None or network is None:
            return None
        if "budget" in dataset.fields and not (search or trials):
            pairs = ((str(trained.plain), network.name), (str(named.plain), method.name))
            search = self.budgeted(dataset.fields["budget"], pairs, of, node.place)
        if self.mistakes.fully:
            spaces = [item.fields.get("space", item) for item in search]
            for trial in (settings, *trials, *spaces):
                names = self.mistakes.mapping(trial, f"hyperparameters of {of}")
                self.mistakes.unknown_fields(names, of, known, "hyperparameter")
        if len(self.mistakes.found) > before:
            return None
        written = {
            **shared,
            "label": label,
            "method": method,
            "network": network,
            "settings": settings.plain or {},
            "trials": [trial.plain for trial in trials],
            "postprocessing": fields.get("postprocessing", NOTHING).plain,
            "facets": shared["facets"] | self.facets(fields, of),
        }
        places = Node({**dataset.fields, **fields, "trials": Node(trials)}, node.place)
        result: Cell | None = self.mistakes.validated(Cell, written, of, places)
        stages = [
            self.mistakes.validated(Stage, item.plain, f"search of {of}", item) for item in search
        ]
        if len(self.mistakes.found) == before and result is not None and self.mistakes.fully:
            known_stages = zip(filter(None, stages), spaces, strict=True)
            self.values(result, settings, trials, known_stages)
        if len(self.mistakes.found) > before:
            return None
        complete = {**written, "search": stages}
        return self.mistakes.validated(Cell, complete, of, places) if search else result

    def budgeted(
        self, budget: Node, names: Sequence[tuple[str, str]], of: str, place: str
    ) -> list[Node]:
        """The search of a cell that a budget and the ranges of its network and method give.

        ``names`` are those of the network and of the method, each as it is written and that of its
        plug-in: the section ``spaces`` of the parameters has ranges under either.
        """
        if not isinstance(budget.plain, int) or budget.plain < FEWEST_SEARCHED:
            return []
        spaces, result = self.lookup.section("spaces"), Node({}, place)
        for written, plugin in names:
            name = written if written in spaces else plugin
            if name in spaces:
                result = deep_merged(result, self.lookup.places.at(["spaces", name]))
        if not result.fields:
            (network, _), (method, _) = names
            text = f"budget: no ranges for network {network!r} or method {method!r} of {of}"
            self.mistakes.note(text, place, "Add them to the section spaces of the parameters.")
            return []
        drawn = {"sampler": Node("random"), "trials": Node(budget.plain - 1)}
        return [Node({"space": result, **drawn}, place)]

    def require_budget(
        self, dataset: DatasetConfig, budget: int, methods: Mapping[str, Node], place: str
    ) -> None:
        """Note cells with another number of trials, and networks without a plain model."""
        of = f"dataset {dataset.name!r}"
        for cell in dataset.cells:
            if cell.budget != budget:
                text = f"{cell.label!r} of {of} has {cell.budget} trials, budget: {budget}"
                self.mistakes.note(text, methods[cell.label].place)
        plain = {
            repr(cell.network)
            for cell in dataset.cells
            if cell.method.name == PLAIN and not cell.postprocessing
        }
        for cell in dataset.cells:
            if repr(cell.network) not in plain:
                text = f"budget: {cell.label!r} of {of} has no plain model to compare with"
                hint = f"Add a cell with the same network and method {PLAIN}."
                self.mistakes.note(text, methods[cell.label].place or place, hint)

    def expanded(self, node: Node, section: str, of: str) -> list[Node]:
        """The trials or stages of a cell; a name stands for those of a section of the file."""
        known, what = self.written.fields[section].fields, f"{section} of {of}"
        is_name = isinstance(node.value, str)
        result: list[Node] = []
        for element in [node] if is_name else self.mistakes.elements(node, what):
            if not isinstance(element.value, str):
                result.append(element)
            elif element.value in known:
                result += self.mistakes.elements(
                    known[element.value], f"{section} {element.value!r}"
                )
            else:
                self.mistakes.unknown(section, element.value, of, element.place, known)
        return [item for item in result if self.mistakes.mapping(item, what)]

    def values(
        self,
        cell: Cell,
        settings: Node,
        trials: Sequence[Node],
        search: Iterable[tuple[Stage, Node]],
    ) -> None:
        """Note invalid values of settings, trials and searches."""
        written = [({}, settings.place), *((trial.plain, trial.place) for trial in trials)]
        for stage, space in search:
            for sample in stage.samples:
                for name, value in sample.items():
                    written.append((sample, place_of_value(space.fields[name], value)))
        for override, place in written:
            try:
                cell.replicas([override])
            except InputError as error:
                self.mistakes.note(str(error), place)

    def facets(self, fields: Mapping[str, Node], of: str) -> dict[str, str]:
        """The facets of a dataset or a cell, as text."""
        what = f"facets of {of}"
        written = self.mistakes.mapping(fields.get("facets", NOTHING), what)
        for name, node in written.items():
            if isinstance(node.value, dict | list):
                text = f"{name} of {what}: {node.plain!r}, allowed: a text or a number"
                self.mistakes.note(text, node.place)
        return {name: str(node.plain) for name, node in written.items()}

    def generator(self, dataset: str, source: Named) -> GeneratorConfig | None:
        """The generator of a dataset whose images are generated."""
        if source.name != GENERATED:
            return None
        configured, name = self.lookup.section("generators"), str(source.options.get("generator"))
        if name not in configured:
            place = self.lookup.places.place_of(["datasets", dataset, "generator"])
            self.mistakes.unknown("generator", name, f"dataset {dataset!r}", place, configured)
            return None
        node = self.lookup.places.at(["generators", name])
        of, before = f"generator {name!r}", len(self.mistakes.found)
        fields = configured[name] or {}
        places = {key: node.fields.get(key, node) for key in fields}
        self.mistakes.unknown_fields(places, of, GENERATOR_FIELDS)
        if not is_label(name) or name in self.lookup.known("dataset"):
            self.mistakes.note(f"Name of {of}", node.place, f"{LETTERS} no name of a dataset.")
        elif not fields.get("source") and not fields.get("file"):
            text = f"{of} has neither source nor file, allowed: one of them, or both"
            self.mistakes.note(text, node.place)
        elif fields.get("file") and fields.get("training"):
            text = f"{of} has a file and a training, allowed: one of them, and null for the other"
            self.mistakes.note(text, node.place)
        elif fields.get("reference") and not fields.get("source"):
            self.mistakes.note(f"{of} has a reference without a source", node.place)
        if len(self.mistakes.found) > before:
            return None
        written = {
            "name": name,
            **{key: fields[key] for key in ("file", "training") if fields.get(key) is not None},
        }
        if fields.get("source"):
            written |= self.real_images(name, str(fields["source"]), node)
        return self.mistakes.validated(GeneratorConfig, written, of, node)

    def real_images(self, name: str, dataset: str, node: Node) -> dict[str, Any]:
        """The source of a generator and the classifier of its images."""
        of, place = f"reference of generator {name!r}", node.place_of(["source"])
        source = self.lookup.plugin("dataset", dataset, "", place)
        if source is not None and source.name == GENERATED:
            text = f"The source of generator {name!r} is generated"
            self.mistakes.note(f"{text}, allowed: a dataset that is read", place)
            return {}
        reference = node.fields.get("reference", Node(None, node.place))
        fields = self.mistakes.mapping(reference, of)
        self.mistakes.unknown_fields(fields, of, ("network", "protocol"))
        network = self.lookup.network(fields.get("network", NOTHING), source, of, reference.place)
        protocol = self.lookup.protocol(fields.get("protocol", NOTHING), of, reference.place)
        if network is None or protocol is None or source is None:
            return {}
        named = {"dataset": name, "label": "reference", "method": "erm"}
        cell = {**named, "network": network, "protocol": protocol, "seeds": (0,)}
        return {"source": source, "reference": self.mistakes.validated(Cell, cell, of, reference)}


def _listed(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def place_of_value(values: Node, value: Any) -> str:
    """Where a value of a list, or a bound of a range, is written."""
    written = values.value.values() if isinstance(values.value, dict) else values.value
    return next((item.place for item in written if item.plain == value), values.place)


def as_label(text: str) -> str:
    """A text with "_" in the place of all but letters and digits."""
    return "".join(item if item.isalnum() and item.isascii() else "_" for item in text)


def is_label(text: str) -> bool:
    """Whether nodes and files can be called so."""
    plain = text.replace("-", "").replace("_", "")
    return plain.isalnum() and text.isascii() and text[0] != "-" and text not in RESERVED
