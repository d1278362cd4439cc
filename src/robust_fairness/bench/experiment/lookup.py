"""What the names of an experiment mean, and the mistakes of a configuration, reported together."""

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from robust_fairness.bench.experiment.experiment import Protocol
from robust_fairness.bench.experiment.plugins import OUTLINE, Named, example, keys_of, message
from robust_fairness.bench.experiment.written import WrittenParameters
from robust_fairness.bench.experiment.yaml_source import NOTHING, Node
from robust_fairness.core import registry
from robust_fairness.core.errors import Collected, Mistake

Model = TypeVar("Model", bound=BaseModel)
# What is allowed, by the type of pydantic's error.
ALLOWED = {
    "dict_type": "names with fields", "model_type": "names with fields", "name_type": "a name",
    "list_type": "a list", "tuple_type": "a list",
}  # fmt: skip
ALIKE = 0.8  # of two names, between 0 and 1


@dataclass(kw_only=True)
class Mistakes(Collected):
    """Mistakes of the configuration with file and line.

    Attributes:
        fully: whether models are validated with their plug-ins.
        noted: what was noted so far of values that have a place.
    """

    fully: bool
    noted: set[tuple[str, ...]] = field(default_factory=set)

    def note(self, text: str, place: str, hint: str = "") -> None:
        self.mistakes.append(Mistake(text, place, hint))

    def unknown(self, kind: str, name: str, of: str, place: str, allowed: Collection[str]) -> None:
        """Note a name that is not one of ``allowed``, with the nearest of them, or all."""
        near = get_close_matches(name, list(allowed), n=3, cutoff=0.65)
        hint = (
            f"Did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"Allowed: {', '.join(sorted(allowed)) or 'none'}."
        )
        self.note(f"Unknown {kind} {name!r}{f' for {of}' if of else ''}", place, hint)

    def validated(self, model: type[Model], written: object, of: str, node: Node) -> Model | None:
        """The model of a dictionary; None, and mistakes, where it is invalid."""
        context = None if self.fully else OUTLINE
        try:
            # not ``model_validate``, which raises an error without the fields' places
            result: Model = model.__pydantic_validator__.validate_python(written, context=context)
        except ValidationError as error:
            self._note(error, written, model, of, node)
            return None
        return result

    def _note(
        self, error: ValidationError, written: object, model: type[BaseModel], of: str, node: Node
    ) -> None:
        """Note all that is wrong with a node; a value that many cells share, once."""
        for item in error.errors(include_url=False):
            keys, kind, context = keys_of(item, written), item["type"], item.get("ctx", {})
            names, place = [str(key) for key in keys], node.at(keys).place
            mistake = (*names, message(item), place)
            if place and mistake in self.noted:
                continue
            self.noted.add(mistake)
            if kind == "extra_forbidden" and len(names) == 1:
                self.unknown("field", names[0], of, place, model.model_fields)
            else:
                text, hint = message(item), context.get("hint", "")
                if kind in ALLOWED:
                    text = f"{item['input']!r:.80}, allowed: {ALLOWED[kind]}"
                if kind == "missing":
                    field = f"{{{names[-1]}: {names[-1].upper()}}}"
                    hint = f"An example: {example(model) if len(names) == 1 else field}."
                if kind == "tuple_type" and not isinstance(item["input"], dict | None):
                    key = f"{names[-1]}: " if isinstance(keys[-1], str) else ""
                    hint = f"Write `{key}[{item['input']}]`."
                field = " of ".join(filter(None, [".".join(names), of]))
                self.note(f"{field}: {text}", place, hint)


class Lookup:
    """Finds names in the parameters and in the registry, and notes those that are in neither."""

    def __init__(self, parameters: Node, mistakes: Mistakes) -> None:
        self.parameters, self.mistakes = parameters, mistakes
        self.names = cache(registry.names)
        self.plugin = cache(self._plugin)

    def require_sections(self) -> None:
        """Note sections without names, and those whose name is almost that of one that is read."""
        self.mistakes.validated(WrittenParameters, self.parameters.plain, "", self.parameters)
        sections = list(WrittenParameters.model_fields)
        for name, node in self.parameters.fields.items():
            if name not in sections and get_close_matches(name, sections, cutoff=ALIKE):
                self.mistakes.unknown("section", name, "the parameters", node.place, sections)

    def section(self, name: str) -> dict[str, Node]:
        """A section of the parameters, such as ``methods``."""
        return self.parameters.fields.get(name, NOTHING).fields

    def known(self, kind: str) -> set[str]:
        return {*self.section(f"{kind}s"), *self.names(kind)}

    def _plugin(self, kind: str, name: str, of: str, place: str) -> Named | None:
        configured = self.section(f"{kind}s")
        if name not in configured and name not in self.names(kind):
            if kind == "method" and name in self.known("network"):
                hint = f"Write {name}: {{method: erm, network: {name}}}."
                self.mistakes.note(f"{name!r} is a network, no method", place, hint)
            else:
                self.mistakes.unknown(kind, name, of, place, self.known(kind))
            return None
        node = configured.get(name, NOTHING)
        if not isinstance(node.value, dict | None):
            return None  # noted by ``require_sections``
        options = {field: item.plain for field, item in node.fields.items()}
        original = str(options.pop("source" if kind == "dataset" else "name", name))
        described = f"{kind} {name!r}"
        if original not in self.names(kind):
            self.mistakes.unknown(kind, original, described, node.place, self.names(kind))
            return None
        if self.mistakes.fully:
            parameters = registry.find(kind, original).Parameters
            if self.mistakes.validated(parameters, options, described, node) is None:
                return None
        return Named(kind=kind, name=original, options=options)

    def named(self, kind: str, node: Node, of: str) -> Named | None:
        """The plug-in that a node names; None also where it is no name, which its model notes."""
        if isinstance(node.value, dict | list):
            return None
        return self.plugin(kind, str(node.value), of, node.place)

    def data_kind(self, source: Named | None) -> str:
        """The kind of data of a source; "" where it is not known."""
        if source is None or not self.mistakes.fully:
            return ""
        return registry.find("dataset", source.name)(source.parameters).data_kind

    def shift(self, name: str, data_kind: str, of: str, place: str) -> Named | None:
        """A shift that applies to a kind of data."""
        result = self.plugin("shift", name, of, place)
        if result is None or not data_kind:
            return result
        allowed = registry.find("shift", result.name).applies_to
        if data_kind in allowed:
            return result
        text = f"Shift {name!r} does not apply to {of}, whose data are of kind {data_kind!r}"
        self.mistakes.note(text, place, f"Allowed: {', '.join(allowed)}.")
        return None

    def network(self, node: Node, data_kind: str, of: str, place: str) -> Named | None:
        """A network that reads a kind of data."""
        if node.value is None:
            allowed = ", ".join(sorted(self.known("network")))
            self.mistakes.note(f"{of} has no network", place, f"Allowed: {allowed}.")
            return None
        result = self.named("network", node, of)
        if result is None or not data_kind:
            return result
        if registry.find("network", result.name).reads_questions == (data_kind == "question"):
            return result
        text = f"Network {node.value!r} of {of} does not fit data of kind {data_kind!r}"
        self.mistakes.note(text, node.place)
        return None

    def protocol(self, node: Node, of: str, place: str) -> Protocol | None:
        configured, name = self.section("protocols"), str(node.value)
        if node.value is None:
            self.mistakes.note(f"{of} has no protocol", place, f"Allowed: {', '.join(configured)}.")
        elif name in configured:
            where = configured[name]
            fields = {} if where.value is None else where.plain
            return self.mistakes.validated(Protocol, fields, f"protocol {name!r}", where)
        elif not isinstance(node.value, dict | list):
            self.mistakes.unknown("protocol", name, of, node.place, configured)
        return None
