"""The matrix: how every gap changes between home and the other test sets, with its verdicts.

Home is the test rows of the distribution that was trained on. The other test sets are the domains
that were not trained on, and every synthetic shift at its largest severity. A row is a pair: a
model, trained on some domains, and a test set. A family of tests is all rows of a gap, over
datasets and attributes (``numbers.verdicts``).

Differences between domains are no differences between groups: where home has several domains,
another domain is compared with the rates of groups within each of them, combined with the same
weights for both groups of a pair, those of Mantel and Haenszel (1959), as ``audit --control`` does.
Of the worst group all groups have the same weights. Copies of the rows of home are compared with
all of these together. Where domains of home have opposite gaps, which cancel, nothing is said.

Two questions are answered apart. *This model*: the selected trial of the first seed, whose
uncertainty is that of the test rows. *This method*: trained again, with the variance between seeds
as well, from ``FEWEST_REFITS`` seeds; its gaps are those of the mean rates, which are tested, where
the table for methods has the mean of the gaps. Gaps that do not follow from counts by group, class
and decision, such as those of recall at k, have the latter only. Rows under a synthetic shift are
copies of those of home, which are counted by both decisions; where they are not (rows that a shift
leaves out), the method's seeds are paired on them and the model's two gaps are taken as
independent, which overstates the error.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd

from robust_fairness.core.numbers import exact
from robust_fairness.metrics import Gap, find_metric
from robust_fairness.numbers.adjust import holm
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.rates import LinearGap, Rates, contrast, interval, linear_gap
from robust_fairness.numbers.variance import FEWEST_REFITS, covariance_of_copies, of_rate
from robust_fairness.numbers.verdicts import VERDICTS, Question, judged, tested
from robust_fairness.report.agreement import PLAIN
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where

# Measures of unfairness as fractions, the preferred one first, with their names in sentences.
GAPS = {
    "equalized_odds_difference": "equalized odds difference",
    "delta_eo": "equalized odds gap (Delta-EO)",
    "equal_opportunity_difference": "equal opportunity difference",
    "demographic_parity_difference": "demographic parity difference",
    "delta_dp": "demographic parity gap (Delta-DP)",
    "mean_majority_minority_difference": "accuracy gap between majority and minority",
    "accuracy_worst_gap": "accuracy gap of the worst group",
    "recall_at_worst_gap": "recall gap of the worst group",
    "accuracy_difference": "accuracy difference between groups",
    "worst_group_accuracy": "error of the worst group",
    "worst_group_recall_at": "missing recall of the worst group",
    "faircocco_eo": "FairCOCCO score (equalized odds)",
}
LEFT_OUT = ("delta_eopp",)  # a gap that says no more than those above
SELECTED = "selection_rate_by_group"
WHOLE = LinearGap(np.array([[1.0], [-1.0]]))  # of a gap as it is, 0 or more
MARGIN = 0.05  # within which a change is called immaterial, where the experiment has none
CONSTANT = 0.01  # share of the rarer predicted class up to which predictions are constant
SMALL = 30  # rows of a group and class below which merging it is suggested
LEAST_GROUPS, MOST_GROUPS = 2, 15  # of an attribute whose pairs of groups are compared
MODEL_QUESTION: Question = "this model"
METHOD_QUESTION: Question = "this method"
MODEL = ["method", "algorithm", "network", "postprocessing"]
PLACE = ["shift", "severity", "domain"]
CELL = ["dataset", "method"]
PAIR = [*CELL, *PLACE, "attribute"]
REPLICA = [*CELL, "trial", "seed", *PLACE]
STATES = (
    "grew", "shrank", "reversed", "changed", "held", "inconclusive", "not estimable", "trivial",
    "missing",
)  # fmt: skip
CHANGED = ("grew", "shrank", "reversed", "changed")
DECIDED = (*CHANGED, "held")
ACCURACY = (
    "accuracy", "accuracy_change", "accuracy_error", "accuracy_low", "accuracy_high",
    "accuracy_changed",
)  # fmt: skip
# Intervals of a gap at home and in the test set, and one that holds for all test sets of a model.
BOUNDS = ("home_low", "home_high", "away_low", "away_high", "lower", "upper")
MATRIX = [
    "data", "attribute", "trained_on", "dataset", *MODEL, *PLACE, *VERDICTS, "rate", "group",
    "margin", "refit_spread", "seeds", "n", *ACCURACY, *BOUNDS, "pooled", "reason",
]  # fmt: skip

NO_PAIRS = pd.DataFrame(columns=MATRIX)


def matrices(
    results: Results,
    failed: Mapping[tuple[str, str], str] | None = None,
    question: Question | None = None,
) -> dict[str, pd.DataFrame]:
    """The matrix of every gap known at home and in another test set, the preferred one first.

    Args:
        results: the tables of the run.
        failed: reasons of failed cells by dataset and method.
        question: ``this model`` or ``this method``; by default that about the model, where it has
            an answer, so that more seeds never make it a vaguer one.

    Returns:
        By gap, without rows if no gap can be estimated, the columns ``MATRIX``: those of
        ``numbers.verdicts``; rate and group that limit it; accuracy at home, its change with
        standard error, and its interval in the test set; intervals of the gap at home, in the test
        set, and (``lower``, ``upper``) of one that holds for all test sets of a model together;
            the gap at home with its domains taken together (``pooled``).
        ``state`` may also be ``trivial``, where the model's predictions are, or those of more than
        half of the method's seeds, or ``missing``.
    """
    return dict(_each_gap(results, failed, question))


def preferred(results: Results) -> tuple[str, pd.DataFrame] | None:
    """The first of ``matrices`` with its gap, if there is one."""
    return next(_each_gap(results), None)


def _each_gap(
    results: Results,
    failed: Mapping[tuple[str, str], str] | None = None,
    question: Question | None = None,
) -> Iterator[tuple[str, pd.DataFrame]]:
    names = gaps_among(results.selected["metric"].unique())
    reasons, estimated = tuple((failed or {}).items()), False
    for name in names:
        rows = _matrix_of(results, name, reasons, question)
        if rows is not None:
            yield name, rows
            estimated = True
    if not estimated:  # a page still says why
        yield from ((name, NO_PAIRS) for name in names if undefined(results, name))


def gaps_among(names: Collection[str]) -> list[str]:
    """The gaps among metrics, the preferred one first; those of plug-ins are the last."""
    declared = [find_metric(name).definition for name in names if name not in (*GAPS, *LEFT_OUT)]
    further = [item.name for item in declared if isinstance(item, Gap) and item.how != "ratio"]
    return [*(name for name in GAPS if name in names), *further]


def noun_of(gap_name: str) -> str:
    """What the values of a gap are called in short: what is no difference has its own words."""
    return "gap" if find_metric(gap_name).better == "lower" else words_of(gap_name)


def words_of(gap_name: str) -> str:
    """A gap in a sentence."""
    return GAPS.get(gap_name) or find_metric(gap_name).definition.words


@computed_once
def _matrix_of(
    results: Results,
    name: str,
    failed: tuple[tuple[tuple[str, str], str], ...],
    question: Question | None,
) -> pd.DataFrame | None:
    """The matrix of a gap; None where no gap is known at home and in another test set."""
    tests = _tests_of(results, name, question)
    away = tests[tests["shift"] != UNSHIFTED] if tests is not None else tests
    return None if away is None else _matrix(away, results, dict(failed), question)


def homes(results: Results, name: str) -> pd.DataFrame:
    """The gap of every model in each domain of home, of which there are several.

    Returns:
        Rows of ``matrices`` of which data, attribute, trained_on, method, domain, away, away_low
        and away_high are meant; those that were compared with a test set have no such row.
    """
    tests = _tests_of(results, name, None)
    if tests is None:
        return NO_PAIRS
    return tests[tests["shift"] == UNSHIFTED].reindex(columns=MATRIX)


@computed_once
def _test_sets(results: Results) -> pd.DataFrame:
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
def _scores(results: Results) -> pd.DataFrame:
    """Selected scores with the number of their test set and their data."""
    return _numbered(results.selected, results)


@computed_once
def _counts(results: Results) -> pd.DataFrame:
    """Selected counts of the test sets that the matrix has, with their number and data."""
    rows = _numbered(results.selected_counts, results)
    tests = _test_sets(results)
    home = (tests["shift"] != UNSHIFTED) | (tests["domain"] == "") | tests["in_home"]
    return rows[(tests["strongest"] & home).to_numpy()[rows["test"]]]


def _numbered(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    tests = _test_sets(results)[[*CELL, *PLACE, "data"]].reset_index(names="test")
    return rows.merge(tests, on=[*CELL, *PLACE])


@computed_once
def _tests_of(results: Results, name: str, question: Question | None) -> pd.DataFrame | None:
    """Tests of a gap, not adjusted yet, and its values in the domains of home; None without any."""
    tests, parts = _test_sets(results), []
    families = [
        (*family, _Pairs.of(family[1], tests, question)) for family in _families(results, name)
    ]
    size = sum(len(pairs.frame) for *_, pairs in families)
    for attribute, measured, form, away in families:
        made = _tested(measured, form, away, size).assign(reason="")
        if measured.alike:
            domains = _Pairs.of(measured, tests, question, in_home=True)
            opposite, whole = _opposite(domains, measured.alike), made["domain"] == ""
            made["reason"] = [opposite.get(home, "") for home in made["home"].mask(whole, -1)]
            made = pd.concat([made, _tested(measured, form, domains, size)])
        parts.append(made.assign(attribute=attribute))
    return pd.concat(parts, ignore_index=True) if size else None


@computed_once
def _families(results: Results, name: str) -> list[tuple[str, "_Measured", LinearGap]]:
    """Attribute, rates and gap of each dataset and attribute."""
    families, tests = [], _test_sets(results)
    rows = where(_scores(results), metric=name, group="").dropna(subset="value")
    rows = rows[(tests["strongest"] & ~tests["in_home"]).to_numpy()[rows["test"]]]
    of_gap, higher = find_metric(name).gap, find_metric(name).better == "higher"
    for (data, attribute), part in rows.groupby(["data", "attribute"], sort=False):
        if (part["shift"] == UNSHIFTED).all():
            continue
        if not results.declares(part["dataset"].iloc[0], str(attribute)):
            continue
        counts = where(_counts(results), data=data, attribute=attribute)
        groups = tuple(counts["group"].unique())
        if of_gap is not None and len(groups) > MOST_GROUPS:
            continue  # ``undefined`` says so
        if of_gap is not None and len(groups) >= LEAST_GROUPS:
            form = linear_gap(of_gap.how, len(groups), len(of_gap.of))  # type: ignore[arg-type]
            measured = _Measured.of_counts(counts, groups, of_gap.of)
            in_home = tests.loc[measured.tests, "in_home"]
            if in_home.any():
                alike = 2 if of_gap.how in ("largest", "sum") else len(groups)
                homes_of = tests.loc[measured.tests, "home"].where(in_home, -1).to_numpy()
                measured = measured.within_domains(homes_of, len(groups), alike)
                if of_gap.how == "largest":
                    form = LinearGap(_differences(len(measured.labels), alike))
        else:
            form, measured = WHOLE, _Measured.of_scores(part, higher)
        families.append((str(attribute), measured, form))
    return families


@dataclass(frozen=True)
class _Measured:
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
    ) -> "_Measured":
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
    def of_scores(cls, rows: pd.DataFrame, higher: bool = False) -> "_Measured":
        """Scores as they are, rows of ``tables.METRICS``; 1 less it if high is good."""
        tests, place, shape = _places(rows)
        value = np.full(shape, np.nan)
        value[place] = 1 - rows["value"] if higher else rows["value"]
        unknown = np.full((shape[0], 1, shape[1]), np.nan)
        within = np.arange(len(tests))
        return cls(tests, [("", "")], value[:, None], unknown, unknown, within)

    def within_domains(self, homes_of: np.ndarray, groups: int, alike: int) -> "_Measured":
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
        return _Measured(
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


def _differences(rates: int, alike: int) -> np.ndarray:
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


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a model and a test set with the rates of both ends.

    Attributes:
        frame: rows of ``_test_sets``, one per pair, with their number as ``test``.
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
        measured: _Measured,
        tests: pd.DataFrame,
        question: Question | None,
        in_home: bool = False,
    ) -> "_Pairs":
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


def _tested(measured: _Measured, form: LinearGap, pairs: _Pairs, family: int) -> pd.DataFrame:
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


def _opposite(pairs: _Pairs, alike: int) -> dict[Any, str]:
    """The homes with opposite differences of the same two groups in two of their domains, and why.

    Both are surely larger than the margin (Bonferroni over domains, rates and pairs of groups).

    Args:
        pairs: of domains of home.
        alike: number of groups in a set of rates.
    """
    signs = _differences(pairs.away.n.shape[1], alike)
    estimate = contrast(pairs.away.corrected(), None, signs, None)
    reasons: dict[Any, str] = {}
    for home, domains in pairs.frame.groupby("home", sort=False):
        level = LEVEL / (len(domains) * len(signs))
        low = (estimate.value - estimate.critical(level))[domains.index]
        low = np.nan_to_num(low, nan=-1.0).reshape(len(domains), -1, 2)
        larger = low.max(0).min(-1)  # of both signs the one that is less sure
        if larger.max() > domains["margin"].iloc[0]:
            ends = domains["domain"].to_numpy()[low[:, larger.argmax()].argmax(0)]
            reasons[home] = f"{' and '.join(sorted(ends))} have opposite gaps"
    return reasons


def _matrix(
    tests: pd.DataFrame,
    results: Results,
    failed: Mapping[tuple[str, str], str],
    question: Question | None,
) -> pd.DataFrame:
    """All tests of a gap, adjusted, with accuracy, trivial predictors and missing cells."""
    rows = judged(tests)
    rows = rows.join(_accuracies(results, question), on="test").join(_trivial(results), on="test")
    of_method = rows.pop("trivial") > 0.5  # noqa: PLR2004 - half of the seeds
    of_model = rows.pop("first_trivial").eq(True)
    trivial = of_method.where(rows["question"] == METHOD_QUESTION, of_model)
    rows["state"] = rows["state"].mask(trivial, "trivial")
    rows["state"] = rows["state"].mask(rows["reason"] != "", "not estimable")
    rows = pd.concat([rows, _missing(rows, failed)], ignore_index=True)
    rows["accuracy_changed"] = rows["accuracy_changed"].eq(True)
    texts: dict[Any, Any] = dict.fromkeys(rows[MATRIX].select_dtypes("string"), object)
    return rows[MATRIX].astype(texts).copy()  # in one block for each type


def _missing(rows: pd.DataFrame, failed: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """Rows of failed cells on the test sets of their dataset."""
    sets = rows[["dataset", "data", "trained_on", "attribute", "margin", *PLACE]].drop_duplicates()
    absent = pd.DataFrame(
        [
            {"dataset": dataset, "method": method, "algorithm": method, "network": "",
             "postprocessing": "", "reason": reason, "state": "missing", "seeds": 0}
            for (dataset, method), reason in failed.items()
        ],
        columns=["dataset", *MODEL, "reason", "state", "seeds"],
    )  # fmt: skip
    return absent.merge(sets, on="dataset")


@computed_once
def _accuracies(results: Results, question: Question | None) -> pd.DataFrame:
    """Accuracy at home and in the test set, and whether its change is significant (Holm)."""
    everyone, tests = where(_counts(results), attribute=""), _test_sets(results)
    everyone = everyone[everyone.groupby("dataset")["shift"].transform("nunique") > 1]
    if everyone.empty:
        return pd.DataFrame(columns=ACCURACY)
    accuracy = find_metric("accuracy").definition
    assert isinstance(accuracy, Quantity)
    parts = []
    for _, part in everyone.groupby("data", sort=False):
        pairs = _Pairs.of(_Measured.of_counts(part, [""], [accuracy]), tests, question)
        weight = np.ones((1, 1))
        change = contrast(pairs.away, pairs.home, weight, weight, pairs.ratio, pairs.covariance)
        low, high = pairs.interval(LinearGap(weight))
        parts.append(
            pd.DataFrame(
                {
                    "accuracy_low": low,
                    "accuracy_high": high,
                    "accuracy": pairs.home.mean[:, 0],
                    "accuracy_change": change.value[:, 0],
                    "accuracy_error": change.error[:, 0],
                    "p": np.where(change.variance > 0, change.p(), np.nan)[:, 0],
                },
                pairs.frame["test"],
            )
        )
    accuracies = pd.concat(parts)
    return accuracies.assign(accuracy_changed=holm(accuracies.pop("p")) < LEVEL)


@computed_once
def _trivial(results: Results) -> pd.DataFrame:
    """Share of the seeds whose predictions are trivial, and whether the first seed's are, by test.

    They are if they are of one class, or no more accurate than the most frequent class of the
    training rows, where the run scores ``selection_rate_by_group`` or ``constant_accuracy``.
    """
    scores, replica = _scores(results), ["test", "seed"]
    replicas = where(scores, metric="accuracy", group="").drop_duplicates(replica)
    same_rows = [*CELL, "trial", "seed", "domain"]  # shifts do not change labels
    constant = where(scores, metric="constant_accuracy")[[*same_rows, "value"]]
    constant = constant.drop_duplicates(same_rows).rename(columns={"value": "constant"})
    rates = where(scores, metric=SELECTED).groupby(replica)["value"].agg(["min", "max"])
    replicas = replicas.merge(constant, how="left", on=same_rows).join(rates, on=replica)
    of_one_class = (replicas["max"] <= CONSTANT) | (replicas["min"] >= 1 - CONSTANT)
    replicas["trivial"] = of_one_class | (replicas["value"] <= replicas["constant"])
    by_test = replicas.sort_values("seed").groupby("test")
    return by_test.agg(trivial=("trivial", "mean"), first_trivial=("trivial", "first"))


def is_plain(models: pd.DataFrame) -> pd.Series:
    """Whether each model, with algorithm and postprocessing, is plain and not post-processed."""
    return (models["algorithm"] == PLAIN) & (models["postprocessing"] == "")


def other_networks(cells: pd.DataFrame, by: str) -> pd.Series:
    """Which rows are of plain training with another network than most methods, by dataset.

    They compare networks: no method of fairness is among them.

    Args:
        cells: rows with the columns algorithm, network, postprocessing and ``by``.
        by: column of the dataset.
    """
    # failed cells have no network
    usual = cells.groupby(by)["network"].transform(
        lambda names: next((name for name, _ in Counter(filter(None, names)).most_common(1)), "")
    )
    return is_plain(cells) & (cells["network"] != usual)


@computed_once
def undefined(results: Results, gap_name: str) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """Why a gap is in no row of its matrix, by data and attribute; others are not in it.

    Returns:
        The reason, and the groups with fewer than ``SMALL`` rows of a class in a test set.
    """
    rows = where(_scores(results), metric=gap_name, group="")
    rows = rows[rows["attribute"] != ""]
    reasons = {}
    for (data, attribute), whole in rows[rows["shift"] != UNSHIFTED].groupby(
        ["data", "attribute"], sort=False
    ):
        if not results.declares(whole["dataset"].iloc[0], str(attribute)):
            continue
        sizes = _smallest(results, tuple(whole["dataset"].unique()), str(attribute))
        if len(sizes) > MOST_GROUPS:
            reason = f"{len(sizes)} groups; gaps are compared between at most {MOST_GROUPS}"
        elif len(whole) and whole["value"].isna().all():
            reason = whole["note"].mode().iloc[0]
        else:
            continue
        reasons[str(data), str(attribute)] = reason, sorted(sizes.index[~(sizes >= SMALL)])
    return reasons


def _smallest(results: Results, datasets: Sequence[str], attribute: str) -> pd.Series:
    """Rows of a class in the test set that has fewest of them, by group."""
    counts = where(results.selected_counts, dataset=datasets, attribute=attribute)
    sizes = (
        counts.groupby([*REPLICA, "group", "label"], sort=False)["n"].sum().unstack(fill_value=0)
    )
    return sizes.min(axis=1).groupby("group", sort=False).min()


def test_set_name(shift: str, severity: float, domain: str) -> str:
    """Name of a test set: the domain, or the shift with its severity."""
    return domain or f"{shift} {exact(severity)}"


def _error_name(name: str) -> str:
    """The name of a metric as the matrix has its values: what should be low."""
    return name if find_metric(name).better == "lower" else f"1 - {name}"


def table(results: Results) -> pd.DataFrame:
    """The matrices of all gaps, with the column metric."""
    parts = [rows.assign(metric=_error_name(name)) for name, rows in matrices(results).items()]
    return pd.concat(parts)[["metric", *MATRIX]] if parts else pd.DataFrame()
