"""Objectives: loops over the definitions, the library's losses, finite differences, bad input."""

from math import cos, exp, log, pi, sin

import numpy as np
import pytest
import torch
from pytorch_metric_learning import distances, losses, regularizers

from robust_fairness.bench.miners.base import Triplets
from robust_fairness.bench.models.layers import unit_length
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names

CLASSES, DIMENSIONS = 5, 6
MINED = ("contrastive", "margin", "triplet")
OTHERS = ("arcface", "multisimilarity", "n_pair", "proxy_nca")
OPTIONS = [
    ("arcface", {}),
    ("arcface", {"margin": 1.5, "scale": 4.0}),
    ("contrastive", {}),
    ("contrastive", {"margin": 1.6}),
    ("margin", {}),
    ("margin", {"margin": 0.5, "beta": 0.9, "divisor": "pairs", "boundaries": "shared"}),
    ("multisimilarity", {}),
    ("multisimilarity", {"alpha": 1.0, "beta": 9.0, "base": 0.2, "epsilon": 0.3}),
    ("multisimilarity", {"epsilon": 0.0, "mean_over": "active"}),
    ("n_pair", {}),
    ("n_pair", {"regularisation": 0.5, "regularised": "norm"}),
    ("proxy_nca", {}),
    ("proxy_nca", {"distance": "euclidean", "scale": 1.0}),
    ("triplet", {}),
    ("triplet", {"margin": 0.7, "distance": "squared"}),
]


def made(name, classes=CLASSES, dimensions=DIMENSIONS, seed=0, dtype=torch.float64, **options):
    """An objective with these options."""
    parameters = find("objective", name).Parameters(**options)
    randomness = Randomness([seed], "heads")
    return find("objective", name)(parameters, classes, dimensions, randomness).to(dtype)


def batch(name, seed=0, rows=14, scale=1.0):
    """Embeddings ``[row, D]`` as the objective wants them, labels, one triplet an anchor.

    The last class has one row; class 4 has none.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, DIMENSIONS))
    if find("objective", name).normalised:
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    labels = np.append(rng.permutation(np.arange(rows - 1) % (CLASSES - 2)), CLASSES - 2)
    triplets = []
    for anchor in range(rows - 1):
        same = [row for row in np.flatnonzero(labels == labels[anchor]) if row != anchor]
        triplets.append(
            (anchor, rng.choice(same), rng.choice(np.flatnonzero(labels != labels[anchor])))
        )
    return scale * x, labels, triplets


def loss_of(objective, x, labels, triplets=()):
    """The loss and its gradients."""
    embeddings = torch.tensor(np.asarray(x), dtype=dtype_of(objective)).requires_grad_()
    places = np.array(triplets, np.int64).reshape(-1, 3)
    loss = objective(
        embeddings,
        torch.tensor(np.asarray(labels), dtype=torch.int64),
        Triplets(*torch.tensor(places).unbind(1)) if objective.mined else None,
    )
    parameters = list(objective.parameters())
    gradients = torch.autograd.grad(loss, [embeddings, *parameters], materialize_grads=True)
    return loss.detach(), gradients


def assert_nothing_to_learn(loss, gradients):
    """No loss, and gradients of 0."""
    assert loss == 0
    assert not any(gradient.any() for gradient in gradients)


def dtype_of(objective):
    """The dtype of its parameters, or float64."""
    return next((parameter.dtype for parameter in objective.parameters()), torch.float64)


def hinge(value):
    return max(value, 0.0)


def distance(a, b):
    return float(np.sqrt(((a - b) ** 2).sum()))


def unit(x):
    """Rows of unit norm; zeros stay."""
    norm = np.sqrt((x**2).sum(-1, keepdims=True))
    return np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)


def contrastive(x, labels, triplets, learnt, margin=1.0):
    total = 0.0
    for a, p, n in triplets:
        total += distance(x[a], x[p]) + hinge(margin - distance(x[a], x[n]))
    return total / len(triplets)


def triplet(x, labels, triplets, learnt, margin=0.2, distance="euclidean"):
    power = {"euclidean": 1, "squared": 2}[distance]
    total = 0.0
    for a, p, n in triplets:
        near, far = (np.linalg.norm(x[a] - x[other]) ** power for other in (p, n))
        total += hinge(near - far + margin)
    return total / len(triplets)


def margin(
    x, labels, triplets, learnt, margin=0.2, beta=1.2, divisor="triplets", boundaries="class"
):
    total, active = 0.0, 0
    for a, p, n in triplets:
        boundary = learnt[0][labels[a]] if boundaries == "class" else learnt[0][0]
        positive = hinge(distance(x[a], x[p]) - boundary + margin)
        negative = hinge(boundary - distance(x[a], x[n]) + margin)
        total += positive + negative
        if divisor == "triplets":
            active += positive > 0 or negative > 0
        else:
            active += int(positive > 0) + int(negative > 0)
    return total / max(active, 1)


def n_pair(x, labels, triplets, learnt, regularisation=0.005, regularised="squared_norm"):
    rows, total = range(len(x)), 0.0
    for a in rows:
        for p in rows:
            if labels[a] == labels[p] and a != p:
                inner = sum(exp(x[a] @ x[n] - x[a] @ x[p]) for n in rows if labels[n] != labels[a])
                total += log(1 + inner)
    power = 2 if regularised == "squared_norm" else 1
    size = sum(np.linalg.norm(x[i]) ** power for i in rows)
    return total / len(x) + regularisation * size / len(x)


def multisimilarity(
    x, labels, triplets, learnt, alpha=2.0, beta=40.0, base=0.5, epsilon=0.1, mean_over="rows"
):
    x, rows = unit(x), range(len(x))
    terms = []
    for i in rows:
        positives = [x[i] @ x[j] for j in rows if labels[j] == labels[i] and j != i]
        negatives = [x[i] @ x[k] for k in rows if labels[k] != labels[i]]
        hard_positives = [s for s in positives if negatives and s < max(negatives) + epsilon]
        hard_negatives = [s for s in negatives if positives and s > min(positives) - epsilon]
        terms.append(
            log(1 + sum(exp(-alpha * (s - base)) for s in hard_positives)) / alpha
            + log(1 + sum(exp(beta * (s - base)) for s in hard_negatives)) / beta
        )
    counted = len(terms) if mean_over == "rows" else sum(term > 0 for term in terms)
    return sum(terms) / max(counted, 1)


def proxy_nca(x, labels, triplets, learnt, scale=3.0, distance="squared"):
    x, proxies = scale * unit(x), scale * unit(learnt[0])
    power = {"euclidean": 1, "squared": 2}[distance]
    total = 0.0
    for i, label in enumerate(labels):
        d = [np.linalg.norm(x[i] - proxy) ** power for proxy in proxies]
        others = sum(exp(-d[c]) for c in range(len(proxies)) if c != label)
        total -= log(exp(-d[label]) / others)
    return total / len(x)


def arcface(x, labels, triplets, learnt, margin=0.5, scale=16.0):
    x, centres = unit(x), unit(learnt[0].T)
    total = 0.0
    for i, label in enumerate(labels):
        cosines = centres @ x[i]
        angle = np.arccos(cosines[label])
        target = cos(angle + margin) if angle <= pi - margin else cos(angle) - margin * sin(margin)
        own_term = exp(scale * target)
        others = sum(exp(scale * cosines[c]) for c in range(len(centres)) if c != label)
        total -= log(own_term / (own_term + others))
    return total / len(x)


RESTATED = {
    function.__name__: function
    for function in (contrastive, triplet, margin, n_pair, multisimilarity, proxy_nca, arcface)
}


def own_parameters(objective):
    return [parameter.detach().numpy() for parameter in objective.parameters()]


def test_these_are_all_objectives():
    assert tuple(names("objective")) == tuple(sorted(MINED + OTHERS)) == tuple(sorted(RESTATED))
    assert {name for name in RESTATED if find("objective", name).mined} == set(MINED)
    assert {name for name in RESTATED if not find("objective", name).normalised} == {"n_pair"}


@pytest.mark.parametrize("name,options", OPTIONS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_loss_is_the_definitions(name, options, seed):
    objective = made(name, seed=seed, **options)
    if name == "margin":
        with torch.no_grad():
            objective.beta += 0.2 * torch.randn(objective.beta.shape)
    x, labels, triplets = batch(name, seed)
    expected = RESTATED[name](x, labels, triplets, own_parameters(objective), **options)
    assert expected > 0.05
    loss, _ = loss_of(objective, x, labels, triplets)
    assert float(loss) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name,options", OPTIONS)
def test_gradients_are_those_of_finite_differences(name, options):
    """Of the embeddings and of what the objective learns itself."""
    objective = made(name, **options)
    x, labels, triplets = batch(name, 3)
    places = Triplets(*torch.tensor(np.array(triplets)).unbind(1))
    embeddings = torch.tensor(x, requires_grad=True)

    def loss(embeddings, *parameters):
        return objective(embeddings, torch.tensor(labels), places)

    assert torch.autograd.gradcheck(loss, (embeddings, *objective.parameters()))


@pytest.mark.parametrize("power,regularised", [(1, "norm"), (2, "squared_norm")])
def test_n_pair_is_the_librarys_contrastive_softmax(power, regularised):
    """In batches of two rows a class."""
    x = torch.randn(16, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(16) // 2
    library = losses.NTXentLoss(
        temperature=1,
        distance=distances.DotProductSimilarity(normalize_embeddings=False),
        embedding_regularizer=regularizers.LpRegularizer(p=2, power=power),
        embedding_reg_weight=0.3,
    )
    objective = made("n_pair", regularisation=0.3, regularised=regularised)
    torch.testing.assert_close(objective(x, labels), library(x, labels))


def test_n_pair_goes_on_where_the_exponential_ends():
    """In float32 the library's loss of a pair is 87.3 at most, without a gradient."""
    x = torch.tensor([[20.0, 0.0], [-1.0, 0.0], [20.0, 0.0], [0.0, 1.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1])
    loss = made("n_pair", regularisation=0.0)(x, labels)
    # similarities of anchors 0 to 3: positive -20, -20, 0, 0; largest negative 400, 0, 400, 0
    small = log(1 + exp(0.0) + exp(20.0)) + log(1 + 2 * exp(0.0))
    assert float(loss.detach()) == pytest.approx((420 + 400 + small) / 4, rel=1e-5)
    assert torch.autograd.grad(loss, x)[0].abs().max() > 1
    dot = distances.DotProductSimilarity(normalize_embeddings=False)
    library = losses.NTXentLoss(temperature=1, distance=dot)(x, labels)
    assert float(library.detach()) == pytest.approx((2 * 87.34 + small) / 4, rel=1e-4)


def test_margin_divided_by_pairs_is_the_librarys():
    x, labels, triplets = batch("margin")
    library = losses.MarginLoss(margin=0.2, nu=0, beta=1.2)
    places = tuple(torch.tensor(np.array(triplets)).unbind(1))
    expected = library(torch.tensor(x), torch.tensor(labels), places)
    loss, _ = loss_of(made("margin", divisor="pairs"), x, labels, triplets)
    torch.testing.assert_close(loss, expected)
    assert loss < loss_of(made("margin"), x, labels, triplets)[0]


def test_proxy_nca_leaves_out_the_own_proxy_that_the_library_counts():
    """Of one row: the library's is log(1 + exp(ours))."""
    objective = made("proxy_nca")
    library = losses.ProxyNCALoss(CLASSES, DIMENSIONS, softmax_scale=9).double()
    library.proxies.data = objective.proxies.data
    x, labels, _ = batch("proxy_nca")
    for row, label in zip(torch.tensor(x)[:, None], torch.tensor(labels)[:, None], strict=True):
        torch.testing.assert_close(objective(row, label).exp().log1p(), library(row, label))


def test_arcface_is_the_librarys():
    objective = made("arcface")
    library = losses.ArcFaceLoss(CLASSES, DIMENSIONS, margin=np.degrees(0.5), scale=16).double()
    library.W.data = objective.loss.W.data
    x, labels, _ = batch("arcface")
    x, labels = torch.tensor(x), torch.tensor(labels)
    torch.testing.assert_close(objective(x, labels), library(x, labels))


@pytest.mark.parametrize("name", MINED)
def test_one_triplet_is_enough(name):
    """The library's contrastive loss takes a single pair for none."""
    x, labels, triplets = batch(name, 5)
    for places in triplets[:4]:
        objective = made(name, margin=2.5)
        expected = RESTATED[name](x, labels, [places], own_parameters(objective), margin=2.5)
        loss, _ = loss_of(objective, x, labels, [places])
        assert float(loss) == pytest.approx(expected, rel=1e-9) and expected > 0


def test_one_hard_pair_of_each_kind_is_enough():
    """Anchor 0: nothing else has a hard positive or negative."""
    x = unit(np.array([[1.0, 0.0], [0.6, 0.8], [0.8, -0.6], [0.0, -1.0]]))
    x, labels = np.append(x, [[-1.0, 0.0]], axis=0), [0, 0, 1, 2, 3]
    objective = made("multisimilarity", epsilon=0.0)
    expected = multisimilarity(x, labels, (), (), epsilon=0.0)
    assert expected > 0
    assert float(loss_of(objective, x, labels)[0]) == pytest.approx(expected, rel=1e-9)


def small_batches():
    """Names and batches in which something is missing or degenerate."""
    x = unit(np.random.default_rng(1).normal(size=(4, DIMENSIONS)))
    zero, alike = x.copy(), np.repeat(x[:1], 4, axis=0)
    zero[[0, 3]] = 0
    apart = np.concatenate([x[:2], -x[:2]])
    return {
        "one class": (x, [1, 1, 1, 1]),
        "no positives": (x, [0, 1, 2, 3]),
        "one row": (x[:1], [2]),
        "zero norm": (zero, [0, 0, 1, 1]),
        "all zero": (0 * x, [0, 0, 1, 1]),
        "all alike": (alike, [0, 0, 1, 1]),
        "all alike, one class": (alike, [0, 0, 0, 0]),
        "opposite": (apart, [0, 1, 0, 1]),
    }


@pytest.mark.parametrize("case", small_batches())
@pytest.mark.parametrize("name,options", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_degenerate_batches_have_the_definitions_loss_and_finite_gradients(
    case, name, options, dtype
):
    """Of moderate size: none has been divided by a norm next to zero."""
    objective = made(name, dtype=dtype, **options)
    x, labels = small_batches()[case]
    miner = find("miner", "distance_weighted")
    mined = miner(miner.Parameters()).mine(
        torch.tensor(x), torch.tensor(labels), torch.Generator().manual_seed(0)
    )
    triplets = list(zip(*(places.tolist() for places in mined), strict=True))
    loss, gradients = loss_of(objective, x, labels, triplets)
    assert all(gradient.isfinite().all() and gradient.abs().max() < 1e4 for gradient in gradients)
    if objective.mined and not triplets:
        assert case in ("one class", "no positives", "one row", "all alike, one class")
        assert_nothing_to_learn(loss, gradients)
        return
    expected = RESTATED[name](np.array(x), labels, triplets, own_parameters(objective), **options)
    rough = 1e-9 if dtype == torch.float64 else 1e-3
    assert float(loss) == pytest.approx(expected, rel=rough, abs=rough)


@pytest.mark.parametrize("name", RESTATED)
def test_an_empty_batch_has_no_loss(name):
    loss, gradients = loss_of(made(name), np.zeros((0, DIMENSIONS)), [])
    assert_nothing_to_learn(loss, gradients)


def test_an_embedding_that_is_its_centre_has_a_finite_gradient():
    """The angle's derivative is infinite there."""
    for sign in (1, -1):
        objective = made("arcface", dtype=torch.float32)
        with torch.no_grad():
            objective.loss.W.copy_(torch.eye(DIMENSIONS, CLASSES))
        loss, gradients = loss_of(objective, sign * np.eye(DIMENSIONS)[:CLASSES], range(CLASSES))
        assert loss.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_row_of_zeros_has_the_gradient_of_the_identity():
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    unit_rows = unit_length(x)
    torch.testing.assert_close(unit_rows.detach(), torch.tensor([[0.0, 0.0], [0.6, 0.8]]))
    (gradient,) = torch.autograd.grad(unit_rows[:, 0].sum(), x)
    torch.testing.assert_close(gradient, torch.tensor([[1.0, 0.0], [0.128, -0.096]]))


@pytest.mark.parametrize("name", RESTATED)
def test_own_parameters_come_from_the_randomness_alone(name):
    state = torch.random.get_rng_state()
    first = own_parameters(made(name, seed=1))
    assert torch.random.get_rng_state().equal(state)
    torch.rand(3)
    again, other = own_parameters(made(name, seed=1)), own_parameters(made(name, seed=2))
    for values, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(values, same)
        assert name == "margin" or (values != different).any()


def test_what_is_learnt_has_the_papers_shape_and_first_values():
    (beta,) = own_parameters(made("margin"))
    np.testing.assert_allclose(beta, np.full(CLASSES, 1.2), rtol=1e-6)
    (shared,) = own_parameters(made("margin", beta=0.7, boundaries="shared"))
    np.testing.assert_allclose(shared, [0.7], rtol=1e-6)
    (proxies,) = own_parameters(made("proxy_nca", classes=200, dimensions=128))
    assert proxies.shape == (200, 128)
    assert proxies.std() == pytest.approx(1 / 8, rel=0.02)
    (centres,) = own_parameters(made("arcface", classes=200, dimensions=128))
    assert centres.shape == (128, 200)
    assert np.abs(centres).max() == pytest.approx(128**-0.5, rel=1e-3)
    assert [own_parameters(made(name)) for name in ("contrastive", "triplet", "n_pair")] == [[]] * 3


def test_own_parameters_have_learning_rates_of_their_own():
    rates = {name: made(name).learning_rate(1e-5) for name in RESTATED}
    assert rates.pop("proxy_nca") == pytest.approx(5e-4)
    assert rates.pop("arcface") == rates.pop("margin") == 5e-4
    assert set(rates.values()) == {1e-5}
    assert made("margin", learning_rate=0.0).learning_rate(1.0) == 0
    assert made("proxy_nca", learning_rate_factor=2).learning_rate(0.1) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "name,expected",
    [
        ("contrastive", {"margin": 1.0}),
        ("triplet", {"margin": 0.2}),
        ("margin", {"margin": 0.2, "beta": 1.2, "learning_rate": 5e-4}),
        ("n_pair", {"regularisation": 0.005}),
        ("multisimilarity", {"alpha": 2, "beta": 40, "base": 0.5, "epsilon": 0.1}),
        ("arcface", {"margin": 0.5, "scale": 16, "learning_rate": 5e-4}),
    ],
)
def test_defaults_are_the_papers(name, expected):
    """Appendix D.3; of the contrastive margin it gives none."""
    assert expected.items() <= find("objective", name).Parameters().model_dump().items()


def test_boundaries_move_apart():
    """Only those of anchors' classes; down where negatives are too near alone."""
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    objective = made("margin", margin=0.3)
    _, (_, gradient) = loss_of(objective, x, [0, 0, 1, 1], [(0, 1, 2), (1, 0, 3)])
    np.testing.assert_allclose(gradient, [1.0, 0, 0, 0, 0])


@pytest.mark.parametrize("divisor", ["triplets", "pairs"])
def test_triplets_that_keep_their_boundaries_have_no_loss(divisor):
    """There is nothing to divide by."""
    x = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]
    loss, gradients = loss_of(made("margin", divisor=divisor), x, [0, 0, 1], [(0, 1, 2)])
    assert_nothing_to_learn(loss, gradients)


@pytest.mark.parametrize("name", RESTATED)
def test_fewer_than_two_classes_are_refused(name):
    for classes in (0, 1):
        with pytest.raises(InputError, match=f"objective {name}: classes {classes}, allowed: two"):
            made(name, classes=classes)


@pytest.mark.parametrize("name", MINED)
def test_an_objective_of_triplets_asks_for_a_miner(name):
    message = f"objective {name}: no miner, allowed: distance_weighted, random, semi_hard"
    with pytest.raises(InputError, match=message):
        made(name)(torch.zeros(2, DIMENSIONS), torch.tensor([0, 0]))
