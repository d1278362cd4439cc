"""Linear models: the features are the inputs themselves."""

from pydantic import BaseModel, ConfigDict
from torch import Tensor

from robust_fairness.models.base import require_features
from robust_fairness.models.embeddings._fixed_features import FixedFeatures
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = True


class Parameters(BaseModel):
    """Nothing is left open: logistic or linear regression, by the loss."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LinearNetwork(FixedFeatures):
    """One affine map of the inputs."""

    piecewise_linear = True

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The inputs."""
        return x


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> LinearNetwork:
    """A stack of linear models, one a seed of ``randomness``.

    Args:
        parameters: none.
        inputs: shape of one row; must be one axis of features.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights.

    Raises:
        InputError: rows are no feature vectors.
    """
    return LinearNetwork(require_features("linear", inputs), outputs, randomness)
