"""The command ``list``."""

import json
from inspect import getdoc
from textwrap import shorten
from typing import Any

import click
import yaml

from robust_fairness.cli.commands import ProjectCommand
from robust_fairness.core.files import CONF

KINDS = {
    "datasets": "dataset",
    "shifts": "shift",
    "networks": "network",
    "methods": "method",
    "objectives": "objective",
    "miners": "miner",
    "metrics": "metric",
}
WIDTH = 110  # characters of a description that is made of parameters


@click.command("list", cls=ProjectCommand)
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def list_names(kind: str, form: str) -> None:
    """Print the names that the grid may use, and what they are.

    They are the plug-ins, and the names that the parameters of the project define.
    """
    described = _metrics() if kind == "metrics" else _plugins(KINDS[kind])
    if form == "json":
        rows = [{"name": name, "description": text} for name, text in described.items()]
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(map(len, described))
    for name, text in described.items():
        click.echo(f"{name:{width}}  {text}")
    if kind == "metrics":
        click.echo(
            "\nQuantities also by group, as worst group, difference and so on: docs/measures.md"
        )


def _plugins(kind: str) -> dict[str, str]:
    """Plug-ins of a kind, then the names that the parameters define."""
    from robust_fairness.core import registry

    described = registry.descriptions(kind)
    configured = _parameters().get(f"{kind}s") or {}
    original = "source" if kind == "dataset" else "name"
    for name, fields in sorted(configured.items()):
        if name in described:
            continue
        options = dict(fields or {})
        source = options.pop(original, "")
        written = json.dumps(options, ensure_ascii=False).replace('"', "")
        described[name] = shorten(f"{source} {written}", WIDTH, placeholder=" ...")
    return described


def _parameters() -> Any:
    """The parameters of the project; without Kedro, which reads them, those of the package."""
    try:
        from robust_fairness.runs.configuration import loader_of
    except ModuleNotFoundError:
        return yaml.safe_load((CONF / "base" / "parameters.yml").read_text(encoding="utf-8"))
    return loader_of(None).written_parameters


def _metrics() -> dict[str, str]:
    """The first line about every quantity and measure."""
    from robust_fairness.metrics import metric_names
    from robust_fairness.numbers.quantities import DEFINITIONS

    documented = {name: getdoc(DEFINITIONS[name].function) or "" for name in metric_names()}
    return {name: text.splitlines()[0] for name, text in documented.items()}
