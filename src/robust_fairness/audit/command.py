"""The audit of a file: gates, table and page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pandas as pd

from robust_fairness.audit import gates as gate_texts
from robust_fairness.audit.page import audit_page
from robust_fairness.audit.predictions import Roles, check
from robust_fairness.audit.report import MISSING, P_VALUES, SMALL, offered_names, score
from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.reading import read_columns


@dataclass(frozen=True)
class FileAudit:
    """Result of the audit of a file."""

    rows: pd.DataFrame
    files: Mapping[str, str]
    failures: list[str]


def audit_file(
    path: Path,
    roles: Roles,
    *,
    gates: Sequence[str] = (),
    intersections: bool = False,
    small: int = SMALL,
    missing: Sequence[str] = (),
    delimiter: str = ",",
) -> FileAudit:
    """Score the predictions in a CSV or Parquet file; writes nothing.

    Args:
        path: the file.
        roles: what its columns are.
        gates: conditions that must not hold, such as ``delta_eo[sex]>0.1``.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        missing: texts of missing values, besides empty cells.
        delimiter: column separator of a CSV file.
    """
    parsed = [gate_texts.parse(gate) for gate in gates]
    for gate in parsed:
        gate_texts.require_known(
            gate, offered_names(roles.continuous), _attributes(roles.attributes, intersections)
        )
    table = _table(path, roles.columns, delimiter, ("", *missing))
    predictions = check(table, roles, path.name)
    rows = score(predictions, intersections, small, path.name)
    failures = {gate: gate.failures(rows) for gate in parsed}
    page = audit_page(rows, predictions, roles, name=path.name, small=small, failures=failures)
    name = path.name.partition(".")[0]
    files = {f"{name}_audit.html": page, f"{name}_audit.csv": rows.to_csv(index=False)}
    return FileAudit(rows, files, [line for lines in failures.values() for line in lines])


def _attributes(names: Sequence[str], intersections: bool) -> set[str]:
    """Attributes that a gate may name, whichever of them turn out to be categorical."""
    sizes = range(1, len(names) + 1) if intersections else (1, len(names))
    return {" & ".join(some) for size in sizes for some in combinations(names, size)}


def _table(
    path: Path, columns: Sequence[str], delimiter: str, missing: Sequence[str]
) -> pd.DataFrame:
    if len(delimiter) != 1:
        raise InputError(f"delimiter: {delimiter!r}, allowed: one character")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    files = Files(path.absolute().parent)
    return read_columns(files, path.name, list(dict.fromkeys(columns)), delimiter, missing)


def summary(rows: pd.DataFrame) -> str:
    """Text for the terminal: values with intervals, without those of single groups."""
    shown = rows[(rows["group"] == "") & ~rows["metric"].isin(P_VALUES)]
    shown = shown[shown["applies"] & ~((shown["metric"] == MISSING) & (shown["value"] == 0))]
    lines = []
    for row in shown.to_dict("records"):
        value = "n/a" if pd.isna(row["value"]) else f"{row['value']:.4f}"
        interval = "" if pd.isna(row["low"]) else f"[{row['low']:.4f}, {row['high']:.4f}]"
        small = "small" if row["small"] else ""
        lines.append((row["metric"], row["attribute"], value, interval, small, row["note"]))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
