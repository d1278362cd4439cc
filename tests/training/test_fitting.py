"""The training loop: stacks, determinism, resuming."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.experiment.experiment import trial_name
from robust_fairness.bench.training import fitting, search, train
from robust_fairness.bench.training.prediction import predict
from robust_fairness.bench.training.records import to_arrays
from robust_fairness.core import code
from robust_fairness.core.registry import find, names
from tests.forking import killed
from tests.training.conftest import (
    assert_curves_end_at,
    assert_same_bits,
    largest_difference,
    make_cell,
    make_samples,
)
from tests.training.test_images import make_images

METHODS = [name for name in names("method") if find("method", name).estimators != "only"]
# Trials that move a per-replica hyperparameter, so that stacks mix trials and seeds.
ALPHAS = ({"alpha": 0.3}, {"alpha": 3.0})
TRIALS = {
    "adv_debias": ALPHAS,
    "chi_square_dro": ({"radius": 0.1},),
    "coral": ({"weight": 0.1}, {"moments": "mean_and_covariance"}),
    "cuma": ALPHAS,
    "cvar_dro": ({"worst_share": 0.5},),
    "dann": ({"weight": 0.1},),
    "dfr": ({"inverse_penalty": 0.1}, {"regressions": 2}),
    "dfr_train": ({"penalty": 0.1},),
    "donini": (),
    "erm": (),
    "faircocco": ({"weight": 0.1}, {"weight": 5.0}),
    "facl": ({"weight": 0.1}, {"weight": 5.0}),
    "farmi": ({"weight": 3.0}, {"ridge": 0.1}),
    "group_dro": ({"step_size": 0.1}, {"sampler": "shuffled_weights"}),
    "group_upweighting": (),
    "importance_weighting": ({"flattening": 0.5}, {"inverse_penalty": 0.01}),
    "irmv1": ({"weight": 3.0},),
    "jtt": ({"upweight": 5.0},),
    "laftr": ALPHAS,
    "lisa": ({"alpha": 0.3}, {"same_class": 0.9, "subgroups": "domain"}),
    "mixup": ({"alpha": 2.0},),
    "mmd": ({"weight": 0.1}, {"align": "target"}),
    "subsampling": ({"subgroups": "group"},),
    "vrex": ({"weight": 0.1},),
    "lff": ({"amplification": 0.9}, {"memory": 0.1}),
    "metric_learning": ({"objective": "triplet", "miner": "semi_hard"},),
    "parade": ({"alpha": 1.0, "rho": 10.0},),
    "lnl": ({"gradient_factor": -1.0}, {"entropy_weight": 1.0}),
    "rubi": (),
    "spectral_decoupling": ({"weight": 0.1}, {"shift": 2.0}),
}
CLASSIFIERS = ("dfr", "donini", "jtt", "lff", "lisa", "rubi", "spectral_decoupling")
EMBEDDERS = ("metric_learning", "parade")  # whose network refuses a continuous outcome


def trained(samples, cell) -> list:
    """All replicas after training, without checkpoints and predictions."""
    models = []
    for stacked, replicas in fitting.trainings(cell.replicas(), samples, cell.network.name):
        stack = fitting.Stack(samples, cell, stacked)
        for _ in range(stack.epochs):
            stack.run_epoch()
        models += stack.fitted(replicas)
    return models


@pytest.mark.parametrize(
    ("method", "groups", "classes"),
    [
        (method, groups, classes)
        for method in METHODS
        for groups, classes in [(2, 2), (3, 3), (2, 0)]
        if classes or method not in CLASSIFIERS + EMBEDDERS
    ],
)
def test_stack_equals_training_one_by_one(method, groups, classes):
    """All replicas at once give what each gives alone, to 1e-9 in float64.

    FairCOCCO solves with kernels of nearly equal rows, which the size of its jitter keeps apart:
    rounding is amplified by up to a million.
    """
    samples = make_samples(groups=groups, classes=classes, domains=3)
    short = {"seeds": (0, 1), "epochs": 3}
    cell = make_cell(method, TRIALS[method], **short)
    together = trained(samples, cell)
    changes = {trial_name(trial): trial for trial in ({}, *TRIALS[method])}
    for stacked in together:
        options = {f"method_{name}": value for name, value in changes[stacked.trial].items()}
        (alone,) = trained(
            samples, make_cell(method, **short | {"seeds": (stacked.seed,)}, **options)
        )
        assert largest_difference(stacked, alone) < (1e-7 if method == "faircocco" else 1e-9)


def test_a_stack_has_a_bounded_number_of_rows(monkeypatch):
    """Stacks of two and one where rows for two replicas fit; one replica if none does."""
    samples, cell = make_samples(), make_cell("erm", seeds=(0, 1, 2))
    monkeypatch.setattr(fitting, "ROWS", 2 * cell.protocol.batch_size)
    stacks = fitting.trainings(cell.replicas(), samples, cell.network.name)
    assert [[replica.seed for replica in stack] for stack, _ in stacks] == [[0, 1], [2]]
    monkeypatch.setattr(fitting, "ROWS", 1)
    assert len(fitting.trainings(cell.replicas(), samples, cell.network.name)) == 3


@pytest.mark.parametrize("method", METHODS)
def test_training_twice_gives_the_same_bits(method, tmp_path, monkeypatch):
    """Same settings, same bits; checkpoints apart so that neither finds the other's."""
    samples, cell = make_samples(domains=3), make_cell(method, precision="float32", epochs=3)
    first, _, curves, _ = train(samples, cell)
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "other"))
    second, _, again, _ = train(samples, cell)
    for model, repeated in zip(first, second, strict=True):
        assert_same_bits(model.state, repeated.state)
    assert curves.equals(again)


@pytest.mark.parametrize(
    "method", ["erm", "cuma", "dfr_train", "faircocco", "lff", "lnl", "parade"]
)
def test_bfloat16_training_stays_close(method):
    """Whatever passes a method makes: float32 weights, close to those of float32."""
    samples = make_samples(domains=3)
    exact, rounded = (
        trained(samples, make_cell(method, seeds=(0,), epochs=3, precision=precision))[0]
        for precision in ("float32", "bfloat16")
    )
    weights = [
        name
        for name, value in exact.state.items()
        if "model." in name and "top.heads" not in name and value.dtype.kind == "f"
    ]
    assert all(rounded.state[name].dtype == exact.state[name].dtype for name in weights)
    assert (
        0 < max(np.abs(exact.state[n] - rounded.state[n]).max(initial=0.0) for n in weights) < 0.02
    )


def test_cuma_equals_adv_debias_when_gamma_is_zero():
    """Without the curvature term CUMA is adversarial debiasing."""
    samples = make_samples()
    cuma, _, _, _ = train(samples, make_cell("cuma", method_gamma=0))
    plain, _, _, _ = train(samples, make_cell("adv_debias"))
    assert max(largest_difference(*pair) for pair in zip(cuma, plain, strict=True)) < 1e-12


@pytest.mark.parametrize("method", ["adv_debias", "laftr"])
@pytest.mark.parametrize("update", ["alternating", "reversed"])
def test_adversary_without_weight_leaves_the_network_alone(method, update):
    """With alpha = 0 (and no dropout, whose masks the adversary draws too) this is plain ERM."""
    samples, no_dropout = make_samples(), ({"dropout": 0.0},)
    plain, _, _, _ = train(samples, make_cell("erm", no_dropout))
    fair, _, _, _ = train(
        samples, make_cell(method, no_dropout, method_alpha=0, method_update=update)
    )
    for unfair, fair_model in zip(plain, fair, strict=True):
        if unfair.trial != "default":
            assert largest_difference(unfair, fair_model) < 1e-12


def test_erm_equals_a_plain_torch_loop():
    """One replica without dropout equals torch's own layers, Adam and cosine schedule."""
    samples = make_samples()
    cell = make_cell("erm", seeds=(1,), trials=({"dropout": 0.0},))
    replica = cell.replicas()[1]
    stack = fitting.Stack(samples, cell, [replica])
    sizes = [(6, 12), (12, 8), (8, 6), (6, 2)]
    layers = [nn.Linear(*size).double() for size in sizes]
    linears = [stack.model.body.first, stack.model.body.second]
    linears += [stack.model.top.first, stack.model.top.second]
    for layer, linear in zip(layers, linears, strict=True):
        layer.weight.data = linear.weight.data[0].T.clone()
        layer.bias.data = linear.bias.data[0, 0].clone()
    plain = nn.Sequential(layers[0], nn.ReLU(), *layers[1:3], nn.ReLU(), layers[3])
    optimiser = torch.optim.Adam(plain.parameters(), lr=1e-3, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=4)
    rows = samples.rows("split_1", "train")
    x = torch.from_numpy(samples.x).double()
    x = (x - x[rows].mean(0)) / x[rows].std(0, correction=0)
    order = fitting.Randomness([1], "batches").generators[0]
    for _ in range(4):
        visits = torch.from_numpy(rows)[torch.randperm(len(rows), generator=order)]
        for batch in visits.split(32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(
                plain(x[batch]), torch.from_numpy(samples.y)[batch]
            ).backward()
            optimiser.step()
        schedule.step()
        stack.run_epoch()
    for layer, linear in zip(layers, linears, strict=True):
        assert torch.allclose(layer.weight.T, linear.weight[0], atol=1e-10)


SHAKE_SHAKE = {"name": "shake_shake", "width": 4, "stages": 2, "blocks": 1}
TRANSFORMER = {"name": "vision_transformer", "width": 8, "heads": 2, "hidden": 16, "depth": 2}
# State of a method: memories, weights, counters and further networks; draws for images.
RESUMED = {
    "cuma": {},
    "group_dro": {},
    "jtt": {"epochs": 5, "method_warm_up_epochs": 2, "method_upweight": 4.0},
    "lff": {},
    "lnl": {},
    # weights of earlier epochs
    "rubi": {"scored_epochs": 3, "fields": {"metrics": ["accuracy"]}},
    # weights of the best epoch
    "laftr": {"patience": 5, "learning_rate": 0.3, "epochs": 6},
    "randaugment": {"augmentation": "randaugment"},
    "crop_and_flip": {"augmentation": "crop_and_flip"},
    "two threads": {"threads": 2},
    "shake_shake": {"network": SHAKE_SHAKE, "epochs": 3},
    "vision_transformer": {"network": TRANSFORMER},
}


@pytest.mark.parametrize("name", RESUMED)
def test_resumed_training_ends_with_the_same_bits(name):
    """Every epoch is a place to go on from, whatever torch's own generator did."""
    options = RESUMED[name]
    if name in METHODS:
        samples, cell = make_samples(), make_cell(name, seeds=(0, 1), **options)
    else:
        images = {"network": {"name": "biased_mnist_cnn", "width": 4}, "precision": "float32"}
        samples = make_images()
        cell = make_cell(seeds=(0,), **images | {"epochs": 2, "batch_size": 8} | options)
    with checkpoints.threads(cell.protocol.threads):
        undisturbed = fitting.Stack(samples, cell, cell.replicas())
        undisturbed.train_to_end(checkpoints.Checkpoint("a", "whole"))
        for stop in range(1, cell.protocol.epochs):
            torch.rand(3)
            first, second = (fitting.Stack(samples, cell, cell.replicas()) for _ in range(2))
            for _ in range(stop):
                first.run_epoch()
            checkpoint = checkpoints.Checkpoint("b", f"stopped {stop}")
            checkpoint.save(first.state())
            second.train_to_end(checkpoint)
            assert_same_bits(undisturbed.state(), second.state())


@pytest.mark.parametrize(("method", "warm_up"), [("erm", 0), ("lff", 0), ("jtt", 2)])
def test_a_replica_stops_by_itself_and_keeps_its_best_epoch(method, warm_up):
    """Weights and losses are those of a training that does not stop, bit by bit."""
    samples, options = make_samples(), {"schedule": "constant", "learning_rate": 0.1}
    options |= {"method_warm_up_epochs": warm_up} if warm_up else {}

    def stack(patience: int, seeds: tuple[int, ...]) -> fitting.Stack:
        cell = make_cell(method, epochs=25, seeds=seeds, patience=patience, **options)
        return fitting.Stack(samples, cell, cell.replicas())

    whole, seeds = stack(0, (0, 1, 2)), (0, 1, 2)
    states = []
    for _ in range(25):
        whole.run_epoch()
        states.append({name: value.clone() for name, value in whole.model.state_dict().items()})
    losses = torch.stack(whole.history)[:, -1].tolist()
    stopped = stack(3, seeds)
    stopped.train_to_end(checkpoints.Checkpoint("a", f"{method} together"))
    ends = []
    for place, seed in enumerate(seeds):
        of_replica = [of_epoch[place] for of_epoch in losses]
        best = next(  # by hand: the first epoch that three worse ones follow
            epoch
            for epoch in range(warm_up, 25)
            if of_replica[epoch] == min(of_replica[warm_up : epoch + 4])
            and of_replica.index(of_replica[epoch]) == epoch
        )
        ends.append(min(best + 4, 25))
        for name, value in stopped.model.state_dict().items():
            assert torch.equal(value[place], states[best][name][place])
        alone = stack(3, (seed,))
        alone.train_to_end(checkpoints.Checkpoint("a", f"{method} {seed}"))
        assert len(alone.history) == ends[-1]
    assert len(set(ends)) > 1 and max(ends) == len(stopped.history) < 25
    assert torch.equal(torch.stack(stopped.history), torch.stack(whole.history)[: max(ends)])


CHILD = """
from robust_fairness.bench.training import train
from tests.training.conftest import make_cell, make_samples
train(make_samples(), make_cell("cuma", epochs=60, checkpoint_seconds=0))
"""


def test_training_survives_sigkill(tmp_path, monkeypatch):
    """A process killed in the middle of training is resumed to the same bits."""
    epochs, folder = 60, tmp_path / "checkpoints"
    killed(CHILD, tmp_path, lambda: any(folder.rglob("*.safetensors")))
    (state,) = folder.rglob("state.safetensors")
    done = checkpoints.Checkpoint("toy.cuma", state.parent.name)
    done.path = state
    assert 0 < len(done.load()["history"]) < epochs
    cell = make_cell("cuma", epochs=epochs, checkpoint_seconds=0)
    resumed, _ = to_arrays(train(make_samples(), cell)[0])
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "other"))
    undisturbed, _ = to_arrays(train(make_samples(), cell)[0])
    assert_same_bits(resumed, undisturbed)


def test_checkpoint_of_other_training_is_not_found(tmp_path, monkeypatch):
    """Whatever shapes the numbers is in its name: settings, code, plug-ins, packages, threads."""
    samples = make_samples()

    def key(*arguments, **options) -> str:
        cell = make_cell(*arguments, **options)
        return search.training_key(samples, cell, cell.replicas())

    keys = [key(), key("laftr"), key(epochs=5), key(seeds=(0, 1)), key("laftr", method_alpha=2)]
    keys.append(key(augmentation="randaugment"))
    for module, name, value in (
        (code, "_imported", lambda folder: "other sources, of the optimisers say"),
        (code, "version", lambda name: "0"),
        (torch, "get_num_threads", lambda: 99),
    ):
        with monkeypatch.context() as changes:
            changes.setattr(module, name, value)
            code.packages.cache_clear()
            keys.append(key())
        code.packages.cache_clear()
    monkeypatch.setenv("ROBUST_FAIRNESS_PLUGINS", str(tmp_path))
    for kind in ("methods", "models", "objectives", "miners"):
        (tmp_path / kind).mkdir()
        for source in ("FACTOR = 1", "FACTOR = 2"):
            (tmp_path / kind / "outside.py").write_text(source)
            keys.append(key())
    assert len({*keys}) == len(keys) == 6 + 3 + 4 * 2


def damaged(content: bytes, draw: random.Random) -> bytes:
    """The content with one bit flipped, or its end cut off."""
    place = draw.randrange(len(content))
    if draw.randrange(10) == 0:
        return content[:place]
    flipped = content[place] ^ 1 << draw.randrange(8)
    return content[:place] + bytes([flipped]) + content[place + 1 :]


def test_a_damaged_or_foreign_checkpoint_is_not_used(caplog):
    """A flipped bit anywhere in the file, a file that is cut off, or one of other settings."""
    state = {"a": torch.randn(30, dtype=torch.float64), "b": torch.tensor(3), "c": torch.ones(0)}
    checkpoint, foreign = (checkpoints.Checkpoint("cell", name) for name in ("mine", "yours"))
    checkpoint.save(state)
    loaded = checkpoint.load()
    assert all(torch.equal(loaded[name], state[name]) for name in state)
    whole, draw = checkpoint.path.read_bytes(), random.Random(0)
    for _ in range(300):
        checkpoint.path.write_bytes(damaged(whole, draw))
        caplog.clear()
        assert checkpoint.load() is None
        assert "state.safetensors: damaged checkpoint" in caplog.text
    foreign.path.parent.mkdir(parents=True)
    foreign.path.write_bytes(whole)
    assert foreign.load() is None


def test_prediction_of_a_stack_equals_its_replicas():
    """Fitted replicas predict the same in a stack and alone."""
    samples, cell = make_samples(), make_cell("cuma")
    fitted, validation, _, _ = train(samples, cell)
    for model, seen in zip(fitted, validation, strict=True):
        (alone,) = predict(samples, [model], cell, {"": samples}, "val")
        assert (model.trial, model.seed) == (seen.trial, seen.seed)
        np.testing.assert_allclose(seen.outputs, alone.outputs, atol=1e-10)
        np.testing.assert_array_equal(seen.rows, samples.rows(model.split, "val"))


def test_validation_loss_of_the_last_epoch_is_that_of_the_predictions():
    """The curve and the saved predictions speak of the same network and rows."""
    samples, cell = make_samples(), make_cell("erm")
    _, validation, curves, _ = train(samples, cell)
    assert_curves_end_at(validation, curves, samples, epoch=3)
