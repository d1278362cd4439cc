"""Pandera schemas of the tables, from their one definition in ``tables``."""

from typing import Any

from robust_fairness.core import tables


class _Table:
    """A validator of the catalog: exactly these columns, of these types."""

    columns: dict[str, str]
    missing: frozenset[str] = frozenset()
    prefix: str = ""  # of the names of further columns

    def validate(self, data: Any) -> Any:
        """The data frame as it is; raises where it does not fit."""
        import pandera.pandas as pa

        columns = {
            name: pa.Column(kind, nullable=name in self.missing)
            for name, kind in self.columns.items()
        }
        own = [name for name in data if not (self.prefix and name.startswith(self.prefix))]
        pa.DataFrameSchema(columns, strict=True, ordered=True).validate(data[own])
        return data


class Metrics(_Table):
    """Rows of the tidy table."""

    columns = tables.METRICS
    missing = frozenset({"value"})


class Selection(_Table):
    """Which criterion chose which replica."""

    columns = tables.SELECTION
    missing = frozenset({"score"})


class History(_Table):
    """Training curves."""

    columns = tables.HISTORY


class Trials(_Table):
    """What was tried of a cell."""

    columns = tables.TRIALS
    missing = frozenset({"score"})
    prefix = "hparams."


class Cells(_Table):
    """The cells of the grid."""

    columns = tables.CELLS
    prefix = "facets."


class Choices(_Table):
    """What each criterion chooses."""

    columns = tables.CHOICES


class Splits(_Table):
    """Sizes of named splits."""

    columns = tables.SPLITS


class Distances(_Table):
    """How far test sets are from the training set."""

    columns = tables.DISTANCES


class GeneratorQuality(_Table):
    """How well classifiers of real rows know generated ones."""

    columns = tables.GENERATOR_QUALITY


class Planes(_Table):
    """Validation embeddings in the plane."""

    columns = tables.PLANES
