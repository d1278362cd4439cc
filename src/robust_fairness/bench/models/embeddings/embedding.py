"""Embeddings: any network, a projection to vectors of length 1, and a classifier on them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, Field, SerializeAsAny, model_validator
from torch import Tensor, nn

from robust_fairness.bench.experiment.plugins import Named, named
from robust_fairness.bench.models.base import (
    LabelledRows,
    SingleModel,
    averaged_over_places,
    initialised,
)
from robust_fairness.bench.models.layers import ABSENT, SingleHead, unit_length
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters, find

LINEAR = "linear"


def _complete(backbone: Named) -> Named:
    """The backbone with all of its fields, so that equal ones compare equal."""
    if backbone.name == "embedding" or not find("network", backbone.name).trained_in_steps:
        raise InputError(f"network {backbone.name}, allowed: one that is trained in steps")
    return backbone.model_copy(update={"options": backbone.parameters.model_dump()})


def _known_classifier(name: str) -> str:
    if name != LINEAR and find("network", name).trained_in_steps:
        raise InputError(
            f"network {name} is trained in steps, allowed: {LINEAR}, or an estimator such as "
            "logistic_regression"
        )
    return name


class Embedding(SingleModel):
    """Averaged features of a backbone, projected to an embedding that a classifier reads.

    ``shared_width`` is the width of the averaged features.
    """

    class Parameters(PluginParameters):
        """The backbone, the width of the embedding, and the classifier.

        ``backbone``: another network with its fields, ``{name: resnet50, weights: ...}``.
        ``dimensions``: 128 in fair metric learning (D.3). ``classifier``: ``linear``, trained with
        the rest, or an estimator, fitted with its defaults on the trained
        embeddings. ``rebalancing`` of the groups in that fit (Wang et al., CVPR 2020):
        ``oversampling`` repeats rows of smaller groups until all are as large as the largest;
        ``domain_independent`` fits one classifier per group and sums their outputs; a classifier
        whose group lacks a class gives it the ``lowest`` of its logits, or, in a sum of posteriors
        instead of logits, the probability 0 (``absent_classes: no_probability``).
        """

        backbone: Annotated[SerializeAsAny[Named], AfterValidator(_complete), named("network")] = (
            Field("resnet20", validate_default=True)
        )
        dimensions: int = Field(128, ge=1, description="width of an embedding")
        normalised: bool = True
        classifier: Annotated[str, AfterValidator(_known_classifier)] = LINEAR
        rebalancing: Literal["none", "oversampling", "domain_independent"] = "none"
        absent_classes: Literal["lowest", "no_probability"] = "lowest"

        @model_validator(mode="after")
        def _rebalanced_is_fitted(self) -> "Embedding.Parameters":
            if self.rebalancing != "none" and self.classifier == LINEAR:
                raise ValueError(
                    f"rebalancing {self.rebalancing}: allowed with a classifier that is fitted on "
                    f"embeddings, not with {LINEAR}"
                )
            return self

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        self.linear = hparams.classifier == LINEAR
        if outputs == 1 and not self.linear:
            raise InputError(
                f"network embedding: classifier {hparams.classifier}: not applicable to a "
                f"continuous outcome, allowed: {LINEAR}"
            )
        self.outputs, self.seeds = outputs, randomness.seeds
        backbone = find("network", hparams.backbone.name)
        self.backbone = backbone(hparams.backbone.parameters, inputs, outputs, randomness)
        self.backbone.top = nn.Identity()  # its own head is not used
        self.early_width = self.backbone.early_width
        self.shared_width = self.backbone.feature_width
        self.feature_width, self.normalised = hparams.dimensions, hparams.normalised
        self.projection = self.new_projection(randomness)
        is_linear = bool(self.backbone.piecewise_linear) and not self.normalised
        self.piecewise_linear = is_linear if self.linear else None
        self.top = self.new_head(outputs, randomness) if self.linear else self.new_classifiers()

    @classmethod
    def describe(cls, hparams: Parameters) -> str:
        backbone = find("network", hparams.backbone.name)
        return f"embedding of {backbone.describe(hparams.backbone.parameters)}"

    @classmethod
    def files(cls, hparams: Parameters) -> tuple[Path, ...]:
        return find("network", hparams.backbone.name).files(hparams.backbone.parameters)

    @classmethod
    def trained_as(cls, hparams: Parameters) -> Parameters:
        if hparams.classifier == LINEAR:
            return hparams
        fitted_afterwards = {
            "classifier": "logistic_regression",
            "rebalancing": "none",
            "absent_classes": "lowest",
        }
        return hparams.model_copy(update=fitted_afterwards)

    @classmethod
    def defers_classifier(cls, hparams: Parameters) -> bool:
        return hparams.classifier != LINEAR

    @property
    def has_outputs(self) -> bool:
        return self.linear or len(self.top) > 0

    @torch.no_grad()
    def finished_states(
        self, replicas: Sequence[BaseModel], rows: LabelledRows
    ) -> list[dict[str, Tensor]]:
        if self.linear:
            return super().finished_states(replicas, rows)
        self.eval()
        embeddings = torch.cat([self.features(x) for x in rows.x], dim=1)
        states = []
        for hparams in replicas:
            self.hparams = hparams
            self.fit_classifier(embeddings, rows.y, rows.group)
            states += self.replica_states()
        return states

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return self.backbone.early(x, noise)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return self.embed(averaged_over_places(self.backbone.late(early, noise)))

    def embedding(self, x: Tensor) -> Tensor:
        return super().embedding(x) if self.normalised else self.features(x)

    def shared(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Averaged features of the backbone ``[1, row, feature]``, for several projections."""
        return averaged_over_places(self.backbone.features(x, noise))

    def embed(self, shared: Tensor, projection: nn.Module | None = None) -> Tensor:
        """Embeddings ``[1, row, dimension]`` of ``shared``, by the own or another projection."""
        projected = (projection or self.projection)(shared)
        return unit_length(projected) if self.normalised else projected

    def new_projection(self, randomness: Randomness) -> SingleHead:
        linear = partial(nn.Linear, self.shared_width, self.feature_width)
        return SingleHead(initialised(linear, randomness))

    def fit_classifier(self, features: Tensor, y: Tensor, group: Tensor) -> None:
        """Fit the classifier to embeddings ``[1, m, dimension]``, replacing an earlier one.

        Classes ``y`` and groups are int64 ``[1, m]``. Oversampling does not repeat rows of unknown
        group (-1), and domain-independent training leaves them out.
        """
        self.top = self.new_classifiers()
        for rows in rebalanced(self.hparams.rebalancing, group[0].cpu(), self.top.heads):
            chosen = rows.to(features.device)
            self.top.fit(features[:, chosen].detach(), y[:, chosen])

    def new_classifiers(self) -> "Classifiers":
        """Unfitted classifiers of the chosen network."""
        name, rule = self.hparams.classifier, SUMS[self.hparams.absent_classes]
        made = rule(name, self.feature_width, self.outputs, self.seeds)
        return made.to(next(self.projection.parameters()).device)


class Classifiers(nn.ModuleList):
    """Classifiers fitted on embeddings: one, or one per group with summed outputs.

    A classifier whose rows lack a class gives it the lowest of its other logits of the row, so
    that adding a constant to all logits of a classifier does not change the order of the sums. A
    class that all lack has the logit ``ABSENT``.
    """

    place: Tensor

    def __init__(self, name: str, inputs: int, classes: int, seeds: tuple[int, ...]) -> None:
        super().__init__()
        self.name, self.inputs, self.classes = name, inputs, classes
        self.heads = Randomness(seeds, "heads")
        self.register_buffer("place", torch.zeros(0), persistent=False)  # for its device

    def forward(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits ``[1, row, class]`` of embeddings ``[1, row, dimension]``."""
        if not len(self):
            raise InputError(
                f"network embedding: classifier {self.name} is fitted on the embeddings of a "
                f"trained network and not trained in steps, allowed with this method: {LINEAR}"
            )
        if len(self) == 1:
            return self[0](features)
        classes, fitted = torch.arange(self.classes).to(features.device), list[Any](self)
        seen = torch.stack([torch.isin(classes, item.present) for item in fitted])
        return self.summed([item(features) for item in fitted], seen).clamp(min=ABSENT)

    def summed(self, logits: Sequence[Tensor], seen: Tensor) -> Tensor:
        """Logits ``[1, row, class]`` from those of every classifier.

        ``seen``: classes of the rows of each classifier, bool ``[classifier, class]``.
        """
        completed = [
            torch.where(part, item, item[..., part].amin(-1, keepdim=True))
            for item, part in zip(logits, seen, strict=True)
        ]
        return torch.where(seen.any(0), torch.stack(completed).sum(0), ABSENT)

    def fit(self, features: Tensor, y: Tensor) -> None:
        """Fit one more to embeddings ``[1, m, dimension]`` and int64 classes ``[1, m]``."""
        classifier = self.new()
        classifier.fit(features, y)
        self.append(classifier)

    def new(self) -> Any:
        """An unfitted classifier with the defaults of its network."""
        network = find("network", self.name)
        made = network(network.Parameters(), (self.inputs,), self.classes, self.heads)
        return made.to(self.place.device)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *options: Any, **more: Any
    ) -> None:
        """Create as many classifiers as were fitted before torch loads their states."""
        numbers = {
            int(name.removeprefix(prefix).split(".")[0])
            for name in state_dict
            if name.startswith(prefix)
        }
        del self[len(numbers) :]
        self.extend([self.new() for _ in range(len(numbers) - len(self))])
        super()._load_from_state_dict(state_dict, prefix, *options, **more)


class PosteriorClassifiers(Classifiers):
    """Classifiers whose posteriors are summed; a class that a group lacks has the probability 0."""

    def summed(self, logits: Sequence[Tensor], seen: Tensor) -> Tensor:
        posteriors = [
            item.masked_fill(~part, -torch.inf).softmax(-1)
            for item, part in zip(logits, seen, strict=True)
        ]
        return torch.stack(posteriors).mean(0).log()


SUMS = {"lowest": Classifiers, "no_probability": PosteriorClassifiers}


def rebalanced(rebalancing: str, group: Tensor, randomness: Randomness) -> list[Tensor]:
    """Positions of the rows that each classifier is fitted on, int64 ``[k]`` each.

    One classifier, or one per group (``domain_independent``), for int64 groups ``[m]``, -1 where
    missing; ``randomness`` draws the rows to repeat.
    """
    every = torch.arange(len(group))
    if rebalancing == "none":
        return [every]
    members = [every[group == number] for number in group[group >= 0].unique()]
    if not members:
        raise InputError(
            f"network embedding: rebalancing {rebalancing} needs rows of a known group, allowed: "
            "none, or sensitive or explicit attributes that are known for some rows"
        )
    if rebalancing == "domain_independent":
        return members
    most = max(len(member) for member in members)
    (generator,) = randomness.generators
    again = [
        member[torch.randint(len(member), (most - len(member),), generator=generator)]
        for member in members
    ]
    return [torch.cat([every, *again])]
