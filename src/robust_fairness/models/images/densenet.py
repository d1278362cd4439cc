"""DenseNet-BC for small pictures (Huang et al. 2017)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from torchvision.models import DenseNet
from torchvision.models.resnet import conv3x3

from robust_fairness.models.images._staged import Body, StagedNetwork, averaged, require_side
from robust_fairness.models.randomness import Randomness

STACKS = False
BOTTLENECK = 4  # channels between the two convolutions of a layer, in growth rates


class Parameters(BaseModel):
    """Sizes; the defaults are the source's DenseNet-BC of 100 layers, 0.77 million weights."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    growth: int = Field(12, ge=1, description="channels that a layer adds (k)")
    layers: tuple[int, ...] = Field(
        (16, 16, 16), min_length=2, description="layers of two convolutions in each block"
    )


def body(parameters: Parameters, channels: int) -> Body:
    """Blocks and transitions of torchvision after one convolution of 2 k channels."""
    stem = conv3x3(channels, 2 * parameters.growth)
    net = DenseNet(parameters.growth, parameters.layers, 2 * parameters.growth, BOTTLENECK)
    nn.init.kaiming_normal_(stem.weight)  # as torchvision's own layers
    numbers = range(1, len(parameters.layers) + 1)
    stages = []
    for number in numbers:
        transition = getattr(net.features, f"transition{number}", nn.Identity())
        dense = getattr(net.features, f"denseblock{number}")
        stages.append(nn.Sequential(dense, transition))
    end = averaged(net.features.norm5, nn.ReLU())
    return Body(stem, stages, widths(parameters), end, net.classifier.in_features)


def widths(parameters: Parameters) -> list[int]:
    """Channels that every stage gives: a transition halves them, and the last stage has none."""
    found = [2 * parameters.growth]
    for layers in parameters.layers:
        found.append((found[-1] + layers * parameters.growth) // 2)
    last = found[-2] + parameters.layers[-1] * parameters.growth
    return [*found[1:-1], last]


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The network of "Densely Connected Convolutional Networks" (Table 2), for any channels.

    The source's dropout of data that are not augmented is left out.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or too small for so many blocks.
    """
    channels = require_side("densenet", inputs, 2 ** len(parameters.layers))
    made = partial(body, parameters, channels)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=True)
