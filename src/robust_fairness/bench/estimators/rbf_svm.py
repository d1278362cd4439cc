"""Support vector machine of scikit-learn with a Gaussian kernel."""

from typing import Any

from robust_fairness.bench.estimators import EstimatorParameters
from robust_fairness.bench.estimators.estimator import ScikitLearn


class RbfSvm(ScikitLearn):
    """The network ``estimator`` with ``SVC``; its outputs are decision values."""

    class Parameters(EstimatorParameters):
        """Options of ``SVC``."""

        estimator: str = "sklearn.svm.SVC"
        params: dict[str, Any] = {"cache_size": 500}  # MB of kernel values
