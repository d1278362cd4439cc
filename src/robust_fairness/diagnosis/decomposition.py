r"""Where a change between two domains comes from: X, Y given X, or the mix of groups.

With the distributions P at home and T elsewhere of X, and the distribution
:math:`s \propto p t / (p + t)` that both share, a change is due to X (between P or T and s) and to
Y given X (on s), as Cai, Namkoong and Yadlowsky (2023, arXiv 2303.02011) define them. Every value
is a ratio of means of :math:`a(X) + b(X) Y`. Those on s are estimated by efficient scores: with the
probability e of a row to be from elsewhere, its tilt h(e) and the outcome model m,

.. math:: \frac{\sum (h + h' (Z - e))\, m + h \frac{1 - Z}{1 - e} (O - m)}{\sum h + h' (Z - e)}

so that errors of e and m, which boosted trees estimate without the row (cross-fitting), matter to
the second order only (Crump et al. 2006; Chernozhukov et al. 2018). The intervals of all parts
follow from the scores of the rows, summed by unit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import special

from robust_fairness.core.intervals import CONFIDENCE
from robust_fairness.diagnosis.columns import MOST_LEVELS
from robust_fairness.diagnosis.domains import FEWEST, ComparedRows, Overlap, cross_fitted
from robust_fairness.metrics.base import DEFINITIONS, Quantity
from robust_fairness.metrics.classification import (
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)

RATES = (selection_rate, true_positive_rate, false_positive_rate)
EXACT = 12  # decimals of a part that no row has
STEP = 1e-20  # of complex differentiation, which is exact

# Codes of the groups of an attribute, -1 where unknown, and their names.
Coded = tuple[np.ndarray, tuple[str, ...]]
# From means at home, on s with y of home and with y of elsewhere, and elsewhere, ``[4, means]``, to
# the values at home and elsewhere, the change, and its parts of the mix, of X and of Y given X.
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


@dataclass(frozen=True, eq=False)
class ScoredDomains:
    """Rows of two domains that a model predicted.

    Attributes:
        domains: the rows.
        metric: the mean that is decomposed: ``accuracy``, or that of the outcome.
        y: outcome of every row, float64 ``[n]``: class 0 or 1, or, where ``positive`` is None, the
            score of its prediction, such as the squared error.
        prediction: the model's output, a score or the code of a class, ``[n]``.
        positive: probability that class 1 is decided, float64 ``[n]``; None unless y has the
            classes 0 and 1.
    """

    domains: ComparedRows
    metric: str
    y: np.ndarray
    prediction: np.ndarray
    positive: np.ndarray | None = None

    @cached_property
    def nuisances(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probability to be from elsewhere, and mean outcomes at home and elsewhere, ``[n]`` each.

        X has the prediction, on which the outcome may depend through columns that are left out.
        """
        domains = self.domains
        x = domains.columns.without(domains.naming)
        levels = len(np.unique(self.prediction))
        is_class = self.positive is None and self.metric == "accuracy" and levels <= MOST_LEVELS
        x = x.joined({"prediction": self.prediction}, categories=is_class)
        weight, away = domains.weight, domains.away
        return (
            cross_fitted(x, away, domains.fold, weight),
            cross_fitted(x, self.y, domains.fold, weight, ~away),
            cross_fitted(x, self.y, domains.fold, weight, away),
        )

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap of both domains in X."""
        later, away = self.nuisances[0], self.domains.away
        return Overlap(later[~away], later[away])

    def linear(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of values by class and decision ``[2, 2]``: a and b, ``[n]`` each, of a + b y."""
        assert self.positive is not None
        of_class = values @ np.stack([1 - self.positive, self.positive])
        return of_class[0], of_class[1] - of_class[0]

    def means(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means of ``a + b y`` at home, on s with y of home, on s with y of elsewhere, elsewhere.

        Args:
            a: ``[means, n]``.
            b: likewise.

        Returns:
            Means ``[4, means]``, and the score of every row ``[4, means, n]``, whose sum over rows
            is the error.
        """
        e, *models = self.nuisances
        away, weight = self.domains.away, self.domains.weight
        outcome, share = a + b * self.y, away.mean()
        both = share * (1 - e) + (1 - share) * e
        tilt = e * (1 - e) / both
        slope = ((1 - 2 * e) * both - e * (1 - e) * (1 - 2 * share)) / both**2
        base = tilt + slope * (away - e)
        total = (weight * base).sum()
        values, scores = [], []
        for rows, model, odds in ((~away, models[0], e), (away, models[1], 1 - e)):
            of_domain = weight * rows / (weight * rows).sum()
            mean = (of_domain * outcome).sum(1)
            expected = a + b * model
            seen = rows * odds / both
            shared = (weight * (base * expected + seen * (outcome - expected))).sum(1) / total
            error = base * (expected - shared[:, None]) + seen * (outcome - expected)
            values += [mean, shared]
            scores += [of_domain * (outcome - mean[:, None]), weight * error / total]
        order = [0, 1, 3, 2]
        return np.array(values)[order], np.array(scores)[order]

    def change(
        self,
        parts: Parts,
        a: np.ndarray,
        b: np.ndarray,
        rows: np.ndarray,
        metric: str,
        attribute: str = "",
        groups: tuple[int, ...] = (),
    ) -> DecomposedChange:
        """The change of a function of means and its parts, with intervals by the delta method."""
        means, scores = self.means(a, b)
        of_rows = np.zeros((4, scores.shape[-1]))
        for place in np.ndindex(means.shape):
            moved = means.astype(complex)
            moved[place] += 1j * STEP
            of_rows += (parts(moved).imag[2:] / STEP)[:, None] * scores[place]
        at_home, away, *changes = parts(means).tolist()
        half = special.ndtri((1 + CONFIDENCE) / 2) * self.domains.errors(of_rows)
        whole, mix, x, y_given_x = (
            PartOfChange(change, change - width, change + width)
            for change, width in zip(  # 0 is 0
                np.round(changes, EXACT).tolist(), np.round(half, EXACT).tolist(), strict=True
            )
        )
        of_mix = None if groups or not attribute else mix
        return DecomposedChange(
            attribute, metric, groups, rows, at_home, away, whole, of_mix, x, y_given_x
        )


def changes(
    scored: ScoredDomains, groups: Mapping[str, Coded], fewest: int = FEWEST
) -> Iterator[DecomposedChange]:
    r"""The changes of a mean and of the largest differences of rates between two groups.

    The mean is taken overall and, by attribute, within groups, with the mix of groups as a part of
    its own: with the shares :math:`p_a` at home and :math:`t_a` elsewhere of group a,

    .. math:: m_T - m_P = \sum_a p_a (m_{T,a} - m_{P,a}) + \sum_a (t_a - p_a) m_{T,a}

    Of two classes the difference of every rate in ``RATES`` follows, of the two groups whose rates
    differ most in both domains together. Rows of unknown group count overall only.

    Args:
        scored: rows of two domains.
        groups: codes ``[n]`` and names by attribute.
        fewest: groups with fewer rows in a domain are left out; of a rate those that it is among.
    """
    domains = scored.domains
    every = np.ones(len(domains.away), bool)
    a, b = np.zeros(len(every)), np.ones(len(every))
    if scored.positive is not None:
        a, b = scored.linear(np.eye(2))
    overall = np.stack([a, every]), np.stack([b, 0 * b])
    yield scored.change(_mean, *overall, every, scored.metric)
    for attribute, (codes, names) in groups.items():
        masks = {code: codes == code for code in range(len(names))}
        kept = [mask for mask in masks.values() if domains.smallest(mask) >= fewest]
        if len(kept) < 2:
            continue
        share, known = np.array(kept, float), np.any(kept, axis=0)
        by_group = np.concatenate([share * a, share]), np.concatenate([share * b, 0 * share])
        yield scored.change(_mean, *by_group, known, scored.metric, attribute)
        for rate in RATES if scored.positive is not None else ():
            difference = _difference(scored, attribute, masks, rate.__name__, fewest)
            if difference is not None:
                yield difference


def _difference(
    scored: ScoredDomains, attribute: str, masks: Mapping[int, np.ndarray], rate: str, fewest: int
) -> DecomposedChange | None:
    """The change of the largest difference of a rate; None without two groups of enough rows."""
    domains = scored.domains
    grid: tuple[np.ndarray, ...] = tuple(np.indices((2, 2)).reshape(2, -1))
    quantity = DEFINITIONS[rate]
    assert isinstance(quantity, Quantity) and quantity.rows is not None
    mean_of = quantity.rows(*grid)
    among = np.ones(4) if mean_of.among is None else mean_of.among.astype(float)
    hits, rows = (scored.linear(values.reshape(2, 2)) for values in (mean_of.values * among, among))
    counted = rows[0] + rows[1] * scored.y > 0
    kept = {
        code: mask for code, mask in masks.items() if domains.smallest(mask & counted) >= fewest
    }
    if len(kept) < 2:
        return None
    hit = (hits[0] + hits[1] * scored.y) * domains.weight
    of = (rows[0] + rows[1] * scored.y) * domains.weight
    rates = {code: hit[mask].sum() / of[mask].sum() for code, mask in kept.items()}
    pair = max(combinations(rates, 2), key=lambda two: abs(rates[two[0]] - rates[two[1]]))
    first, second = sorted(pair, key=lambda code: -rates[code])
    two = np.stack([masks[first], masks[second]]).astype(float)
    a, b = (np.concatenate([two * hits[part], two * rows[part]]) for part in (0, 1))
    rows_of_both = (masks[first] | masks[second]) & counted
    return scored.change(_two_rates, a, b, rows_of_both, rate, attribute, (first, second))


def _mean(means: np.ndarray) -> np.ndarray:
    """A mean over groups, with the shares of the groups at home."""
    hits, sizes = np.split(means, 2, axis=1)
    value = (sizes[0] * hits / sizes).sum(1) / sizes[0].sum()
    return _parts(value, hits[3].sum() / sizes[3].sum())


def _two_rates(means: np.ndarray) -> np.ndarray:
    """The difference of two rates."""
    hits, sizes = np.split(means, 2, axis=1)
    rates = hits / sizes
    value = rates[:, 0] - rates[:, 1]
    return _parts(value, value[3])


def _parts(value: np.ndarray, elsewhere: complex) -> np.ndarray:
    """See ``Parts``, from values with the shares of home."""
    due_to_x = (value[1] - value[0]) + (value[3] - value[2])
    mix, y_given_x = elsewhere - value[3], value[2] - value[1]
    return np.array([value[0], elsewhere, elsewhere - value[0], mix, due_to_x, y_given_x])
