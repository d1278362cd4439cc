"""Names of the default configuration with their fields; nothing here needs torch."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import CONF

NAMED = CONF / "base" / "parameters.yml"


def configured(kind: str, name: str) -> dict[str, Any]:
    """What the default configuration says of a name; nothing of a plug-in that it does not name."""
    return _definitions()[kind].get(name) or {}


@cache
def _definitions() -> dict[str, Any]:
    """The names that the default configuration defines, by kind."""
    definitions: dict[str, Any] = yaml.safe_load(NAMED.read_text(encoding="utf-8"))
    return definitions


def network_of(
    default: str | Mapping[str, Any], network: str | Mapping[str, Any] | None
) -> dict[str, Any]:
    """The name and fields of a network as configuration writes them; None: the default.

    ``params`` of an estimator are added to those of the default configuration.
    """
    fields = named("network", default if network is None else network)
    name = fields.pop("name")
    result = {"name": name, **configured("networks", name), **fields}
    if isinstance(fields.get("params"), Mapping):
        result["params"] = {**configured("networks", name).get("params", {}), **fields["params"]}
    return result


def named(kind: str, value: str | Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plug-in, its name among them."""
    fields = dict(value) if isinstance(value, Mapping) else {"name": value}
    if not isinstance(fields.get("name"), str):
        raise InputError(f"{kind} {value!r}, allowed: a name, or {{'name': ..., further fields}}")
    return fields
