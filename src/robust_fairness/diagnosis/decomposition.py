"""How much of a change between domains is due to X, to Y given X, and to the mix of groups."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robust_fairness.diagnosis.domains import Overlap

# Value of a metric of some rows from their weights, which have sum 1.
Weighted = Callable[[np.ndarray], float]
# From the numbers of some rows at home and some elsewhere.
OverlapOf = Callable[[np.ndarray, np.ndarray], Overlap]


@dataclass(frozen=True)
class Decomposition:
    """A metric at home, elsewhere, and twice on the distribution of features that both share.

    Attributes:
        at_home: its value at home.
        shared_home: on the shared distribution, with the labels of home.
        shared_away: on the shared distribution, with the labels of elsewhere.
        elsewhere: its value elsewhere.
        mix: the part of the change that is due to other shares of the groups; 0 where groups are
            not taken apart. It is in ``elsewhere``.
    """

    at_home: float
    shared_home: float
    shared_away: float
    elsewhere: float
    mix: float = 0.0

    @property
    def due_to_x(self) -> float:
        """Other features: more of the cases that are hard at home, and cases rare at home."""
        return (self.shared_home - self.at_home) + (self.elsewhere - self.mix - self.shared_away)

    @property
    def due_to_y_given_x(self) -> float:
        """Other labels of the same features."""
        return self.shared_away - self.shared_home


def decompose(home: Weighted, away: Weighted, shared: Overlap) -> Decomposition:
    """The change of a metric, split by the shared distribution; the parts add up exactly.

    Source: Cai, Namkoong and Yadlowsky (2023, arXiv 2303.02011), where it is a mean; here it may
    be a gap of rates.

    Args:
        home: the metric on rows at home, as ``weighted_mean`` or ``rate_difference`` make it.
        away: the metric on rows elsewhere.
        shared: weights of both.
    """
    return Decomposition(
        at_home=home(_equal(len(shared.home))),
        shared_home=home(shared.home),
        shared_away=away(shared.away),
        elsewhere=away(_equal(len(shared.away))),
    )


def decompose_by_group(
    scores: Sequence[np.ndarray], groups: Sequence[np.ndarray], overlap_of: OverlapOf
) -> Decomposition:
    r"""The change of a mean, split within groups, with the mix of groups as a part of its own.

    With the shares :math:`p_a` at home and :math:`t_a` elsewhere of group a,

    .. math:: m_T - m_P = \sum_a p_a (m_{T,a} - m_{P,a}) + \sum_a (t_a - p_a) m_{T,a}

    where the first sum is split by the shared distribution of each group and the second one is the
    mix. Groups with rows in one domain only belong to the mix. Rows of unknown group do not count.

    Args:
        scores: score of every row, such as whether it is right, at home ``[n]`` and elsewhere
            ``[m]``.
        groups: groups of these rows; -1 where the group is unknown.
        overlap_of: the overlap of some rows at home and some elsewhere, by their numbers.
    """
    (home, away), (home_groups, away_groups) = scores, groups
    both = np.intersect1d(home_groups[home_groups != -1], away_groups)
    rows_home = np.count_nonzero(home_groups != -1)
    total = np.zeros(4)
    for group in both:
        at_home = np.flatnonzero(home_groups == group)
        elsewhere = np.flatnonzero(away_groups == group)
        shared = overlap_of(at_home, elsewhere)
        parts = decompose(weighted_mean(home[at_home]), weighted_mean(away[elsewhere]), shared)
        total += (len(at_home) / rows_home) * np.array(
            [parts.at_home, parts.shared_home, parts.shared_away, parts.elsewhere]
        )
    only_home = (home_groups != -1) & ~np.isin(home_groups, both)
    total += home[only_home].sum() / rows_home  # no change within a group that is at home only
    first, second, third, last = total.tolist()
    elsewhere_mean = float(away[away_groups != -1].mean())
    return Decomposition(first, second, third, elsewhere_mean, mix=elsewhere_mean - last)


def weighted_mean(score: np.ndarray) -> Weighted:
    """The mean of a score of rows, such as whether a prediction is right: accuracy."""
    return lambda weights: float(np.sum(weights * score) / np.sum(weights))


def rate_difference(
    positive: np.ndarray, group: np.ndarray, counted: np.ndarray | None = None
) -> Weighted:
    """The difference of positive predictions between two groups, second minus first.

    Missing where a group has no weight.

    Args:
        positive: whether the positive class is predicted, or the probability of it, ``[n]``.
        group: whether a row is of the second group, bool ``[n]``.
        counted: the rows that count, such as those of the positive class for the difference of
            true positive rates, bool ``[n]``; all if None, for demographic parity.
    """
    used = np.ones(len(positive), dtype=bool) if counted is None else counted

    def difference(weights: np.ndarray) -> float:
        rates = []
        for second in (True, False):
            of_group = np.where(used & (group == second), weights, 0)
            total = of_group.sum()
            rates.append(np.sum(of_group * positive) / total if total > 0 else np.nan)
        return float(rates[0] - rates[1])

    return difference


def _equal(rows: int) -> np.ndarray:
    return np.full(rows, 1 / max(1, rows))
