"""ResNet-18 (He et al. 2016), cut into features and head where the papers cut it."""

from functools import partial
from typing import Literal

from torch import Tensor, nn
from torchvision.models import ResNet, resnet18

from robust_fairness.bench.models.base import SingleModel, images, initialised, require_images
from robust_fairness.bench.models.layers import SingleHead, replace_shortcuts
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters

SECOND_STAGE, THIRD_STAGE, LAST_STAGE = 128, 256, 512  # channels


class ResNet18(SingleModel):
    """torchvision's network in three pieces: early layers, features and head."""

    class Parameters(PluginParameters):
        """Where features end and heads begin.

        ``third_stage``: f_s is the first three stages and every head (h_t, h_a) the last stage
        and the classifier, as in Equalized Robustness, appendix A (8 x 8 x 256 for images of 128
        pixels). ``last_stage``: a head is the classifier alone, on averaged features.
        """

        features: Literal["third_stage", "last_stage"] = "third_stage"

    piecewise_linear = True
    early_width = SECOND_STAGE

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        require_images(self.name, inputs)
        self.averaged = hparams.features == "last_stage"
        self.feature_width = LAST_STAGE if self.averaged else THIRD_STAGE
        net = initialised(partial(whole, outputs), randomness)
        self.first = nn.Sequential(
            net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2
        )
        last = nn.Sequential(net.layer4, net.avgpool, nn.Flatten())
        self.second = nn.Sequential(net.layer3, *(last if self.averaged else ()))
        self.top = SingleHead(nn.Sequential(*(() if self.averaged else last), net.fc))

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The second stage's activations ``[1, row, 128, height / 8, width / 8]``."""
        return self.first(images(x))[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, 256, height / 16, width / 16]``, or averaged ``[1, row, 512]``."""
        return self.second(early.squeeze(0))[None]

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        if inputs is not None or self.averaged:
            return super().new_head(outputs, randomness, inputs)
        net = initialised(partial(whole, outputs), randomness)
        return SingleHead(nn.Sequential(net.layer4, net.avgpool, nn.Flatten(), net.fc))


def whole(outputs: int) -> ResNet:
    """Torchvision's network, with shortcuts that have second derivatives."""
    net = resnet18(num_classes=outputs)
    replace_shortcuts(net.layer2, net.layer3, net.layer4)
    return net
