"""The test sets of a run with the rates of their groups, and tests of how gaps change to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd

from robust_fairness.core.numbers import exact
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import FEWEST_REFITS, LEVEL, covariance_of_copies, of_rate
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.rates import LinearGap, Rates, contrast, interval, linear_gap
from robust_fairness.numbers.verdicts import Question, tested
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where

MARGIN = 0.05  # within which a change is called immaterial, where the experiment has none
PLACE = ["shift", "severity", "domain"]
CELL = ["dataset", "method"]
WHOLE = LinearGap(np.array([[1.0], [-1.0]]))  # of a gap as it is, 0 or more
LEAST_GROUPS, MOST_GROUPS = 2, 15  # of an attribute whose pairs of groups are compared
MODEL_QUESTION: Question = "this model"
METHOD_QUESTION: Question = "this method"
# Intervals of a gap at home and in the test set, and one that holds for all test sets of a model.
BOUNDS = ("home_low", "home_high", "away_low", "away_high", "lower", "upper")


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
            rates, rows = value[domains], np.nan_to_num(n[domains])  # 0 rows where there are none
            with np.errstate(divide="ignore", invalid="ignore"):
                weight = 1 / (1 / rows).reshape(len(rows), -1, alike, rows.shape[-1]).sum(2)
                share = np.repeat(weight / weight.sum(0), alike, axis=1)  # NaN: none has all groups
                mean = np.where(share == 0, 0.0, share * rates).sum(0)
                size = 1 / np.where(share == 0, 0.0, share**2 / rows).sum(0)
            combined.append((mean, size))
        values, sizes = map(np.array, zip(*combined, strict=True))
        return Measured(
            self.tests, [self.labels[end] for end in ends], np.concatenate([value, values]),
            np.concatenate([n, sizes]),
            np.concatenate([covariance, np.full(values.shape, np.nan)]), within, alike,
        )  # fmt: skip


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


@computed_once
def tests_of(results: Results, name: str, question: Question | None) -> pd.DataFrame | None:
    """Tests of a gap, not adjusted yet, and its values in the domains of home; None without any."""
    tests, parts = test_sets(results), []
    families = [
        (*family, Pairs.of(family[1], tests, question)) for family in _families(results, name)
    ]
    size = sum(len(pairs.frame) for *_, pairs in families)
    for attribute, measured, form, away in families:
        made = _tested(measured, form, away, size).assign(reason="")
        if measured.alike:
            in_home = Pairs.of(measured, tests, question, in_home=True)
            # homes with opposite differences of the same two groups in two of their domains, both
            # surely larger than the margin (Bonferroni over domains, rates and pairs of groups)
            signs = differences(in_home.away.n.shape[1], measured.alike)
            estimate = contrast(in_home.away.corrected(), None, signs, None)
            opposite: dict[Any, str] = {}
            for home, domains in in_home.frame.groupby("home", sort=False):
                level = LEVEL / (len(domains) * len(signs))
                low = (estimate.value - estimate.critical(level))[domains.index]
                low = np.nan_to_num(low, nan=-1.0).reshape(len(domains), -1, 2)
                larger = low.max(0).min(-1)  # of both signs the one that is less sure
                if larger.max() > domains["margin"].iloc[0]:
                    ends = domains["domain"].to_numpy()[low[:, larger.argmax()].argmax(0)]
                    opposite[home] = f"{' and '.join(sorted(ends))} have opposite gaps"
            whole = made["home"].mask(made["domain"] == "", -1)
            made["reason"] = [opposite.get(home, "") for home in whole]
            made = pd.concat([made, _tested(measured, form, in_home, size)])
        parts.append(made.assign(attribute=attribute))
    return pd.concat(parts, ignore_index=True) if size else None


@computed_once
def _families(results: Results, name: str) -> list[tuple[str, "Measured", LinearGap]]:
    """Attribute, rates and gap of each dataset and attribute."""
    families, tests = [], test_sets(results)
    rows = where(scores_of_tests(results), metric=name, group="").dropna(subset="value")
    rows = rows[(tests["strongest"] & ~tests["in_home"]).to_numpy()[rows["test"]]]
    of_gap, higher = find_metric(name).gap, find_metric(name).better == "higher"
    for (data, attribute), part in rows.groupby(["data", "attribute"], sort=False):
        if (part["shift"] == UNSHIFTED).all():
            continue
        if not results.declares(part["dataset"].iloc[0], str(attribute)):
            continue
        counts = where(counts_of_tests(results), data=data, attribute=attribute)
        groups = tuple(counts["group"].unique())
        if of_gap is not None and len(groups) > MOST_GROUPS:
            continue  # ``undefined`` says so
        if of_gap is not None and len(groups) >= LEAST_GROUPS:
            form = linear_gap(of_gap.how, len(groups), len(of_gap.of))  # type: ignore[arg-type]
            measured = Measured.of_counts(counts, groups, of_gap.of)
            in_home = tests.loc[measured.tests, "in_home"]
            if in_home.any():
                alike = 2 if of_gap.how in ("largest", "sum") else len(groups)
                homes_of = tests.loc[measured.tests, "home"].where(in_home, -1).to_numpy()
                measured = measured.within_domains(homes_of, len(groups), alike)
                if of_gap.how == "largest":
                    form = LinearGap(differences(len(measured.labels), alike))
        else:
            form, measured = WHOLE, Measured.of_scores(part, higher)
        families.append((str(attribute), measured, form))
    return families


@dataclass(frozen=True)
class Pairs:
    """Pairs of a model and a test set with the rates of both ends.

    Attributes:
        frame: rows of ``test_sets``, one per pair, with their number as ``test``.
        sets: places of their test sets among those that were measured.
        homes: places of those that they are compared with.
        home: at home, within its domains where the test set is another one.
        pooled: at home, with its domains taken together.
        away: in the test set.
        question: that they answer.
        ratio: test by training rows of splits that share rows, by pair.
        covariance: of the rates of both ends, where the test set has copies of the rows at home.
        apart: at home and in the test set, whether each seed has rows of its own, so that the
            variance between seeds has that of the rows.
    """

    frame: pd.DataFrame
    sets: np.ndarray
    homes: np.ndarray
    home: Rates
    pooled: np.ndarray
    away: Rates
    question: Question
    ratio: np.ndarray | float
    covariance: np.ndarray
    apart: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls,
        measured: Measured,
        tests: pd.DataFrame,
        question: Question | None,
        in_home: bool = False,
    ) -> "Pairs":
        """Of the other test sets that were measured, or of the domains of home."""
        value, n, covariance = measured.value, measured.n, measured.covariance
        frame = tests.loc[measured.tests]
        known = pd.Index(measured.tests).get_indexer(frame["home"])  # -1: not measured
        some = frame["in_home"] if in_home else frame["shift"] != UNSHIFTED
        away = np.flatnonzero(some & (known >= 0))
        frame, pooled = frame.iloc[away].reset_index(names="test"), known[away]
        home = np.where(frame["domain"] == "", pooled, measured.within[pooled])
        bounded = bool(np.isfinite(n).any())
        several = value.shape[-1] >= FEWEST_REFITS and not bounded
        asked = question or (METHOD_QUESTION if several else MODEL_QUESTION)
        if asked == MODEL_QUESTION:
            value, n, covariance = value[..., :1], n[..., :1], covariance[..., :1]
        with np.errstate(invalid="ignore"), catch_warnings():
            simplefilter("ignore", RuntimeWarning)  # means of nothing
            rows = np.nanmean(n, -1)
            variance = np.nan_to_num(of_rate(np.nanmean(value, -1), rows))
            shared = np.nanmean(covariance, -1)[away]
        copies = (frame["domain"] == "").to_numpy()[:, None]  # the rows of home again
        at_home, in_set = np.ones((2, *rows[home].shape), bool)
        apart = np.zeros((len(frame), 1), bool)
        ratio: np.ndarray | float = 0.0
        if asked == METHOD_QUESTION:
            apart = ~frame["same_rows"].to_numpy()[:, None]  # each seed has rows of its own
            unknown = copies & ~np.isfinite(shared).all(1, keepdims=True)
            at_home, in_set = at_home & ~(apart | unknown), in_set & ~(copies & apart | unknown)
            ratio = frame["ratio"].to_numpy()
        return cls(
            frame,
            away,
            home,
            Rates(value[home], at_home * variance[home], rows[home], bounded, at_home),
            value[pooled].mean(-1),
            Rates(value[away], in_set * variance[away], rows[away], bounded, in_set),
            asked,
            ratio,
            np.where(copies & at_home & in_set, np.nan_to_num(shared), 0.0),
            (apart, copies & apart),
        )

    def interval(
        self, form: LinearGap, home: bool = False, level: float | np.ndarray = LEVEL
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the gap at home or in the test set, of each pair alone."""
        end, apart = (self.home, self.apart[0]) if home else (self.away, self.apart[1])
        # pairs of a cell share their home
        place, first = np.unique(
            self.homes if home else np.arange(len(self.frame)),
            return_index=True, return_inverse=True,
        )[1:][::-1]  # fmt: skip
        counted = np.broadcast_to(~apart, end.n.shape)
        variance = counted * np.nan_to_num(of_rate(end.mean, end.n))
        part = Rates(end.value[first], variance[first], end.n[first], end.bounded, counted[first])
        ratio = self.ratio[first] if isinstance(self.ratio, np.ndarray) else self.ratio
        levels = level if isinstance(level, float) else level[first]
        low, high = interval(part, form, levels, ratio)
        low, high = np.where(np.isinf(high), np.nan, (low, high))
        return low[place], high[place]


def _tested(measured: Measured, form: LinearGap, pairs: Pairs, family: int) -> pd.DataFrame:
    """Tests of all pairs of a model and a test set, not adjusted yet."""
    tests = tested(
        pairs.home, pairs.away, form, pairs.frame["margin"].to_numpy(), pairs.question,
        pairs.ratio, pairs.covariance, family,
    )  # fmt: skip
    together = LEVEL / pairs.frame.groupby("method")["method"].transform("size").to_numpy()
    alone, jointly = pairs.interval(form), pairs.interval(form, level=together)
    bounds = zip(BOUNDS, (*pairs.interval(form, home=True), *alone, *jointly), strict=True)
    by_refit = form.of(np.moveaxis(measured.value[pairs.sets], -1, 1))
    limiting = [measured.labels[k] if k >= 0 else ("", "") for k in tests["limit_rate"]]
    return pairs.frame.assign(
        **tests,
        **dict(bounds),
        pooled=form.of(pairs.pooled),
        rate=[words for words, _ in limiting],
        group=[group for _, group in limiting],
        refit_spread=pd.DataFrame(by_refit).std(axis=1),
        seeds=by_refit.shape[1],
        n=pairs.away.n.min(-1),
    )
