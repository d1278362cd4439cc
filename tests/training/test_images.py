"""Training on images: networks of torch's own layers, one replica to a stack."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional

from robust_fairness.bench import training
from robust_fairness.bench.models.images import biased_mnist_cnn, resnet18
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import data, fitting, search
from robust_fairness.bench.training.preprocessing import mitigated_groups, subgroups_of
from robust_fairness.core.samples import PARTS, Samples

from .conftest import assert_same_bits, make_cell, make_samples


def make_images(rows: int = 96, size: int = 16) -> Samples:
    """Noise whose brightness leans on the class and whose redness leans on an attribute."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, rows)
    tint = np.where(rng.random(rows) < 0.7, y, rng.integers(0, 3, rows))
    shape = np.where(rng.random(rows) < 0.7, y, rng.integers(0, 3, rows))
    x = rng.integers(0, 120, (rows, 3, size, size)) + 40 * y[:, None, None, None]
    x[:, 0] += 10 * tint[:, None, None]
    names = ["first", "second", "third"]
    return Samples(
        x=x.astype(np.uint8),
        y=y,
        attributes=pd.DataFrame(
            {
                "tint": pd.Categorical.from_codes(tint, names),
                "shape": pd.Categorical.from_codes(shape, names),
            }
        ),
        id=np.arange(rows),
        splits=pd.DataFrame(
            {"split_0": pd.Categorical(np.repeat(PARTS, rows // len(PARTS)), list(PARTS))}
        ),
        classes=("0", "1", "2"),
        sensitive=("tint",),
    )


def make_image_cell(method: str = "erm", network: str = "biased_mnist_cnn", **options):
    """Settings of a small cell on images."""
    sizes = {"width": 4} if network == "biased_mnist_cnn" else {}
    return make_cell(
        method,
        seeds=(0, 1),
        network={"name": network, **sizes},
        fields={"metrics": ["accuracy"], "selections": ["accuracy", "accuracy@unbiased_val"]},
        **{"epochs": 2, "batch_size": 8, "precision": "float32", **options},
    )


class Published(nn.Module):
    """The network of the published code, with ReLU before the maximum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm2d(3)
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(3, width, 5, padding=2),
                nn.Conv2d(width, width, 3, padding=1),
                nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
                nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            ]
        )
        self.classify = nn.Linear(2 * width, 10)

    def forward(self, x):
        """Logits ``[row, class]``."""
        x = functional.relu(self.convolutions[0](self.normalise(x)))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        for convolution in self.convolutions[1:]:
            x = functional.relu(convolution(x))
        return self.classify(x.mean((2, 3)))


def test_network_and_its_gradients_are_those_of_the_published_layers():
    """In value and in every weight's gradient, at an odd size."""
    ours = biased_mnist_cnn.BiasedMnistCnn(
        biased_mnist_cnn.BiasedMnistCnn.Parameters(width=5),
        (3, 21, 21),
        10,
        Randomness([0], "weights"),
    ).double()
    theirs = Published(5).double()
    for source, target in zip(ours.parameters(), theirs.parameters(), strict=True):
        target.data.copy_(source.data)
    x, y = torch.randn(1, 6, 3, 21, 21, dtype=torch.float64), torch.randint(10, (6,))
    outputs, expected = ours(x)[0], theirs(x[0])
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(
        torch.autograd.grad(functional.cross_entropy(outputs, y), list(ours.parameters())),
        torch.autograd.grad(functional.cross_entropy(expected, y), list(theirs.parameters())),
    )


@pytest.mark.parametrize("cut", ["third_stage", "last_stage"])
def test_resnet_in_pieces_is_torchvisions(cut):
    """The same weights give the same logits wherever the network is cut."""
    from torchvision.models import resnet18 as whole

    ours = resnet18.ResNet18(
        resnet18.ResNet18.Parameters(features=cut), (3, 64, 64), 2, Randomness([0], "weights")
    ).eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(Randomness([0], "weights").integer())
        theirs = whole(num_classes=2).eval()
    x = torch.randn(1, 3, 3, 64, 64)
    torch.testing.assert_close(ours(x)[0], theirs(x[0]), rtol=1e-4, atol=1e-5)
    assert ours.features(x).shape[2] == ours.feature_width
    assert ours.early(x).shape[2] == ours.early_width
    assert ours.new_head(5, Randomness([0], "heads"))(ours.features(x)).shape == (1, 3, 5)


def test_each_replica_of_a_image_network_trains_alone():
    """And every one keeps its running statistics."""
    samples, cell = make_images(), make_image_cell()
    trainings = fitting.trainings(cell.replicas(), samples, cell.network.name)
    assert [len(stack) for stack, _ in trainings] == [1, 1]
    fitted, validation, history, _ = training.train(samples, cell)
    assert [(model.trial, model.seed) for model in fitted] == [("default", 0), ("default", 1)]
    assert fitted[0].state["model.layers.0.normalise.running_mean"].shape == (3,)
    assert {prediction.part for prediction in validation} == {"val", "unbiased_val"}
    assert set(history["quantity"]) == {"model_loss", "validation_loss"}


def test_predictions_use_running_statistics_whatever_the_block(monkeypatch):
    """A row's logits do not depend on its neighbours."""
    samples, cell = make_images(), make_image_cell()
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    whole = training.predict(samples, fitted, chosen, cell, {})
    monkeypatch.setattr(data, "NUMBERS_AT_ONCE", 3 * 16 * 16 * 5)
    blocks = training.predict(samples, fitted, chosen, cell, {})
    for at_once, in_blocks in zip(whole, blocks, strict=True):
        np.testing.assert_allclose(at_once.outputs, in_blocks.outputs, rtol=1e-4, atol=1e-5)


def test_method_may_name_the_attributes_that_it_mitigates():
    """One attribute, or every combination that occurs of several."""
    samples = make_images()
    cell = make_image_cell("adv_debias", method_explicit=("shape",))
    single = mitigated_groups(samples, cell.method.parameters)
    assert single.names == ("first", "second", "third")
    assert np.array_equal(single.index, samples.attributes["shape"].cat.codes)
    both = make_image_cell("adv_debias", method_explicit=("shape", "tint"))
    groups = mitigated_groups(samples, both.method.parameters)
    occurring = samples.attributes[["shape", "tint"]].drop_duplicates()
    assert len(groups.names) == len(occurring)


def test_cells_number_the_groups_and_classes_that_occur():
    """By brute force; rows of unknown group have none."""
    samples = make_images()
    groups = mitigated_groups(samples, make_image_cell().method.parameters)
    index = groups.index.copy()
    index[:5] = -1
    cells = subgroups_of(type(groups)(index, groups.values), samples)
    pairs = sorted({(g, y) for g, y in zip(index, samples.y, strict=True) if g >= 0})
    expected = [
        pairs.index((g, y)) if g >= 0 else -1 for g, y in zip(index, samples.y, strict=True)
    ]
    assert cells.tolist() == expected


def test_method_after_a_warm_up_starts_from_the_plainly_trained_network():
    """Warm-up epochs are those of plain training of that length; then the method's begin."""
    samples = make_samples()
    plain = training.train(samples, make_cell("erm", epochs=2))[0]
    half = training.train(samples, make_cell("cuma", epochs=2, method_warm_up_epochs=2))
    for model, warm in zip(plain, half[0], strict=True):
        assert_same_bits(model.state, warm.state)
    history = training.train(samples, make_cell("cuma", epochs=4, method_warm_up_epochs=2))[2]
    adversary = history[history["quantity"] == "adversary_loss"].set_index("epoch")["value"]
    assert sorted(set(adversary.index)) == [2, 3]
    assert adversary.notna().all()


def test_a_checkpoint_belongs_to_the_weights_that_training_began_with(tmp_path):
    """By the content of its file, also where a backbone reads it; a missing one is named later."""
    samples, path = make_images(size=40), tmp_path / "weights.pth"
    backbone = {"name": "resnet50", "weights": str(path)}
    keys = []
    for content in (None, b"first", b"other"):
        if content:
            path.write_bytes(content)
        cell = make_cell("erm", seeds=(0,), network={"name": "embedding", "backbone": backbone})
        keys.append(search.training_key(samples, cell, cell.replicas()))
    assert len(set(keys)) == 3
    path.write_bytes(b"first")
    assert search.training_key(samples, cell, cell.replicas()) == keys[1]
