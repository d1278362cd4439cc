r"""Where a change between two domains comes from: X, Y given X, prediction given X, or the mix.

With the distributions P at home and T elsewhere of X, and the distribution
:math:`s \propto p t / (p + t)` that both share, a change is due to X (between P or T and s) and to
what differs on s, as Cai, Namkoong and Yadlowsky (2023, arXiv 2303.02011) define them. There first
the outcomes y of the same X change, with the decisions d of home, then the decisions. Every value
is a ratio of means of 1, d, y and d y, and with r = P(y = 1 | X), q = E(d | X) and
q' = E(d | X, y = 1) these are 1, q, r and r q' given X: of r of one domain and q, q' of the other
where only the outcomes have changed. Means on s are estimated by efficient scores: with the
probability e of a row to be from elsewhere, its tilt h(e) and the model m of a value o in a domain,

.. math:: \frac{\sum (h + h' (Z - e))\, m + h \frac{1 - Z}{1 - e} (o - m)}{\sum h + h' (Z - e)}

and likewise for r of one domain and q' of the other, so that errors of e and m, which boosted trees
estimate without the row (cross-fitting), matter to the second order only (Crump et al. 2006;
Chernozhukov et al. 2018). The intervals of all parts follow from the scores of the rows, summed by
unit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import special

from robust_fairness.auditing.why.domains import (
    FEWEST,
    MOST_LEVELS,
    ComparedRows,
    Overlap,
    cross_fitted,
)
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.quantities import Quantity

RATES = ("selection_rate", "true_positive_rate", "false_positive_rate")
EXACT = 12  # decimals of a part that no row has
STEP = 1e-20  # of complex differentiation, which is exact
WIDER = 1.15  # of errors, for what models of X add to second order (simulated)
OF_DECISIONS = 0.4  # learning rate of models of decisions
LEAST = 0.02  # probability of a class, of which ratios between domains are taken
TWO = 2
ROWS, OUTCOMES = np.eye(4)[[0, 2]]  # coefficients of 1 and y, see ``coefficients``

# Codes of the groups of an attribute, -1 where unknown, and their names.
Coded = tuple[np.ndarray, tuple[str, ...]]
# From means at home, on s with y and d of home, with y of elsewhere and with both of elsewhere, and
# elsewhere, ``[5, means]``, to the values at home and elsewhere, the change, and its parts of the
# mix, of X, of Y given X and of the prediction given X.
Parts = Callable[[np.ndarray], np.ndarray]


class PartOfChange(NamedTuple):
    """A change or a part of it, with its 95 % interval."""

    change: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class DecomposedChange:
    """The change of a value between two domains; the parts add up to the whole.

    Attributes:
        attribute: whose groups are compared or taken apart; "" overall.
        metric: a quantity; its mean, or its difference between two groups.
        groups: codes of the two groups whose rates are compared, the higher rate first.
        rows: the rows that are counted, bool ``[n]``.
        at_home: the value at home.
        away: the value in the domain.
        whole: the change.
        mix: part due to other shares of the groups; None where groups are not taken apart.
        x: part due to X: more rows of a kind that is known at home, or rows of other kinds.
        y_given_x: part due to other outcomes of the same X.
        prediction: part due to other decisions about the same X; None where outcomes are scores of
            predictions.
    """

    attribute: str
    metric: str
    groups: tuple[int, ...]
    rows: np.ndarray
    at_home: float
    away: float
    whole: PartOfChange
    mix: PartOfChange | None
    x: PartOfChange
    y_given_x: PartOfChange
    prediction: PartOfChange | None


def coefficients(values: np.ndarray) -> np.ndarray:
    """Those of 1, d, y and d y of values by class and decision ``[..., 2, 2]``, ``[..., 4]``.

    >>> coefficients(np.eye(2))  # whether a decision is right
    array([ 1., -1., -1.,  2.])
    """
    (first, second), (third, fourth) = np.moveaxis(values, (-2, -1), (0, 1))
    return np.stack([first, second - first, third - first, fourth - third - second + first], -1)


class Expected(NamedTuple):
    """What is expected of every row from its X.

    Attributes:
        away: probability to be from elsewhere ``[n]``.
        y: mean outcome at home and elsewhere ``[2, n]``.
        decided: mean decision, likewise.
        decided_of_1: mean decision about rows of class 1, likewise.
        overlap: the overlap of both domains in X.
    """

    away: np.ndarray
    y: np.ndarray
    decided: np.ndarray
    decided_of_1: np.ndarray
    overlap: Overlap


@dataclass(frozen=True, eq=False)
class ScoredDomains:
    """Rows of two domains that a model predicted.

    Attributes:
        domains: the rows.
        metric: the mean that is decomposed: ``accuracy``, or that of the outcome.
        y: outcome of every row, float64 ``[n]``: class 0 or 1, or, where ``positive`` is None, the
            score of its prediction, such as the squared error.
        prediction: the model's output, a number or the code of a class, ``[n]``; a part of X where
            ``positive`` is None, and not used elsewhere.
        positive: probability that class 1 is decided, float64 ``[n]``; None unless y has the
            classes 0 and 1.
    """

    domains: ComparedRows
    metric: str
    y: np.ndarray
    prediction: np.ndarray
    positive: np.ndarray | None = None

    @cached_property
    def decided(self) -> np.ndarray:
        """Probability that class 1 is decided; 0 where outcomes are scores of predictions."""
        return np.zeros(len(self.y)) if self.positive is None else self.positive

    @cached_property
    def expected(self) -> Expected:
        """What is expected of every row from its X, by models that were not fitted on it."""
        domains = self.domains
        every, ends = np.ones(len(self.y), dtype=bool), (~domains.away, domains.away)
        x, of_outcome = domains.x, domains.given_x

        def fitted(target: np.ndarray, among: np.ndarray) -> np.ndarray:
            return cross_fitted(x, target, domains.fold, domains.weight, among)

        if self.positive is None:  # the score may depend on columns that are left out
            is_class = self.metric == "accuracy" and len(np.unique(self.prediction)) <= MOST_LEVELS
            x, of_outcome = x.joined({"prediction": self.prediction}, is_class), fitted
        away = of_outcome(domains.away, every)
        y = np.stack([of_outcome(self.y, rows) for rows in ends])
        overlap = Overlap(away, domains.away)
        if self.positive is None:
            return Expected(away, y, 0 * y, 0 * y, overlap)
        # Decisions mostly follow from X alone: those about rows of either class are learnt from all
        # rows, and at a rate at which trees come near to 0 and 1. Those given X are their mean.
        known = x.joined({"y": self.y})
        of_class = [x.joined({"y": np.full(len(self.y), label)}) for label in range(TWO)]
        decided = [
            cross_fitted(
                known, self.decided, domains.fold, domains.weight, rows, of_class, OF_DECISIONS
            )
            for rows in ends
        ]
        of_0, of_1 = np.stack(decided, axis=1)
        return Expected(away, y, y * of_1 + (1 - y) * of_0, of_1, overlap)

    def values(self, of: np.ndarray) -> np.ndarray:
        """Values of the rows with coefficients ``[..., 4]``, ``[..., n]``."""
        d, y = self.decided, self.y
        return np.asarray(of @ np.stack([np.ones(len(y)), d, y, d * y]))

    def means(self, of: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means of values, at home, on s and elsewhere, see ``Parts``.

        Args:
            of: coefficients ``[means, 4]``.
            among: the rows that count, others being 0, ``[means, n]``.

        Returns:
            Means ``[5, means]``, and the score of every row ``[5, means, n]``, whose sum over rows
            is the error.
        """
        away, weight, e = self.domains.away, self.domains.weight, self.expected.away
        share = away.mean()
        both = share * (1 - e) + (1 - share) * e
        tilt = e * (1 - e) / both
        slope = ((1 - 2 * e) * both - e * (1 - e) * (1 - 2 * share)) / both**2
        base = tilt + slope * (away - e)
        total = (weight * base).sum()
        seen = np.stack([~away * e, away * (1 - e)]) / both
        outcome = among * self.values(of)
        means, scores = np.empty((5, len(of))), np.empty((5, *outcome.shape))
        for place, rows in ((0, ~away), (4, away)):
            of_domain = weight * rows / (weight * rows).sum()
            means[place] = (of_domain * outcome).sum(1)
            scores[place] = of_domain * (outcome - means[place][:, None])
        for place, (outcomes, decisions) in enumerate(((0, 0), (1, 0), (1, 1)), 1):
            model, missed = self._given_x(seen, outcomes, decisions)
            expected, error = among * (of @ model), among * (of @ missed)
            means[place] = (weight * (base * expected + error)).sum(1) / total
            scores[place] = weight * (base * (expected - means[place][:, None]) + error) / total
        return means, scores

    def _given_x(
        self, seen: np.ndarray, outcomes: int, decisions: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means of 1, d, y and d y given X, ``[4, n]``, and the errors that correct them.

        Args:
            seen: weights of the rows on s, in their own domain ``[2, n]``.
            outcomes: the domain whose outcomes are taken, 0 at home and 1 elsewhere.
            decisions: the domain whose decisions are taken.
        """
        d, d_of_1 = self.expected.decided[decisions], self.expected.decided_of_1[decisions]
        y = self.expected.y[outcomes]
        of_y, of_d = seen[outcomes] * (self.y - y), seen[decisions]
        ratio: np.ndarray | float = 1.0
        if outcomes != decisions:
            likely = self.expected.y.clip(LEAST, 1 - LEAST)
            ratio = likely[outcomes] / likely[decisions]
        missed = [
            0 * y,
            of_d * (self.decided - d),
            of_y,
            of_y * d_of_1 + of_d * ratio * self.y * (self.decided - d_of_1),
        ]
        return np.stack([1 + 0 * y, d, y, y * d_of_1]), np.stack(missed)

    def change(
        self,
        parts: Parts,
        of: np.ndarray,
        among: np.ndarray,
        rows: np.ndarray,
        metric: str,
        attribute: str = "",
        groups: tuple[int, ...] = (),
    ) -> DecomposedChange:
        """The change of a function of means and its parts, with intervals by the delta method."""
        means, scores = self.means(of, among)
        of_rows = np.zeros((5, scores.shape[-1]))
        for place in np.ndindex(means.shape):
            moved = means.astype(complex)
            moved[place] += 1j * STEP
            of_rows += (parts(moved).imag[2:] / STEP)[:, None] * scores[place]
        at_home, away, *changes = parts(means).tolist()
        half = special.ndtri(1 - LEVEL / 2) * self.domains.errors(of_rows)
        half[2:] *= WIDER
        whole, mix, x, y_given_x, prediction = (
            PartOfChange(change, change - width, change + width)
            for change, width in zip(  # 0 is 0
                np.round(changes, EXACT).tolist(), np.round(half, EXACT).tolist(), strict=True
            )
        )
        of_mix = None if groups or not attribute else mix
        of_prediction = None if self.positive is None else prediction
        return DecomposedChange(
            attribute, metric, groups, rows, at_home, away, whole, of_mix, x, y_given_x,
            of_prediction,
        )  # fmt: skip


def changes(
    scored: ScoredDomains,
    groups: Mapping[str, Coded],
    fewest: int = FEWEST,
    rates: Sequence[str] = RATES,
) -> Iterator[DecomposedChange]:
    r"""The changes of a mean and of the largest differences of rates between two groups.

    The mean is taken overall and, by attribute, within groups, with the mix of groups as a part of
    its own: with the shares :math:`p_a` at home and :math:`t_a` elsewhere of group a,

    .. math:: m_T - m_P = \sum_a p_a (m_{T,a} - m_{P,a}) + \sum_a (t_a - p_a) m_{T,a}

    Of two classes the difference of every one of ``rates`` follows, of the two groups whose rates
    differ most in both domains together. Rows of unknown group count overall only.

    Args:
        scored: rows of two domains.
        groups: codes ``[n]`` and names by attribute.
        fewest: groups with fewer rows in a domain are left out; of a rate those that it is among.
        rates: names of means of rows of two classes.
    """
    domains = scored.domains
    every = np.ones(len(domains.away), bool)
    mean = OUTCOMES if scored.positive is None else coefficients(np.eye(TWO))
    yield scored.change(
        _mean, np.stack([mean, ROWS]), np.stack([every, every]), every, scored.metric
    )
    for attribute, (codes, names) in groups.items():
        masks = {code: codes == code for code in range(len(names))}
        kept = [mask for mask in masks.values() if domains.smallest(mask) >= fewest]
        if len(kept) < TWO:
            continue
        of = np.repeat([mean, ROWS], len(kept), axis=0)
        known = np.any(kept, axis=0)
        yield scored.change(_mean, of, np.array(kept * TWO), known, scored.metric, attribute)
        for rate in rates if scored.positive is not None else ():
            difference = _difference(scored, attribute, masks, rate, fewest)
            if difference is not None:
                yield difference


def _difference(
    scored: ScoredDomains, attribute: str, masks: Mapping[int, np.ndarray], rate: str, fewest: int
) -> DecomposedChange | None:
    """The change of the largest difference of a rate; None without two groups of enough rows."""
    domains = scored.domains
    grid: tuple[np.ndarray, ...] = tuple(np.indices((TWO, TWO)).reshape(TWO, -1))
    quantity = find_metric(rate).definition
    assert isinstance(quantity, Quantity) and quantity.rows is not None
    mean_of = quantity.rows(*grid)
    among = np.ones(4) if mean_of.among is None else mean_of.among.astype(float)
    hits, rows = (
        coefficients(values.reshape(TWO, TWO)) for values in (mean_of.values * among, among)
    )
    counted = scored.values(rows) > 0
    kept = {
        code: mask for code, mask in masks.items() if domains.smallest(mask & counted) >= fewest
    }
    if len(kept) < TWO:
        return None
    hit, of = (scored.values(each) * domains.weight for each in (hits, rows))
    rates = {code: hit[mask].sum() / of[mask].sum() for code, mask in kept.items()}
    pair = max(combinations(rates, 2), key=lambda two: abs(rates[two[0]] - rates[two[1]]))
    first, second = sorted(pair, key=lambda code: -rates[code])
    both = [masks[first], masks[second]]
    rows_of_both = (both[0] | both[1]) & counted
    each = np.repeat([hits, rows], TWO, axis=0)
    return scored.change(
        _two_rates, each, np.array(both * TWO), rows_of_both, rate, attribute, (first, second)
    )


def _mean(means: np.ndarray) -> np.ndarray:
    """A mean over groups, with the shares of the groups at home."""
    hits, sizes = np.split(means, TWO, axis=1)
    value = (sizes[0] * hits / sizes).sum(1) / sizes[0].sum()
    return _parts(value, hits[-1].sum() / sizes[-1].sum())


def _two_rates(means: np.ndarray) -> np.ndarray:
    """The difference of two rates."""
    hits, sizes = np.split(means, TWO, axis=1)
    rates = hits / sizes
    value = rates[:, 0] - rates[:, 1]
    return _parts(value, value[-1])


def _parts(value: np.ndarray, elsewhere: complex) -> np.ndarray:
    """See ``Parts``, from values with the shares of home."""
    first, y_given_x, prediction, last = np.diff(value)
    change, mix = elsewhere - value[0], elsewhere - value[-1]
    return np.array([value[0], elsewhere, change, mix, first + last, y_given_x, prediction])
