"""ResNet-50 (He et al. 2016), from its initial weights or from those of a local file."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator
from torch import Tensor, nn
from torchvision.models import ResNet, resnet50

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import SingleModel, initialised, pictures
from robust_fairness.models.images._staged import require_side
from robust_fairness.models.layers import SingleHead, replace_shortcuts
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = False
CHANNELS = 3
LEAST_SIDE = 33  # whose last stage has two pixels a side, to be normalised over
SUFFIXES = (".safetensors", ".pth", ".pt")
SECOND_STAGE, LAST_STAGE = 512, 2048  # channels
COUNTS = "num_batches_tracked"  # of normalised batches, which older files lack


class Parameters(BaseModel):
    """Where weights come from, and how pictures are normalised.

    ``weights``: a file of torchvision's names, such as its own IMAGENET1K_V1: safetensors, or a
    state dictionary of torch, of which only weights are read. Its classifier (``fc``) is left out.
    With it batch normalisation keeps the file's means and variances, also in training, as in Roth
    et al. (2020); its scales and shifts are trained. Without it the network starts from random
    weights and normalises batches as usual, since frozen statistics of random weights mean nothing.

    ``mean`` and ``deviation`` of each channel in [0, 1]: those of ImageNet; fair metric learning
    takes 0.5 for faces (D.3).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: Path | None = None
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    deviation: tuple[float, float, float] = Field((0.229, 0.224, 0.225))

    @field_validator("weights")
    @classmethod
    def _known_form(cls, path: Path | None) -> Path | None:
        if path is not None and path.suffix not in SUFFIXES:
            raise ValueError(f"allowed: a name that ends in {', '.join(SUFFIXES)}")
        return path

    @field_validator("deviation")
    @classmethod
    def _positive(cls, deviation: tuple[float, ...]) -> tuple[float, ...]:
        if min(deviation) <= 0:
            raise ValueError("allowed: numbers above 0")
        return deviation

    @field_serializer("weights")
    def _as_text(self, path: Path | None) -> str | None:
        return None if path is None else str(path)


def describe(parameters: Parameters) -> str:
    """What the network is called in a table: whether its weights come from a file."""
    return "resnet50" if parameters.weights is None else "resnet50, pretrained"


def files(parameters: Parameters) -> tuple[Path, ...]:
    """The files that initial weights are read from."""
    return (parameters.weights,) if parameters.weights else ()


def whole() -> ResNet:
    """The network of torchvision without its classifier; its shortcuts have second derivatives."""
    net = resnet50()
    replace_shortcuts(net.layer2, net.layer3, net.layer4)
    net.fc = nn.Identity()
    return net


class ResNet50(SingleModel):
    """torchvision's network up to the averaged features, and a linear head.

    The file is read when the network is first used: one that takes the weights of a trained one
    never asks for it.

    Args:
        parameters: where weights come from.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights, of one replica.
    """

    piecewise_linear = True
    early_width, feature_width = SECOND_STAGE, LAST_STAGE
    mean: Tensor
    deviation: Tensor

    def __init__(self, parameters: Parameters, outputs: int, randomness: Randomness) -> None:
        super().__init__()
        self.frozen, self.unread = parameters.weights is not None, parameters.weights
        self.net = initialised(whole, randomness)
        self.top = self.new_head(outputs, randomness)
        for name in ("mean", "deviation"):
            values = torch.tensor(getattr(parameters, name))[:, None, None]
            self.register_buffer(name, values, persistent=False)

    def train(self, mode: bool = True) -> "ResNet50":
        """Train or not; frozen batch normalisation never does."""
        super().train(mode)
        if self.frozen:
            for layer in self.net.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.eval()
        return self

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The second stage's activations ``[1, row, 512, height / 8, width / 8]``.

        Raises:
            InputError: the file of weights is not as it has to be.
        """
        self.read()
        net = self.net
        first = net.relu(net.bn1(net.conv1((pictures(x) - self.mean) / self.deviation)))
        activations: Tensor = net.layer2(net.layer1(net.maxpool(first)))
        return activations[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, 2048]``, averaged over the picture."""
        net = self.net
        features: Tensor = net.avgpool(net.layer4(net.layer3(early[0]))).flatten(1)
        return features[None]

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> SingleHead:
        """One linear layer from the features (or ``inputs`` numbers) to ``outputs``."""
        linear = partial(nn.Linear, inputs or self.feature_width, outputs)
        return SingleHead(initialised(linear, randomness))

    def read(self) -> None:
        """Take the file's weights, once.

        Raises:
            InputError: it cannot be read, or holds other weights than this network's.
        """
        if self.unread is None:
            return
        own = self.net.state_dict()
        given = {
            name: tensor
            for name, tensor in weights_of(self.unread).items()
            if not name.startswith("fc.")
        }
        unknown = sorted(given.keys() - own.keys())
        missing = [name for name in own if name not in given and not name.endswith(COUNTS)]
        if unknown or missing:
            told = f"weight {unknown[0]} is unknown" if unknown else f"no weight {missing[0]}"
            raise InputError(f"{self.unread}: {told}, allowed: the weights of resnet50")
        for name, tensor in given.items():
            if tensor.shape != own[name].shape:
                raise InputError(
                    f"{self.unread}: weight {name} has shape {tuple(tensor.shape)}, "
                    f"allowed: {tuple(own[name].shape)}"
                )
        self.net.load_state_dict(own | given)
        self.unread = None

    def _load_from_state_dict(self, *options: Any, **more: Any) -> None:
        """Trained weights take the place of the file's."""
        self.unread = None
        super()._load_from_state_dict(*options, **more)


def weights_of(path: Path) -> dict[str, Tensor]:
    """Weights of a file by name, on the CPU.

    Args:
        path: safetensors, or a state dictionary of torch.

    Raises:
        InputError: it cannot be read, or is neither.
    """
    from safetensors.torch import load_file

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        if path.suffix == SUFFIXES[0]:
            return load_file(path)
        # weights only: nothing that the file holds is executed
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch's readers raise as many kinds as there are broken files
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"{path}: no file of weights ({type(error).__name__}: {reason})") from None
    if isinstance(found, dict) and all(isinstance(one, Tensor) for one in found.values()):
        return dict(found)
    raise InputError(f"{path}: no state dictionary, allowed: weights by name")


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> ResNet50:
    """The network for pictures of three channels.

    Args:
        parameters: where weights come from.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures of three channels, or too small to normalise batches.
    """
    channels = require_side("resnet50", inputs, 1 if parameters.weights else LEAST_SIDE)
    if channels != CHANNELS:
        raise InputError(
            f"network resnet50: pictures of {channels} channels, allowed: {CHANNELS} channels"
        )
    return ResNet50(parameters, outputs, randomness)
