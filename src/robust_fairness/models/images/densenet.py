"""DenseNet-BC for small images (Huang et al. 2017)."""

from pydantic import Field
from torch import nn
from torchvision.models import DenseNet
from torchvision.models.resnet import conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import Body, StagedNetwork, averaged

BOTTLENECK = 4  # channels between the two convolutions of a layer, in growth rates


class Densenet(StagedNetwork):
    """The network of "Densely Connected Convolutional Networks" (Table 2).

    The source's dropout for data without augmentation is left out.
    """

    class Parameters(PluginParameters):
        """Sizes; default: the source's DenseNet-BC of 100 layers, 0.77 million weights."""

        growth: int = Field(12, ge=1, description="channels that a layer adds (k)")
        layers: tuple[int, ...] = Field(
            (16, 16, 16), min_length=2, description="layers of two convolutions in each block"
        )

    def body(self, channels: int, height: int, width: int) -> Body:
        growth, layers = self.hparams.growth, self.hparams.layers
        stem = conv3x3(channels, 2 * growth)
        net = DenseNet(growth, layers, 2 * growth, BOTTLENECK)
        nn.init.kaiming_normal_(stem.weight)  # as torchvision's own layers
        pieces = dict(net.features.named_children())
        stages = [
            nn.Sequential(
                pieces[f"denseblock{number}"], pieces.get(f"transition{number}", nn.Identity())
            )
            for number in range(1, len(layers) + 1)
        ]
        widths = [
            pieces[f"transition{number}"].conv.out_channels for number in range(1, len(layers))
        ]
        end = averaged(net.features.norm5, nn.ReLU())
        return Body(stem, stages, [*widths, net.classifier.in_features], end)
