"""Where datasets, shifts, methods, networks and metrics come from, as BibTeX.

``citations.bib`` has the entries and ``citations.csv`` says which of them a thing rests on: its
kind and name, or a pattern of names of which the first that fits counts; keys of entries; a note.
Without a key the note says why there is nothing to cite.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

UNKNOWN = "nothing noted: add it to citations.csv"


@dataclass(frozen=True)
class Source:
    """What a thing rests on.

    Attributes:
        kind: kind of the thing, such as "method".
        name: its name.
        keys: keys of BibTeX entries; none where there is nothing to cite.
        note: why there is none, or what the entries leave open.
    """

    kind: str
    name: str
    keys: tuple[str, ...]
    note: str = ""


@cache
def entries() -> dict[str, str]:
    """All BibTeX entries by key."""
    found = _text("citations.bib").strip().split("\n\n")
    return {text[text.index("{") + 1 : text.index(",")]: text for text in found}


@cache
def known() -> tuple[Source, ...]:
    """The rows of ``citations.csv`` in their order; a name may be a pattern."""
    rows = csv.DictReader(_text("citations.csv").splitlines())
    return tuple(
        Source(row["kind"], row["name"], tuple(row["keys"].split()), row["note"]) for row in rows
    )


def source_of(kind: str, name: str) -> Source:
    """What a thing rests on; options in the name of a metric do not matter.

    Args:
        kind: kind of the thing, such as "method".
        name: its name.
    """
    plain = name.partition("(")[0]
    rows = [row for row in known() if row.kind == kind]
    fits = next((row for row in rows if fnmatchcase(plain, row.name)), None)
    return Source(kind, plain, fits.keys, fits.note) if fits else Source(kind, plain, (), UNKNOWN)


def sources(used: Mapping[str, Iterable[str]]) -> list[Source]:
    """What everything rests on that a run used, each once.

    Args:
        used: names by kind, as the manifest has them.
    """
    found = [source_of(kind, name) for kind, names in used.items() for name in names]
    return list(dict.fromkeys(found))


def bibtex(found: Iterable[Source]) -> str:
    """The entries that some things rest on, by key, each below a comment that names the things."""
    used_by: dict[str, list[str]] = {}
    for source in found:
        for key in source.keys:
            used_by.setdefault(key, []).append(f"{source.kind} {source.name}")
    return "\n".join(f"% {', '.join(used_by[key])}\n{entries()[key]}\n" for key in sorted(used_by))


def bibliography(used: Mapping[str, Iterable[str]]) -> str:
    """BibTeX of exactly what a run used; things without an entry stand in a comment at the end."""
    found = sources(used)
    without = [f"% {one.kind} {one.name}: {one.note}\n" for one in found if not one.keys]
    head = "% Nothing to cite for:\n" if without else ""
    return "\n".join(filter(None, (bibtex(found), head + "".join(without))))


def _text(name: str) -> str:
    return (files("robust_fairness.reporting") / name).read_text(encoding="utf-8")
