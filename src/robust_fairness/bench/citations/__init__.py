"""Sources of datasets, shifts, methods, networks and metrics, as BibTeX.

``citations.bib`` has the entries; ``citations.csv`` has the kind and name of a plug-in, the keys of
its entries and a note. Without a key the note says why there is nothing to cite. The sources of a
metric are those of its quantity and its aggregation.
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from robust_fairness.metrics import find_metric

UNKNOWN = "nothing noted: add it to citations.csv"


@dataclass(frozen=True)
class Source:
    """Keys of BibTeX entries of a plug-in, and a note, which says why if there are none."""

    kind: str
    name: str
    keys: tuple[str, ...]
    note: str = ""


@cache
def entries() -> dict[str, str]:
    """All BibTeX entries by key."""
    texts = _text("citations.bib").strip().split("\n\n")
    return {text[text.index("{") + 1 : text.index(",")]: text for text in texts}


@cache
def known() -> dict[tuple[str, str], Source]:
    """The rows of ``citations.csv`` by kind and name."""
    rows = csv.DictReader(_text("citations.csv").splitlines())
    return {
        (row["kind"], row["name"]): Source(
            row["kind"], row["name"], tuple(row["keys"].split()), row["note"]
        )
        for row in rows
    }


def source_of(kind: str, name: str) -> Source:
    """The sources of a plug-in."""
    if kind != "metric":
        return known().get((kind, name), Source(kind, name, (), UNKNOWN))
    metric = find_metric(name)
    quantity = known().get((kind, metric.quantity), Source(kind, metric.quantity, (), UNKNOWN))
    aggregation = known().get(("aggregation", metric.aggregation))
    if aggregation is None:
        return quantity
    keys = tuple(dict.fromkeys(aggregation.keys + quantity.keys))
    note = "" if quantity.note == UNKNOWN else quantity.note
    return Source(kind, f"{metric.aggregation} of {metric.quantity}", keys, note)


def sources(used: Mapping[str, Iterable[str]]) -> list[Source]:
    """The sources of everything that a run used, each once."""
    used_names = ((kind, name) for kind, names in used.items() for name in names)
    return list(dict.fromkeys(source_of(kind, name) for kind, name in used_names))


def bibtex(cited: Iterable[Source]) -> str:
    """The entries by key, each below a comment that names what cites it."""
    used_by: dict[str, list[str]] = {}
    for source in cited:
        for key in source.keys:
            used_by.setdefault(key, []).append(f"{source.kind} {source.name}")
    return "\n".join(f"% {', '.join(used_by[key])}\n{entries()[key]}\n" for key in sorted(used_by))


def bibliography(used: Mapping[str, Iterable[str]]) -> str:
    """BibTeX of what a run used; a comment at the end names what has no entry."""
    cited = sources(used)
    without = [
        f"% {source.kind} {source.name}: {source.note}\n" for source in cited if not source.keys
    ]
    head = "% Nothing to cite for:\n" if without else ""
    return "\n".join(filter(None, (bibtex(cited), head + "".join(without))))


def _text(name: str) -> str:
    return (files("robust_fairness.bench.citations") / name).read_text(encoding="utf-8")
