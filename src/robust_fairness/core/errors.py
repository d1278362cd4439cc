"""The one exception that a user's mistake raises: its message is the whole help."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


class InputError(ValueError):
    """Bad input: one line that names the file or field and what is allowed there."""


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> InputError:
    """Error for a name that is not one of ``allowed``, nearest names first.

    >>> print(unknown_name("method", "cumma", ["cuma", "erm"]))
    unknown method 'cumma': did you mean 'cuma'? Allowed: cuma, erm
    """
    options = sorted(allowed)
    near = get_close_matches(name, options, n=3, cutoff=0.5)
    hint = f": did you mean {' or '.join(map(repr, near))}? " if near else ". "
    return InputError(f"unknown {kind} {name!r}{hint}Allowed: {', '.join(options)}")


@dataclass(frozen=True)
class Failure:
    """What stands in the place of the output of a node that failed.

    Attributes:
        node: name of the node.
        message: first line of its error.
    """

    node: str
    message: str

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"
