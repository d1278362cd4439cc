"""Validators of tables, from their declarations."""

from typing import Any

from robust_fairness.core.tables import TABLES


class Schema:
    """A validator of the catalog: exactly the declared columns, of the declared types."""

    def __init__(self, table: str) -> None:
        self.declared = TABLES[table]

    def validate(self, data: Any) -> Any:
        import pandera.pandas as pa

        columns = {
            name: pa.Column(column.kind, nullable=bool(column.missing))
            for name, column in self.declared.columns.items()
        }
        prefix = self.declared.fields
        named = [name for name in data if not (prefix and name.startswith(prefix))]
        pa.DataFrameSchema(columns, strict=True, ordered=True).validate(data[named])
        return data
