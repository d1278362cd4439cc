"""Logistic regression of scikit-learn, with at most 1,000 iterations."""

from typing import Any

from robust_fairness.bench.estimators import EstimatorParameters
from robust_fairness.bench.estimators.estimator import ScikitLearn


class LogisticRegression(ScikitLearn):
    """The network ``estimator`` with ``LogisticRegression``."""

    class Parameters(EstimatorParameters):
        """Options of ``LogisticRegression``."""

        estimator: str = "sklearn.linear_model.LogisticRegression"
        params: dict[str, Any] = {"max_iter": 1000}

    keeps_training_rows = False
