"""Effective robustness: whether a method does better elsewhere than its score at home predicts."""

from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Line:
    """A line on the probit scale, or on the raw one, with an intercept for each pair of domains."""

    slope: float
    intercepts: np.ndarray
    probit: bool

    def at(self, at_home: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """The scores elsewhere that scores at home predict."""
        x = special.ndtri(at_home) if self.probit else at_home
        y = self.slope * x + self.intercepts[pairs]
        return np.asarray(special.ndtr(y) if self.probit else y)


def fitted_line(
    at_home: np.ndarray, elsewhere: np.ndarray, pairs: np.ndarray, probit: bool
) -> Line:
    r"""The line through scores of several models in one or more pairs of domains.

    .. math:: \Phi^{-1}(a_{ood}) = b\,\Phi^{-1}(a_{id}) + c_p

    is fitted by least squares, with one slope and an intercept for each pair p. For one pair it is
    that of Taori et al. (2020, arXiv 2007.00644) and Miller et al. (2021, arXiv 2107.04649).

    Args:
        at_home: scores in distribution ``[n]``, proportions within 0 and 1 on the probit scale.
        elsewhere: scores out of distribution ``[n]``.
        pairs: number of the pair of domains of each score, from 0, int ``[n]``.
        probit: use the probit scale, for proportions, instead of the raw one, for gaps.

    Returns:
        The line; its slope is missing where scores at home do not vary within a pair.
    """
    x, y = (special.ndtri(item) if probit else item for item in (at_home, elsewhere))
    counts = np.bincount(pairs)
    mean_x, mean_y = (np.bincount(pairs, item) / counts for item in (x, y))
    from_mean = x - mean_x[pairs]
    spread = np.sum(from_mean**2)
    slope = float(np.sum(from_mean * y) / spread) if spread > 1e-12 else np.nan
    return Line(slope, mean_y - slope * mean_x, probit)


def within(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Proportions of some numbers of rows, kept half a row away from 0 and 1."""
    return np.clip(scores, 0.5 / rows, 1 - 0.5 / rows)
