r"""Counts of rows of which only some have a label: means use the scores of all rows.

Prediction-powered inference (Angelopoulos et al. 2023), tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023): a rate of a group is a ratio of means of row values, with the influence :math:`\psi` of
a labelled row and its expectation :math:`\varphi` under the score. With rows weighted by w, and
labelled ones by :math:`v = w / \pi` for their probability :math:`\pi` to be labelled,

.. math:: \hat\theta = \bar\psi_v + \lambda (\bar\varphi_w - \bar\varphi_v)

is right whatever the scores are worth, since both means of :math:`\varphi` estimate the same.
:math:`\lambda` minimises the variance; it is 0 where the scores do not help, so that they never
harm but for the estimation of :math:`\lambda` itself.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robust_fairness.inference.counts import TWO, Counts, Means, means_of_rows
from robust_fairness.inference.estimate import Array
from robust_fairness.samples.groups import Groups

PARAMETERS = 2  # estimated from the labelled rows: the mean and lambda


@dataclass(frozen=True)
class SomeLabels:
    """Rows of two classes ``[n]``, of which some are labelled.

    Attributes:
        y: class; of unlabelled rows it is never read.
        decision: class that is decided.
        score: a number, such as the probability of class 1; 0 to 1.
        labelled: bool.
        probability: of being labelled, up to a factor.
        weight: weight of the row.
    """

    y: Array
    decision: Array
    score: Array
    labelled: Array
    probability: Array
    weight: Array


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Counts):
    """Counts whose means are prediction-powered; ``n`` and ``weight`` are of labelled rows.

    >>> rng = np.random.default_rng(0)
    >>> y, score = rng.integers(0, 2, (2, 1000))
    >>> rows = SomeLabels(y, y, y * 1.0, rng.random(1000) < 0.1, np.ones(1000), np.ones(1000))
    >>> counts = partly_labelled(Groups.named(np.zeros(1000, int), ["all"]), rows, ("no", "yes"))
    >>> share = counts.means(counts.grid()[0] == 1).value  # the scores are the classes
    >>> bool(abs(share[0] - y.mean()) < 0.005)
    True
    """

    codes: Array = field(default_factory=lambda: np.empty(0, np.int64))
    rows: SomeLabels | None = None

    def known(self) -> Array:
        """Rows of every group, labelled or not, int64 ``[groups]``."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.groups))

    def merged(self, index: Array, names: tuple[str, ...]) -> "PartlyLabelled":
        """Groups joined, see ``Counts.merged``."""
        return self._of(np.append(index, -1)[self.codes], names)

    def take(self, kept: Array) -> "PartlyLabelled":
        """Those of some groups, by bool ``[groups]``."""
        place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        names = tuple(name for name, here in zip(self.groups, kept, strict=True) if here)
        return self._of(place[self.codes], names)

    @property
    def everyone(self) -> "PartlyLabelled":
        """All rows as one group."""
        return self._of(np.zeros_like(self.codes), ("",))

    def shares(self) -> Means:
        """Shares of the groups in all rows whose group is known."""
        assert self.rows is not None
        nothing = np.zeros_like(self.rows.decision)
        groups = Groups.named(self.codes, self.groups)
        plain = Counts.of(groups, nothing, nothing, self.classes, self.rows.weight)
        return plain.shares()

    def means(self, values: Array, among: Array | None = None) -> Means:
        """Prediction-powered means; ``n`` are labelled rows, or all where no label is needed."""
        assert self.rows is not None
        kept = self.codes >= 0
        codes, number = self.codes[kept], len(self.groups)
        rows = self.rows
        y, decision, score, labelled, weight = (
            part[kept] for part in (rows.y, rows.decision, rows.score, rows.labelled, rows.weight)
        )
        bottom = np.ones(values.shape) if among is None else np.asarray(among, np.float64)
        top = bottom * values
        if (np.ptp(top, 0) == 0).all() and (np.ptp(bottom, 0) == 0).all():
            used = weight * bottom[0, decision]
            there = used > 0
            means = means_of_rows(codes[there], values[0, decision][there], used[there], number)
            return self._means(*means[:3], means.effective, None)
        inverse = np.where(labelled, weight / rows.probability[kept], 0.0)

        def mean(part: Array, by: Array) -> Array:
            return np.bincount(codes, by * part, number) / np.bincount(codes, by, number)

        def expected(table: Array) -> Array:
            return score * table[1, decision] + (1 - score) * table[0, decision]

        own = [np.where(labelled, table[y, decision], 0.0) for table in (top, bottom)]
        guessed = [expected(table) for table in (top, bottom)]
        n = np.bincount(codes[labelled & (own[1] != 0)], minlength=number)
        of_group = np.bincount(codes[labelled], minlength=number)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = [mean(part, inverse) for part in own]
            away = [mean(part, weight) - mean(part, inverse) for part in guessed]
            value, scale, tuned = first[0] / first[1], first[1], np.zeros(number)
            influence = np.zeros(len(codes))
            for _ in range(TWO):  # at the value of the labelled rows, then at the tuned one
                at = np.nan_to_num(value)[codes]
                psi, phi = (part[0] - at * part[1] for part in (own, guessed))
                plain = inverse / np.bincount(codes, inverse, number)[codes]
                plain = np.nan_to_num(plain)
                parts = plain * (psi - mean(psi, inverse)[codes])
                less = weight / np.bincount(codes, weight, number)[codes]
                less = less * (phi - mean(phi, weight)[codes])
                less -= plain * (phi - np.nan_to_num(mean(phi, inverse))[codes])
                squares = np.bincount(codes, less**2, number)
                crossed = np.bincount(codes, parts * less, number)
                tuned = np.where(squares > 0, -crossed / np.where(squares > 0, squares, 1), 0.0)
                scale = first[1] + tuned * away[1]
                tuned = np.where(scale > 0, tuned, 0.0)
                scale = np.where(scale > 0, scale, first[1])
                value = (first[0] + tuned * away[0]) / scale
                influence = (parts + tuned[codes] * less) / scale[codes]
            lost = of_group / np.where(of_group > PARAMETERS, of_group - PARAMETERS, np.nan)
            variance = np.bincount(codes, np.nan_to_num(influence) ** 2, number) * lost
            value = np.clip(value, values.min(), values.max())
        return self._means(value, variance, n, n.astype(np.float64), None)

    def _of(self, codes: Array, names: tuple[str, ...]) -> "PartlyLabelled":
        assert self.rows is not None
        return partly_labelled(Groups.named(codes, names), self.rows, self.classes)


def partly_labelled(groups: Groups, rows: SomeLabels, classes: tuple[str, ...]) -> PartlyLabelled:
    """Counts of rows of which some are labelled."""
    there = rows.labelled
    plain: Any = Counts.of(
        groups.take(np.flatnonzero(there)), rows.y[there], rows.decision[there], classes,
        rows.weight[there],
    )  # fmt: skip
    return PartlyLabelled(
        groups.names, classes, plain.n, plain.weight, plain.squares, codes=groups.index, rows=rows
    )
