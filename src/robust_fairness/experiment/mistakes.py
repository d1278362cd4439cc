"""The mistakes of a configuration, collected so that they are reported together."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from robust_fairness.core.errors import InputError, Mistake, together
from robust_fairness.experiment.plugins import OUTLINE, keys_of, message
from robust_fairness.experiment.yaml_source import Node

Model = TypeVar("Model", bound=BaseModel)
RENAMED = {"referee": "reference"}


@cache
def _adapter(model: type[BaseModel]) -> TypeAdapter:
    return TypeAdapter(model)


class Mistakes:
    """Mistakes with file and line.

    Attributes:
        fully: whether models are validated with their plug-ins.
    """

    def __init__(self, fully: bool) -> None:
        self.fully = fully
        self.found: list[Mistake] = []
        self.noted: set[tuple[str, ...]] = set()

    def error(self) -> InputError:
        """All mistakes as one error, a line each."""
        return together(self.found, "the configuration")

    def note(self, text: str, place: str, hint: str = "") -> None:
        self.found.append(Mistake(text, place, hint))

    def unknown(self, kind: str, name: str, of: str, place: str, allowed: Collection[str]) -> None:
        """Note a name that is not one of ``allowed``, with the nearest of them, or all."""
        near = get_close_matches(name, list(allowed), n=3, cutoff=0.65)
        hint = (
            f"Did you mean {' or '.join(map(repr, near))}?"
            if near
            else f"Allowed: {', '.join(sorted(allowed)) or 'none'}."
        )
        self.note(f"Unknown {kind} {name!r}{f' for {of}' if of else ''}", place, hint)

    def unknown_fields(
        self,
        fields: Mapping[str, Node],
        of: str,
        allowed: Collection[str],
        kind: str = "field",
        hints: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Note fields that are not among ``allowed``; ``hints`` say what to write instead."""
        for name, node in fields.items():
            if name in RENAMED and RENAMED[name] in allowed:
                self.note(f"Field {name!r} of {of} is now {RENAMED[name]!r}", node.place)
            elif name in hints and name not in allowed:
                self.note(f"Unknown {kind} {name!r} for {of}", node.place, hints[name])
            elif name not in allowed:
                self.unknown(kind, name, of, node.place, allowed)

    def mapping(self, node: Node, what: str, hint: str = "") -> dict[str, Node]:
        """The fields of a mapping; none, and a mistake, where it is something else."""
        if isinstance(node.value, dict | None):
            return node.fields
        self.note(f"{what}: {node.plain!r}, allowed: names with fields", node.place, hint)
        return {}

    def name(self, node: Node, what: str) -> str | None:
        """The name that a node has; None, and a mistake, where it has fields or is a list."""
        if not isinstance(node.value, dict | list):
            return str(node.plain)
        hint = "Its parameters belong under 'settings', or under a name of your own in parameters."
        self.note(f"{what}: {node.plain!r}, allowed: a name", node.place, hint)
        return None

    def elements(self, node: Node, what: str) -> list[Node]:
        """The nodes of a list; none, and a mistake, where it is something else."""
        if isinstance(node.value, list | None):
            return node.value or []
        hint = f"Write `[{node.plain}]`." if not isinstance(node.value, dict) else ""
        self.note(f"{what}: {node.plain!r}, allowed: a list", node.place, hint)
        return []

    def validated(self, model: type[Model], written: object, of: str, node: Node) -> Model | None:
        """The model of a dictionary; None, and mistakes, where it is invalid.

        A value that many cells share, such as the metrics of a file, is noted once.
        """
        context = None if self.fully else OUTLINE
        try:
            # not ``model_validate``, which raises an error without the fields' places
            return _adapter(model).validate_python(written, context=context)
        except ValidationError as error:
            for item in error.errors(include_url=False):
                loc = keys_of(item, written)
                keys, place = [str(key) for key in loc], node.place_of(loc)
                mistake = (*keys, message(item), place)
                if place and mistake in self.noted:
                    continue
                self.noted.add(mistake)
                if item["type"] == "extra_forbidden" and len(keys) == 1:
                    self.unknown("field", keys[0], of, place, model.model_fields)
                else:
                    field = f"{'.'.join(keys)} of {of}" if keys else of
                    is_text = item["type"] == "tuple_type" and isinstance(item["input"], str)
                    key = f"{loc[-1]}: " if loc and isinstance(loc[-1], str) else ""
                    hint = f"Write `{key}[{item['input']}]`." if is_text else ""
                    self.note(f"{field}: {message(item)}", place, hint)
            return None
