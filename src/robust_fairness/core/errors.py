"""The exception for users' mistakes, and failures of nodes."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches


@dataclass(frozen=True)
class Mistake:
    """A user's mistake.

    Attributes:
        text: what is wrong and what is allowed.
        place: ``file:line``; "" if it is not in a file.
        hint: what to do next.
    """

    text: str
    place: str = ""
    hint: str = ""

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"{self.text}{where}{'. ' if self.hint else ''}{self.hint}"


class InputError(ValueError):
    """Wrong input; the message is one line with the file or field and what is allowed.

    ``mistakes`` are those that it reports; an error of several has one line for each. ``unknown``
    is the name that is not allowed, if that is the mistake.
    """

    def __init__(
        self, message: str, mistakes: Sequence[Mistake] = (), unknown: str | None = None
    ) -> None:
        super().__init__(message)
        self.unknown = unknown
        self.mistakes = tuple(mistakes) or (Mistake(message),)


def together(mistakes: Iterable[Mistake], where: str) -> InputError:
    """One error for several mistakes, each reported once, a line each."""
    distinct = tuple(dict.fromkeys(mistakes))
    if len(distinct) == 1:
        return InputError(str(distinct[0]), distinct)
    return InputError(
        "\n".join([f"{len(distinct)} mistakes in {where}:", *map(str, distinct)]), distinct
    )


@dataclass
class Collected:
    """Mistakes of several steps, to report together."""

    mistakes: list[Mistake] = field(default_factory=list)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note an error of the block instead of raising it."""
        try:
            yield
        except InputError as error:
            self.mistakes += error.mistakes

    def require_none(self, where: str) -> None:
        """Raise the mistakes that were noted, if any."""
        if self.mistakes:
            raise together(self.mistakes, where)


LISTED = 60  # allowed names that an error lists


def unknown_name(kind: str, name: str, allowed: Iterable[str], place: str = "") -> InputError:
    """An error for a name that is not in ``allowed``, with the nearest names in any case.

    Of more than ``LISTED`` allowed names, the first ones are listed. The message begins with
    ``place``, such as a file.

    >>> print(unknown_name("method", "cumma", ["cuma", "erm"]))
    unknown method 'cumma': did you mean 'cuma'? Allowed: cuma, erm
    >>> print(unknown_name("run", "first", []))
    unknown run 'first'. Allowed: none
    """
    options = sorted(allowed)
    folded = {option.casefold(): option for option in options}
    near = [folded[key] for key in get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    hint = f": did you mean {' or '.join(map(repr, near))}? " if near else ". "
    listed = ", ".join(options[:LISTED]) or "none"
    if len(options) > LISTED:
        listed += f" and {len(options) - LISTED} more"
    where = f"{place}: " if place else ""
    return InputError(f"{where}unknown {kind} {name!r}{hint}Allowed: {listed}", unknown=name)


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
