"""Logistic regression, fitted by scikit-learn."""

import logging
import warnings
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.core.registry import PluginParameters
from robust_fairness.estimators.base import Classifier

LOGGER = logging.getLogger(__name__)


class LogisticRegression(Classifier):
    """Logits of the fitted regression; their softmax is scikit-learn's ``predict_proba``."""

    class Parameters(PluginParameters):
        """The penalty C (default: scikit-learn's) and the limit of the solver (L-BFGS)."""

        penalty: float = Field(1.0, gt=0, description="C, weight of the training errors")
        iterations: int = Field(
            1000, ge=1, description="maximum number of iterations; a log message if not enough"
        )

    piecewise_linear = True
    buffers_of: ClassVar = dict.fromkeys(("coefficients", "intercepts"), torch.float64)
    coefficients: Tensor  # [input, known class]
    intercepts: Tensor  # [known class]

    def numbers_of_a_row(self) -> int:
        return self.feature_width + self.classes

    def values(self, x: Tensor) -> Tensor:
        return x @ self.coefficients + self.intercepts

    def learn(self, inputs: Tensor, labels: Tensor) -> None:
        from sklearn.linear_model import LogisticRegression as Regression

        regression = Regression(C=self.hparams.penalty, max_iter=self.hparams.iterations)
        logits = fitted_logits(self.name, regression, inputs.numpy(), labels.numpy())
        coefficients, intercepts = map(torch.from_numpy, logits)
        self.keep(coefficients=coefficients.contiguous(), intercepts=intercepts)


def fitted_logits(name: str, regression: Any, *rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients ``[input, known class]`` and intercepts ``[known class]`` of the logits.

    Fits scikit-learn's logistic ``regression`` to ``rows`` (inputs, classes and weights), and logs
    under ``name`` if it has not converged. For two classes the logits are minus and plus half of
    its ``decision_function``.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # logged below
        regression.fit(*rows)
    if regression.n_iter_.max() >= regression.max_iter:
        LOGGER.warning("%s: not converged after %d iterations", name, regression.max_iter)
    shares = np.array([-0.5, 0.5] if len(regression.classes_) == 2 else [1.0])
    return regression.coef_.T * shares, regression.intercept_ * shares
