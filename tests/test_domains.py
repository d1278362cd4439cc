"""Training on some domains: parts, units, mistakes, and scores by domain."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from robust_fairness.bench import training
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from tests.training.conftest import make_cell, make_samples

HOSPITALS = ["north", "south", "west"]


def patients(rows: int = 600, visits: int = 1) -> Samples:
    """Rows of three hospitals; ``visits`` consecutive rows are of one patient."""
    samples = make_samples(rows=rows)
    hospitals = np.random.default_rng(3).choice(HOSPITALS, rows)
    attributes = samples.attributes.assign(hospital=pd.Categorical(hospitals, HOSPITALS))
    units = np.arange(rows) // visits
    return replace(samples, attributes=attributes, domain="hospital", units=units)


def test_rows_of_other_domains_are_in_no_part_in_distribution():
    samples = patients()
    held = hold_out_domains(samples, ["north"], ["west"])
    hospital = held.attributes["hospital"]
    for split in held.split_names:
        inside = [held.rows(split, part) for part in ("train", "val", "test")]
        assert (hospital[np.concatenate(inside)] == "north").all()
        for part in ("train", "val", "test"):
            before = samples.rows(split, part)
            expected = before[hospital[before] == "north"]
            np.testing.assert_array_equal(held.rows(split, part), expected)
        np.testing.assert_array_equal(
            held.rows(split, "ood_test"), np.flatnonzero(hospital == "south")
        )
        np.testing.assert_array_equal(
            held.rows(split, "ood_val"), np.flatnonzero(hospital == "west")
        )


def test_no_unit_is_both_in_and_out_of_distribution(caplog):
    samples = patients(visits=3)
    with caplog.at_level(logging.WARNING):
        held = hold_out_domains(samples, ["north", "west"])
    for split in held.split_names:
        inside = np.concatenate([held.rows(split, part) for part in ("train", "val", "test")])
        outside = held.rows(split, "ood_test")
        assert len(outside)
        assert not set(samples.units[inside]) & set(samples.units[outside])
        left_out = held.splits[split].isna().sum()
        assert f"{split}: rows left out since" in caplog.text
        assert f"training domains (north, west) have their units: {left_out}\n" in caplog.text


@pytest.mark.parametrize(
    ("train", "validate", "message"),
    [
        (["nort"], [], r"unknown domain \(hospital\) 'nort': did you mean 'north'"),
        (["north", "north"], [], "domains: north is named twice"),
        (["north"], ["north"], "domains: north is named twice"),
        (["north", "south"], ["west"], "none of north, south, west is left to test out of"),
    ],
)
def test_mistakes_are_named(train, validate, message):
    with pytest.raises(InputError, match=message):
        hold_out_domains(patients(), train, validate)


def test_data_without_domains_or_classes_are_refused():
    samples = patients()
    with pytest.raises(InputError, match="domains: the dataset has none"):
        hold_out_domains(replace(samples, domain=""), ["north"])
    alone = samples.take(np.flatnonzero(samples.attributes["hospital"] == "north"))
    with pytest.raises(InputError, match="domain hospital: 'north' alone"):
        hold_out_domains(alone, ["north"])
    north = (samples.attributes["hospital"] == "north").to_numpy()
    one_class = replace(samples, y=np.where(north, 0, samples.y))
    with pytest.raises(InputError, match="domains north: split_0: its train part has no row of"):
        hold_out_domains(one_class, ["north"])


def test_units_of_training_domains_must_leave_rows_to_test():
    samples = patients()
    everywhere = replace(samples, units=np.zeros(len(samples), dtype=np.int64))
    with pytest.raises(
        InputError, match="split_0 has no row of south to test, allowed: rows whose"
    ):
        hold_out_domains(everywhere, ["north"], test=["south"])


def test_groups_and_classes_that_a_domain_lacks_are_named(caplog):
    samples = patients()
    kind, hospital = samples.attributes["kind"], samples.attributes["hospital"]

    def without(name: str) -> Samples:
        alone = kind.mask((hospital == name).to_numpy(), "group 0")
        return replace(samples, attributes=samples.attributes.assign(kind=alone))

    hold_out_domains(without("west"), ["north"])
    (warning,) = caplog.messages
    assert warning.startswith("domain west has no row of kind group 1: ")
    caplog.clear()
    west = (hospital == "west").to_numpy()
    hold_out_domains(replace(samples, y=np.where(west, 0, samples.y)), ["north"])
    (warning,) = caplog.messages
    assert warning.startswith(f"domain west has no row of class {samples.classes[1]}: ")
    message = "all training rows of split_0 have kind group 0, allowed: rows of two groups or more"
    with pytest.raises(InputError, match=message):
        hold_out_domains(without("north"), ["north"])


def test_samples_with_domains_are_saved_and_read(tmp_path):
    held = hold_out_domains(patients(visits=2), ["north"])
    catalog = SamplesDataset(filepath=str(tmp_path / "samples.safetensors"))
    catalog.save(held)
    again = catalog.load()
    assert again.domain == "hospital"
    np.testing.assert_array_equal(again.units, held.units)
    pd.testing.assert_frame_equal(again.splits, held.splits)


def test_every_domain_is_a_test_set():
    """Accuracies by domain against scikit-learn's, in distribution and out of it."""
    held = hold_out_domains(patients(), ["north", "west"])
    cell = make_cell(seeds=(0, 1))
    models, validation, _, _ = training.train(held, cell)
    chosen = training.select(held, validation, cell)
    predictions = training.predict(held, models, chosen, cell, {})
    rows = training.evaluate(held, predictions, chosen, cell, {})
    values = rows[rows["metric"] == "accuracy"].set_index(["seed", "domain"])["value"]
    assert set(values.index) == {(seed, name) for seed in (0, 1) for name in ["", *HOSPITALS]}
    hospital = held.attributes["hospital"]
    for prediction in predictions:
        right, y = prediction.outputs.argmax(1), held.y[prediction.rows]
        if prediction.part == "test":
            assert values[prediction.seed, ""] == pytest.approx(accuracy_score(y, right))
        for name in HOSPITALS:
            in_domain = (hospital[prediction.rows] == name).to_numpy()
            if in_domain.any():
                expected = accuracy_score(y[in_domain], right[in_domain])
                assert values[prediction.seed, name] == pytest.approx(expected)
                assert (prediction.part == "ood_test") == (name == "south")
