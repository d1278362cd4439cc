"""Logistic regression, fitted by scikit-learn."""

import logging
import warnings
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.core.registry import PluginParameters
from robust_fairness.estimators.base import Classifier

LOGGER = logging.getLogger(__name__)


class LogisticRegression(Classifier):
    """Logits of the fitted regression; their softmax is scikit-learn's ``predict_proba``.

    For two classes they are minus and plus half of its ``decision_function``.
    """

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
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression as Regression

        p = self.hparams
        regression = Regression(C=p.penalty, max_iter=p.iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # logged below
            regression.fit(inputs.numpy(), labels.numpy())
        if regression.n_iter_.max() >= p.iterations:
            LOGGER.warning("logistic_regression: not converged after %d iterations", p.iterations)
        coefficients = torch.from_numpy(regression.coef_).T
        intercepts = torch.from_numpy(regression.intercept_)
        if len(self.present) == 2:
            halves = torch.tensor([[-0.5, 0.5]], dtype=torch.float64)
            coefficients, intercepts = coefficients * halves, intercepts * halves[0]
        self.keep(coefficients=coefficients.contiguous(), intercepts=intercepts)
