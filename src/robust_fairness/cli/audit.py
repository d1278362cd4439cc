"""The command ``audit``."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from robust_fairness.cli.commands import fault, force_option, write_files
from robust_fairness.core.errors import InputError
from robust_fairness.core.escaping import for_console, for_console_lines
from robust_fairness.core.extras import needed_by
from robust_fairness.core.files import lock_of, locked

if TYPE_CHECKING:
    from robust_fairness.auditing.audit import Audit

DATE_UNITS = ("decade", "year", "quarter", "month", "day")
INTERRUPTED = 130  # exit status, as of a shell


class BadInput(click.ClickException):
    """A user's mistake, in a command whose exit status 1 means a failed gate."""

    exit_code = 2


@contextmanager
def _statuses() -> Iterator[None]:
    from robust_fairness.auditing.naming import of_command

    try:
        with of_command():
            yield
    except InputError as error:
        raise BadInput(for_console_lines(str(error))) from None
    except (click.ClickException, click.exceptions.Exit):
        raise
    except OSError as error:  # a full disk or a closed pipe, say
        place = f"{error.filename}: " if error.filename else ""
        raise BadInput(f"{place}{error.strerror or error}") from None
    except MemoryError:
        raise BadInput("not enough memory for this table; audit fewer rows or columns") from None
    except KeyboardInterrupt:
        click.echo("Interrupted: nothing was judged", err=True)
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        raise fault(error) from None


class AuditCommand(click.Command):
    """A command whose status 1 comes from a failed gate only.

    It ends with 2 where the input is wrong, with ``FAULT`` after any other error, and with
    ``INTERRUPTED`` after Ctrl-C.
    """

    parse_args = _statuses()(click.Command.parse_args)
    invoke = _statuses()(click.Command.invoke)


class Text(click.ParamType):
    """A text that a function of the option's name and the text reads."""

    name = "text"

    def __init__(self, read: Callable[[str, str], Any]) -> None:
        self.read = read

    def convert(self, value: str, param: Any, ctx: click.Context | None) -> Any:
        return self.read(param.opts[0], value)


def _names(option: str, text: str) -> list[str]:
    """Names separated by commas, none of them empty or repeated."""
    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise InputError(f"{option}: {text!r}, allowed: names, each once, as A,B")
    return names


def _optional_names(option: str, text: str) -> list[str]:
    """Names separated by commas, or none."""
    return _names(option, text) if text else []


def _numbered(option: str, text: str) -> list[str]:
    """Columns ``A1`` to ``A80`` of ``A1..80``, or names separated by commas."""
    series = re.fullmatch(r"(.*?)(\d+)\.\.(\d+)", text)
    if series is None:
        return _optional_names(option, text)
    return [f"{series[1]}{number}" for number in range(int(series[2]), int(series[3]) + 1)]


def _membership(option: str, text: str) -> tuple[str, list[str]]:
    """An attribute and its columns, of ``sex=p_female,p_male``."""
    name, _equals, columns = text.partition("=")
    return name.strip(), _names(option, columns)


def _cuts(_: str, text: str) -> tuple[str, Any]:
    """An attribute and its bin edges, or number of bins, of ``age=30,60`` or ``age=4``."""
    name, _equals, cuts = text.rpartition("=")
    if cuts in DATE_UNITS:
        return name, cuts
    try:
        number = "," not in cuts and cuts.strip().isdigit()
        edges = () if number else tuple(float(cut) for cut in cuts.split(",") if cut.strip())
        return name, int(cuts) if number else edges
    except ValueError:
        raise InputError(
            f"bins {text!r}, allowed: age=30,60, age=4 or, of dates, born=year"
        ) from None


def _words(option: str, text: str) -> tuple[str, str]:
    """What is named and its words, of ``rows=applicants``."""
    name, equals, words = text.partition("=")
    if not (name.strip() and equals and words.strip()):
        raise InputError(f"{option}: {text!r}, allowed: such as rows=applicants")
    return name.strip(), words.strip()


@click.command(cls=AuditCommand)
@click.argument("path", metavar="TABLE", type=click.Path(path_type=Path))
@click.option("--target", "y_true", help="Column of the true values; see also --labels.")
@click.option(
    "--prediction",
    "y_pred",
    required=True,
    type=Text(_names),
    help="Column of the predictions, or of the probabilities of each class: p_good,p_fair,p_bad.",
)
@click.option(
    "--attributes",
    "sensitive_features",
    type=Text(_optional_names),
    help="Columns of sensitive attributes: A,B.",
)
@click.option(
    "--positive",
    "pos_label",
    help="The positive value of a binary target; default: 1, True or yes.",
)
@click.option(
    "--negative",
    "neg_labels",
    type=Text(_optional_names),
    help="Other values of a binary target, needed if there are several: A,B or rest.",
)
@click.option(
    "--drop-unlabelled", is_flag=True, help="Leave out rows without target or prediction."
)
@click.option("--weight", "sample_weight", help="Column of sample or survey weights.")
@click.option(
    "--features",
    type=Text(_optional_names),
    help="Columns that the model predicts from: the page says why values changed between periods.",
)
@click.option(
    "--control",
    "control_features",
    type=Text(_optional_names),
    help="Columns of strata, within which gaps are compared too: A,B.",
)
@click.option("--unit", help="Column of units whose rows belong together: households, patients.")
@click.option(
    "--replicate-weights",
    type=Text(_numbered),
    help="Columns of replicate weights of the Census Bureau: PWGTP1..80.",
)
@click.option(
    "--membership",
    multiple=True,
    type=Text(_membership),
    help="Probabilities of an attribute's groups: sex=p_female,p_male.",
)
@click.option("--continuous", is_flag=True, help="The target is continuous.")
@click.option(
    "--prediction-is",
    type=click.Choice(["auto", "class", "probability", "score", "number"]),
    default="auto",
    show_default=True,
    help="Kind of the predictions.",
)
@click.option(
    "--positive-prediction",
    help="The prediction that is positive, where predictions are two decisions such as approve "
    "and decline.",
)
@click.option("--threshold", type=float, help="Lowest probability or score of the positive class.")
@click.option(
    "--bins",
    multiple=True,
    type=Text(_cuts),
    help="Bins of an attribute: age=30,60 (edges) or age=4 (quantiles); of dates born=year.",
)
@click.option(
    "--words",
    multiple=True,
    type=Text(_words),
    help="Words of the page: rows=applicants, positive='who repay', negative='who do not repay', "
    "predicted=approved.",
)
@click.option("--number", "numbers", multiple=True, help="A numeric attribute.")
@click.option("--category", "categories", multiple=True, help="A categorical attribute.")
@click.option("--intersections", is_flag=True, help="Also score intersections of all attributes.")
@click.option(
    "--search",
    is_flag=True,
    help="Find the subgroup of up to three attributes that is most clearly served worse, tested "
    "after correction for all that were tried.",
)
@click.option(
    "--small",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Groups with fewer rows are flagged.",
)
@click.option("--missing", multiple=True, help="Text of a missing value, besides blank cells.")
@click.option("--delimiter", help="Column separator of a CSV file; default: found out.")
@click.option(
    "--decimal",
    type=click.Choice([".", ","]),
    help="Decimal separator of numbers in text; default: found out for each column.",
)
@click.option(
    "--encoding", help="Encoding of a CSV file, such as cp1252; default: UTF-8, or found out."
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="Folder for the page and the CSV file; default: the current folder.",
)
@force_option
@click.option(
    "--reference", type=click.Path(path_type=Path), help="Table of an earlier period, to compare."
)
@click.option(
    "--period",
    help="Column of ISO dates, numbers or names of periods: gaps are monitored over all of them, "
    "the last one is compared with all before.",
)
@click.option(
    "--first",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of first periods that the monitor compares with.",
)
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    help="Growth of a gap that the monitor allows; default: three standard deviations of what "
    "varies between the first periods, from six of them on, else 0.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the monitor's counts (JSON), read and written: TABLE may have new periods only.",
)
@click.option("--fail-on-growth", is_flag=True, help="Exit with status 1 if the monitor alarms.")
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month", "quarter", "year"]),
    help="Length of a period of dates (2024-05-31 or 20240531); default: month, week for weeks "
    "(2024-W22), and each number or name is a period.",
)
@click.option(
    "--labels",
    type=click.Choice(["all", "some", "none"]),
    default="all",
    show_default=True,
    help="some: rows without a target are used through their scores; none: TABLE has no target; "
    "estimate with the labels of --reference, or score what needs none.",
)
@click.option(
    "--label-probability",
    help="Column of the probabilities with which labelled rows were chosen, for --labels some.",
)
@click.option(
    "--plan",
    type=int,
    help="Also write TABLE_plan.csv: so many rows to label, and print the intervals to expect.",
)
@click.option(
    "--metrics",
    default="conventional",
    type=Text(_names),
    show_default=True,
    help="Names of metrics A,B; also: conventional, all.",
)
@click.option("--suppress", type=click.IntRange(0), default=0, help="Hide groups with fewer rows.")
@click.option(
    "--model-card", "also", flag_value="card", multiple=True, help="Also write TABLE_model_card.md."
)
@click.option(
    "--curves",
    "also",
    flag_value="curves",
    multiple=True,
    help="Also write TABLE_calibration.csv and TABLE_thresholds.csv, over all thresholds.",
)
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
    y_true: str | None,
    y_pred: list[str],
    numbers: tuple[str, ...],
    categories: tuple[str, ...],
    output: Path | None,
    also: tuple[str, ...],
    form: str,
    force: bool,
    fail_on_growth: bool,
    plan: int | None,
    **options: Any,
) -> None:
    """Audit a table of predictions, CSV or Parquet.

    Nothing is trained. Writes TABLE_audit.html and TABLE_audit.csv, and TABLE_changes.csv if two
    periods are compared.

    Exit status: 0, passed; 1, a gate of --fail-if or --fail-on-growth failed; 2, wrong input
    (nothing is written); 3, a fault of this program, with the line "this is a bug".
    """
    from robust_fairness.auditing.command import Monitored, TableFile, audit_file, files_of
    from robust_fairness.auditing.predictions import Options

    for name in {*numbers} & {*categories}:
        raise InputError(f"{name} is declared a number and a category, allowed: one of them")
    types = dict.fromkeys(numbers, "number") | dict.fromkeys(categories, "category")
    options |= {name: dict(options[name]) for name in ("membership", "bins", "words")}
    given = {name: value for name, value in options.items() if value is not None}

    def made_of(kind: type, **further: Any) -> Any:
        names = {field.name for field in fields(kind)} & {*given}
        return kind(**further, **{name: given.pop(name) for name in names})

    predicted = y_pred if len(y_pred) > 1 else y_pred[0]
    columns = made_of(Options, y_true=y_true, y_pred=predicted, types=types)
    source, monitored = made_of(TableFile, path=path), made_of(Monitored)
    state = monitored.state and monitored.state.resolve()
    with locked(lock_of(state)) if state else nullcontext():  # from reading to writing
        done = audit_file(source, columns, monitored=monitored, **given)
        if columns.features:
            with needed_by("--features", "features"):
                from robust_fairness.auditing.why.periods import explained
            done = explained(done)
        rows_to_label = None if plan is None else done.plan(plan)
        made = files_of(done, path.name.partition(".")[0], also, rows_to_label)
        files = {(output or Path.cwd()) / name: text for name, text in made.items()}
        changed = {state: done.monitor.to_json()} if state and done.monitor else {}
        write_files(files, force, changed)
    lines = [*str(rows_to_label or "").splitlines(), f"wrote {', '.join(map(str, files))}"]
    _print(done, lines if form == "text" else None)
    grown = done.monitor is not None and any(alarm for _, alarm in done.monitor.sentences())
    if done.failed or (fail_on_growth and grown):
        raise SystemExit(1)


def _print(done: "Audit", further: list[str] | None) -> None:
    """Print an audit in at most ten lines and further ones, or all its values without these."""
    from robust_fairness.auditing.export import record
    from robust_fairness.auditing.verdict import console

    if further is None:
        lines = [(json.dumps(record(done), indent=1), False)]
    else:
        lines = [*console(done), *((line, False) for line in further)]
        lines = [(for_console(line), failed) for line, failed in lines]
    try:
        for line, failed in lines:
            click.echo(line, err=failed)
    except BrokenPipeError:  # a reader such as head has enough; the status is that of the gates
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
