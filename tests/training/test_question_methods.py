"""Training UpDn on questions: every method of the study, its losses, resuming, large heads."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from robust_fairness.bench import training
from robust_fairness.bench.training import fitting, search
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import Boxes, Questions
from robust_fairness.core.samples import Samples

from .conftest import assert_same_bits, make_cell

WORDS = ("", "<unknown>", "ball", "is", "red", "the", "what")
ROWS, PICTURES, BOXES, FEATURES, ANSWERS = 96, 7, 3, 5, 4
UPDN = {"name": "updn", "words": 4, "question": 5, "fusion": 8, "hidden": 9}
STUDY = (
    "erm", "group_upweighting", "group_dro", "rubi", "lnl", "irmv1", "lff", "spectral_decoupling",
)  # fmt: skip
OF_SOFTMAX = ("rubi", "irmv1", "lff", "facl", "farmi", "faircocco")
LOGISTIC = UPDN | {"loss": "binary_cross_entropy"}


@pytest.fixture
def samples(tmp_path) -> Samples:
    """Questions on images of no to three boxes, with groups of two kinds."""
    rng = np.random.default_rng(5)
    counts = np.arange(PICTURES, dtype=np.int16) % (BOXES + 1)
    features = rng.normal(size=(PICTURES, BOXES, FEATURES)).astype(np.float16)
    features[np.arange(BOXES) >= counts[:, None]] = 0
    np.save(tmp_path / "features.npy", features)
    np.save(tmp_path / "counts.npy", counts)
    head = pd.Categorical.from_codes(rng.integers(0, 2, ROWS), ["head", "tail"])
    local = pd.Categorical.from_codes(rng.integers(0, 9, ROWS), list("abcdefghi"))
    parts = np.repeat(["train", "val", "test"], [ROWS // 2, ROWS // 4, ROWS // 4])
    return Samples(
        x={
            "tokens": rng.integers(0, len(WORDS), (ROWS, 6), dtype=np.int32),
            "image": rng.integers(0, PICTURES, ROWS, dtype=np.int32),
        },
        y=rng.integers(0, ANSWERS, ROWS),
        attributes=pd.DataFrame({"head_tail": head, "local_group": local}),
        id=np.arange(ROWS),
        splits=pd.DataFrame({"split_0": pd.Categorical(parts, ["train", "val", "test"])}),
        classes=("ball", "green", "no", "yes"),
        sensitive=("head_tail",),
        questions=Questions(WORDS, Boxes(str(tmp_path), (PICTURES, BOXES, FEATURES), "generated")),
    )


def cell_of(method: str, network: dict = UPDN, **options):
    """A cell of two short epochs, the last batch of which may be small."""
    if method == "irmv1":
        options = {"method_environments_per_batch": 4} | options
    options = {"seeds": (0,), "epochs": 2, "batch_size": 16} | options
    metrics = {"metrics": ("accuracy", "accuracy_by_group")}
    return make_cell(method, network=network, fields=metrics, **options)


@pytest.mark.parametrize("method", STUDY)
def test_every_method_of_the_study_trains(method, samples):
    """To finite numbers."""
    cell = cell_of(method)
    fitted, validation, history, _ = training.train(samples, cell)
    assert np.isfinite(history["value"]).all()
    assert all(np.isfinite(array).all() for array in fitted[0].state.values())
    chosen = training.select(samples, validation, cell)
    predictions = training.predict(samples, fitted, chosen, cell, {})
    rows = training.evaluate(samples, predictions, chosen, cell, {})
    assert set(rows["attribute"]) == {"", "head_tail", "local_group"}
    assert rows.loc[rows["metric"] == "accuracy", "value"].between(0, 1).all()


def test_one_epoch_is_a_plain_torch_loop(samples):
    """Adam on the mean binary cross-entropy of one-hot answers, without dropout."""
    network = LOGISTIC | {"dropout": 0, "attention_dropout": 0}
    cell = cell_of("erm", network, epochs=1, schedule="constant")
    stack = fitting.Stack(samples, cell, cell.replicas())
    plain = fitting.Stack(samples, cell, cell.replicas())
    model, protocol = plain.model, cell.protocol
    adam = torch.optim.Adam(
        model.parameters(), lr=protocol.learning_rate, weight_decay=protocol.weight_decay
    )
    losses = []
    for rows in plain.data.epoch_batches(plain.method.visiting_order):
        batch = plain.data.batch(rows)
        target = functional.one_hot(batch.y, ANSWERS).double()
        loss = functional.binary_cross_entropy_with_logits(model(batch.x), target) * ANSWERS
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.detach())
    stack.run_epoch()
    torch.testing.assert_close(list(stack.model.parameters()), list(model.parameters()))
    rows = torch.from_numpy(samples.rows("split_0", "val"))[None]
    batch = plain.data.batch(rows)
    target = functional.one_hot(batch.y, ANSWERS).double()
    expected = functional.binary_cross_entropy_with_logits(model(batch.x), target) * ANSWERS
    noted = stack.history[0][:, 0]
    torch.testing.assert_close(noted, torch.stack([torch.stack(losses).mean(), expected.detach()]))


@pytest.mark.parametrize("method", sorted({*STUDY, "adv_debias", "cuma", "laftr", *OF_SOFTMAX}))
def test_methods_of_the_softmax_refuse_another_loss(method, samples):
    """The others take it."""
    cell = cell_of(method, LOGISTIC, epochs=1)
    if method in OF_SOFTMAX:
        said = f"method {method}: takes the softmax of the outputs, .*allowed: loss cross_entropy"
        with pytest.raises(InputError, match=said):
            training.train(samples, cell)
    else:
        assert np.isfinite(training.train(samples, cell)[2]["value"]).all()


def test_networks_of_other_rows_do_not_read_questions(samples):
    with pytest.raises(InputError, match="network mlp: rows are questions on images, allowed"):
        training.train(samples, cell_of("erm", {"name": "mlp"}))


def test_a_checkpoint_belongs_to_the_file_of_words(samples, tmp_path):
    """By its content; training that goes on does not read it again."""
    path, keys = tmp_path / "vectors.txt", []
    cell = cell_of("erm", UPDN | {"word_vectors": str(path)})
    for content in ("red 1 2 3 4", "red 1 2 3 5"):
        path.write_text(content)
        keys.append(search.training_key(samples, cell, cell.replicas()))
    assert keys[0] != keys[1]
    first = fitting.Stack(samples, cell, cell.replicas())
    first.run_epoch()
    path.unlink()
    second = fitting.Stack(samples, cell, cell.replicas())
    second.restore({name: value.clone() for name, value in first.state().items()})
    first.run_epoch()
    second.run_epoch()
    assert_same_bits(first.state(), second.state())
