"""Validators of tables, from their declarations."""

from typing import Any

from robust_fairness.core.errors import InputError
from robust_fairness.core.tables import TABLES


class Schema:
    """A validator of the catalog: exactly the declared columns, of the declared types."""

    def __init__(self, table: str) -> None:
        self.declared = TABLES[table]

    def validate(self, data: Any) -> Any:
        """The same table.

        Raises:
            InputError: other columns, another type, or a missing value that is not allowed.
        """
        prefix = self.declared.fields
        named = [name for name in data if not (prefix and name.startswith(prefix))]
        if named != [*self.declared]:
            raise InputError(f"columns {', '.join(named)}, allowed: {', '.join(self.declared)}")
        for name, column in self.declared.columns.items():
            if data[name].dtype != column.kind:
                raise InputError(f"column {name}: type {data[name].dtype}, allowed: {column.kind}")
            if not column.missing and data[name].hasnans:
                raise InputError(f"column {name}: a missing value, allowed: none")
        return data
