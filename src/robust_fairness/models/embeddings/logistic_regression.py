"""Logistic regression that scikit-learn fits to its end, not step by step."""

import logging
import warnings
from math import prod

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from robust_fairness.models.embeddings._fitted import FittedClassifier, require_classes
from robust_fairness.models.randomness import Randomness

STACKS = False
LOGGER = logging.getLogger(__name__)


class Parameters(BaseModel):
    """The penalty C and the most iterations of the solver (L-BFGS).

    Of the protocol only preprocessing and device apply; epochs and optimiser do not. ``penalty``
    is scikit-learn's default; so is the solver, which is given more iterations than there.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    penalty: float = Field(1.0, gt=0, description="C, weight of the training errors")
    iterations: int = Field(1000, ge=1, description="most iterations; a message if not enough")


class LogisticRegression(FittedClassifier):
    """Logits of the fitted regression; their softmax is scikit-learn's ``predict_proba``.

    For two classes they are minus and plus half of its ``decision_function``.

    Args:
        parameters: of the fit.
        inputs: numbers of a row.
        classes: number of classes.
    """

    piecewise_linear = True
    coefficients: Tensor  # [input, known class]
    intercepts: Tensor  # [known class]

    def __init__(self, parameters: Parameters, inputs: int, classes: int) -> None:
        super().__init__("logistic_regression", inputs, classes)
        self.parameters_of_network = parameters
        self.register_buffer("coefficients", torch.zeros(inputs, 0, dtype=torch.float64))
        self.register_buffer("intercepts", torch.zeros(0, dtype=torch.float64))

    def numbers_of_a_row(self) -> int:
        """Its inputs and logits."""
        return self.feature_width + self.classes

    def values(self, x: Tensor) -> Tensor:
        """Logits ``[row, known class]`` of inputs ``[row, input]``, float64."""
        return x @ self.coefficients + self.intercepts

    def fit(self, inputs: Tensor, labels: Tensor) -> None:
        """Fit scikit-learn's regression; a message tells where it did not converge."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression as Regression

        p = self.parameters_of_network
        regression = Regression(C=p.penalty, max_iter=p.iterations)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # said below, without a traceback
            regression.fit(inputs.numpy(), labels.numpy())
        if regression.n_iter_.max() >= p.iterations:
            LOGGER.warning("logistic_regression: not converged after %d iterations", p.iterations)
        coefficients = torch.from_numpy(regression.coef_).T
        intercepts = torch.from_numpy(regression.intercept_)
        if len(self.present) == 2:  # noqa: PLR2004
            halves = torch.tensor([[-0.5, 0.5]], dtype=torch.float64)
            coefficients, intercepts = coefficients * halves, intercepts * halves[0]
        self.keep(coefficients=coefficients.contiguous(), intercepts=intercepts)


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> LogisticRegression:
    """A regression that is yet to be fitted, for feature vectors or pictures.

    Args:
        parameters: of the fit.
        inputs: shape of one row.
        outputs: number of classes.
        randomness: not asked.

    Raises:
        InputError: the outcome is continuous.
    """
    require_classes("logistic_regression", outputs)
    return LogisticRegression(parameters, prod(inputs), outputs)
