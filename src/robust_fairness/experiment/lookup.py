"""What the names of an experiment mean: plug-ins with their parameters, and protocols."""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from robust_fairness.core import registry
from robust_fairness.experiment.experiment import Protocol
from robust_fairness.experiment.mistakes import Mistakes
from robust_fairness.experiment.plugins import Named
from robust_fairness.experiment.yaml_source import Node

# Other sections of the parameters are of a project's own pipelines, unless they look like these.
SECTIONS = ("datasets", "generators", "methods", "networks", "protocols", "shifts", "spaces")
ALIKE = 0.8  # of two names, between 0 and 1


class Lookup:
    """Finds names in the parameters and in the registry, and notes those that are in neither.

    ``places`` are the parameters with their lines.
    """

    def __init__(self, parameters: Mapping[str, Any], places: Node, mistakes: Mistakes) -> None:
        self.parameters, self.places, self.mistakes = parameters, places, mistakes
        self.names = cache(registry.names)
        self.plugin = cache(self._plugin)

    def require_known_sections(self) -> None:
        """Note sections whose name is almost that of one that is read."""
        for name, node in self.places.fields.items():
            if name not in SECTIONS and get_close_matches(name, SECTIONS, cutoff=ALIKE):
                self.mistakes.unknown("section", name, "the parameters", node.place, SECTIONS)

    def section(self, name: str) -> dict[str, Any]:
        """A section of the parameters, such as ``methods``."""
        result = self.parameters.get(name) or {}
        if isinstance(result, dict):
            return result
        place = self.places.place_of([name])
        self.mistakes.note(f"{name}: {result!r}, allowed: names with fields", place)
        return {}

    def known(self, kind: str) -> set[str]:
        return {*self.section(f"{kind}s"), *self.names(kind)}

    def _plugin(self, kind: str, name: str, of: str, place: str) -> Named | None:
        configured = self.section(f"{kind}s")
        node = self.places.at([f"{kind}s", name])
        options = configured.get(name) or {}
        if not isinstance(options, dict):
            self.mistakes.note(f"{kind} {name!r}: {options!r}, allowed: fields", node.place)
            return None
        options = dict(options)
        original = str(options.pop("source" if kind == "dataset" else "name", name))
        if name not in configured and name not in self.names(kind):
            self.mistakes.unknown(kind, name, of, place, self.known(kind))
            return None
        described = f"{kind} {name!r}"
        if original not in self.names(kind):
            self.mistakes.unknown(kind, original, described, node.place, self.names(kind))
            return None
        if self.mistakes.fully:
            parameters = registry.find(kind, original).Parameters
            if self.mistakes.validated(parameters, options, described, node) is None:
                return None
        return Named(kind=kind, name=original, options=options)

    def data_kind(self, source: Named | None) -> str:
        """The kind of data of a source; "" where it is not known."""
        if source is None or not self.mistakes.fully:
            return ""
        return registry.find("dataset", source.name)(source.parameters).data_kind

    def shift(self, name: str, source: Named | None, of: str, place: str) -> Named | None:
        """A shift that applies to a source."""
        result, kind = self.plugin("shift", name, of, place), self.data_kind(source)
        if result is None or not kind:
            return result
        allowed = registry.find("shift", result.name).applies_to
        if kind in allowed:
            return result
        text = f"Shift {name!r} does not apply to {of}, whose data are of kind {kind!r}"
        self.mistakes.note(text, place, f"Allowed: {', '.join(allowed)}.")
        return None

    def network(self, node: Node, source: Named | None, of: str, place: str) -> Named | None:
        """A network that reads the data of a source."""
        if node.plain is None:
            allowed = ", ".join(sorted(self.known("network")))
            self.mistakes.note(f"{of} has no network", place, f"Allowed: {allowed}.")
            return None
        name = self.mistakes.name(node, f"network of {of}")
        result = self.plugin("network", name, of, node.place) if name else None
        kind = self.data_kind(source)
        if result is None or not kind:
            return result
        if registry.find("network", result.name).reads_questions == (kind == "question"):
            return result
        text = f"Network {node.plain!r} of {of} does not fit data of kind {kind!r}"
        self.mistakes.note(text, node.place)
        return None

    def protocol(self, node: Node, of: str, place: str) -> Protocol | None:
        configured = self.section("protocols")
        if node.plain is None:
            allowed = ", ".join(configured)
            self.mistakes.note(f"{of} has no protocol", place, f"Allowed: {allowed}.")
            return None
        name = self.mistakes.name(node, f"protocol of {of}")
        if name is None:
            return None
        if name not in configured:
            self.mistakes.unknown("protocol", name, of, node.place, configured)
            return None
        where = self.places.at(["protocols", name])
        fields = configured[name] or {}
        return self.mistakes.validated(Protocol, fields, f"protocol {name!r}", where)
