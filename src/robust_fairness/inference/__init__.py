"""Values with their uncertainty, and verdicts about changes; numpy, scipy and pandas only.

``Estimate`` is a value with named components of variance (``variance``), ``Counts`` are sums
of rows (``counts``), a ``LinearGap`` is a function of rates of groups (``gaps``).
``inference.verdicts``, which needs pandas, says of a family of changes what is known.
"""

from robust_fairness.numbers.adjust import holm
from robust_fairness.numbers.estimate import (
    DOMAINS,
    LEVEL,
    POWER,
    REFITS,
    ROWS,
    SPLITS,
    Component,
    Estimate,
)
from robust_fairness.numbers.rates import LinearGap, Rates, contrast, interval, known_or, linear_gap
from robust_fairness.numbers.variance import (
    FEWEST_ROWS,
    between_domains,
    between_refits,
    moderated,
    of_rate,
    over_domains,
    over_refits,
)

__all__ = [
    "DOMAINS",
    "FEWEST_ROWS",
    "LEVEL",
    "POWER",
    "REFITS",
    "ROWS",
    "SPLITS",
    "Component",
    "Estimate",
    "LinearGap",
    "Rates",
    "between_domains",
    "between_refits",
    "contrast",
    "linear_gap",
    "holm",
    "interval",
    "known_or",
    "moderated",
    "of_rate",
    "over_domains",
    "over_refits",
]
