"""Empirical risk minimisation under fairness constraints (Donini et al. 2018)."""

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.bench.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.fixed_features import FixedFeatures
from robust_fairness.core.errors import InputError

SMALLEST_DIFFERENCE = 1e-9  # of the largest mean or difference: what is below it is rounding


class Donini(Method):
    r"""Train a linear head whose mean score is exactly the same in all groups.

    .. math:: \min_w L(w) \quad \text{subject to} \quad \langle w, u_g - u_h \rangle = 0

    with u_g the mean features of the training rows of group g (and of the class that the notion
    names), for every two groups: the source's constraint with epsilon = 0. Features must be fixed:
    network ``linear`` is the source's linear method, ``kernel_features`` approximates its kernel
    method. The optimiser receives the allowed part of the gradient, and each step ends with a
    projection onto the constraint. Every logit is constrained.

    Fails if groups have few training rows: their mean scores then differ on other rows.

    Source: "Empirical Risk Minimization under Fairness Constraints" (NeurIPS 2018).
    """

    class Parameters(GroupMethodParameters):
        """Rows that must score alike, and the loss.

        ``notion``: ``opportunity`` (the source's) constrains the rows of the class ``positive``;
        ``eo`` those of every class, ``dp`` all rows together. ``hinge`` is the loss of support
        vector machines, the source's; for more than two classes that of Crammer and Singer.
        """

        notion: Literal["opportunity", "eo", "dp"] = "opportunity"
        positive: int = Field(1, ge=0, description="number of the class that opportunity is about")
        loss: Literal["hinge", "cross_entropy"] = "hinge"

    reads = ("sample_weight",)
    default_network = "linear"
    forbidden: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        if hparams.positive >= problem.classes:
            raise InputError(
                f"method donini: positive {hparams.positive}, allowed: 0 to {problem.classes - 1}"
            )
        head_of(model)
        self.register_buffer("forbidden", self.directions(model))

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        head = head_of(model)
        outputs = model(batch.x, batch.noise)
        hinge = self.hparams.loss == "hinge"
        losses = (hinge_loss if hinge else model.task_loss)(outputs, batch.y)
        loss = (row_weights(batch) * losses).mean(-1)
        weights = list(model.parameters())
        gradients = torch.autograd.grad(loss.sum(), weights)
        allowed = [
            without(gradient, self.forbidden) if weight is head else gradient
            for weight, gradient in zip(weights, gradients, strict=True)
        ]
        yield Step({"model": loss}, {"model": allowed})
        with torch.no_grad():
            head.copy_(without(head, self.forbidden))

    @torch.no_grad()
    def directions(self, model: Model) -> Tensor:
        """Orthonormal directions in which groups differ ``[replica, feature, direction]``; or 0."""
        means, counts = self.group_means(model)
        present = (counts > 0).unsqueeze(-1)
        groups = present.sum(2, keepdim=True)
        if not (groups > 1).flatten(1).any(1).all():
            raise InputError(
                "method donini: the training rows to constrain are in one group; at least two are "
                "needed"
            )
        centre = means.sum(2, keepdim=True) / groups.clamp(min=1)
        differences = torch.where(present, means - centre, 0).flatten(1, 2).mT
        basis, sizes, _ = torch.linalg.svd(differences, full_matrices=False)
        largest = sizes.amax(1) + means.flatten(1).abs().amax(1)
        kept = sizes > SMALLEST_DIFFERENCE * largest.unsqueeze(1)
        dtype = next(iter(model.parameters())).dtype
        return (basis * kept.unsqueeze(1)).to(dtype)

    def group_means(self, model: Model) -> tuple[Tensor, Tensor]:
        """Mean features of training rows by group ``[replica, set, group, feature]``, and counts.

        Sets are all rows, or those of each class; means are float64, 0 without rows.
        """
        options, groups = self.hparams, self.problem.groups
        sets = self.problem.classes if options.notion == "eo" else 1
        blocks = []
        for batch in self.problem.training_batches():
            member = batch.group >= 0
            if options.notion == "opportunity":
                member &= batch.y == options.positive
            number = batch.group + (batch.y * groups if options.notion == "eo" else 0)
            weights = functional.one_hot(torch.where(member, number, 0), sets * groups)
            weights = (weights * member.unsqueeze(-1)).double()
            features = model.features(batch.x).double()
            blocks.append((weights.mT @ features, weights.sum(1)))
        sums, counts = (torch.stack(parts).sum(0) for parts in zip(*blocks, strict=True))
        means = sums / counts.clamp(min=1).unsqueeze(-1)
        shape = (sets, groups)
        return means.unflatten(1, shape), counts.unflatten(1, shape)


def head_of(model: Model) -> nn.Parameter:
    """Weights ``[replica, feature, output]`` of the linear head on fixed features."""
    if not isinstance(model, FixedFeatures):
        raise InputError(
            "method donini: the features of this network are trained, "
            "allowed: network linear or kernel_features"
        )
    return model.top.weight


def without(weights: Tensor, directions: Tensor) -> Tensor:
    """The part of ``[replica, feature, output]`` that is orthogonal to the directions."""
    return weights - directions @ (directions.mT @ weights)


def hinge_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Hinge loss ``[..., row]`` of scores ``[..., row, class]`` (Crammer and Singer 2001).

    For two classes the hinge loss of the difference of the logits.
    """
    of_label = outputs.gather(-1, y.unsqueeze(-1))
    others = 1 - functional.one_hot(y, outputs.shape[-1])
    return (outputs - of_label + others).amax(-1)
