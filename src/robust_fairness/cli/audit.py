"""The command ``audit``."""

import json
from pathlib import Path
from typing import Any

import click

from robust_fairness.cli.commands import force_option, write_files
from robust_fairness.core.errors import InputError


class BadInput(click.ClickException):
    """A user's mistake, in a command whose exit status 1 means a failed gate."""

    exit_code = 2


class AuditCommand(click.Command):
    """A command that ends with status 2 where the input is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise BadInput(str(error)) from None


@click.command(cls=AuditCommand)
@click.argument("path", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="Column of the true values.")
@click.option("--prediction", required=True, help="Column of the predictions.")
@click.option("--attributes", required=True, help="Columns of sensitive attributes: A,B.")
@click.option("--positive", help="The positive value of a binary target; default: 1, True or yes.")
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
@click.option("--delimiter", help="Column separator of a CSV file; default: found out.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the page and the CSV file; default: the current folder.",
)
@force_option
@click.option(
    "--reference", type=click.Path(path_type=Path), help="Table of an earlier period, to compare."
)
@click.option("--period", help="Column of dates: the last period is compared with all before.")
@click.option(
    "--by",
    type=click.Choice(["month", "quarter", "year"]),
    default="month",
    show_default=True,
    help="Length of a period.",
)
@click.option(
    "--labels",
    type=click.Choice(["all", "none"]),
    default="all",
    show_default=True,
    help="none: TABLE has no target; estimate with the labels of --reference.",
)
@click.option(
    "--metrics",
    default="conventional",
    show_default=True,
    help="Names of metrics A,B; also: conventional, all.",
)
@click.option("--suppress", type=click.IntRange(0), default=0, help="Hide groups with fewer rows.")
@click.option("--model-card", "card", is_flag=True, help="Also write TABLE_model_card.md.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What is printed: at most ten lines, or all values.",
)
@click.option(
    "--fail-if",
    "gates",
    multiple=True,
    help="Exit with status 1 if true: equalized_odds_difference[sex]>0.1, change(accuracy)<-0.02",
)
@click.option(
    "--fail-on",
    "rule",
    type=click.Choice(["estimate", "evidence", "doubt"]),
    default="estimate",
    show_default=True,
    help="What fails a gate: the value, the whole 95 % interval, or a part of it.",
)
def audit(
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
    output: Path | None,
    metrics: str,
    form: str,
    force: bool,
    **options: Any,
) -> None:
    """Audit a table of predictions, CSV or Parquet.

    Nothing is trained. Writes TABLE_audit.html and TABLE_audit.csv, and TABLE_changes.csv if two
    periods are compared. Exit status: 0, 1 if a gate of --fail-if failed, 2 if the input is wrong
    (nothing is written).
    """
    from robust_fairness.auditing.command import audit_file
    from robust_fairness.auditing.predictions import Roles

    roles = Roles(
        target, prediction, _names("attributes", attributes), positive, continuous, prediction_is,
        threshold, _types(numbers, categories), dict(map(_cut, bins)),
    )  # fmt: skip
    found = audit_file(path, roles, metrics=_names("metrics", metrics), **options)
    files = {(output or Path.cwd()) / name: text for name, text in found.files.items()}
    write_files(files, force)
    if form == "json":
        click.echo(json.dumps(found.record, indent=1))
    else:
        for line, failed in found.lines:
            click.echo(line, err=failed)
        click.echo(f"wrote {', '.join(map(str, files))}")
    if found.failures:
        raise SystemExit(1)


def _names(option: str, text: str) -> list[str]:
    """Names separated by commas, none of them empty or repeated."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"{option}: {text!r}, allowed: names, each once, as A,B")
    return names


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
