"""Rows in distribution and in another domain, compared once for all methods."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from robust_fairness.diagnosis.columns import NAMES_DOMAIN, Columns, domain_columns
from robust_fairness.diagnosis.domains import Overlap, overlap, two_sample_test
from robust_fairness.samples import Samples


@dataclass(frozen=True, eq=False)
class Pair:
    """Rows in distribution and in another domain.

    Attributes:
        samples: rows of all domains.
        columns: their columns, the sensitive attributes among them.
        home: numbers of the rows in distribution ``[n]``.
        away: numbers of the rows in the domain ``[m]``.
    """

    samples: Samples
    columns: Columns
    home: np.ndarray
    away: np.ndarray

    @cached_property
    def units(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Units of the rows."""
        units = self.samples.units
        return None if units is None else (units[self.home], units[self.away])

    @cached_property
    def column_aucs(self) -> pd.Series:
        """How well each column alone tells the domains apart, see ``domain_columns``."""
        return domain_columns(self._both, self._elsewhere, self._both_units)

    @cached_property
    def naming(self) -> tuple[str, ...]:
        """The columns that name the domain; all others are X."""
        return tuple(self.column_aucs.index[self.column_aucs >= NAMES_DOMAIN])

    @cached_property
    def of_all_columns(self) -> Overlap:
        """The overlap in all columns."""
        return self._overlap(self.columns)

    @cached_property
    def shared(self) -> Overlap:
        """The overlap in the columns that do not name the domain."""
        if not self.naming:
            return self.of_all_columns
        return self._overlap(self.columns.without(self.naming))

    @cached_property
    def two_sample(self) -> tuple[float, float]:
        """AUC and p-value of the classifier two-sample test of all columns."""
        both = self._both
        return two_sample_test(
            both.values, self._elsewhere, self._both_units, categorical=both.categorical
        )

    def _overlap(self, columns: Columns) -> Overlap:
        values, categorical = columns.values, columns.categorical
        return overlap(values[self.home], values[self.away], self.units, categorical=categorical)

    @property
    def _both(self) -> Columns:
        return self.columns.take(np.concatenate([self.home, self.away]))

    @property
    def _elsewhere(self) -> np.ndarray:
        return np.repeat([False, True], [len(self.home), len(self.away)])

    @property
    def _both_units(self) -> np.ndarray | None:
        return None if self.units is None else np.concatenate(self.units)


def compared(samples: Samples, home: np.ndarray, away: np.ndarray) -> Pair:
    """Rows in distribution and in another domain; sensitive categories are columns, too.

    With them, the overlap within a group is a part of the overlap of all rows. A missing value is a
    category of its own here.
    """
    attributes = samples.attributes[list(samples.sensitive)].select_dtypes("category")
    codes = {
        str(name): values.cat.codes.where(values.notna(), len(values.cat.categories)).to_numpy()
        for name, values in attributes.items()
    }
    return Pair(samples, Columns.of(samples).joined(codes), home, away)
