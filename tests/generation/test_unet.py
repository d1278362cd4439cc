"""The networks: sizes, weights of a seed, what it is told."""

import pytest
import torch
from diffusers import UNet2DModel

from robust_fairness.bench.generation import songunet, unet
from robust_fairness.core.errors import InputError
from tests.generation.conftest import NETWORK
from tests.training.conftest import assert_same_bits

# As its converted form is published: OpenAI's ImageNet-64 network.
IMAGENET_64 = unet.UNetParameters(
    channels=(192, 384, 576, 768),
    layers=3,
    attention=(32, 16, 8),
    middle_attention=True,
    head_width=64,
    groups=32,
    conditioning="scale_shift",
    resampling="resnet",
    frequency_shift=0,
    cosine_first=True,
)


def tiny(architecture: str) -> songunet.SongUNetParameters:
    return songunet.SongUNetParameters(
        architecture=architecture, channels=8, multipliers=(1, 2), layers=1, attention=()
    )


@pytest.mark.parametrize(
    ("module", "parameters", "size"),
    [(unet, NETWORK, (4, 8)), *((songunet, tiny(name), (8, 8)) for name in songunet.FILTERS)],
)
def test_initial_weights_depend_on_the_seed_alone_and_predict_nothing(module, parameters, size):
    """Whatever torch's own generator did, which stays as it was."""
    first = module.build(parameters, 3, size, 4, 7)
    torch.rand(3)
    before = torch.random.get_rng_state()
    same, other = (module.build(parameters, 3, size, 4, seed) for seed in (7, 8))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert_same_bits(first.state_dict(), same.state_dict())
    different = zip(first.parameters(), other.parameters(), strict=True)
    assert not all(torch.equal(*pair) for pair in different)
    answer = first(torch.randn(2, 3, *size), torch.tensor([-1.5, 1.0]), torch.tensor([0, 3]))
    assert torch.equal(answer, torch.zeros(2, 3, *size))


def test_the_answer_depends_on_noise_and_class():
    network = unet.build(NETWORK, 1, (4, 4), 3, 0)
    torch.nn.init.normal_(network.unet.conv_out.weight)
    x = torch.randn(1, 1, 4, 4).expand(3, -1, -1, -1)
    first, other, third = network(x, torch.tensor([-1.5, 1.0, -1.5]), torch.tensor([0, 0, 2]))
    assert not torch.allclose(first, other, atol=1e-3)
    assert not torch.allclose(first, third, atol=1e-3)


def test_published_network_has_its_published_size():
    """296 million parameters (Karras et al., Table 7, ADM for ImageNet-64)."""
    with torch.device("meta"):
        network = UNet2DModel(**unet.options(IMAGENET_64, 3, (64, 64), 1000))
    assert round(sum(tensor.numel() for tensor in network.parameters()) / 1e6) == 296


def test_level_with_attention_is_the_one_that_is_named():
    options = unet.options(
        unet.UNetParameters(channels=(32, 64, 64), attention=(16,)), 3, (32, 32), 10
    )
    assert options["down_block_types"] == ("DownBlock2D", "AttnDownBlock2D", "DownBlock2D")
    assert options["up_block_types"] == ("UpBlock2D", "AttnUpBlock2D", "UpBlock2D")


@pytest.mark.parametrize(
    ("settings", "size", "classes", "message"),
    [
        ({"channels": (32, 32, 32)}, (8, 6), 2, "8 x 6, allowed: .* multiples of 4"),
        ({"channels": (32, 32)}, (0, 8), 2, "multiples of 2"),
        ({"channels": (32, 36)}, (8, 8), 2, "network.groups: 8"),
        ({"attention": (5,)}, (8, 8), 2, r"network.attention: 5, allowed: .*\[8, 4\]"),
        ({"middle_attention": True, "head_width": 7}, (8, 8), 2, "network.head_width: 7"),
        ({}, (8, 8), 0, "at least one class"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(settings, size, classes, message):
    with pytest.raises(InputError, match=message):
        unet.build(unet.UNetParameters(**settings), 1, size, classes, 0)
