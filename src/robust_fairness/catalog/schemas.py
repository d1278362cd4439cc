"""Validators and catalog entries of the tables, from their declarations."""

from collections.abc import Mapping
from typing import Any

from robust_fairness.core.tables import TABLES


class Schema:
    """A validator of the catalog: exactly the declared columns, of the declared types."""

    def __init__(self, table: str) -> None:
        self.declared = TABLES[table]

    def validate(self, data: Any) -> Any:
        import pandera.pandas as pa

        columns = {
            name: pa.Column(one.kind, nullable=bool(one.missing))
            for name, one in self.declared.columns.items()
        }
        prefix = self.declared.fields
        own = [name for name in data if not (prefix and name.startswith(prefix))]
        pa.DataFrameSchema(columns, strict=True, ordered=True).validate(data[own])
        return data


def table_entries(written: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The catalog entries of all tables, by name or pattern.

    Args:
        written: what they have in common; ``{folder}`` and ``{file}`` of its ``filepath`` differ.
    """
    found = {}
    for table in TABLES.values():
        preview = {"preview_args": {"nrows": table.preview}} if table.preview else {}
        validator = {
            "class": f"{Schema.__module__}.{Schema.__name__}",
            "on": ["load", "save"],
            "skip_load_after_save": True,
            "options": {"table": table.name},
        }
        for name, folder in table.entries.items():
            file = name.replace("}.", "}/").replace("}_", "}/")
            found[name] = {
                **written,
                "filepath": written["filepath"].replace("{folder}", folder).replace("{file}", file),
                "validator": validator,
                "metadata": {"kedro-viz": {"layer": table.layer, **preview}},
            }
    return found
