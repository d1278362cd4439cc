"""Embeddings: any network, a projection to vectors of length 1, and a classifier of these."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find_module
from robust_fairness.models.base import (
    FittedAtOnce,
    Model,
    SingleModel,
    description,
    initialised,
    weight_files,
)
from robust_fairness.models.embeddings._fitted import ABSENT, FittedClassifier
from robust_fairness.models.layers import SingleHead, unit_length
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = False
LINEAR = "linear"
POOLED_AXES = 3  # replica, row, feature


def _is_fitted_at_once(name: str) -> bool:
    """Whether a network takes no steps."""
    module = find_module("network", name)
    return any(
        isinstance(value, type)
        and issubclass(value, FittedAtOnce)
        and value.__module__ == module.__name__
        for value in vars(module).values()
    )


def _known_classifier(name: str) -> str:
    if name != LINEAR and not _is_fitted_at_once(name):
        raise InputError(
            f"network {name} is trained by steps, allowed: {LINEAR}, or a network that is "
            "fitted at once"
        )
    return name


class Parameters(BaseModel):
    """The network below, the width of the embedding, and what classifies it.

    ``backbone``: another network with its fields, ``{name: resnet50, weights: ...}``.
    ``dimensions``: 128 in fair metric learning (D.3). ``normalised``: whether embeddings have
    length 1; those of the n-pair objective have not.

    ``classifier``: ``linear`` is a linear layer that a method trains together with the rest. The
    name of a network that is fitted at once (``logistic_regression``, ``rbf_svm``, ``k_means``,
    ``random_forest``) is fitted with its defaults on the embeddings of a trained network.
    ``rebalancing`` is what happens to groups then (Wang et al., "Towards Fairness in Visual
    Recognition", CVPR 2020): ``oversampling`` draws rows of smaller groups again until all are as
    large as the largest; ``domain_independent`` fits a classifier to each group and adds up their
    outputs, so that no group needs to be known of a row that is predicted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    backbone: dict[str, Any] = Field({"name": "resnet20"}, validate_default=True)
    dimensions: int = Field(128, ge=1, description="width of an embedding")
    normalised: bool = True
    classifier: Annotated[str, AfterValidator(_known_classifier)] = LINEAR
    rebalancing: Literal["none", "oversampling", "domain_independent"] = "none"

    @field_validator("backbone", mode="before")
    @classmethod
    def _complete(cls, backbone: Any) -> Any:
        """The name with every field of its network, as JSON can hold them."""
        fields = dict(backbone) if isinstance(backbone, dict) else {"name": backbone}
        name = str(fields.pop("name", ""))
        if name == "embedding" or _is_fitted_at_once(name):
            raise InputError(f"network {name}, allowed: one that is trained by steps")
        try:
            parameters = find_module("network", name).Parameters.model_validate(fields)
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            where = ".".join(map(str, found["loc"])) or "fields"
            raise InputError(f"network {name}: {where}: {found['msg']}") from None
        return {"name": name, **parameters.model_dump(mode="json")}

    @model_validator(mode="after")
    def _rebalanced_is_fitted(self) -> "Parameters":
        if self.rebalancing != "none" and self.classifier == LINEAR:
            raise ValueError(
                f"rebalancing {self.rebalancing}: allowed with a classifier that is fitted on "
                f"embeddings, not with {LINEAR}"
            )
        return self

    def network(self) -> tuple[str, BaseModel]:
        """Name and parameters of the backbone."""
        fields = dict(self.backbone)
        name = fields.pop("name")
        return name, find_module("network", name).Parameters.model_validate(fields)


def describe(parameters: Parameters) -> str:
    """What the network is called in a table, for example ``embedding of resnet50, pretrained``."""
    return f"embedding of {description(*parameters.network())}"


def files(parameters: Parameters) -> tuple[Path, ...]:
    """The files that initial weights of the backbone are read from."""
    return weight_files(*parameters.network())


def trained_as(parameters: Parameters) -> Parameters:
    """The same but for what is fitted on the embeddings of a trained network: equal trainings."""
    if parameters.classifier == LINEAR:
        return parameters
    return parameters.model_copy(
        update={"classifier": "logistic_regression", "rebalancing": "none"}
    )


class Classifiers(nn.ModuleList):
    """Classifiers that were fitted on embeddings: one, or one a group whose outputs are summed.

    A classifier that has never seen a class gives it the lowest of its other outputs of the row.
    Adding a number to all outputs of a classifier, which does not change what it says, then does
    not change the sum's order either. A class that none has seen has the logit ``ABSENT``.

    Args:
        name: network of the classifiers.
        inputs: width of the embedding.
        classes: number of classes.
        seeds: of the stack, of one replica.
    """

    place: Tensor

    def __init__(self, name: str, inputs: int, classes: int, seeds: tuple[int, ...]) -> None:
        super().__init__()
        self.name, self.inputs, self.classes = name, inputs, classes
        self.heads = Randomness(seeds, "heads")
        self.register_buffer("place", torch.zeros(0), persistent=False)  # tells the device

    def forward(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Logits ``[1, row, class]`` of embeddings ``[1, row, dimension]``.

        Raises:
            InputError: none is fitted yet.
        """
        if not len(self):
            raise InputError(
                f"network embedding: classifier {self.name} is fitted on the embeddings of a "
                f"trained network and trained by no step, allowed with this method: {LINEAR}"
            )
        if len(self) == 1:
            logits: Tensor = self[0](features)
            return logits
        return torch.stack(list(self._completed(features))).sum(0).clamp(min=ABSENT)

    def _completed(self, features: Tensor) -> Iterator[Tensor]:
        """Logits of every classifier, with something for the classes that it has not seen."""
        seen = torch.stack([self._seen(one).to(features.device) for one in self])
        for one, own in zip(self, seen, strict=True):
            logits = one(features)
            lowest = logits[..., own].amin(-1, keepdim=True)
            completed = torch.where(own, logits, lowest)
            yield torch.where(seen.any(0), completed, ABSENT)

    def _seen(self, one: nn.Module) -> Tensor:
        """Which classes a classifier can predict, bool ``[class]``."""
        seen = torch.ones(self.classes, dtype=torch.bool)
        if isinstance(one, FittedClassifier):
            seen = torch.isin(torch.arange(self.classes), one.present.cpu())
        return seen

    def fit(self, features: Tensor, y: Tensor) -> None:
        """Fit one more.

        Args:
            features: embeddings ``[1, m, dimension]``.
            y: int64 classes ``[1, m]``.
        """
        one = self.new()
        places = one.rows_to_fit(y.shape[1]).to(features.device)
        one.fit_at_once(features[:, places], y[:, places])
        self.append(one)

    def new(self) -> FittedAtOnce:
        """A classifier with the defaults of its network, yet to be fitted."""
        module = find_module("network", self.name)
        made: FittedAtOnce = module.build(
            module.Parameters(), (self.inputs,), self.classes, self.heads
        )
        return made.to(self.place.device)

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *options: Any, **more: Any
    ) -> None:
        """Make room for as many as were fitted; torch then goes on with these."""
        numbers = {
            int(name.removeprefix(prefix).split(".")[0])
            for name in state_dict
            if name.startswith(prefix)
        }
        while len(self) > len(numbers):
            self.pop(-1)
        while len(self) < len(numbers):
            self.append(self.new())
        super()._load_from_state_dict(state_dict, prefix, *options, **more)


class Embedding(SingleModel):
    """Averaged features of a backbone, projected to an embedding that a classifier reads.

    Attributes:
        shared_width: width of the backbone's averaged features.
        awaits_classifier: whether the head is fitted after training, and is not there yet.

    Args:
        parameters: backbone, embedding and classifier.
        inputs: shape of one row.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights, of one replica.
    """

    def __init__(
        self,
        parameters: Parameters,
        inputs: tuple[int, ...],
        outputs: int,
        randomness: Randomness,
    ) -> None:
        super().__init__()
        self.outputs, self.seeds = outputs, randomness.seeds
        name, fields = parameters.network()
        self.backbone: Model = find_module("network", name).build(
            fields, inputs, outputs, randomness
        )
        self.backbone.top = nn.Identity()  # its own head is of no use here
        self.early_width, self.shared_width = (
            self.backbone.early_width,
            self.backbone.feature_width,
        )
        self.feature_width, self.normalised = parameters.dimensions, parameters.normalised
        self.projection = self.new_projection(randomness)
        self.linear = parameters.classifier == LINEAR
        self.piecewise_linear = (
            self.backbone.piecewise_linear and self.linear and not self.normalised
        )
        if self.linear:
            self.top = self.new_head(outputs, randomness)
        self.choose_classifier(parameters)

    @property
    def awaits_classifier(self) -> bool:
        """Whether outputs exist only after ``fit_classifier``."""
        return isinstance(self.top, Classifiers) and not len(self.top)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Those of the backbone."""
        return self.backbone.early(x, noise)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Embeddings ``[1, row, dimension]`` of the early layer's activations."""
        return self.embed(averaged_over_places(self.backbone.late(early, noise)))

    def shared(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Averaged features of the backbone ``[1, row, feature]``, which several heads may share.

        Args:
            x: inputs ``[1, row, ...]``.
            noise: dropout masks of the batch; None turns dropout off.
        """
        return averaged_over_places(self.backbone.features(x, noise))

    def embed(self, shared: Tensor, projection: nn.Module | None = None) -> Tensor:
        """Embeddings ``[1, row, dimension]`` of averaged features ``[1, row, feature]``.

        Args:
            shared: what ``shared`` gave.
            projection: another one than the network's own, such as that of an attribute.
        """
        projected: Tensor = (projection or self.projection)(shared)
        return unit_length(projected) if self.normalised else projected

    def new_projection(self, randomness: Randomness) -> SingleHead:
        """A linear layer from averaged features to an embedding.

        Args:
            randomness: source of its initial weights.
        """
        linear = partial(nn.Linear, self.shared_width, self.feature_width)
        return SingleHead(initialised(linear, randomness))

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> SingleHead:
        """One linear layer from embeddings (or ``inputs`` numbers) to ``outputs``."""
        linear = partial(nn.Linear, inputs or self.feature_width, outputs)
        return SingleHead(initialised(linear, randomness))

    def choose_classifier(self, parameters: Parameters) -> None:
        """Take what another trial of the same training fits; a fitted classifier is dropped.

        Args:
            parameters: of equal ``trained_as`` as the network's own.

        Raises:
            InputError: one of the two is the linear layer, which is trained with the rest.
        """
        if (parameters.classifier == LINEAR) != self.linear:
            raise InputError(
                f"network embedding: classifier {parameters.classifier} after a training "
                f"{'with' if self.linear else 'without'} {LINEAR}, allowed: trainings of their own"
            )
        self.parameters_of_network = parameters
        if not self.linear:
            self.top = self._new_classifiers()

    def fit_classifier(self, features: Tensor, y: Tensor, group: Tensor) -> None:
        """Fit the classifier on embeddings of rows; an earlier one is dropped.

        Args:
            features: embeddings ``[1, m, dimension]``.
            y: int64 classes ``[1, m]``.
            group: int64 groups ``[1, m]``, -1 where missing. With oversampling such rows are
                taken once; no classifier of a group sees them.

        Raises:
            InputError: the classifier is the linear layer; no row's group is known where groups
                are to be balanced; the rows cannot be fitted.
        """
        p = self.parameters_of_network
        if self.linear:
            raise InputError(
                f"network embedding: classifier {LINEAR} is trained by steps, allowed with this "
                "method: logistic_regression, rbf_svm, k_means or random_forest"
            )
        classifiers = self._new_classifiers()
        for places in rebalanced(p.rebalancing, group[0].cpu(), classifiers.heads):
            chosen = places.to(features.device)
            classifiers.fit(features[:, chosen].detach(), y[:, chosen])
        self.top = classifiers

    def _new_classifiers(self) -> Classifiers:
        """Of the chosen kind, none of which is fitted yet."""
        name = self.parameters_of_network.classifier
        made = Classifiers(name, self.feature_width, self.outputs, self.seeds)
        return made.to(next(self.projection.parameters()).device)


def averaged_over_places(features: Tensor) -> Tensor:
    """Features ``[replica, row, feature]`` of ``[replica, row, feature, ...]``."""
    return features.flatten(POOLED_AXES).mean(-1) if features.ndim > POOLED_AXES else features


def rebalanced(rebalancing: str, group: Tensor, randomness: Randomness) -> list[Tensor]:
    """Places of the rows that each classifier is fitted on, int64 ``[k]`` each.

    Args:
        rebalancing: ``none``, ``oversampling`` (both one classifier) or ``domain_independent``
            (one a group).
        group: int64 groups ``[m]``, -1 where missing.
        randomness: draws the rows that are taken again.

    Raises:
        InputError: no group is known, and they are to be balanced.
    """
    every = torch.arange(len(group))
    if rebalancing == "none":
        return [every]
    members = [every[group == number] for number in group[group >= 0].unique()]
    if not members:
        raise InputError(
            f"network embedding: rebalancing {rebalancing} and no row of a known group, "
            "allowed: none, or sensitive or explicit attributes that are known for some rows"
        )
    if rebalancing == "domain_independent":
        return members
    most = max(len(one) for one in members)
    (generator,) = randomness.generators
    again = [
        one[torch.randint(len(one), (most - len(one),), generator=generator)] for one in members
    ]
    return [torch.cat([every, *again])]


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> Embedding:
    """The embedding of rows that the backbone takes.

    Args:
        parameters: backbone, embedding and classifier.
        inputs: shape of one row.
        outputs: number of classes, or 1 for a continuous outcome, of the linear layer only.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: the backbone does not take such rows, or the classifier no such outcome.
    """
    if outputs == 1 and parameters.classifier != LINEAR:
        raise InputError(
            f"network embedding: classifier {parameters.classifier}: not applicable to a "
            f"continuous outcome, allowed: {LINEAR}"
        )
    return Embedding(parameters, inputs, outputs, randomness)
