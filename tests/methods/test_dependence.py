"""FACL and FARMI: their penalties against loops, other libraries and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from torch.nn.functional import one_hot

from robust_fairness.bench.methods.dependence import Facl, Farmi
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.models.tables import linear
from robust_fairness.bench.training import train
from robust_fairness.core.errors import InputError
from tests.methods.conftest import batch_of, problem_of, stacked
from tests.training.conftest import largest_difference, make_cell, make_samples

NOTIONS = ("dp", "eo", "cal")
METHODS = {"facl": Facl, "farmi": Farmi}
SEEDS = (3, 4)


def make_method(name, classes=2, widths=(2,), **options):
    """A method for a stack of two."""
    model = linear.LinearNetwork(
        linear.LinearNetwork.Parameters(), (3,), classes or 1, Randomness(SEEDS, "weights")
    ).double()
    counts = torch.ones(2, 1, dtype=torch.long)
    sizes = {"classes": classes, "groups": 0, "attribute_widths": widths, "subgroup_counts": counts}
    hparams = stacked(METHODS[name].Parameters(**options), 2, torch.float64)
    return METHODS[name](hparams, model, problem_of(model, SEEDS, **sizes))


def make_batch(classes=2, widths=(2,), rows=40, dtype=torch.float64):
    """Outputs, and a batch whose attributes lean on them; row 0 knows none of these."""
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(2, rows, classes or 1, generator=generator, dtype=dtype)
    columns = []
    for width in widths:
        lean = outputs[..., -1] + torch.randn(2, rows, generator=generator, dtype=dtype)
        if width > 1:
            lean = one_hot((lean + 1).clamp(0, width - 1).long(), width).to(dtype)
        columns.append(lean.view(2, rows, width))
    attributes = torch.cat(columns, dim=-1)
    attributes[:, 0] = torch.nan
    y = (
        torch.randint(classes, (2, rows), generator=generator)
        if classes
        else outputs[..., 0] + torch.randn(2, rows, generator=generator, dtype=dtype)
    )
    given = one_hot(y, classes).to(dtype) if classes else y.unsqueeze(-1)
    return outputs, batch_without_groups(y, attributes, given)


def batch_without_groups(y, attributes, conditioning):
    """A batch of two replicas of which only outcomes and attributes are known."""
    x = torch.zeros(*y.shape, 3, dtype=attributes.dtype)
    group = torch.zeros(y.shape, dtype=torch.long)
    return batch_of(x, y, group, attributes=attributes, conditioning=conditioning)


def bumps(values, rows, numbers):
    """Gaussian of each value at each point of the grid, by the published rule ``[row][point]``."""
    width = (len(values) * (numbers + 2) / 4) ** (-1 / (numbers + 4))
    grid_width = (rows * (numbers + 2) / 4) ** (-1 / (numbers + 4))
    points = np.linspace(-2.5, 2.5, int(min(50, 5 / grid_width)))
    standard = (values - values.mean()) / np.sqrt(values.var() + 1e-8)
    return np.exp(-((points[None] - standard[:, None]) ** 2) / (2 * width**2))


def pearson(table):
    """Chi-squared over n of a table of any sum, with loops."""
    p = table / table.sum()
    total = 0.0
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            product = p[i].sum() * p[:, j].sum()
            total += (p[i, j] - product) ** 2 / product if product else 0
    return total


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("width", [1, 3])
def test_facl_is_the_divergence_on_the_grid(notion, classes, width):
    """Loops over scores, rows and cells of the condition; the row without attribute is left out."""
    method = make_method("facl", classes, (width,), notion=notion)
    outputs, batch = make_batch(classes, (width,))
    penalty = method.penalty(outputs, batch)
    numbers = 1 + (width == 1) + (notion != "dp" and classes == 0)
    for replica in range(2):
        attribute = batch.attributes[replica, 1:].numpy()
        of_attribute = bumps(attribute[:, 0], 40, numbers) if width == 1 else attribute
        y = batch.y[replica, 1:].numpy()
        of_outcome = np.eye(classes)[y] if classes else bumps(y, 40, numbers)
        logits = outputs[replica, 1:]
        seen = logits.softmax(-1).numpy() if classes else logits.numpy()
        averaged = []
        for score in {0: [0], 2: [1], 3: [0, 1, 2]}[classes]:
            of_score = bumps(seen[:, score], 40, numbers)
            first = of_outcome if notion == "cal" else of_score
            given = {"dp": np.ones((39, 1)), "eo": of_outcome, "cal": of_score}[notion]
            tables = [
                sum(w * np.outer(u, v) for u, v, w in zip(first, of_attribute, cell, strict=True))
                for cell in given.T
            ]
            averaged.append(np.mean([pearson(table) for table in tables]))
        assert penalty[replica].item() == pytest.approx(np.mean(averaged), rel=1e-9)


def test_facl_averages_over_the_classes_that_occur():
    """A class without rows in the batch does not dilute the others."""
    method = make_method("facl", 3, notion="eo")
    outputs, batch = make_batch(3)
    y = batch.y.clamp(max=1)
    without = replace(batch, conditioning=one_hot(y, 3).double())
    two = make_method("facl", 2, notion="eo")
    scores = outputs.softmax(-1)
    each = []
    for score in range(3):
        # two classes whose probability of class 1 is this score
        logits = torch.stack([1 - scores[..., score], scores[..., score]], dim=-1).log()
        each.append(two.penalty(logits, without))
    torch.testing.assert_close(method.penalty(outputs, without), torch.stack(each).mean(0))


@pytest.mark.parametrize("quadratic", [False, True])
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("width", [1, 3])
def test_farmi_is_the_likelihood_ratio_of_least_squares(notion, classes, width, quadratic):
    """scikit-learn's ridge regression in the place of the closed form."""
    ridge = 0.7
    options = {"notion": notion, "ridge": ridge, "quadratic": quadratic}
    method = make_method("farmi", classes, (width,), **options)
    outputs, batch = make_batch(classes, (width,))
    penalty = method.penalty(outputs, batch)

    def basis(*columns):
        numbers = [column.reshape(39, -1) for column in columns]
        x = np.concatenate([np.zeros((39, 0)), *numbers], axis=1)
        products = [x[:, [i]] * x[:, [j]] for i in range(x.shape[1]) for j in range(x.shape[1])]
        return np.concatenate([x, *(products if quadratic else [])], axis=1)

    def likelihood(x, target, groups):
        fitted = np.zeros((39, width))
        for rows in [groups == k for k in np.unique(groups)]:
            # a column of zeros, for scikit-learn asks for one
            seen = np.concatenate([np.zeros((rows.sum(), 1)), x[rows]], axis=1)
            fitted[rows] = Ridge(ridge).fit(seen, target[rows]).predict(seen).reshape(-1, width)
        if width == 1:
            return -0.5 * np.log(np.mean((fitted - target) ** 2) + 1e-6)
        shares = np.log1p(np.exp(30 * fitted)) / 30 + 1e-10
        shares /= shares.sum(1, keepdims=True)
        return np.mean([np.log(shares[i, target[i].argmax()]) for i in range(39)])

    for replica in range(2):
        target, y = batch.attributes[replica, 1:].numpy(), batch.y[replica, 1:].numpy()
        logits = outputs[replica, 1:]
        seen = logits.softmax(-1)[:, 1:].numpy() if classes else logits.numpy()
        everybody = np.zeros(39)
        joint = (basis(seen), target, y) if classes else (basis(seen, y), target, everybody)
        given = (basis(), target, y) if classes else (basis(y), target, everybody)
        plain = (basis(seen), target, everybody)
        full = plain if notion == "dp" else joint
        base = {"dp": (basis(), target, everybody), "eo": given, "cal": plain}[notion]
        expected = likelihood(*full) - likelihood(*base)
        assert penalty[replica].item() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def gaussian_batch(rho, partial, rows=20000):
    """Prediction, outcome and attribute as Gaussians.

    Prediction and outcome correlate by rho, and the attribute is the outcome with noise plus
    ``partial`` of what is in the prediction but not in the outcome.
    """
    rng = np.random.default_rng(0)
    y, rest, noise = rng.normal(size=(3, rows))
    prediction = rho * y + np.sqrt(1 - rho**2) * rest
    attribute = 0.5 * y + partial * rest + noise
    columns = [torch.tensor(column).expand(2, rows) for column in (prediction, y, attribute)]
    prediction, y, attribute = columns
    batch = batch_without_groups(y, attribute[..., None] / 1.5, y[..., None])
    correlations = np.corrcoef([column[0].numpy() for column in columns])
    return prediction[..., None], batch, correlations


def partial_correlation(matrix, a, b, given):
    """Of a and b given a third variable, from the correlations."""
    top = matrix[a, b] - matrix[a, given] * matrix[b, given]
    return top / np.sqrt((1 - matrix[a, given] ** 2) * (1 - matrix[b, given] ** 2))


@pytest.mark.parametrize("partial", [0.0, 0.8])
def test_farmi_of_gaussians_is_the_mutual_information(partial):
    """-log(1 - rho^2) / 2, with the partial correlation where it is conditional."""
    outputs, batch, matrix = gaussian_batch(0.6, partial)
    correlations = {
        "dp": matrix[0, 2],
        "eo": partial_correlation(matrix, 0, 2, 1),
        "cal": partial_correlation(matrix, 1, 2, 0),
    }
    for notion, rho in correlations.items():
        penalty = make_method("farmi", 0, (1,), notion=notion).penalty(outputs, batch)
        assert penalty[0].item() == pytest.approx(-0.5 * np.log(1 - rho**2), abs=1e-4)
    if not partial:
        assert make_method("farmi", 0, (1,), notion="eo").penalty(outputs, batch).max() < 1e-3


def test_farmi_of_a_table_is_its_mutual_information():
    """A bit predicts with the right shares whatever the classifier; no share is near 0 here."""
    joint = np.array([[0.3, 0.2], [0.15, 0.35]])
    counts = (joint * 4000).round().astype(int).ravel()
    prediction, attribute = (np.repeat(bits, counts) for bits in ([0, 0, 1, 1], [0, 1, 0, 1]))
    outputs = torch.zeros(2, 4000, 2, dtype=torch.float64)
    outputs[..., 1] = torch.tensor(prediction * 4.0 - 2)
    categories = one_hot(torch.tensor(attribute), 2).double().expand(2, 4000, 2)
    batch = batch_without_groups(torch.zeros(2, 4000, dtype=torch.long), categories, categories)
    expected = (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    for scale in ("probability", "log_odds"):
        method = make_method("farmi", notion="dp", ridge=1e-6, scale=scale)
        assert method.penalty(outputs, batch)[0].item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_gradient_is_that_of_finite_differences(name, notion, classes):
    """In float64, over a category and a number together."""
    method = make_method(name, classes, (3, 1), notion=notion)
    outputs, batch = make_batch(classes, (3, 1), rows=9)
    assert torch.autograd.gradcheck(
        lambda logits: method.penalty(logits, batch), outputs.requires_grad_(), atol=1e-6
    )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_attributes_add_up_and_missing_rows_do_not_count(name, notion, classes):
    """Each attribute on its own; whatever stands in a row that misses it."""
    outputs, batch = make_batch(classes, (3, 1))
    together = make_method(name, classes, (3, 1), notion=notion).penalty(outputs, batch)
    alone = [
        make_method(name, classes, (width,), notion=notion).penalty(
            outputs, replace(batch, attributes=batch.attributes[..., columns])
        )
        for width, columns in ((3, slice(0, 3)), (1, slice(3, 4)))
    ]
    torch.testing.assert_close(together, sum(alone))
    changed = outputs.clone()
    changed[:, 0] = 7.0
    changed_penalty = make_method(name, classes, (3, 1), notion=notion).penalty(changed, batch)
    torch.testing.assert_close(changed_penalty, together)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("what", ["prediction", "attribute", "missing", "row"])
def test_constants_cost_nothing(name, notion, classes, what):
    """A flat prediction or attribute, no known attribute or a single row: 0, finite gradients.

    Given a flat prediction, which tells nothing, the outcome may still depend on the attribute.
    """
    outputs, batch = make_batch(classes, (3, 1), dtype=torch.float32)
    attributes = batch.attributes.clone()
    if what == "prediction":
        outputs = torch.full_like(outputs, 0.3)
    elif what == "attribute":
        attributes[:, 1:] = torch.tensor([0.0, 1.0, 0.0, 0.7])
    elif what == "missing":
        attributes[:] = torch.nan
    else:
        outputs, attributes = outputs[:, 1:2], attributes[:, 1:2]
        batch = replace(batch, y=batch.y[:, 1:2], conditioning=batch.conditioning[:, 1:2])
    batch = replace(batch, attributes=attributes)
    method = make_method(name, classes, (3, 1), notion=notion)
    if name == "farmi":
        method.hparams = method.hparams.model_copy(update={"ridge": torch.ones(2)})
    penalty = method.penalty(outputs.requires_grad_(), batch)
    (gradient,) = torch.autograd.grad(penalty.sum(), outputs)
    assert gradient.isfinite().all() and penalty.isfinite().all()
    if what == "prediction" and notion == "cal":
        assert penalty.min() > 1e-3
    else:
        assert penalty.abs().max() < 1e-4


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("notion", ["eo", "cal"])
def test_what_the_dataset_gives_stands_for_the_outcome(name, width, notion):
    """An attribute in the place of the outcome, with gaps: as if it were the outcome's rows."""
    outputs, batch = make_batch(2, (3, 1))
    _, other = make_batch(0 if width == 1 else 3, (3, 1))
    given = other.conditioning.clone()
    given[:, 5] = torch.nan
    method = make_method(name, 2, (3, 1), notion=notion)
    penalty = method.penalty(outputs, replace(batch, conditioning=given))
    kept = torch.arange(40) != 5
    without = replace(
        batch,
        x=batch.x[:, kept],
        y=batch.y[:, kept],
        attributes=batch.attributes[:, kept],
        conditioning=given[:, kept],
    )
    torch.testing.assert_close(penalty, method.penalty(outputs[:, kept], without))
    assert not torch.allclose(penalty, method.penalty(outputs, batch))


@pytest.mark.parametrize("name", METHODS)
def test_facl_and_farmi_ask_for_an_attribute(name):
    """Without one they would be plain training under another name."""
    with pytest.raises(InputError, match=f"method {name}: no attribute to mitigate"):
        make_method(name, widths=())


def mixed_samples(classes):
    """A category and a number, both with gaps, that lean on what is predicted."""
    samples = make_samples(classes=classes)
    rng = np.random.default_rng(1)
    frame = samples.attributes.assign(age=samples.x[:, 1] + rng.normal(size=len(samples)))
    frame.loc[::7, "kind"] = None
    frame.loc[::5, "age"] = np.nan
    return replace(samples, attributes=frame, sensitive=("kind", "age"))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("classes", [0, 3])
def test_stack_with_gaps_equals_training_one_by_one(name, notion, classes):
    """Replicas of different splits know different rows."""
    samples = mixed_samples(classes)
    options = {"method_notion": notion, "epochs": 2}
    together, _, _, _ = train(samples, make_cell(name, seeds=(0, 1), **options))
    for model in together:
        (alone,), _, _, _ = train(samples, make_cell(name, seeds=(model.seed,), **options))
        assert largest_difference(model, alone) < 1e-9


@pytest.mark.parametrize("name", METHODS)
def test_without_weight_it_is_plain_training(name):
    """Lambda 0."""
    samples = mixed_samples(2)
    fair, _, _, _ = train(samples, make_cell(name, method_weight=0.0, epochs=2))
    plain, _, _, _ = train(samples, make_cell("erm", epochs=2))
    assert max(largest_difference(*pair) for pair in zip(fair, plain, strict=True)) < 1e-12


@pytest.mark.parametrize("name", [*METHODS, "faircocco"])
@pytest.mark.parametrize("classes", [0, 2])
def test_penalty_lowers_the_dependence_on_validation_rows(name, classes):
    """The correlation of prediction and attribute, which is none of the penalties, goes."""
    samples = make_samples(rows=1600, classes=classes)
    age = samples.x[:, 1] + np.random.default_rng(1).normal(size=len(samples))
    frame = samples.attributes.assign(age=age)
    samples = replace(samples, attributes=frame, sensitive=("age",))
    changes = {"epochs": 20, "learning_rate": 0.01, "batch_size": 128, "seeds": (0,)}

    def correlation(weight):
        cell = make_cell(name, method_weight=weight, method_notion="dp", **changes)
        _, (validation,), _, _ = train(samples, cell)
        outputs = validation.outputs
        score = outputs[:, -1] - outputs[:, 0] if classes else outputs[:, 0]
        return abs(np.corrcoef(score, age[validation.rows])[0, 1])

    assert correlation(0.0) > 0.3
    assert correlation(80.0 if name == "faircocco" else 20.0) < 0.1
