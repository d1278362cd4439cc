"""What scikit-learn's interface says of an estimator."""

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

WEIGHT = "sample_weight"


def weight_argument(estimator: BaseEstimator) -> str:
    """The argument of ``fit`` that weights rows; "" where there is none."""
    if has_fit_parameter(estimator, WEIGHT):
        return WEIGHT
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        return f"{step}__{WEIGHT}" if has_fit_parameter(last, WEIGHT) else ""
    return ""


def is_fitted(estimator: BaseEstimator) -> bool:
    """Whether scikit-learn calls an estimator fitted."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
