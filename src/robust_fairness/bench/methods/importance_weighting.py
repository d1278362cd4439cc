"""Importance weighting for covariate shift (Shimodaira 2000; Bickel et al. 2009)."""

import logging

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.methods.base import Batch, Information, MethodParameters, Problem
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.models.base import Model

LOGGER = logging.getLogger(__name__)
FOLDS = 5
LEAST_SHARE = 0.1  # of rows, as effective sample size, below which a warning is logged


class ImportanceWeighting(Erm):
    r"""Weight rows by how much more likely their inputs are out of distribution.

    .. math:: w(x) = \left( \frac{n_s}{n_t} \frac{\pi(x)}{1 - \pi(x)} \right)^\gamma

    with :math:`\pi` the probability that inputs are of the rows out of distribution, by a
    logistic regression that was not fitted to the row; n counts rows of training and of target.
    Weights above a quantile are clipped, and have mean 1. They are right only if labels
    depend on inputs in the same way everywhere; the log gives the effective sample size.

    Fails if inputs hardly overlap, so that few rows have all the weight, which a warning says.

    Source: Bickel, Brueckner and Scheffer, "Discriminative Learning Under Covariate Shift" (JMLR
    2009); flattened as in Shimodaira, "Improving predictive inference under covariate shift"
    (2000).
    """

    class Parameters(MethodParameters):
        """Flattening and clipping of the weights, and the penalty of the classifier."""

        flattening: float = Field(1.0, ge=0, le=1, description="gamma; 0 is plain training")
        quantile: float = Field(0.99, gt=0, le=1, description="above which weights are clipped")
        inverse_penalty: float = Field(1.0, gt=0, description="C of the logistic regression")

        @property
        def sees(self) -> tuple[Information, ...]:
            return ("target rows",)

    weight: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        batches = list(problem.training_batches())
        source = torch.cat([batch.x.flatten(2) for batch in batches], dim=1)
        rows = torch.cat([batch.rows for batch in batches], dim=1)
        result = torch.ones(len(problem.seeds), problem.rows, dtype=source.dtype)
        for number, target in enumerate(problem.target_inputs()):
            ratio = density_ratio(
                source[number].cpu().numpy(),
                target.flatten(1).cpu().numpy(),
                self.hparams.inverse_penalty[number].item(),
                problem.seeds[number],
            )
            options = self.hparams.flattening[number].item(), self.hparams.quantile[number].item()
            weight = normalised(ratio, *options)
            share = 1 / np.square(weight).mean()
            level = logging.WARNING if share < LEAST_SHARE else logging.INFO
            LOGGER.log(
                level, "importance_weighting: effective sample size %.0f of %d rows (%.0f %%)",
                share * len(weight), len(weight), 100 * share,
            )  # fmt: skip
            result[number, rows[number].cpu()] = torch.from_numpy(weight).to(result)
        self.register_buffer("weight", result)

    def row_weight(self, batch: Batch) -> Tensor:
        return self.weight.gather(1, batch.rows)


def density_ratio(source: np.ndarray, target: np.ndarray, penalty: float, seed: int) -> np.ndarray:
    """Density of target over source at the source rows, float64 ``[n]``.

    Args:
        source: inputs ``[n, d]``.
        target: inputs ``[m, d]``.
        penalty: C of the logistic regression.
        seed: of the folds.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    x = np.concatenate([source, target])
    is_target = np.repeat([0, 1], [len(source), len(target)])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    classifier = LogisticRegression(C=penalty, max_iter=1000)
    log_odds = cross_val_predict(classifier, x, is_target, cv=folds, method="decision_function")
    return np.exp(log_odds[: len(source)]) * len(source) / len(target)


def normalised(ratio: np.ndarray, flattening: float, quantile: float) -> np.ndarray:
    """Ratios to the power ``flattening``, clipped at a quantile, with mean 1."""
    weight = ratio**flattening
    weight = np.minimum(weight, np.quantile(weight, quantile))
    return weight / weight.mean()
