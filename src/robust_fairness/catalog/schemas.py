"""Validators and catalog entries of the tables, from their declarations."""

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


def table_entries() -> dict[str, dict[str, Any]]:
    """The catalog entries of all tables, by name or pattern."""
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
                "type": "robust_fairness.catalog.files.TableDataset",
                "filepath": f"data/{folder}/{file}.parquet",
                "versioned": True,
                "validator": validator,
                "metadata": {"kedro-viz": {"layer": table.layer, **preview}},
            }
    return found
