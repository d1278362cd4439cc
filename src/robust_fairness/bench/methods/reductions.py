"""Fair classification by reductions to weighted classification (Agarwal et al. 2018)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch import Tensor

from robust_fairness.bench.estimators import Mixture, Oracle
from robust_fairness.bench.estimators.base import Estimator
from robust_fairness.bench.methods._reductions import (
    ExponentiatedGradientDeclaration,
    GridSearchDeclaration,
    ReductionDeclaration,
)
from robust_fairness.bench.methods.base import Batch, Method, Problem, Step
from robust_fairness.bench.models.base import Model
from robust_fairness.core.errors import InputError

if TYPE_CHECKING:
    from robust_fairness.bench.estimators.estimator import ScikitLearn


class Reduction(ReductionDeclaration, Method):
    """The reductions in runs."""

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        if problem.classes != 2:
            raise InputError(f"method {self.name}: defined for two classes")
        problem.require_attributes(self.name)

    def fit(self, model: Estimator, batch: Batch, weight: Tensor | None) -> None:
        known = batch.group[0] >= 0
        if weight is not None:
            known &= weight[0] > 0
        group = batch.group[0, known].cpu().numpy()
        each = np.ones(len(group)) if weight is None else weight[0, known].cpu().double().numpy()

        def reduction(oracle: Oracle, x: np.ndarray, y: np.ndarray) -> Mixture:
            mixture: Mixture = self.hparams.mixture(oracle, x, y, group, each)
            return mixture

        cast("ScikitLearn", model).fit_reduction(batch.x[:, known], batch.y[:, known], reduction)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        return iter(())  # classifiers are fitted in one call


class ExponentiatedGradient(ExponentiatedGradientDeclaration, Reduction):  # noqa: D101
    __doc__ = ExponentiatedGradientDeclaration.__doc__
    name = "exponentiated_gradient"


class GridSearch(GridSearchDeclaration, Reduction):  # noqa: D101
    __doc__ = GridSearchDeclaration.__doc__
    name = "grid_search"
