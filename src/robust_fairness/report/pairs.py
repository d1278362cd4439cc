"""Pairs of a model and a test set, with the tests of how its gap changes."""

from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pandas as pd

from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import FEWEST_REFITS, LEVEL, of_rate
from robust_fairness.numbers.rates import LinearGap, Rates, contrast, interval, linear_gap
from robust_fairness.numbers.verdicts import Question, tested
from robust_fairness.report.rates import (
    Measured,
    counts_of_tests,
    differences,
    scores_of_tests,
    test_sets,
)
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where

WHOLE = LinearGap(np.array([[1.0], [-1.0]]))  # of a gap as it is, 0 or more
LEAST_GROUPS, MOST_GROUPS = 2, 15  # of an attribute whose pairs of groups are compared
MODEL_QUESTION: Question = "this model"
METHOD_QUESTION: Question = "this method"
# Intervals of a gap at home and in the test set, and one that holds for all test sets of a model.
BOUNDS = ("home_low", "home_high", "away_low", "away_high", "lower", "upper")


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
            domains = Pairs.of(measured, tests, question, in_home=True)
            opposite, whole = _opposite(domains, measured.alike), made["domain"] == ""
            made["reason"] = [opposite.get(home, "") for home in made["home"].mask(whole, -1)]
            made = pd.concat([made, _tested(measured, form, domains, size)])
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


def _opposite(pairs: Pairs, alike: int) -> dict[Any, str]:
    """The homes with opposite differences of the same two groups in two of their domains, and why.

    Both are surely larger than the margin (Bonferroni over domains, rates and pairs of groups).

    Args:
        pairs: of domains of home.
        alike: number of groups in a set of rates.
    """
    signs = differences(pairs.away.n.shape[1], alike)
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
