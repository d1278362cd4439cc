"""Deep feature reweighting: a new last layer from held-out rows (Kirichenko et al. 2023)."""

import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from robust_fairness.bench.methods.base import (
    Problem,
    SubgroupMethodParameters,
    TrainingRows,
    require_softmax,
)
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.methods.subsampling import balanced
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import ABSENT, Linear
from robust_fairness.core.errors import InputError

ITERATIONS = 5000  # of scikit-learn's solver
FEWEST_ROWS = 10  # held-out rows of a subgroup below which a warning is logged
LOGGER = logging.getLogger(__name__)


class Dfr(Erm):
    r"""Train plainly, then fit the last layer to rows that the features have not seen.

    .. math:: \frac{1}{R} \sum_{r=1}^R \arg\min_\theta \sum_{i \in S_r} L_i(\theta)
        + \frac{1}{C} \|\theta\|_1

    One fold of the training rows, with the same share of every subgroup, is held out from the
    training of the features. S_r has equally many of its rows from every subgroup, drawn by the
    seed. The regressions take standardised inputs of the last layer, are fitted to convergence by
    scikit-learn, with an intercept without penalty, and averaged. The source takes these rows from
    its validation rows; here no validation row is read.

    Fails if a subgroup has few held-out rows, since every regression takes equally many of all.

    Source: "Last Layer Re-Training is Sufficient for Robustness to Spurious Correlations" (ICLR
    2023), section 4 and appendix B.
    """

    class Parameters(SubgroupMethodParameters):
        """Rows that are held out, and the regressions on them."""

        folds: int = Field(5, ge=2, description="folds of the training rows; one is held out")
        inverse_penalty: float = Field(1.0, gt=0, description="C of the l1 norm")
        regressions: int = Field(10, ge=1, description="R, number of regressions")

    estimators = "no"
    priority: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        require_softmax(self.name, model)
        last_layer(model)
        if hparams.warm_up_epochs:
            raise InputError(
                f"method dfr: warm_up_epochs {hparams.warm_up_epochs} would train features on the "
                "held-out rows, allowed: 0, or method dfr_train"
            )
        self.register_buffer("priority", problem.heads.uniform((problem.rows,), 1.0))

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        held_out = self.held_out(rows.subgroup, self.priority[rows.replica, rows.rows])
        kept = torch.ones_like(rows.rows, dtype=torch.bool)
        kept[held_out] = False
        places = kept.nonzero()[:, 0]
        return places[torch.randperm(len(places), generator=generator, device=generator.device)]

    def held_out(self, subgroup: Tensor, priority: Tensor) -> Tensor:
        """Positions of the fold that is held out, int64, from subgroups and priorities ``[m]``."""
        order = priority.argsort(stable=True)
        return order[subgroup[order].argsort(stable=True)][:: self.hparams.folds]

    def finish(self, model: Model) -> None:
        layer = last_layer(model)
        inputs: list[Tensor] = []
        hook = layer.register_forward_pre_hook(lambda layer, arguments: inputs.append(arguments[0]))
        blocks = []
        for batch in self.problem.training_batches():
            model(batch.x)
            x = inputs.pop().reshape(*batch.y.shape, -1)
            blocks.append((x, batch.y, batch.subgroup, batch.rows, batch.sample_weight))
        hook.remove()
        rows = [torch.cat(parts, dim=1) for parts in zip(*blocks, strict=True)]
        draws = [
            self.problem.heads.uniform((self.problem.rows,), 1.0)
            for _ in range(self.hparams.regressions)
        ]
        for replica in range(len(self.problem.seeds)):
            x, y, subgroup, numbers, weight = (values[replica] for values in rows)
            fold = self.held_out(subgroup, self.priority[replica, numbers])
            if not x.isfinite().all():
                continue  # the training loop reports it
            self.warn_of_few(subgroup, subgroup[fold], self.problem.seeds[replica])
            coefficients, intercepts = averaged_regressions(
                x[fold].double().cpu().numpy(),
                y[fold].cpu().numpy(),
                weight[fold].double().cpu().numpy(),
                [
                    balanced(subgroup[fold], draw[replica, numbers[fold]]).cpu().numpy()
                    for draw in draws
                ],
                self.problem.classes,
                self.hparams.inverse_penalty[replica].item(),
            )
            if isinstance(layer, Linear):
                layer.weight[replica] = torch.from_numpy(coefficients)
                layer.bias[replica, 0] = torch.from_numpy(intercepts)
            else:
                layer.weight.copy_(torch.from_numpy(coefficients.T))
                layer.bias.copy_(torch.from_numpy(intercepts))

    def warn_of_few(self, trained: Tensor, held_out: Tensor, seed: int) -> None:
        """Warn if a subgroup of the training rows has few rows that are held out."""
        known = trained[trained >= 0].unique()
        counts = (held_out == known[:, None]).sum(1)
        if counts.min() < FEWEST_ROWS:
            LOGGER.warning(
                "dfr, seed %d: the smallest of %d subgroups has %d held-out rows, and every "
                "regression at most as many of each, allowed: fewer folds, larger subgroups", seed,
                len(counts), counts.min(),
            )  # fmt: skip


def last_layer(model: Model) -> Any:
    """The linear layer whose outputs are those of the network."""
    *_, layer = model.top.modules()
    if type(layer) not in (Linear, nn.Linear):
        raise InputError(
            f"method dfr: the last layer of network {model.name} is not linear, allowed: networks "
            "with a linear last layer"
        )
    return layer


def averaged_regressions(
    x: np.ndarray,
    y: np.ndarray,
    sample_weight: np.ndarray,
    subsets: Sequence[np.ndarray],
    classes: int,
    inverse_penalty: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients ``[d, class]`` and intercepts ``[class]``, means over l1 logistic regressions.

    Args:
        x: inputs ``[m, d]``, which are standardised for the regressions.
        y: classes ``[m]``; one without rows has the logit ``ABSENT``.
        sample_weight: ``[m]``.
        subsets: positions of the rows of every regression.
        classes: number of classes.
        inverse_penalty: C.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(x)
    scaled = scaler.transform(x)
    coefficients = np.zeros((len(subsets), x.shape[1], classes))
    intercepts = np.full((len(subsets), classes), ABSENT)
    for number, rows in enumerate(subsets):
        present = np.unique(y[rows])
        if len(present) == 1:
            raise InputError(
                "method dfr: the held-out rows of known subgroups are of one class, allowed: two "
                "or more"
            )
        regression = LogisticRegression(
            l1_ratio=1, solver="saga", C=inverse_penalty, max_iter=ITERATIONS, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # logged below
            regression.fit(scaled[rows], y[rows], sample_weight[rows])
        if regression.n_iter_.max() >= ITERATIONS:
            LOGGER.warning("dfr: not converged after %d iterations", ITERATIONS)
        halves = np.array([-0.5, 0.5] if len(present) == 2 else [1.0])  # of the only logit of two
        coefficients[number][:, present] = regression.coef_.T * halves
        intercepts[number, present] = regression.intercept_ * halves
    slopes = coefficients.mean(0) / scaler.scale_[:, None]
    return slopes, intercepts.mean(0) - scaler.mean_ @ slopes
