"""The test sets of a run, and the rates of groups in each of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from robust_fairness.core.numbers import exact
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import covariance_of_copies
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.report.results import UNSHIFTED, Results, computed_once

MARGIN = 0.05  # within which a change is called immaterial, where the experiment has none
PLACE = ["shift", "severity", "domain"]
CELL = ["dataset", "method"]


@computed_once
def test_sets(results: Results) -> pd.DataFrame:
    """The test sets of all cells, numbered.

    Returns:
        Columns ``CELL``, ``PLACE`` and the facts of the cell: data, trained_on, model, margin,
        same_rows (whether seeds share their test rows) and ratio; strongest, whether it is
        unshifted or of the largest severity of a shift; home, the number of the home of the cell,
        -1 without one; in_home, whether it is a domain of a home that has several.
    """
    keys = [results.selected[[*CELL, *PLACE]], results.selected_counts[[*CELL, *PLACE]]]
    tests = pd.concat(keys).drop_duplicates(ignore_index=True)
    cells = results.selected[[*CELL, "network"]].drop_duplicates(CELL)
    names = ["data", "trained_on", "algorithm", "postprocessing", "margin"]
    otherwise = {"data": "dataset", "algorithm": "method", "margin": "usual"}
    cells = results.with_facets(cells.assign(usual=MARGIN), names, otherwise)
    splits, ratio = (results.sizes_of_splits[name] for name in ("splits", "ratio"))
    cells = cells.assign(
        margin=cells["margin"].astype(float),
        same_rows=cells["dataset"].map(splits).fillna(2) == 1,
        ratio=cells["dataset"].map(ratio).fillna(0.0),
    )
    unshifted, whole = tests["shift"] == UNSHIFTED, tests["domain"] == ""
    shifted = tests["severity"].where(~unshifted)
    largest = shifted.groupby([tests["dataset"], tests["shift"]]).transform("max")
    cell = [tests[name] for name in CELL]
    number = tests.index.to_series().where(unshifted & whole)
    domains = (unshifted & ~whole).groupby(cell).transform("sum")
    return tests.assign(
        strongest=unshifted | shifted.eq(largest),
        home=number.groupby(cell).transform("max").fillna(-1).astype(int),
        in_home=unshifted & ~whole & (domains > 1),
    ).merge(cells, on=CELL)


@computed_once
def scores_of_tests(results: Results) -> pd.DataFrame:
    """Selected scores with the number of their test set and their data."""
    return _numbered(results.selected, results)


@computed_once
def counts_of_tests(results: Results) -> pd.DataFrame:
    """Selected counts of the test sets that the matrix has, with their number and data."""
    rows = _numbered(results.selected_counts, results)
    tests = test_sets(results)
    home = (tests["shift"] != UNSHIFTED) | (tests["domain"] == "") | tests["in_home"]
    return rows[(tests["strongest"] & home).to_numpy()[rows["test"]]]


def _numbered(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    tests = test_sets(results)[[*CELL, *PLACE, "data"]].reset_index(names="test")
    return rows.merge(tests, on=[*CELL, *PLACE])


@dataclass(frozen=True)
class Measured:
    """Rates of test sets, or a gap as it is.

    Attributes:
        tests: numbers of the test sets.
        labels: what each rate is, in words, and its group.
        value: ``[test set, rate, seed]``, NaN where there is none.
        n: rows that it rests on, likewise; NaN of what is no share of rows.
        covariance: with the rate of the same rows before a shift, likewise.
        within: of home, the number of the test set with its rates within domains; else its own.
        alike: number of rates in a row that have the same weights of domains; 0 without domains.
    """

    tests: np.ndarray
    labels: Sequence[tuple[str, str]]
    value: np.ndarray
    n: np.ndarray
    covariance: np.ndarray
    within: np.ndarray
    alike: int = 0

    @classmethod
    def of_counts(
        cls, rows: pd.DataFrame, groups: Sequence[str], of: Sequence[Quantity]
    ) -> "Measured":
        """Rates of groups from rows of ``tables.COUNTS``, in the order rate, group."""
        tests, place, shape = _places(rows)
        group = pd.Index(groups).get_indexer(pd.Index(rows["group"]))
        codes = [rows[name].to_numpy() for name in ("label", "before", "decision")]
        classes = max(code.max(initial=1) for code in codes) + 1
        n = np.zeros((*shape, len(groups), classes, classes))
        np.add.at(n, (*place, group, codes[0], codes[2]), rows["n"].to_numpy())
        counts, copies = Counts.of_rows(n, groups), codes[1] >= 0
        parts = [counts.values(quantity) for quantity in of]
        shared = [np.full(part.n.shape, np.nan) for part in parts]
        if copies.any():
            joint = np.zeros((*n.shape, classes))
            where_copied = tuple(part[copies] for part in (*place, group, *codes))
            np.add.at(joint, where_copied, rows["n"].to_numpy()[copies])
            shared = [covariance_of_copies(joint, *counts.row_values(item)) for item in of]
        absent = ~np.asarray(n.any((-3, -2, -1)))[..., None]
        known = [np.where(absent, np.nan, part.n) for part in parts]
        value, n, covariance = (
            np.concatenate([np.moveaxis(item, 1, -1) for item in items], 1)
            for items in ([part.value for part in parts], known, shared)
        )
        labels = [(f"{item.words} of {name}", name) for item in of for name in groups]
        return cls(tests, labels, value, n, covariance, np.arange(len(tests)))

    @classmethod
    def of_scores(cls, rows: pd.DataFrame, higher: bool = False) -> "Measured":
        """Scores as they are, rows of ``tables.METRICS``; 1 less it if high is good."""
        tests, place, shape = _places(rows)
        value = np.full(shape, np.nan)
        value[place] = 1 - rows["value"] if higher else rows["value"]
        unknown = np.full((shape[0], 1, shape[1]), np.nan)
        within = np.arange(len(tests))
        return cls(tests, [("", "")], value[:, None], unknown, unknown, within)

    def within_domains(self, homes_of: np.ndarray, groups: int, alike: int) -> "Measured":
        """Rates of sets of ``alike`` groups, those of home also within its domains.

        Rates are in the order rate, set, group of it. The groups of a set have the same weights of
        domains. A combined rate has at most the variance of as many rows as its ``n`` says.

        Args:
            homes_of: of domains of home the number of that home, of other test sets -1.
            groups: number of groups.
            alike: number of groups in a set.
        """
        sets = np.array(list(combinations(range(groups), alike)))
        number = self.value.shape[1] // groups
        ends = (groups * np.arange(number)[:, None, None] + sets).ravel()
        value, n, covariance = (part[:, ends] for part in (self.value, self.n, self.covariance))
        within, combined = self.within.copy(), list[tuple[np.ndarray, np.ndarray]]()
        for home in np.unique(homes_of[homes_of >= 0]):
            domains = homes_of == home
            within[self.tests == home] = len(value) + len(combined)
            combined.append(_combined(value[domains], np.nan_to_num(n[domains]), alike))
        values, sizes = map(np.array, zip(*combined, strict=True))
        return Measured(
            self.tests, [self.labels[end] for end in ends], np.concatenate([value, values]),
            np.concatenate([n, sizes]),
            np.concatenate([covariance, np.full(values.shape, np.nan)]), within, alike,
        )  # fmt: skip


def _combined(value: np.ndarray, n: np.ndarray, alike: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates of sets of groups within domains, and numbers of rows with at most their variance.

    Args:
        value: ``[domains, rates, seeds]``, the groups of a set beside each other.
        n: their rows; 0 where there are none.
        alike: number of groups in a set.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = 1 / (1 / n).reshape(len(n), -1, alike, n.shape[-1]).sum(2)
        share = np.repeat(weight / weight.sum(0), alike, axis=1)  # NaN: no domain has all groups
        mean = np.where(share == 0, 0.0, share * value).sum(0)
        return mean, 1 / np.where(share == 0, 0.0, share**2 / n).sum(0)


def differences(rates: int, alike: int) -> np.ndarray:
    """Differences of the groups in sets of ``alike`` groups, both signs beside each other."""
    sets = np.arange(rates).reshape(-1, alike)
    pairs = [pair for ends in sets for pair in combinations(ends, 2)]
    signs = np.zeros((len(pairs), 2, rates))
    for place, (first, second) in enumerate(pairs):
        signs[place, :, first] = 1, -1
        signs[place, :, second] = -1, 1
    return signs.reshape(-1, rates)


def _places(rows: pd.DataFrame) -> tuple[np.ndarray, tuple[np.ndarray, ...], tuple[int, int]]:
    """Test sets, the places of each row's test set and seed, and how many there are."""
    tests, of_test = np.unique(rows["test"], return_inverse=True)
    seeds, of_seed = np.unique(rows["seed"], return_inverse=True)
    return tests, (of_test, of_seed), (len(tests), len(seeds))


def test_set_name(shift: str, severity: float, domain: str) -> str:
    """Name of a test set: the domain, or the shift with its severity."""
    return domain or f"{shift} {exact(severity)}"
