"""Attributes as numbers, against pandas."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench import training
from robust_fairness.bench.training import data, preprocessing
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.groups import numbers_of
from tests.training.conftest import make_cell, make_samples

LIKE = torch.zeros(0, dtype=torch.float64)


def make_mixed():
    """A category with a gap, a number with a gap, and a category without a second value."""
    samples = make_samples(rows=40)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], 40)),
            "age": rng.normal(40, 10, 40),
            "only": pd.Categorical(["x"] * 40),
        }
    )
    frame.loc[3, "kind"] = None
    frame.loc[5, "age"] = np.nan
    return dataclasses.replace(samples, attributes=frame, sensitive=("kind", "age"))


def columns(samples, *names):
    return [samples.attributes[name] for name in names]


def test_categories_are_one_hot_and_numbers_standardised_on_the_training_rows():
    """As pandas has it; missing values stay missing."""
    samples = make_mixed()
    train = data.part_rows(samples, samples.split_names[:2], "train")
    encoding = preprocessing.encode(columns(samples, "kind", "age"), train, LIKE)
    assert encoding.centre.shape == (2, 4)
    everything = encoding.of(torch.arange(40).expand(2, 40)).numpy()
    expected = pd.get_dummies(samples.attributes["kind"]).to_numpy(float).copy()
    expected[3] = np.nan
    age = samples.attributes["age"]
    for replica, rows in enumerate(train.numpy()):
        np.testing.assert_array_equal(everything[replica, :, :3], expected)
        standard = (age - age[rows].mean()) / age[rows].std(ddof=0)
        np.testing.assert_allclose(everything[replica, :, 3], standard, rtol=1e-12)


def test_a_category_is_never_taken_for_a_number():
    """Even one without a second value has two columns, and a constant number is only centred."""
    samples = make_mixed()
    samples.attributes["flat"] = 3.0
    train = data.part_rows(samples, samples.split_names[:1], "train")
    encoding = preprocessing.encode(columns(samples, "only", "flat"), train, LIKE)
    np.testing.assert_array_equal(encoding.of(train)[0], [[1, 0, 0]] * train.shape[1])


def test_no_attribute_has_no_column():
    """A dataset without sensitive attributes."""
    samples = make_mixed()
    train = data.part_rows(samples, samples.split_names[:1], "train")
    assert preprocessing.encode([], train, LIKE).of(train).shape == (1, train.shape[1], 0)


def test_continuous_attributes_train_the_methods_that_need_no_group():
    """Plain training does not look at them; an adversary of groups says why it cannot."""
    samples = dataclasses.replace(make_mixed(), sensitive=("age",))
    fitted, _, *_ = training.train(samples, make_cell("erm", seeds=(0,), epochs=1))
    assert len(fitted) == 1
    with pytest.raises(InputError, match="method laftr: an attribute to mitigate is continuous"):
        training.train(samples, make_cell("laftr", seeds=(0,), epochs=1))


def test_equalised_odds_conditions_on_classes_outcome_or_a_named_attribute():
    """One column a class; a number stays one; another attribute may take its place."""
    samples = make_mixed()
    np.testing.assert_array_equal(numbers_of(samples.conditioning_values()), np.eye(2)[samples.y])
    outcome = make_samples(classes=0)
    np.testing.assert_array_equal(numbers_of(outcome.conditioning_values())[:, 0], outcome.y)
    other = dataclasses.replace(samples, conditioning="age")
    np.testing.assert_array_equal(
        numbers_of(other.conditioning_values())[:, 0], samples.attributes["age"]
    )
    with pytest.raises(InputError, match="unknown conditioning attribute 'agee'"):
        dataclasses.replace(samples, conditioning="agee")
