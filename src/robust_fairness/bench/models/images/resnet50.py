"""ResNet-50 (He et al. 2016), with random weights or those of a local file."""

from pathlib import Path
from typing import Any

import torch
from pydantic import PositiveFloat, field_validator
from torch import Tensor, nn
from torchvision.models import ResNet, resnet50

from robust_fairness.bench.compute.weight_files import SUFFIXES, require_fit, weights_of
from robust_fairness.bench.models.base import (
    SingleModel,
    WeightsFile,
    images,
    initialised,
    require_images,
)
from robust_fairness.bench.models.images.staged import require_side
from robust_fairness.bench.models.layers import replace_shortcuts
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters

CHANNELS = 3
LEAST_SIDE = 33  # the last stage then has two pixels per side to normalise over
SECOND_STAGE, LAST_STAGE = 512, 2048  # channels
COUNTS = "num_batches_tracked"  # a buffer that older files lack


class ResNet50(SingleModel):
    """torchvision's network up to the averaged features, and a linear head.

    The file of weights is read when the network is first used, so a network that loads trained
    weights never needs it.
    """

    class Parameters(PluginParameters):
        """Initial weights, and how images are normalised.

        ``weights``: a file of torchvision's names, safetensors or a state dictionary of torch. With
        a file, batch normalisation keeps its means and variances, also in training, as in Roth et
        al. (2020); its scales and shifts are trained. ``mean`` and ``deviation`` (standard
        deviation) of each channel in [0, 1]: those of ImageNet; fair metric learning takes 0.5 for
        faces (D.3).
        """

        weights: WeightsFile | None = None
        mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
        deviation: tuple[PositiveFloat, PositiveFloat, PositiveFloat] = (0.229, 0.224, 0.225)

        @field_validator("weights")
        @classmethod
        def _known_suffix(cls, path: Path | None) -> Path | None:
            if path is not None and path.suffix not in SUFFIXES:
                raise ValueError(f"allowed: a name that ends in {', '.join(SUFFIXES)}")
            return path

    piecewise_linear = True
    early_width, feature_width = SECOND_STAGE, LAST_STAGE
    mean: Tensor
    deviation: Tensor

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        shape = require_images(self.name, inputs)
        require_side(self.name, shape, 1 if hparams.weights else LEAST_SIDE)
        if shape[0] != CHANNELS:
            raise InputError(
                f"network resnet50: images of {shape[0]} channels, allowed: {CHANNELS} channels"
            )
        self.frozen, self.unread = hparams.weights is not None, hparams.weights
        self.net = initialised(whole, randomness)
        self.top = self.new_head(outputs, randomness)
        for name, values in (("mean", hparams.mean), ("deviation", hparams.deviation)):
            channels = torch.tensor(values)[:, None, None]
            self.register_buffer(name, channels, persistent=False)

    @classmethod
    def describe(cls, hparams: Parameters) -> str:
        return "resnet50" if hparams.weights is None else "resnet50, pretrained"

    @classmethod
    def files(cls, hparams: Parameters) -> tuple[Path, ...]:
        return (hparams.weights,) if hparams.weights else ()

    def train(self, mode: bool = True) -> "ResNet50":
        """Set the mode; frozen batch normalisation stays in evaluation mode."""
        super().train(mode)
        if self.frozen:
            for layer in self.net.modules():
                if isinstance(layer, nn.BatchNorm2d):
                    layer.eval()
        return self

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The second stage's activations ``[1, row, 512, height / 8, width / 8]``."""
        self.read()
        net = self.net
        first = net.relu(net.bn1(net.conv1((images(x) - self.mean) / self.deviation)))
        return net.layer2(net.layer1(net.maxpool(first)))[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, 2048]``, averaged over the image."""
        net = self.net
        return net.avgpool(net.layer4(net.layer3(early.squeeze(0)))).flatten(1)[None]

    def read(self) -> None:
        """Load the file's weights, once."""
        if self.unread is None:
            return
        weights = self.net.state_dict()
        _, read = weights_of(self.unread)
        given = {name: tensor for name, tensor in read.items() if not name.startswith("fc.")}
        wanted = {n: w for n, w in weights.items() if n in given or not n.endswith(COUNTS)}
        require_fit(self.unread, wanted, given, "the weights of resnet50")
        self.net.load_state_dict(weights | given)
        self.unread = None

    def _load_from_state_dict(self, *options: Any, **more: Any) -> None:
        """Load trained weights instead of the file's."""
        self.unread = None
        super()._load_from_state_dict(*options, **more)


def whole() -> ResNet:
    """Torchvision's network without its classifier, with second derivatives of its shortcuts."""
    net = resnet50()
    replace_shortcuts(net.layer2, net.layer3, net.layer4)
    net.fc = nn.Identity()
    return net
