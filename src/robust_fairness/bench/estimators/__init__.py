"""Models that one call fits, such as every estimator of scikit-learn, one per file."""

from robust_fairness.bench.estimators._scikit_learn import (
    EstimatorParameters,
    Mixture,
    Oracle,
    calling,
    decides,
    prediction_of,
    prepared,
)

__all__ = [
    "EstimatorParameters", "Mixture", "Oracle", "calling", "decides", "prediction_of", "prepared",
]  # fmt: skip
