"""YAML files as values that know file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from robust_fairness.core.errors import InputError, Mistake

Loader = yaml.SafeLoader | yaml.CSafeLoader
MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class Node:
    """A value and where it is written.

    Attributes:
        value: a scalar, a dictionary of nodes or a list of nodes.
        place: ``file:line``; "" if it is not written in a file.
    """

    value: Any
    place: str = ""

    @property
    def plain(self) -> Any:
        """The value alone, at any depth."""
        if isinstance(self.value, dict):
            return {name: node.plain for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain for node in self.value]
        return self.value

    @property
    def fields(self) -> dict[str, "Node"]:
        """The nodes of a mapping; an empty value has none."""
        return self.value or {}

    def at(self, keys: Sequence[Any]) -> "Node":
        """A nested node, or the innermost one around it that is written."""
        node = self
        for key in keys:
            children = node.value
            if isinstance(children, list):
                children = dict(enumerate(children))
            if not isinstance(children, dict) or key not in children:
                break
            node = children[key]
        return node

    def place_of(self, keys: Sequence[Any]) -> str:
        """The place of ``at``."""
        return self.at(keys).place


def parse(text: str, file: str) -> Node:
    """The content of a YAML file."""
    try:
        return _parsed(yaml.CSafeLoader(text), file)
    except yaml.YAMLError:
        pass
    try:
        return _parsed(yaml.SafeLoader(text), file)  # slower, with better messages
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        raise _not_readable(f"not YAML: {error.problem}", where) from None


def _parsed(loader: Loader, file: str) -> Node:
    try:
        root = loader.get_single_node()
        return Node({}, f"{file}:1") if root is None else _node(root, loader, file, root)
    finally:
        loader.dispose()


def _not_readable(text: str, place: str) -> InputError:
    return InputError(f"{place}: {text}", [Mistake(text, place)])


def _node(found: yaml.Node, loader: Loader, file: str, key: yaml.Node) -> Node:
    place = f"{file}:{key.start_mark.line + 1}"
    if isinstance(found, yaml.MappingNode):
        return Node(_mapping(found, loader, file), place)
    if isinstance(found, yaml.SequenceNode):
        return Node([_node(one, loader, file, one) for one in found.value], place)
    return Node(loader.construct_object(found), place)


def _mapping(found: yaml.MappingNode, loader: Loader, file: str) -> dict[str, Node]:
    merged: dict[str, Node] = {}
    own: dict[str, Node] = {}
    for key, value in found.value:
        if key.tag == MERGE:
            parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for part in reversed(parts):  # of several, the first has precedence
                merged |= _mapping(part, loader, file)
            continue
        name = str(loader.construct_object(key))
        if name in own:
            line = f"{file}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
            raise _not_readable(f"key {name!r} occurs twice (first: {own[name].place})", line)
        own[name] = _node(value, loader, file, key)
    return {**merged, **own}


def deep_merged(first: Node, second: Node) -> Node:
    """Two nodes as one; mappings are merged at any depth, other values are those of ``second``."""
    if not (isinstance(first.value, dict) and isinstance(second.value, dict)):
        return second
    value = dict(first.value)
    for name, node in second.value.items():
        value[name] = deep_merged(value[name], node) if name in value else node
    return Node(value, second.place)


def without(node: Node, names: Sequence[str]) -> dict[str, Node]:
    """The fields of a mapping but some."""
    return {name: one for name, one in node.fields.items() if name not in names}
