"""UpDn: its formula written out in NumPy, boxes that are none, its losses, files of words."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from robust_fairness.bench.models.packing import packed
from robust_fairness.bench.models.questions import updn
from robust_fairness.bench.models.questions._word_vectors import word_vectors
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import QuestionShape

WORDS = ("", "<unknown>", "ball", "is", "red", "the", "what")
SHAPE = QuestionShape(WORDS, 5, 4, 6)
SIZES = {"words": 3, "question": 7, "fusion": 20, "hidden": 24}
ANSWERS = 10
COUNTS = [4, 1, 2]
FORMS = ["product", "concatenation"]


def build(seed=0, shape=SHAPE, **options):
    """A small network, float64."""
    parameters = updn.UpDn.Parameters(**SIZES | options)
    return updn.UpDn(parameters, shape, ANSWERS, Randomness([seed], "weights")).double()


def rows(counts=COUNTS):
    """Tokens with padding in front, boxes with zeros behind the last one."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(1, len(WORDS), (1, len(counts), SHAPE.tokens), generator=generator)
    tokens[0, 0, :2] = 0
    boxes = torch.randn(1, len(counts), SHAPE.boxes, SHAPE.features, generator=generator)
    for place, count in enumerate(counts):
        boxes[0, place, count:] = 0
    return tokens, torch.tensor([counts]), boxes.double()


def inputs(counts=COUNTS):
    """The same, packed."""
    return packed(*rows(counts), torch.float64)


def sigmoid(x):
    """Logistic function."""
    return 1 / (1 + np.exp(-x))


def by_hand(network, normalised=False):
    """Logits of ``rows`` from the network's state: one question after the other, in NumPy."""
    state = {name: value.numpy() for name, value in network.state_dict().items()}

    def affine(name, x):
        direction = state[f"{name}.parametrizations.weight.original1"]
        length = state[f"{name}.parametrizations.weight.original0"]
        weight = direction * length / np.sqrt((direction**2).sum())
        return weight @ x + state[f"{name}.bias"]

    def relu(x):
        return np.maximum(x, 0)

    def logit(box, question):
        if "fuse.attention.of_both.bias" in state:
            joint = relu(affine("fuse.attention.of_both", np.concatenate([box, question])))
        else:
            joint = relu(affine("fuse.attention.of_box", box))
            joint = joint * relu(affine("fuse.attention.of_question", question))
        return affine("fuse.attention.logit", joint)[0]

    logits = []
    for tokens, count, boxes in zip(*(array[0].numpy() for array in rows()), strict=True):
        hidden = np.zeros(SIZES["question"])
        for token in tokens:
            word = state["fuse.words.weight"][token]
            new = state["fuse.reader.weight_ih_l0"] @ word + state["fuse.reader.bias_ih_l0"]
            past = state["fuse.reader.weight_hh_l0"] @ hidden + state["fuse.reader.bias_hh_l0"]
            (r, z, n), (past_r, past_z, past_n) = np.split(new, 3), np.split(past, 3)
            keep = sigmoid(z + past_z)
            hidden = (1 - keep) * np.tanh(n + sigmoid(r + past_r) * past_n) + keep * hidden
        seen = boxes[:count]
        if normalised:
            seen = seen / np.sqrt((seen**2).sum(1, keepdims=True))
        shares = np.exp([logit(box, hidden) for box in seen])
        image = (shares / shares.sum()) @ seen
        product = relu(affine("fuse.of_question", hidden))
        product = product * relu(affine("fuse.of_image", image))
        logits.append(affine("top.linear", relu(affine("hidden", product))))
    return np.array(logits)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalised", [False, True])
def test_logits_are_those_of_the_formula(form, normalised):
    """Without dropout, for images of one, two and all boxes."""
    network = build(attention=form, normalised_boxes=normalised)
    np.testing.assert_allclose(
        network(inputs())[0].detach(), by_hand(network, normalised), rtol=1e-11, atol=1e-13
    )


def test_pieces_make_the_whole():
    """Early layer, features and head have the widths that methods are told."""
    network, x = build(), inputs()
    early = network.early(x)
    assert early.shape == (1, 3, network.early_width)
    features = network.late(early)
    assert features.shape == (1, 3, network.feature_width)
    assert network.head(features).equal(network(x))
    heads = Randomness([0], "heads")
    assert network.new_head(2, heads).double()(features).shape == (1, 3, 2)
    assert network.new_head(2, heads, inputs=ANSWERS).double()(network(x)).shape == (1, 3, 2)


@pytest.mark.parametrize("form", FORMS)
def test_what_lies_behind_the_last_box_has_no_part(form):
    """Neither its content nor how much there is of it, nor in the gradient."""
    network = build(attention=form)
    tokens, counts, boxes = rows()
    expected = network(packed(tokens, counts, boxes, torch.float64))
    behind = torch.arange(SHAPE.boxes) >= counts[..., None]
    filled = torch.where(behind[..., None], 1e3 * torch.randn_like(boxes), boxes)
    x = packed(tokens, counts, filled, torch.float64).requires_grad_()
    outputs = network(x)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-14)
    (gradient,) = torch.autograd.grad(outputs.square().sum(), x)
    of_boxes = gradient[..., SHAPE.tokens + 1 :].view(boxes.shape)
    assert not of_boxes[behind].any()
    assert of_boxes[~behind].any(-1).all()

    wider = build(attention=form, shape=SHAPE._replace(boxes=9))
    wider.load_replica_states(network.replica_states())
    more = torch.cat([boxes, torch.zeros(1, 3, 5, SHAPE.features).double()], dim=2)
    padded = wider(packed(tokens, counts, more, torch.float64))
    torch.testing.assert_close(padded, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("normalised", [False, True])
def test_a_image_without_boxes_is_one_of_zeros(normalised):
    """Its logits and all gradients are numbers, whatever its neighbours are."""
    network = build(normalised_boxes=normalised)
    tokens, _, boxes = rows([0, 3, 0])
    outputs = network(packed(tokens, torch.tensor([[0, 3, 0]]), boxes, torch.float64))
    of_zeros = packed(tokens, torch.tensor([[1, 3, 1]]), boxes, torch.float64)
    torch.testing.assert_close(outputs, network(of_zeros), rtol=0, atol=1e-14)
    gradients = torch.autograd.grad(outputs.square().sum(), list(network.parameters()))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_dropout_is_that_of_the_batch():
    """A mask of the hidden layer and one of the attention; None turns both off."""
    network, x = build(dropout=0.6, attention_dropout=0.3), inputs()
    noise = DropoutNoise(Randomness([0], "dropout"))
    outputs = network(x, noise)
    assert network(x, noise).equal(outputs)
    assert not network(x, DropoutNoise(Randomness([1], "dropout"))).equal(outputs)
    features = network.late(network.early(x, noise))
    assert not features.equal(network.features(x))
    mask = noise.dropped(network.top, torch.ones_like(features), network.top.dropout)
    assert mask.unique().tolist() == pytest.approx([0, 1 / 0.4])
    torch.testing.assert_close(network.top.linear(features * mask), outputs)
    without = build(dropout=0, attention_dropout=0)
    assert without(x, noise).equal(without(x))


def test_losses_are_torchs():
    """Cross-entropy of the softmax, or of every answer's logistic function, summed."""
    logits = torch.randn(1, 6, ANSWERS, dtype=torch.float64) * 30
    y = torch.randint(ANSWERS, (1, 6))
    softmax, logistic = build(), build(loss="binary_cross_entropy")
    expected = functional.cross_entropy(logits[0], y[0], reduction="none")
    torch.testing.assert_close(softmax.task_loss(logits, y)[0], expected)
    target = functional.one_hot(y, ANSWERS).double()
    expected = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    torch.testing.assert_close(logistic.task_loss(logits, y), expected.sum(-1))
    assert softmax.softmax
    assert not logistic.softmax


@pytest.mark.parametrize("form", FORMS)
def test_second_derivatives_are_those_of_differences(form):
    """In the features, as the curvature takes them."""
    network, x = build(attention=form), inputs()

    def loss(z):
        return network.task_loss(network(z), torch.zeros(1, 3, dtype=torch.int64)).sum()

    def slope(z):
        z = z.detach().requires_grad_()
        return torch.autograd.grad(loss(z), z, create_graph=True)[0], z

    direction = torch.randn_like(x)
    direction[..., : SHAPE.tokens + 1] = 0
    gradient, z = slope(x)
    (product,) = torch.autograd.grad((gradient * direction).sum(), z)
    h = 1e-6
    differences = (slope(x + h * direction)[0] - slope(x - h * direction)[0]) / (2 * h)
    torch.testing.assert_close(product, differences, rtol=1e-4, atol=1e-7)
    assert product.any()


LINES = [
    "the 0.5 -1.25 3e-2",
    ". . . 1 2 3",
    "red 1 2 3",
    "unheard 7 8 9",
    "red 4 5 6",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE} 1 1 1",
]


@pytest.fixture
def file(tmp_path):
    """Vectors of three numbers; one word has spaces, one occurs twice."""
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_words_of_a_file_start_from_its_vectors(file):
    """Those that it does not know start from the seed, the padding from zeros."""
    network, plain = build(word_vectors=file), build()
    network(inputs())
    weight, other = (built.fuse.words.weight.detach() for built in (network, plain))
    known = {"the": [0.5, -1.25, 0.03], "red": [1.0, 2.0, 3.0]}
    for place, word in enumerate(WORDS):
        expected = other[place].tolist() if word not in known else known[word]
        assert weight[place].tolist() == pytest.approx(expected, rel=1e-6)
    assert not weight[0].any()
    unknown = torch.tensor([word not in known for word in WORDS])
    assert weight[unknown].equal(other[unknown])


def test_only_words_of_the_questions_are_kept(file):
    """Places of words, nothing of the padding."""
    vectors = word_vectors(file, WORDS, 3)
    assert {place: WORDS[place] for place in vectors} == {4: "red", 5: "the"}
    assert all(vector.dtype == np.float32 for vector in vectors.values())
    accented = word_vectors(file, ["", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"], 3)
    assert list(accented) == [1]


@pytest.mark.parametrize(
    ("number", "line", "said"),
    [
        (0, "the 1 2", "line 1 has 2 numbers, allowed: 3, the network's words"),
        (0, "the 1 2 3 4", "line 1 has 4 numbers, allowed: 3"),
        (0, "400000 3", "line 1 has 1 numbers, allowed: 3"),
        (2, "red 1 2", "line 3 has 2 numbers, allowed: 3"),
        (2, "red 1 2 3 4", "line 3 has 4 numbers, allowed: 3"),
        (2, "", "line 3 has 0 numbers, allowed: 3"),
        (2, "red 1 two 3", "line 3 has 'two', allowed: finite numbers"),
        (2, "red 1 nan 3", "line 3 has a number that is not finite, allowed: finite numbers"),
        (2, "red 1 1e99 3", "line 3 has a number that is not finite"),
    ],
)
def test_bad_lines_are_named(file, number, line, said):
    """Before the first step."""
    lines = [*LINES]
    lines[number] = line
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=f"vectors.txt: {said}"):
        build(word_vectors=file)(inputs())


def test_bad_files_are_named(file, tmp_path):
    """Missing, of other words, empty, no text."""
    with pytest.raises(InputError, match=r"missing.txt: no such file"):
        build(word_vectors=tmp_path / "missing.txt")(inputs())
    with pytest.raises(InputError, match="vectors.txt: contains none of the 1 words"):
        word_vectors(file, ["", "nowhere"], 3)
    file.write_bytes(b"")
    with pytest.raises(InputError, match="contains none of the 6 words of the questions"):
        word_vectors(file, WORDS, 3)
    file.write_bytes(bytes(range(256)) * 9)
    with pytest.raises(InputError, match=r"vectors.txt: line 1 has"):
        word_vectors(file, WORDS, 3)


def test_trained_weights_need_no_file(file):
    """A saved model predicts where the file is gone."""
    network, x = build(word_vectors=file), inputs()
    expected = network(x)
    states = network.replica_states()
    file.unlink()
    again = build(word_vectors=file, seed=1)
    with pytest.raises(InputError, match="no such file"):
        again(x)
    again.load_replica_states(states)
    assert again(x).equal(expected)
