"""Networks for small images: sizes, restatements, gradients, randomness, training."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torchvision.models import DenseNet, VisionTransformer, vgg16_bn

from robust_fairness.bench import training
from robust_fairness.bench.models.images import staged
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.registry import find, names
from tests.training.conftest import make_cell, with_domains
from tests.training.test_images import make_images

SMALL = {
    "resnet20": {"widths": (4, 8), "blocks": 1},
    "preact_resnet": {"widths": (4, 8), "blocks": 1},
    "vgg": {"widths": (4, 8), "convolutions": (1, 2)},
    "resnext": {"cardinality": 2, "group_width": 3, "planes": 4, "stages": 2, "blocks": 1},
    "densenet": {"growth": 4, "layers": (2, 2)},
    "shake_shake": {"width": 4, "stages": 2, "blocks": 1},
    "vision_transformer": {"width": 8, "heads": 2, "hidden": 16, "depth": 2},
    "mlp_mixer": {"width": 8, "hidden_tokens": 8, "hidden": 16, "depth": 2},
}
TRANSFORMERS = ("vision_transformer", "mlp_mixer")
CONVOLUTIONAL = [name for name in SMALL if name not in TRANSFORMERS]


def build(name, shape=(1, 8, 8), outputs=3, seed=0, **options):
    """A network; small unless options are given."""
    network = find("network", name)
    hparams = network.Parameters(**(options or SMALL[name]))
    return network(hparams, shape, outputs, Randomness([seed], "weights"))


def of_published_size(name, options):
    """A network for CIFAR-10, whose weights take no memory."""
    network = find("network", name)
    randomness = Randomness([0], "weights")
    with torch.device("meta"):
        return network(network.Parameters(**options), (3, 32, 32), 10, randomness)


def noise(seed=0):
    """Fresh noise of a batch."""
    return DropoutNoise(Randomness([seed], "dropout"))


def rows(shape=(1, 8, 8), count=6, seed=0):
    """Noise in [0, 1]."""
    return torch.rand(1, count, *shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("name", "options", "millions", "digits"),
    [
        ("resnet20", {}, 0.27, 2),
        ("resnet20", {"blocks": 5}, 0.46, 2),
        ("resnet20", {"blocks": 9}, 0.85, 2),
        ("resnet20", {"blocks": 18}, 1.7, 1),
        ("preact_resnet", {}, 11.17, 2),
        ("resnext", {"cardinality": 8}, 34.4, 1),
        ("densenet", {}, 0.77, 2),
        ("densenet", {"growth": 24, "layers": (41, 41, 41)}, 15.3, 1),
        ("shake_shake", {}, 2.9, 1),
        ("shake_shake", {"width": 96}, 26.2, 1),
    ],
)
def test_networks_have_as_many_weights_as_published(name, options, millions, digits):
    """In the sources' tables; ResNet-20, 32, 56, 110; ResNeXt 8 x 64d; DenseNet-BC."""
    weights = of_published_size(name, options).parameters()
    assert round(sum(weight.numel() for weight in weights) / 1e6, digits) == millions


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (2, 64, 64)])
def test_pieces_fit_together_at_every_size(name, shape):
    """Early layer, features, head and a further head; their widths are those that they say."""
    network, x = build(name, shape).eval(), rows(shape, 3)
    early, features = network.early(x), network.features(x)
    assert early.shape[:3] == (1, 3, network.early_width)
    assert features.shape == (1, 3, network.feature_width)
    assert network(x).shape == (1, 3, 3)
    torch.testing.assert_close(network.head(network.late(early)), network(x))
    assert network.new_head(5, Randomness([0], "heads"))(features).shape == (1, 3, 5)
    narrow = network.new_head(5, Randomness([0], "heads"), inputs=3)
    assert narrow(network(x)).shape == (1, 3, 5)


@pytest.mark.parametrize("name", [*CONVOLUTIONAL, "mlp_mixer"])
def test_images_need_not_be_square(name):
    """But for the vision transformer."""
    assert build(name, (1, 8, 16))(rows((1, 8, 16))).shape == (1, 6, 3)


@pytest.mark.parametrize("name", SMALL)
def test_gradients_reach_every_weight(name):
    """While training, with the noise of a batch."""
    network = build(name)
    outputs = network(rows(count=12), noise())[0]
    functional.cross_entropy(outputs, torch.arange(12) % 3).backward()
    assert [key for key, weight in network.named_parameters() if not weight.grad.any()] == []


@pytest.mark.parametrize("name", SMALL)
def test_a_few_real_digits_are_learnt_by_heart(name):
    """48 images of 8 x 8 grey pixels."""
    digits = load_digits(n_class=3)
    x = torch.tensor(digits.images[None, :48, None] / 16, dtype=torch.float32)
    y = torch.tensor(digits.target[:48])
    network, randomness = build(name), Randomness([0], "dropout")
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(60):
        optimiser.zero_grad()
        functional.cross_entropy(network(x, DropoutNoise(randomness))[0], y).backward()
        optimiser.step()
    assert network.eval()(x)[0].argmax(1).equal(y)


@pytest.mark.parametrize("name", SMALL)
def test_rows_do_not_see_each_other_outside_training(name):
    """In training those of normalised batches do."""
    network, x = build(name), rows(count=8)
    together = network.train()(x)[:, :3]
    alone = network.train()(x[:, :3])
    assert torch.allclose(together, alone, atol=1e-4) == (name in TRANSFORMERS)
    network.eval()
    torch.testing.assert_close(network(x)[:, :3], network(x[:, :3]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_networks_are_piecewise_linear_where_they_say_so(name):
    """Then no output has a second derivative in the inputs."""
    network, x = build(name).double().eval(), rows().double().requires_grad_()
    assert network.piecewise_linear == (name not in TRANSFORMERS)
    (gradient,) = torch.autograd.grad(network(x)[..., 0].sum(), x, create_graph=True)
    bent = gradient.square().sum()
    if bent.requires_grad:
        (second,) = torch.autograd.grad(bent, x, allow_unused=True, materialize_grads=True)
        assert second.any() != network.piecewise_linear
    else:
        assert network.piecewise_linear


def copy_weights(source: nn.Module, target: nn.Module) -> None:
    """Weights of one network for another that has them in the same order."""
    for weight, other in zip(source.parameters(), target.parameters(), strict=True):
        other.data.copy_(weight.data)


def test_vgg_is_torchvisions_up_to_its_head():
    """With the same kernels and no bias, at 32 pixels."""
    ours = build("vgg", (3, 32, 32), convolutions=(2, 2, 3, 3, 3)).eval()
    with torch.device("meta"):
        theirs = vgg16_bn().features
    theirs = theirs.to_empty(device="cpu").eval()
    layers = [layer for layer in ours.modules() if isinstance(layer, nn.Conv2d | nn.BatchNorm2d)]
    kinds = (nn.Conv2d, nn.BatchNorm2d)
    for layer, other in zip(layers, [m for m in theirs if isinstance(m, kinds)], strict=True):
        nn.init.zeros_(other.bias)
        other.load_state_dict(layer.state_dict(), strict=False)
    x = rows((3, 32, 32), 2)
    expected = theirs(x[0]).flatten(1)
    torch.testing.assert_close(ours.features(x)[0], expected, rtol=1e-4, atol=1e-4)


def test_vision_transformer_is_torchvisions():
    """With the same weights, at 32 pixels and the default patch of 4."""
    ours = build("vision_transformer", (3, 32, 32)).eval()
    theirs = VisionTransformer(32, 4, 2, 2, 8, 16, num_classes=3).eval()
    tokens = ours.layers[0][0]
    theirs.class_token.data.copy_(torch.randn(1, 1, 8))
    tokens.class_token.data.copy_(theirs.class_token)
    tokens.places.data.copy_(theirs.encoder.pos_embedding)
    copy_weights(theirs.conv_proj, tokens.project)
    blocks = [ours.layers[0][1].block, ours.layers[1][0].block]
    copy_weights(theirs.encoder.layers, nn.ModuleList(blocks))
    copy_weights(theirs.encoder.ln, ours.layers[1][1].normalise)
    nn.init.normal_(theirs.heads.head.weight)
    copy_weights(theirs.heads, ours.top)
    x = rows((3, 32, 32), 2)
    torch.testing.assert_close(ours(x)[0], theirs(x[0]), rtol=1e-4, atol=1e-5)


def test_densenet_is_torchvisions_with_another_stem():
    """Whose first layers are one convolution of 3 x 3."""
    ours = build("densenet", (3, 16, 16)).eval()
    theirs = DenseNet(4, (2, 2), 8, 4, num_classes=3).eval()
    theirs.features.conv0 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        setattr(theirs.features, name, nn.Identity())
    copy_weights(ours, theirs)
    x = rows((3, 16, 16), 2)
    torch.testing.assert_close(ours(x)[0], theirs(x[0]), rtol=1e-4, atol=1e-5)


def test_first_block_of_a_residual_stage_pads_its_shortcut():
    """Every second pixel and zeros (option A), by torch's functions."""
    (block,) = build("resnet20").layers[1][0]
    x = torch.randn(3, 4, 8, 8)
    inner = functional.relu(block.bn1(functional.conv2d(x, block.conv1.weight, None, 2, 1)))
    inner = block.bn2(functional.conv2d(inner, block.conv2.weight, None, 1, 1))
    shortcut = torch.zeros_like(inner)
    shortcut[:, :4] = x[:, :, ::2, ::2]
    torch.testing.assert_close(block(x), functional.relu(inner + shortcut))


def test_preactivated_block_normalises_before_it_convolves():
    """The shortcut sees what the first convolution sees, or the input where nothing changes."""
    network = build("preact_resnet")
    for (block,), stride in ((network.layers[0][1], 1), (network.layers[1][0], 2)):
        x = torch.randn(3, 4, 8, 8)
        first, _, _, second = block.residual
        active = functional.relu(block.activate[0](x))
        inner = functional.conv2d(active, first.weight, None, stride, 1)
        inner = functional.relu(block.residual[1](inner))
        added = x if stride == 1 else functional.conv2d(active, block.shortcut.weight, None, 2)
        expected = added + functional.conv2d(inner, second.weight, None, 1, 1)
        torch.testing.assert_close(block(x), expected)


def test_groups_of_a_resnext_block_are_branches_that_are_added():
    """Figure 3a of the source equals 3c: each branch has its own three convolutions."""
    (block,) = build("resnext").eval().layers[0][1]
    x = torch.randn(2, 4, 8, 8)
    total = block.downsample(x)
    for branch in (slice(0, 3), slice(3, 6)):
        inner = functional.relu(block.bn1(functional.conv2d(x, block.conv1.weight))[:, branch])
        kernel = torch.zeros(6, 3, 3, 3)
        kernel[branch] = block.conv2.weight[branch]
        inner = functional.conv2d(inner, kernel, padding=1)
        inner = functional.relu(block.bn2(inner)[:, branch])
        total = total + functional.conv2d(inner, block.conv3.weight[:, branch])
    scale = block.bn3.weight / (block.bn3.running_var + block.bn3.eps).sqrt()
    expected = (total - block.downsample(x)) * scale[:, None, None] + block.downsample(x)
    torch.testing.assert_close(block(x), functional.relu(expected), rtol=1e-4, atol=1e-5)


def test_mixer_by_sums_over_tokens_and_channels():
    """The source's equation (1), written with its own indices."""
    network, x = build("mlp_mixer"), rows()
    convolve = network.layers[0][0][0]
    cut = x[0, :, 0].unfold(1, 2, 2).unfold(2, 2, 2).flatten(1, 2).flatten(2)
    tokens = cut @ convolve.weight.flatten(1).mT + convolve.bias
    for mixer in (network.layers[0][1], network.layers[1][0]):
        up, _, down = mixer.mix_tokens
        inner = torch.einsum("nsc,ds->ndc", mixer.before_tokens(tokens), up.weight)
        inner = functional.gelu(inner + up.bias[:, None])
        tokens = tokens + torch.einsum("ndc,sd->nsc", inner, down.weight) + down.bias[:, None]
        up, _, down = mixer.mix_channels
        inner = functional.gelu(mixer.before_channels(tokens) @ up.weight.mT + up.bias)
        tokens = tokens + inner @ down.weight.mT + down.bias
    features = network.layers[1][1].normalise(tokens).mean(1)
    torch.testing.assert_close(network.features(x)[0], features, rtol=1e-4, atol=1e-5)


def test_shake_shake_mixes_by_one_number_a_image_and_differentiates_by_another():
    """Both in [0, 1); neither 1/2."""
    block = staged.ShakeShakeBlock(4, 4, 1)
    first = torch.randn(5, 4, 3, 3, requires_grad=True)
    second = torch.randn(5, 4, 3, 3, requires_grad=True)
    mixed = block.mixture(first, second, noise())
    alpha = ((mixed - second) / (first - second)).detach()
    assert alpha.flatten(1).std(1).max() < 1e-3
    mixed.sum().backward()
    beta = first.grad
    assert (beta - beta[:, :1, :1, :1]).abs().max() == 0
    torch.testing.assert_close(second.grad, 1 - beta)
    for share in (alpha.flatten(1).mean(1), beta[:, 0, 0, 0]):
        assert 0 <= share.min() < share.max() < 1
    assert (alpha[:, 0, 0, 0] - beta[:, 0, 0, 0]).abs().min() > 1e-3


def test_shake_shake_without_noise_is_the_mean_over_many_draws():
    """Of value and gradient; the mean of 4,000 uniform numbers is within 0.03 of 1/2."""
    block = staged.ShakeShakeBlock(4, 4, 1)
    images, other = (torch.randn(1, 4, 3, 3).expand(4000, -1, -1, -1) for _ in range(2))
    first, second = images.clone().requires_grad_(), other.clone()
    drawn = block.mixture(first, second, noise())
    drawn.sum().backward()
    still = block.mixture(images[:1], other[:1], None)
    spread = (images[0] - other[0]).abs().max()
    assert (drawn.mean(0) - still[0]).abs().max() < 0.03 * spread
    assert (first.grad.mean(0) - 0.5).abs().max() < 0.03


def test_two_passes_of_a_batch_share_what_shake_shake_draws():
    """And another batch draws anew."""
    network, x, same = build("shake_shake"), rows(), noise()
    assert network(x, same).equal(network(x, same))
    assert not network(x, noise(1)).allclose(network(x, noise(2)))


def make_network_cell(method, name, **changes):
    """Settings of one short training on images."""
    options = {"epochs": 1, "batch_size": 32, "precision": "float32", "seeds": (0,)} | changes
    cell = make_cell(method, network={"name": name, **SMALL[name]}, **options)
    return cell.model_copy(update={"metrics": ("accuracy",)})


def embedded(cell):
    """The cell with its network as the backbone of an embedding."""
    backbone = {"name": cell.network.name, **cell.network.parameters.model_dump()}
    network = {"name": "embedding", "backbone": backbone, "classifier": "k_means"}
    return cell.model_validate(cell.model_dump() | {"network": network})


SETTINGS = {"dfr_train": {"epochs": 3}}


OF_ESTIMATORS = [name for name in names("method") if find("method", name).estimators == "only"]


@pytest.mark.parametrize("method", sorted({*names("method")} - {"donini", *OF_ESTIMATORS}))
def test_every_method_trains_resnet20(method):
    """But that of fixed features, which says so; as the backbone of those that train no head."""
    cell = make_network_cell(method, "resnet20")
    if not find("method", method).trains_head:
        cell = embedded(cell)
    cell = cell.model_copy(update={"settings": SETTINGS.get(method, {})})
    fitted, _, history, _ = training.train(with_domains(make_images(160, 8), 2), cell)
    assert np.isfinite(history["value"]).all()
    assert all(np.isfinite(array).all() for replica in fitted for array in replica.state.values())


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_the_smallest_images_can_be_normalised(name):
    assert build(name, (1, 4, 4)).train()(rows((1, 4, 4), 1)).isfinite().all()


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_the_default_patch_is_an_eighth_of_a_side(name):
    assert build(name, (3, 64, 64)).early(rows((3, 64, 64), 1)).shape[-1] in (64, 65)
