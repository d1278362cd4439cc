"""Predictions from elsewhere: scored as those of a cell, rows as networks get them, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness import training
from robust_fairness.core.errors import InputError
from robust_fairness.training import submissions
from robust_fairness.training.prediction import FittedStack
from tests.training.conftest import make_cell, make_samples

SPLITS = ["split_0", "split_1"]


@pytest.fixture(scope="module")
def problem():
    """Samples with a domain that is not trained on, a shifted test set and a trained cell."""
    samples = make_samples(domains=3)
    noise = np.random.default_rng(0).normal(size=samples.x.shape).astype(np.float32)
    shifted = {"noise_1": replace(samples, perturbation=noise)}
    cell = make_cell(epochs=2, seeds=(0, 1), fields={"test_sets": {"noise_1": ("noise", 1.0)}})
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    predictions = training.predict(samples, fitted, chosen, cell, shifted)
    return samples, shifted, cell, fitted, chosen, predictions


def as_table(problem) -> pd.DataFrame:
    """The cell's own predictions as a submission, in another order."""
    samples, *_, predictions = problem
    parts = [
        pd.DataFrame({
            "split": prediction.split,
            "test_set": prediction.test_set or "unshifted",
            "id": samples.id[prediction.rows],
            "probability": torch.tensor(prediction.outputs).double().softmax(1)[:, 1],
        })
        for prediction in predictions
    ]  # fmt: skip
    return pd.concat(parts).sample(frac=1, random_state=0)


def test_the_predictions_of_a_cell_have_its_scores_when_submitted(problem):
    """On every test set and domain, but for what needs the network."""
    samples, shifted, cell, _, chosen, predictions = problem
    expected = training.evaluate(samples, predictions, chosen, cell, shifted)
    submission = submissions.submitted("elsewhere", cell)
    imported = submissions.imported(as_table(problem), samples, submission, shifted)
    scores = training.evaluate(
        samples, imported, submissions.chosen(imported, submission), submission, shifted
    )
    keys = ["seed", "shift", "domain", "attribute", "group", "metric"]
    curved = ["delta_er", "delta_er_one_shot"]
    assert scores.loc[scores["metric"].isin(curved), "value"].isna().all()
    expected, own_scores = (table[~table["metric"].isin(curved)] for table in (expected, scores))
    both = expected.merge(own_scores, on=keys, suffixes=("", "_submitted"), validate="1:1")
    assert len(both) == len(expected) == len(own_scores) > 0
    np.testing.assert_allclose(both["value"], both["value_submitted"], atol=1e-5)
    assert set(scores["method"]) == {"elsewhere"}


def test_exported_features_are_those_of_the_network_and_test_rows_have_no_labels(problem):
    samples, shifted, cell, fitted, *_ = problem
    exported = submissions.exported(samples, cell.protocol, SPLITS, shifted)
    assert "y" not in exported["test"]
    assert set(exported["test"]["test_set"]) == {"unshifted", "noise_1"}
    sent = as_table(problem)
    keys = list(submissions.KEYS)
    assert len(exported["test"].merge(sent, on=keys, validate="1:1")) == len(sent)
    stack = FittedStack([fitted[1]], samples, torch.device("cpu"))
    rows_of_set = exported["test"].query("split == 'split_1' and test_set == 'noise_1'")
    rows = torch.tensor(rows_of_set["id"].tolist())[None]
    inputs = stack.inputs(shifted["noise_1"], rows)[0]
    np.testing.assert_allclose(rows_of_set.filter(regex="^x[.]"), inputs, atol=1e-5)
    train = exported["train"].query("split == 'split_0'")
    assert train["y"].tolist() == samples.y[samples.rows("split_0", "train")].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.iloc[1:], "has no prediction .1 such ids., allowed: each of"),
        (lambda table: pd.concat([table, table[:1]]), "is predicted twice"),
        (
            lambda table: table.assign(
                id=table["id"].where(table["id"] != table["id"].iloc[0], 999)
            ),
            "has no prediction|id 999 is no test row",
        ),
        (lambda table: table.assign(probability=1.5), "is 1.5 .* such rows., allowed: 0 to 1"),
        (lambda table: table.assign(probability=np.nan), "is nan .* such rows., allowed: 0 to 1"),
        (lambda table: table.drop(columns="id"), "no column id, allowed: split, test_set, id, pro"),
        (lambda table: table.assign(test_set="noise_2"), "unknown test set 'noise_2'.*noise_1"),
    ],
)
def test_wrong_predictions_are_refused_in_one_line(problem, change, message):
    samples, shifted, cell, *_ = problem
    with pytest.raises(InputError, match=message) as caught:
        submissions.imported(change(as_table(problem)), samples, cell, shifted)
    assert "\n" not in str(caught.value)
