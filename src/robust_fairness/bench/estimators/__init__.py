"""Models that one call fits, such as every estimator of scikit-learn, one per file."""

from robust_fairness.bench.estimators._scikit_learn import weight_argument

__all__ = ["weight_argument"]
