"""The command ``init``."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from robust_fairness.cli.commands import ProjectCommand, write_files
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.escaping import for_console
from robust_fairness.core.numbers import counted

if TYPE_CHECKING:
    from robust_fairness.auditing.read.profile import Profile, Roles

FOLDER = Path("conf", "local")
QUESTIONS = {
    "target": "Target column",
    "positive": "Positive value",
    "sensitive": "Sensitive attributes",
    "domain": "Domain column",
    "unit": "Unit column",
}


@click.command(cls=ProjectCommand)
@click.argument("table", type=click.Path(path_type=Path, resolve_path=True))
@click.option("--target", help="Column to predict.")
@click.option("--positive", help="Value of class 1 of a binary target.")
@click.option("--sensitive", help="Sensitive attributes, separated by commas.")
@click.option("--domain", help="Column of domains, such as hospitals or years; none: no domains.")
@click.option("--unit", help="Column of persons or the like, kept in one part; none: no units.")
@click.option("--name", help="Name of the dataset; default: that of the file.")
@click.option("--copy", is_flag=True, help="Copy the table into a data root outside this folder.")
@click.option("--force", is_flag=True, help="Overwrite the files of an earlier draft.")
def init(table: Path, name: str | None, copy: bool, force: bool, **given: str | None) -> None:
    """Draft the configuration of a table of your own.

    The table is CSV or Parquet, the draft in conf/local. Asks on a terminal; elsewhere, what
    no option answers has the suggested answer.
    """
    from robust_fairness.auditing.read import draft
    from robust_fairness.auditing.read.profile import hints, positive_value, profile, suggested
    from robust_fairness.bench.experiment.reading import as_label

    name = name or as_label(Path(table.stem).stem).lower()
    files = {kind: FOLDER / f"{kind}_{name}.yml" for kind in ("parameters", "experiment")}
    _require_new(name, files, force)
    described = profile(table)
    roles = suggested(described)
    key = roles.unit  # no feature, if it is not the unit
    _show(table, described, roles)
    for line in hints(described):
        click.echo(for_console(f"  hint: {line}"))
    roles.target = _column(_asked("target", roles.target, given), described)
    roles.positive = positive_value(described.columns[roles.target])
    if draft.outcome_of(described.columns[roles.target]) == "binary":
        allowed = described.columns[roles.target].values
        text = _asked("positive", roles.positive, given)
        if text not in allowed:
            raise unknown_name("value of the target", text, allowed)
        roles.positive = text
    attributes = _asked("sensitive", ",".join(roles.sensitive), given)
    roles.sensitive = [_column(attribute.strip(), described) for attribute in attributes.split(",")]
    roles.domain = _optional("domain", roles.domain, given, described)
    roles.unit = _optional("unit", roles.unit, given, described)
    used = {roles.target, roles.domain, roles.unit, *roles.sensitive}
    roles.ignored = [column for column in [*roles.ignored, key] if column and column not in used]
    file = _below_the_root(table, copy, force)
    texts = {
        files["parameters"]: draft.parameters(described, roles, name, file)
        + draft.protocol(described, name),
        files["experiment"]: draft.experiment(described, roles, name),
    }
    for path in texts:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_files(texts, force=True)
    for path, text in texts.items():
        click.echo(f"Wrote {path} ({text.count(chr(10))} lines).")
    click.echo(f"Next: robust-fairness check --datasets {name}")
    click.echo(f"Then: robust-fairness run --datasets {name}")
    if described.rows >= draft.LARGE:
        click.echo("On all cores: add --runner=robust_fairness.runs.runners.DaskRunner")


def _require_new(name: str, files: dict[str, Path], force: bool) -> None:
    """Raise if the name is taken or the files exist."""
    from robust_fairness.bench.experiment.reading import is_label
    from robust_fairness.core import registry

    if not is_label(name) or name in registry.names("dataset"):
        raise InputError(f"name {name!r}, allowed: letters, digits and '_', no built-in dataset")
    for path in files.values():
        if path.exists() and not force:
            raise InputError(f"{path}: exists, allowed: another --name, or --force to overwrite it")


def _show(path: Path, table: "Profile", roles: "Roles") -> None:
    """Print the columns and their suggested roles."""
    click.echo(f"{path.name}  {counted({'rows': table.rows, 'columns': len(table.columns)})}")
    named = {roles.domain: "domain", roles.unit: "unit", roles.id: "id", roles.target: "target"}
    named |= dict.fromkeys(roles.sensitive, "sensitive attribute")
    reasons = {"constant": "one value", "text": "text"}
    named |= {
        name: f"not used ({reasons.get(table.columns[name].type, 'names of units')})"
        for name in roles.ignored
    }
    rows = [("column", "type", "missing", "values", "suggested role")]
    rows += [
        (name, column.type, f"{column.missing:,}", str(column), named.get(name, "feature"))
        for name, column in table.columns.items()
    ]
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo(for_console("  " + "  ".join(cells).rstrip()))


def _asked(option: str, suggestion: str, given: Mapping[str, str | None]) -> str:
    """The given answer, that of a person at a terminal, or the suggested one."""
    stated = given[option]
    if stated is not None:
        return stated
    if _asks():
        answer: str = click.prompt(f"  {QUESTIONS[option]}", default=suggestion or None)
        return answer
    if not suggestion:
        raise InputError(f"{QUESTIONS[option]}: the table suggests none, allowed: --{option} NAME")
    return suggestion


def _optional(
    option: str, suggestion: str, given: Mapping[str, str | None], table: "Profile"
) -> str:
    """A column, or "" for none."""
    answer = _asked(option, suggestion or "none", given)
    return "" if answer == "none" else _column(answer, table)


def _column(name: str, table: "Profile") -> str:
    if name not in table.columns:
        raise unknown_name("column", name, table.columns)
    return name


def _below_the_root(table: Path, copy: bool, force: bool) -> str:
    """The path of a table below the data root, into which it is copied if it is elsewhere."""
    from robust_fairness.core.raw_files import ROOT_VARIABLE, default_root

    root = default_root()
    if table.is_relative_to(root.resolve()):
        return table.relative_to(root.resolve()).as_posix()
    if (root / table.name).exists() and not force:
        raise InputError(
            f"{root / table.name}: exists, allowed: --force to replace it, or another name"
        )
    shared = not root.resolve().is_relative_to(Path.cwd())
    question = f"{table.name} is outside the data root, {root}, where runs look for it"
    if shared and not copy and not (_asks() and click.confirm(f"  {question}. Copy it?")):
        raise InputError(
            f"{question}, allowed: --copy to copy it there, or {ROOT_VARIABLE}={table.parent}"
        )
    root.mkdir(parents=True, exist_ok=True)
    shutil.copy(table, root / table.name)
    click.echo(f"Copied {table.name} into the data root, {root}.")
    return table.name


def _asks() -> bool:
    """Whether a person is at the terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()
