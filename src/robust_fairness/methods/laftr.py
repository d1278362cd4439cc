"""Learned adversarially fair representations (Madras et al. 2018) without the decoder."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from robust_fairness.methods._adversarial import AdversarialMethod, AdversarialParameters
from robust_fairness.methods.base import Batch
from robust_fairness.models.losses import mean_where


class Laftr(AdversarialMethod):
    r"""Train features from which an adversary cannot predict the group, by a balanced L1 distance.

    .. math:: \sum_g \frac{1}{|D_g|} \sum_{i \in D_g} (1 - p_{i,g})

    which for two groups is the \|h(f(x)) - a\| of Madras et al., Eq. 3; p is the softmax.

    Fails if the adversary is too weak to find the group, or the groups differ in the label itself.
    """

    class Parameters(AdversarialParameters):
        """Rows that count equally in the group-normalised L1 loss.

        By ``group`` (demographic parity, Madras et al. Eq. 3) or ``group_and_class`` (equalised
        odds, Eq. 4).
        """

        weighting: Literal["group", "group_and_class"] = "group"

    def adversary_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        known = batch.group >= 0
        group = batch.group.clamp(min=0)
        distance = 1 - functional.softmax(logits, -1).gather(-1, group.unsqueeze(-1)).squeeze(-1)
        part, parts = group, self.problem.groups
        if self.hparams.weighting == "group_and_class":
            part, parts = group * self.problem.classes + batch.y, parts * self.problem.classes
        losses = [mean_where(distance, known & (part == number)) for number in range(parts)]
        return torch.stack(losses).sum(0)
