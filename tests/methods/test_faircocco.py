"""The FairCOCCO penalty against the exact score of the same rows."""

import pytest
import torch

from robust_fairness.bench.maths.faircocco import variables_of
from robust_fairness.bench.methods.dependence import Faircocco, complete_rows, exchanged
from tests.maths.test_cross_covariance import exact_score
from tests.methods.test_methods import build

WEIGHT = torch.tensor([0.5, 2.0], dtype=torch.float64)


def make(notion="eo", columns=1, classes=2, **options):
    """A method on a stack of two, a batch of 40 rows, and outputs that follow the attributes."""
    parameters = Faircocco.Parameters(notion=notion, pivots=40, **options)
    method, model, batch = build(Faircocco, parameters, classes=classes, rows=40)
    method.hparams = parameters.model_copy(update={"weight": WEIGHT})
    generator = torch.Generator().manual_seed(1)
    batch.attributes = torch.randn(2, 40, columns, generator=generator, dtype=torch.float64)
    batch.conditioning = torch.nn.functional.one_hot(batch.y, classes).double()
    noise = torch.randn(2, 40, classes, generator=generator, dtype=torch.float64)
    outputs = noise + batch.attributes.sum(-1, keepdim=True) * torch.arange(classes)
    return method, model, batch, outputs


@pytest.mark.parametrize("notion", ["dp", "eo", "cal"])
@pytest.mark.parametrize("classes", [2, 3])
def test_penalty_is_the_exact_score_where_all_rows_are_pivots(notion, classes):
    """Of the probabilities of class 1, or of all classes, replica by replica."""
    method, _, batch, outputs = make(notion, columns=2, classes=classes)
    penalty = method.penalty(outputs, batch)
    for replica in range(2):
        prediction = outputs[replica].softmax(-1)
        prediction = prediction[:, 1:] if classes == 2 else prediction
        variables = variables_of(
            notion,
            prediction,
            batch.attributes[replica],
            batch.conditioning[replica],
            width_rows=32,
        )
        assert penalty[replica].item() == pytest.approx(exact_score(variables).item(), rel=0.02)


def test_step_adds_the_weighted_penalty_to_the_mean_loss():
    """Each replica has its own weight."""
    method, model, batch, _ = make()
    (step,) = method.steps(model, batch)
    outputs = model(batch.x, batch.noise)
    task = torch.stack(
        [torch.nn.functional.cross_entropy(outputs[k], batch.y[k]) for k in range(2)]
    )
    torch.testing.assert_close(step.losses["model"], task + WEIGHT * method.penalty(outputs, batch))


@pytest.mark.parametrize("notion", ["dp", "eo", "cal"])
def test_a_debiased_penalty_is_nothing_where_there_is_no_dependence(notion):
    """On the mean over batches, where the score is far from it; with dependence it remains."""
    penalties = {}
    for dependent in (False, True):
        for debiased in (False, True):
            method, _, batch, outputs = make(notion, columns=2, debiased=debiased)
            values, generator = [], torch.Generator().manual_seed(2)
            for _ in range(20):
                batch.attributes = torch.randn(2, 40, 2, generator=generator).double()
                noise = torch.randn(outputs.shape, generator=generator).double()
                if dependent and notion == "cal":
                    batch.attributes += 3 * batch.conditioning[..., :1]
                rise = 2 * batch.attributes.sum(-1, keepdim=True) * torch.arange(2)
                logits = noise + rise if dependent and notion != "cal" else noise
                values.append(method.penalty(logits, batch).mean())
            penalties[dependent, debiased] = torch.stack(values).mean().item()
    assert penalties[False, False] > 0.1
    assert abs(penalties[False, True]) < 0.12 * penalties[False, False]
    assert penalties[True, True] > 0.05


def test_exchanged_rows_are_neighbours():
    """Pairs within a class where it has an even number of rows; nearest numbers; one stays."""
    y = torch.tensor([[0.0, 1, 0, 1, 1, 1]]).unsqueeze(-1)
    assert exchanged(y).tolist() == [[2, 3, 0, 1, 5, 4]]
    numbers = torch.tensor([[5.0, 1, 4, 2, 9]]).unsqueeze(-1)
    assert exchanged(numbers).tolist() == [[2, 3, 0, 1, 4]]
    assert exchanged(numbers[..., :0]).tolist() == [[1, 0, 3, 2, 4]]


def test_rows_without_an_attribute_do_not_count():
    """The penalty is that of the other rows, whatever the incomplete ones predict."""
    method, _, batch, outputs = make()
    batch.attributes[0, ::3] = torch.nan
    changed = outputs.clone()
    changed[0, ::3] += 5
    torch.testing.assert_close(method.penalty(outputs, batch), method.penalty(changed, batch))
    assert method.penalty(outputs, batch).isfinite().all()


def test_complete_rows_are_repeated_in_turn():
    """As many as there were rows; all where none is complete."""
    columns = torch.zeros(2, 5, 1)
    columns[0, [0, 3]] = torch.nan
    columns[1] = torch.nan
    assert complete_rows(columns).tolist() == [[1, 2, 4, 1, 2], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize("constant", ["outputs", "attributes", "conditioning"])
def test_constants_in_a_batch_are_no_dependence_and_no_trouble(constant):
    """A batch of one group, of one class, or of one prediction: finite, with finite gradients."""
    method, _, batch, outputs = make("eo")
    if constant == "outputs":
        outputs = torch.zeros_like(outputs)
    else:
        setattr(batch, constant, torch.ones_like(getattr(batch, constant)))
    outputs.requires_grad_()
    penalty = method.penalty(outputs, batch)
    assert ((penalty >= 0) & (penalty <= 1)).all()
    if constant == "outputs":
        assert (penalty < 1e-6).all()
    (gradient,) = torch.autograd.grad(penalty.sum(), outputs)
    assert gradient.isfinite().all()
