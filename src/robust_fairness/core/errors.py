"""The exception for users' mistakes, and failures of nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches


class InputError(ValueError):
    """Wrong input; the message is one line with the file or field and what is allowed."""


LISTED = 60  # allowed names that an error lists


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> InputError:
    """An error for a name that is not in ``allowed``, with the nearest names.

    Of more than ``LISTED`` allowed names, the first ones are listed.

    >>> print(unknown_name("method", "cumma", ["cuma", "erm"]))
    unknown method 'cumma': did you mean 'cuma'? Allowed: cuma, erm
    """
    options = sorted(allowed)
    near = get_close_matches(name, options, n=3, cutoff=0.5)
    hint = f": did you mean {' or '.join(map(repr, near))}? " if near else ". "
    listed = ", ".join(options[:LISTED])
    if len(options) > LISTED:
        listed += f" and {len(options) - LISTED} more"
    return InputError(f"unknown {kind} {name!r}{hint}Allowed: {listed}")


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its type if there is none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


@dataclass(frozen=True)
class Failure:
    """Replaces an output of a failed node, with the first line of its error."""

    node: str
    message: str
    namespace: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"
