"""From the files ``experiment*.yml`` and the parameters to an ``Experiment``.

All mistakes are collected and reported together, each with file and line.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from robust_fairness.bench.experiment.domains import Design
from robust_fairness.bench.experiment.experiment import (
    Cell,
    DatasetConfig,
    Experiment,
    GeneratorConfig,
    Protocol,
    Running,
    Scoring,
    TestSet,
)
from robust_fairness.bench.experiment.lookup import Lookup, Mistakes
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.bench.experiment.search import Stage
from robust_fairness.bench.experiment.written import (
    WrittenCell,
    WrittenDataset,
    WrittenFile,
    WrittenGenerator,
    WrittenReference,
)
from robust_fairness.bench.experiment.yaml_source import NOTHING, Node, deep_merged, without
from robust_fairness.core import registry
from robust_fairness.core.errors import InputError

GENERATED = "generated"  # the dataset plug-in whose images a generator makes
SECTIONS = tuple(WrittenFile.model_fields)
# Names beside the cells of a dataset in the parameters, the catalog and the pipelines.
RESERVED = ("attributes", "dataset", "samples", "shifted", "states", "table")
LETTERS = "Allowed: letters, digits, '_' and, after the first, '-', but"
PLAIN = "erm"  # the method that a budget compares others with
CONFIGURATION = "the configuration"  # where mistakes are
FEWEST_SEARCHED = 2  # trials of a budget: the default one and one that is drawn


def layered(base: Sequence[Node], environment: Sequence[Node], local: Sequence[Node]) -> Node:
    """The sections of an experiment, of the files of its layers.

    Fields at the top of a file are defaults of its datasets; those of ``base`` are defaults of
    all. The datasets of the environment replace those of ``base``; those of ``local`` are added,
    and replace a dataset of the same name with all its methods and shifts.

    Raises:
        InputError: a section is not a mapping, or a field is unknown or belongs to no dataset; a
            line each.
    """
    mistakes = Mistakes(fully=True)
    allowed = (*SECTIONS, *WrittenDataset.model_fields)
    for file in (*base, *environment, *local):
        mistakes.validated(WrittenFile, file.plain, "", file)
        for name, node in without(file, allowed).items():
            mistakes.unknown("field", name, "the experiment", node.place, allowed)
    chosen = environment if any("datasets" in file.fields for file in environment) else base
    for file in (*(environment if chosen is environment else []), *local):
        if not file.fields.get("datasets", NOTHING).value:
            for name, node in without(file, SECTIONS).items():
                text = f"Field {name!r} is of no dataset, since its file has none"
                mistakes.note(text, node.place, "Write it as a field of a dataset, in `datasets`.")
    mistakes.require_none(CONFIGURATION)
    defaults: dict[str, Node] = {}
    for file in [*base, *(environment if chosen is base else [])]:
        defaults |= without(file, SECTIONS)
    sections = Node({"datasets": Node({}), "searches": Node({}), "trials": Node({})})
    for file in (*base, *environment, *local):
        named = {name: file.fields[name] for name in SECTIONS[1:] if name in file.fields}
        sections = deep_merged(sections, Node(named))
    datasets: dict[str, Node] = {}
    for layer in (chosen, local):
        of_layer = dict[str, Node]()
        for file in layer:
            with_defaults = {**defaults, **without(file, SECTIONS)}
            for name, node in file.fields.get("datasets", NOTHING).fields.items():
                if name in of_layer:
                    places = f"{of_layer[name].place}, {node.place}"
                    raise InputError(f"Dataset {name!r} is defined twice ({places})")
                is_mapping = isinstance(node.value, dict | None)
                fields = Node({**with_defaults, **node.fields}, node.place)
                of_layer[name] = fields if is_mapping else node
        datasets |= of_layer
    return Node({**sections.value, "datasets": Node(datasets)})


def read(experiment: Node, parameters: Node, *, fully: bool) -> Experiment:
    """The experiment; raises an error with one line for each mistake.

    ``experiment`` are its sections, as ``layered`` returns them. ``fully``: whether plug-ins are
    imported, so that they check their parameters.
    """
    mistakes = Mistakes(fully=fully)
    lookup = Lookup(parameters, mistakes)
    lookup.require_sections()
    reader, nodes = Reader(experiment, lookup), experiment.fields["datasets"].fields
    if not nodes:
        mistakes.note("The experiment has no datasets, allowed: at least one", "")
    datasets = [
        training for name, node in nodes.items() for training in reader.trainings(name, node)
    ]
    counts = Counter(dataset.name for dataset in datasets)
    for dataset in datasets:
        if counts[dataset.name] > 1 and dataset.name != dataset.base:
            text = (
                f"Dataset {dataset.base!r} has a training called {dataset.name!r}, as another "
                "dataset is; domains differ in letters a to z and digits"
            )
            mistakes.note(text, nodes[dataset.base].place)
    if mistakes.mistakes and not fully:
        return read(experiment, parameters, fully=True)
    mistakes.require_none(CONFIGURATION)
    return Experiment(datasets=tuple(datasets))


def require_files(
    experiment: Experiment, names: Collection[str], written: Node, parameters: Node, files: Any
) -> None:
    """Check that raw files are available; the error has a line for each one that is missing.

    ``names`` are the datasets, and generators with a dataset of their own, whose files are read;
    ``written`` the sections of the experiment, as ``layered`` returns them; and ``files`` a
    ``core.raw_files.Files``.
    """
    nodes = {**written.fields["datasets"].fields}
    for section in ("generators", "datasets"):
        nodes |= parameters.fields.get(section, NOTHING).fields
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
            of, place = " of ".join([*keys, f"dataset {name!r}"]), nodes[name].at(keys).place
            mistakes.note(f"Raw file {file!r} of {of} is missing", place, files.remedy(file))
    mistakes.require_none(CONFIGURATION)


class Reader:
    """Reads datasets with their cells and generators."""

    def __init__(self, written: Node, lookup: Lookup) -> None:
        self.written, self.lookup, self.mistakes = written, lookup, lookup.mistakes

    def trainings(self, base: str, node: Node) -> Iterator[DatasetConfig]:
        """The trainings of a dataset, one unless a design of domains has several."""
        dataset, written = self.dataset(base, node), node.fields.get("domains", NOTHING)
        if written.value is None:
            yield from [dataset] if dataset else []
            return
        of = f"domains of dataset {base!r}"
        design = self.mistakes.validated(Design, written.plain, of, written)
        if dataset is None or design is None:
            return
        for ending, domains in design.trainings().items():
            name = "_".join(filter(None, [base, as_label(ending)]))
            facts = {"data": base, "trained_on": " + ".join(domains.train) or "all others"}
            if design.train == "before_each":  # their order matters, such as that of years
                facts["trained_until"] = domains.train[-1]
            yield dataset.trained_on(name, domains, facts)

    def dataset(self, base: str, node: Node) -> DatasetConfig | None:
        """A dataset with its cells, without its domains; None where it has mistakes."""
        before, of, fields = len(self.mistakes.mistakes), f"dataset {base!r}", node.fields
        if not isinstance(node.value, dict | None):
            is_field = base in WrittenDataset.model_fields
            hint = "Fields of all datasets of a file are at its top." if is_field else ""
            self.mistakes.note(
                f"{of}: {node.plain!r}, allowed: names with fields", node.place, hint
            )
            return None
        written = self.mistakes.validated(WrittenDataset, node.plain, of, node) or WrittenDataset()
        if not is_label(base):
            hint = f"{LETTERS} none of {', '.join(RESERVED)}."
            self.mistakes.note(f"Name of {of}", node.place, hint)
        source = self.lookup.plugin("dataset", base, "", node.place)
        data_kind = self.lookup.data_kind(source)
        test_sets = self.test_sets(fields.get("shifts", NOTHING), of, data_kind)
        cells = self.cells(base, node, written, test_sets, data_kind)
        generator = self.generator(base, source) if source else None
        self.require_drawable(node, written, generator, of)
        if source is None or None in cells:
            return None
        result = self.mistakes.validated(
            DatasetConfig,
            {
                "name": base,
                "base": base,
                "source": source,
                "test_sets": test_sets,
                "cells": cells,
                "generator": generator,
                **{name: getattr(written, name) for name in Running.model_fields},
            },
            of,
            node,
        )
        if result is not None and result.budget:
            methods = fields["methods"].fields
            self.require_budget(result, result.budget, methods, fields["budget"].place)
        return result if len(self.mistakes.mistakes) == before else None

    def cells(
        self,
        dataset: str,
        node: Node,
        written: WrittenDataset,
        test_sets: Sequence[TestSet],
        data_kind: str,
    ) -> list[Cell | None]:
        """The cells of a dataset, each with what the dataset says about all of them."""
        of, methods = f"dataset {dataset!r}", node.fields.get("methods", NOTHING)
        if not methods.value:
            self.mistakes.note(f"The {of} has no methods, allowed: at least one", node.place)
        protocol = self.lookup.protocol(node.fields.get("protocol", NOTHING), of, node.place)
        shared = {
            "dataset": dataset,
            "protocol": protocol or Protocol(),
            "seeds": range(written.seeds),
            "test_sets": {item.name: (item.called, item.severity) for item in test_sets},
            "facets": written.facets,
            **{name: getattr(written, name) for name in Scoring.model_fields},
        }
        return [
            self.cell(label, part, node, shared, data_kind)
            for label, part in methods.fields.items()
        ]

    def require_drawable(
        self, node: Node, written: WrittenDataset, generator: GeneratorConfig | None, of: str
    ) -> None:
        """Note embedding planes of no cell, and a contact sheet that generated images lack."""
        labels = node.fields.get("methods", NOTHING).fields
        for place, label in enumerate(written.embedding_planes):
            if label not in labels:
                where = node.at(["embedding_planes", place]).place
                self.mistakes.unknown("embedding_planes", label, of, where, labels)
        if isinstance(written.contact_sheet, str) and generator is not None:
            text = f"contact_sheet of {of}: an attribute, allowed: true, false"
            self.mistakes.note(text, node.fields["contact_sheet"].place)

    def test_sets(self, node: Node, of: str, data_kind: str) -> list[TestSet]:
        result: dict[str, TestSet] = {}
        for name, severities in node.fields.items():
            shift = self.lookup.shift(name, data_kind, of, severities.place)
            for element in severities.elements if shift else []:
                written = {"shift": shift, "severity": element.plain, "label": name}
                made = self.mistakes.validated(TestSet, written, f"shift {name!r} of {of}", element)
                if made is not None and made.name in result:
                    text = f"Severity {element.plain} of {name!r} occurs twice for {of}"
                    self.mistakes.note(text, element.place)
                elif made is not None:
                    result[made.name] = made
        return list(result.values())

    def cell(
        self, label: str, node: Node, dataset: Node, shared: Mapping[str, Any], data_kind: str
    ) -> Cell | None:
        """A cell; by default its method is called like it, and its network is the dataset's."""
        data = f"dataset {shared['dataset']!r}"
        of = f"{label!r} of {data}"
        if not is_label(label):
            hint = f"{LETTERS} none of {', '.join(RESERVED)}."
            self.mistakes.note(f"Label {of}", node.place, hint)
            return None
        before = len(self.mistakes.mistakes)
        written = self.mistakes.validated(WrittenCell, node.plain, of, node) or WrittenCell()
        fields = {
            "method": Node(label, node.place),
            "network": dataset.fields.get("network", NOTHING),
            **node.fields,
        }
        method = self.lookup.named("method", fields["method"], data)
        network = self.lookup.network(fields["network"], data_kind, of, node.place)
        trials = self.expanded(fields.get("trials", NOTHING), "trials", of)
        search = self.expanded(fields.get("search", NOTHING), "searches", of)
        plugins = [item.parameters for item in (method, network) if item and self.mistakes.fully]
        known = {name for part in (shared["protocol"], *plugins) for name in part.searched}
        self.require_fields(label, node, known, of)
        if method is None or network is None:
            return None
        if "budget" in dataset.fields and not (search or trials):
            names = (fields["network"].value, network.name), (fields["method"].value, method.name)
            search = self.budgeted(dataset.fields["budget"], names, of, node.place)
        settings = fields.get("settings", NOTHING)
        spaces = [item.fields.get("space", item) for item in search]
        for trial in (settings, *trials, *spaces) if self.mistakes.fully else ():
            for name, item in without(trial, known).items():
                self.mistakes.unknown("hyperparameter", name, of, item.place, known)
        if len(self.mistakes.mistakes) > before:
            return None
        cell = {
            **shared,
            "label": label,
            "method": method,
            "network": network,
            "settings": written.settings,
            "trials": [trial.plain for trial in trials],
            "postprocessing": written.postprocessing,
            "facets": shared["facets"] | written.facets,
        }
        places = Node({**node.fields, "trials": Node(trials)}, node.place)
        result = self.mistakes.validated(Cell, cell, of, places)
        stages = [
            self.mistakes.validated(Stage, item.plain, f"search of {of}", item) for item in search
        ]
        if result is not None and None not in stages and self.mistakes.fully:
            self.require_values(result, settings, trials, spaces)
        if search and len(self.mistakes.mistakes) == before:
            result = self.mistakes.validated(Cell, {**cell, "search": stages}, of, places)
        return result if len(self.mistakes.mistakes) == before else None

    def require_fields(self, label: str, node: Node, known: Collection[str], of: str) -> None:
        """Note fields that a cell does not have; ``known`` are those of its settings."""
        for name, item in without(node, WrittenCell.model_fields).items():
            if name in known:
                hint = f"Write `{label}: {{settings: {{{name}: {item.plain}}}}}`."
                self.mistakes.note(f"Unknown field {name!r} for {of}", item.place, hint)
            else:
                self.mistakes.unknown("field", name, of, item.place, WrittenCell.model_fields)

    def require_values(
        self, cell: Cell, settings: Node, trials: Sequence[Node], spaces: Sequence[Node]
    ) -> None:
        """Note invalid values of settings, trials and searches."""
        written = [({}, settings.place), *((trial.plain, trial.place) for trial in trials)]
        for name, values in (item for space in spaces for item in space.fields.items()):
            ends = values.elements or [values.fields["low"], values.fields["high"]]
            written += [({name: end.plain}, end.place) for end in ends]
        for changes, place in written:
            try:
                cell.replicas([changes])
            except InputError as error:
                self.mistakes.note(str(error), place)

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
                result = deep_merged(result, spaces[name])
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
        known = self.written.fields[section].fields
        result: list[Node] = []
        for element in [node] if isinstance(node.value, str) else node.elements:
            if not isinstance(element.value, str):
                result.append(element)
            elif element.value in known:
                result += known[element.value].elements
            else:
                self.mistakes.unknown(section, element.value, of, element.place, known)
        return [item for item in result if item.value not in (None, {})]

    def generator(self, dataset: str, source: Named) -> GeneratorConfig | None:
        """The generator of a dataset whose images are generated."""
        if source.name != GENERATED:
            return None
        configured, name = self.lookup.section("generators"), str(source.options.get("generator"))
        if name not in configured:
            place = self.lookup.parameters.at(["datasets", dataset, "generator"]).place
            self.mistakes.unknown("generator", name, f"dataset {dataset!r}", place, configured)
            return None
        node, of, before = configured[name], f"generator {name!r}", len(self.mistakes.mistakes)
        written = self.mistakes.validated(WrittenGenerator, node.plain, of, node)
        if not is_label(name) or name in self.lookup.known("dataset"):
            self.mistakes.note(f"Name of {of}", node.place, f"{LETTERS} no name of a dataset.")
        if written is None or len(self.mistakes.mistakes) > before:
            return None
        made = {"name": name, **written.model_dump(include={"file", "training"}, exclude_none=True)}
        if written.source:
            made |= self.real_images(name, str(written.source), node)
        return self.mistakes.validated(GeneratorConfig, made, of, node)

    def real_images(self, name: str, dataset: str, node: Node) -> dict[str, Any]:
        """The source of a generator and the classifier of its images."""
        of, place = f"reference of generator {name!r}", node.at(["source"]).place
        source = self.lookup.plugin("dataset", dataset, "", place)
        if source is not None and source.name == GENERATED:
            text = f"The source of generator {name!r} is generated"
            self.mistakes.note(f"{text}, allowed: a dataset that is read", place)
            return {}
        reference = node.fields.get("reference", Node(None, node.place))
        fields, place = reference.fields, reference.place
        self.mistakes.validated(WrittenReference, reference.plain, of, reference)
        data_kind = self.lookup.data_kind(source)
        network = self.lookup.network(fields.get("network", NOTHING), data_kind, of, place)
        protocol = self.lookup.protocol(fields.get("protocol", NOTHING), of, place)
        if network is None or protocol is None or source is None:
            return {}
        named = {"dataset": name, "label": "reference", "method": "erm"}
        cell = {**named, "network": network, "protocol": protocol, "seeds": (0,)}
        return {"source": source, "reference": self.mistakes.validated(Cell, cell, of, reference)}


def _listed(value: Any) -> Collection[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def as_label(text: str) -> str:
    """A text with "_" in the place of all but letters and digits."""
    return "".join(item if item.isalnum() and item.isascii() else "_" for item in text)


def is_label(text: str) -> bool:
    """Whether nodes and files can be called so."""
    plain = text.replace("-", "").replace("_", "")
    return plain.isalnum() and text.isascii() and text[0] != "-" and text not in RESERVED
