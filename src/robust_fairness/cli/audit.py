"""The command ``audit``."""

from itertools import combinations
from pathlib import Path
from typing import Any

import click

from robust_fairness.cli.commands import Command, write_files
from robust_fairness.core.errors import InputError


class BadInput(click.ClickException):
    """A user's mistake, in a command whose exit status 1 means a failed gate."""

    exit_code = 2


@click.command(cls=Command)
@click.argument("path", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Column of the true values.")
@click.option("--prediction", required=True, help="Column of the predictions.")
@click.option("--attributes", required=True, help="Columns of sensitive attributes: A,B.")
@click.option("--positive", help="The positive value of a binary target; default: 1 or True.")
@click.option("--continuous", is_flag=True, help="The target is continuous.")
@click.option(
    "--prediction-is",
    type=click.Choice(["auto", "class", "probability", "score", "number"]),
    default="auto",
    show_default=True,
    help="Kind of the predictions.",
)
@click.option("--threshold", type=float, help="Lowest probability or score of the positive class.")
@click.option(
    "--bins", multiple=True, help="Bins of an attribute: age=30,60 (edges) or age=4 (quantiles)."
)
@click.option("--number", "numbers", multiple=True, help="A numeric attribute.")
@click.option("--category", "categories", multiple=True, help="A categorical attribute.")
@click.option("--intersections", is_flag=True, help="Also score intersections of all attributes.")
@click.option(
    "--small",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Groups with fewer rows are flagged.",
)
@click.option("--missing", multiple=True, help="Text of a missing value, besides empty cells.")
@click.option("--delimiter", default=",", show_default=True, help="Column separator of a CSV file.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the page and the CSV file; default: the current folder.",
)
@click.option(
    "--fail-if", "gates", multiple=True, help="Exit with status 1 if true: delta_eo[sex]>0.1"
)
def audit(path: Path, **options: Any) -> None:
    """Score the predictions in a table, CSV or Parquet, without training.

    Writes TABLE_audit.html and TABLE_audit.csv. Exit status: 0, 1 if a gate of --fail-if failed,
    2 if the input is wrong (nothing is written).
    """
    try:
        failed = _audited(path, **options)
    except InputError as error:
        raise BadInput(str(error)) from None
    for failure in failed:
        click.echo(f"failed: {failure}", err=True)
    if failed:
        raise SystemExit(1)


def _audited(
    path: Path,
    *,
    target: str,
    prediction: str,
    attributes: str,
    positive: str | None,
    continuous: bool,
    prediction_is: Any,
    threshold: float | None,
    bins: tuple[str, ...],
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    intersections: bool,
    small: int,
    missing: tuple[str, ...],
    delimiter: str,
    output: Path | None,
    gates: tuple[str, ...],
) -> list[str]:
    """Read, check, score and write; returns the reasons why gates failed."""
    from robust_fairness.audit import report as scoring
    from robust_fairness.audit.gates import parse, require_known
    from robust_fairness.audit.page import audit_page

    parsed = [parse(gate) for gate in gates]
    columns = _names(attributes)
    scored_names = _intersections(columns) if intersections else {*columns, " & ".join(columns)}
    for gate in parsed:
        require_known(gate, scoring.offered_names(continuous), scored_names)
    table = _own_table(path, [target, prediction, *columns], delimiter, ("", *missing))
    scored = scoring.checked(
        table, target, prediction, columns, positive=positive, continuous=continuous,
        prediction_is=prediction_is, threshold=threshold,
        types=_types(numbers, categories), bins=dict(map(_cut, bins)), name=path.name,
    )  # fmt: skip
    rows = scoring.rows_of(scored, intersections, small, path.name)
    failures = {gate: gate.failures(rows) for gate in parsed}
    page = audit_page(
        rows, name=path.name, target=target, prediction=prediction, kind=scored.kind,
        attributes=columns, classes=scored.samples.classes, count=len(table), small=small,
        gates=failures,
    )  # fmt: skip
    folder = output or Path.cwd()
    name = path.name.partition(".")[0]
    files = {
        folder / f"{name}_audit.html": page,
        folder / f"{name}_audit.csv": rows.to_csv(index=False),
    }
    write_files(files)
    click.echo(_summary(rows))
    for file in files:
        click.echo(f"wrote {file}")
    return [line for lines in failures.values() for line in lines]


def _names(text: str) -> list[str]:
    """Names separated by commas, none of them empty or repeated."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"attributes: {text!r}, allowed: names of columns, each once, as A,B")
    return names


def _intersections(columns: list[str]) -> set[str]:
    """Names of all attributes and of all their intersections."""
    return {
        " & ".join(some)
        for size in range(1, len(columns) + 1)
        for some in combinations(columns, size)
    }


def _types(numbers: tuple[str, ...], categories: tuple[str, ...]) -> dict[str, Any]:
    """Declared types of attributes."""
    for name in numbers:
        if name in categories:
            raise InputError(f"{name} is declared a number and a category, allowed: one of them")
    return dict.fromkeys(numbers, "number") | dict.fromkeys(categories, "category")


def _cut(text: str) -> tuple[str, Any]:
    """Attribute and bin edges, or number of bins, of ``age=30,60`` or ``age=4``."""
    name, _, cuts = text.rpartition("=")
    try:
        if "," not in cuts and cuts.strip().isdigit():
            return name, int(cuts)
        return name, tuple(float(cut) for cut in cuts.split(",") if cut.strip())
    except ValueError:
        raise InputError(f"bins {text!r}, allowed: age=30,60 or age=4") from None


def _own_table(path: Path, columns: list[str], delimiter: str, missing: tuple[str, ...]) -> Any:
    """Columns of the file."""
    from robust_fairness.datasets.files import Files
    from robust_fairness.datasets.streamed_tables import stream_columns

    if len(delimiter) != 1:
        raise InputError(f"delimiter: {delimiter!r}, allowed: one character")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    files = Files(path.absolute().parent)
    return stream_columns(files, path.name, list(dict.fromkeys(columns)), delimiter, missing)


def _summary(rows: Any) -> str:
    """The lines for the terminal: values with intervals, without those of single groups."""
    import pandas as pd

    own = rows[(rows["group"] == "") & ~rows["metric"].str.endswith("_p_value")]
    own = own[~((own["metric"] == "missing_attribute") & (own["value"] == 0))]
    own = own[~own["note"].str.startswith("not applicable")]
    lines = []
    for row in own.itertuples():
        value = "n/a" if pd.isna(row.value) else f"{row.value:.4f}"
        interval = "" if pd.isna(row.low) else f"[{row.low:.4f}, {row.high:.4f}]"
        small = "small" if row.small else ""
        lines.append((row.metric, row.attribute, value, interval, small, row.note))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
