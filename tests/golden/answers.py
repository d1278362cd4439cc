"""The tables of goldens: how each is made, what identifies a row, and how cells are compared."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tests.golden import audits, others

FOLDER = Path(__file__).parent
MISSING = "(none)"
VALUES, BOUNDS = 1e-12, 1e-9
SOLVED = "faircocco_"  # scores by systems of equations: 2e-12 between one thread and two


@dataclass(frozen=True)
class Golden:
    """A table of answers, stored in a Parquet file of its name.

    Attributes:
        make: the answers of some cases.
        cases: number of cases that are stored.
        fast: how many of them the fast test compares.
        keys: columns that identify a row, the first one is the case.
        values: columns compared within ``VALUES``, relative to 1 or more.
        bounds: columns compared within ``BOUNDS``, likewise: ends of intervals and p-values.
        exact: columns that are equal: counts and verdicts.
        of_case: the value of the first key of the case of a number.
    """

    make: Callable[[range], pd.DataFrame]
    cases: int
    fast: int
    keys: Sequence[str]
    values: Sequence[str] = ()
    bounds: Sequence[str] = ()
    exact: Sequence[str] = ()
    of_case: Callable[[int], object] = int

    def made(self, cases: int) -> pd.DataFrame:
        """The answers of the first cases, sorted by keys."""
        return self._sorted(self.make(range(cases)))

    def stored(self, name: str, cases: int) -> pd.DataFrame:
        """The stored answers of the first cases."""
        table = pd.read_parquet(FOLDER / f"{name}.parquet")
        wanted = [self.of_case(number) for number in range(cases)]
        return self._sorted(table[table[self.keys[0]].isin(wanted)])

    def _sorted(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = [*self.keys, *self.values, *self.bounds, *self.exact]
        if table.empty:  # no case has such answers
            table = pd.DataFrame(columns=columns)
        table = table[columns].set_index([*self.keys])
        assert table.index.is_unique, table.index[table.index.duplicated()][0]
        return table.sort_index()

    def changed(self, name: str, cases: int) -> Iterator[str]:
        """A line for each cell that is not the stored one, and for each row of one of both."""
        stored, made = self.stored(name, cases), self.made(cases)
        for index, what in (
            (stored.index.difference(made.index), "is gone"),
            (made.index.difference(stored.index), "is new"),
        ):
            yield from (f"{self._place(name, key)}: the row {what}" for key in index)
        both = stored.index.intersection(made.index)
        stored, made = stored.loc[both], made.loc[both]
        of_values = np.full(len(both), VALUES)
        if "metric" in self.keys:
            of_values[both.get_level_values("metric").str.startswith(SOLVED)] = BOUNDS
        of_bounds = np.full(len(both), BOUNDS)
        tolerances = dict.fromkeys(self.values, of_values) | dict.fromkeys(self.bounds, of_bounds)
        for column in stored:
            here, there = made[column], stored[column]
            if column in tolerances:
                same = _near(here.to_numpy(float), there.to_numpy(float), tolerances[column])
            else:
                same = (here.fillna(MISSING) == there.fillna(MISSING)).to_numpy()
            for row in np.flatnonzero(~same):
                place = self._place(name, both[row])
                yield f"{place}: {column} is {here.iloc[row]!r}, was {there.iloc[row]!r}"

    def _place(self, name: str, key: tuple[object, ...]) -> str:
        of_row = zip(self.keys, key, strict=True)
        return f"{name}, {', '.join(f'{column} {value}' for column, value in of_row)}"


def _near(here: np.ndarray, there: np.ndarray, tolerance: np.ndarray) -> np.ndarray:
    """Whether numbers are equal within a tolerance, relative to 1 or to a larger number."""
    with np.errstate(invalid="ignore"):  # infinite ones
        near = np.abs(here - there) <= tolerance * np.maximum(1, np.abs(there))
    return near | (here == there) | (np.isnan(here) & np.isnan(there))


OF_AUDIT = {"cases": 200, "fast": 20}
ROW = ("case", "attribute", "group", "metric")
GOLDENS = {
    "audit_values": Golden(
        audits.values, **OF_AUDIT, keys=ROW, values=("value",),
        bounds=("low", "high", "lowest", "highest"), exact=("n",),
    ),
    "audit_changes": Golden(
        audits.changes, **OF_AUDIT, keys=ROW, values=("change",), bounds=("low", "high", "p"),
        exact=("state",),
    ),
    "audit_verdicts": Golden(
        audits.verdicts, **OF_AUDIT, keys=("case", "rule", "gate", "attribute", "group"),
        exact=("verdict",),
    ),
    "audit_power": Golden(
        audits.power, **OF_AUDIT, keys=("case", "attribute", "metric"), bounds=("gap", "change"),
        exact=("n",),
    ),
    "audit_search": Golden(
        audits.worst, **OF_AUDIT, keys=("case", "metric"), values=("value", "rest", "difference"),
        bounds=("low", "high", "p"), exact=("n", "tried"),
    ),
    "audit_strata": Golden(
        audits.within, **OF_AUDIT,
        keys=("case", "attribute", "metric", "rate", "first", "second"),
        values=("overall", "within"), exact=("known",),
    ),
    "metrics": Golden(
        others.metrics, cases=50, fast=5, keys=("case", "metric", "group"), values=("value",)
    ),
    "monitors": Golden(
        others.monitors, cases=20, fast=4, keys=("case", "attribute", "metric", "period"),
        values=("value", "change"),
        bounds=("low", "high", "change_low", "change_high", "bound", "evidence", "limit"),
        exact=("n", "alarm", "role"),
    ),
    "claims": Golden(
        others.claims, cases=len(others.PAPERS), fast=1, keys=("paper", "claim", "at", "part"),
        values=("published", "ours"), bounds=("low", "high", "p", "margin"),
        exact=("verdict", "state"), of_case=others.PAPERS.__getitem__,
    ),
    "views": Golden(
        others.views, cases=len(others.PAPERS), fast=len(others.PAPERS),
        keys=("paper", "view", "row", "column"), bounds=("value",), exact=("text",),
        of_case=others.PAPERS.__getitem__,
    ),
}  # fmt: skip
