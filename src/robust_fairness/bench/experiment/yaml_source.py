"""YAML files as values that know file and line."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import yaml

from robust_fairness.core.errors import InputError, Mistake

Loader: TypeAlias = "yaml.SafeLoader | yaml.CSafeLoader"
FASTER: type[Loader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # where PyYAML has libyaml
MERGE = "tag:yaml.org,2002:merge"
LARGEST = 16 * 2**20  # bytes of a file
LARGEST_NUMBER = 2**63 - 1
DEEPEST = 50  # levels of lists and mappings within one another
MOST_VALUES = 1_000_000  # of a file, each use of an alias counted


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
        """The nodes of a mapping; other values have none."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> list["Node"]:
        """The nodes of a list; other values have none."""
        return self.value if isinstance(self.value, list) else []

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


NOTHING = Node(None)


@lru_cache(maxsize=64)  # the configuration loader reads a file for several purposes
def parse(content: str | bytes, file: str) -> Node:
    """The content of a YAML file in UTF-8.

    Raises:
        InputError: it is not YAML, is no mapping, has a key twice or exceeds a limit; with file
            and line.
    """
    if len(content) > LARGEST:
        raise _not_readable(f"{len(content):,} bytes, allowed: up to {LARGEST:,}", file)
    try:
        text = content.decode() if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        raise _not_readable(f"byte {byte:#x}, allowed: UTF-8", f"{file}:{line}") from None
    try:
        return _Parser(FASTER, file).parsed(text)
    except yaml.YAMLError:
        pass
    try:
        return _Parser(yaml.SafeLoader, file).parsed(text)  # slower, with better messages
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _not_yaml(str(error.problem), file, mark) from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        problem = f"not YAML: character {chr(error.character)!r} is not allowed"
        raise _not_readable(problem, f"{file}:{line}") from None


def _not_yaml(problem: str, file: str, mark: Any) -> InputError:
    where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
    return _not_readable(f"not YAML: {problem}", where)


def _not_readable(text: str, place: str) -> InputError:
    return InputError(f"{place}: {text}", [Mistake(text, place)])


class _Parser:
    """Reads a file with one of PyYAML's safe loaders, within the limits."""

    def __init__(self, loader: type[Loader], file: str) -> None:
        self.kind, self.file = loader, file

    def parsed(self, text: str) -> Node:
        self.require_shallow(text)
        self.loader = self.kind(text)
        try:
            root = self.loader.get_single_node()
            if isinstance(root, yaml.MappingNode | None):
                if root is None:
                    return Node({}, f"{self.file}:1")
                self.require_few(root, {})
                return self.node(root, root, 0)
            problem = "a list or a single value, allowed: names with fields"
            raise _not_readable(problem, f"{self.file}:{root.start_mark.line + 1}")
        finally:
            self.loader.dispose()

    def require_shallow(self, text: str) -> None:
        """Refuse what is nested too deep before PyYAML's recursion meets it."""
        depth = 0
        for event in yaml.parse(text, self.kind):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    raise self.too_deep(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def too_deep(self, at: yaml.Node | yaml.Event) -> InputError:
        problem = f"nested more than {DEEPEST} levels deep, or within itself"
        return _not_yaml(problem, self.file, at.start_mark)

    def require_few(self, read: yaml.Node, known: dict[int, int]) -> int:
        """The values in a node, which aliases repeat; too many are refused before they are made."""
        if isinstance(read, yaml.ScalarNode):
            return 1
        if id(read) not in known:
            known[id(read)] = 0  # within itself
            is_list = isinstance(read, yaml.SequenceNode)
            values = read.value if is_list else [value for _, value in read.value]
            known[id(read)] = count = 1 + sum(self.require_few(value, known) for value in values)
            if count > MOST_VALUES:
                problem = f"more than {MOST_VALUES:,} values with those of aliases"
                raise _not_yaml(problem, self.file, read.start_mark)
        return known[id(read)]

    def node(self, read: yaml.Node, key: yaml.Node, depth: int) -> Node:
        """The node of a value; its place is the line of its key."""
        if depth > DEEPEST:
            raise self.too_deep(key)
        place = f"{self.file}:{key.start_mark.line + 1}"
        if isinstance(read, yaml.MappingNode):
            return Node(self.mapping(read, depth), place)
        if isinstance(read, yaml.SequenceNode):
            return Node([self.node(item, item, depth + 1) for item in read.value], place)
        return Node(self.scalar(read), place)

    def scalar(self, read: yaml.Node) -> Any:
        if not isinstance(read, yaml.ScalarNode):
            raise _not_yaml("a key is a list or a mapping", self.file, read.start_mark)
        try:
            value = self.loader.construct_object(read)
        except ValueError as error:  # such as of a date
            raise _not_yaml(str(error), self.file, read.start_mark) from None
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            problem = f"a whole number of {len(read.value)} digits, allowed: 64 bits"
            raise _not_readable(problem, f"{self.file}:{read.start_mark.line + 1}")
        return value

    def mapping(self, read: yaml.Node, depth: int) -> dict[str, Node]:
        if not isinstance(read, yaml.MappingNode):
            raise _not_yaml("'<<' of a value, allowed: mappings", self.file, read.start_mark)
        if depth > DEEPEST:
            raise self.too_deep(read)
        merged: dict[str, Node] = {}
        fields: dict[str, Node] = {}
        for key, value in read.value:
            if key.tag == MERGE:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in reversed(parts):  # of several, the first has precedence
                    merged |= self.mapping(part, depth + 1)
                continue
            name = str(self.scalar(key))
            if name in fields:
                line = f"{self.file}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
                raise _not_readable(
                    f"key {name!r} occurs twice (first: {fields[name].place})", line
                )
            fields[name] = self.node(value, key, depth + 1)
        return {**merged, **fields}


def deep_merged(first: Node, second: Node) -> Node:
    """Two nodes as one; mappings are merged at any depth, other values are those of ``second``."""
    if not (isinstance(first.value, dict) and isinstance(second.value, dict)):
        return second
    value = dict(first.value)
    for name, node in second.value.items():
        value[name] = deep_merged(value[name], node) if name in value else node
    return Node(value, second.place)


def without(node: Node, names: Collection[str]) -> dict[str, Node]:
    """The fields of a mapping but some."""
    return {name: item for name, item in node.fields.items() if name not in names}


def located(value: Any, places: Node) -> Node:
    """A value with the places of the nodes that have the same keys."""
    if isinstance(value, dict):
        fields = {name: located(item, places.at([name])) for name, item in value.items()}
        return Node(fields, places.place)
    if isinstance(value, list):
        items = [located(item, places.at([number])) for number, item in enumerate(value)]
        return Node(items, places.place)
    return Node(value, places.place)
