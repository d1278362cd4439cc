"""Trials of a cell, and records of what was trained."""

import numpy as np

from robust_fairness.bench.training.records import Fitted, Prediction, from_arrays, to_arrays
from tests.training.conftest import make_cell


def test_trials_change_fields_of_method_network_or_protocol():
    """Each field belongs to one owner; the default trial comes first, with every seed."""
    cell = make_cell("cuma", ({"alpha": 0.1}, {"dropout": 0.5, "gamma": 3}, {"epochs": 9}))
    replicas = cell.replicas()
    assert [replica.trial for replica in replicas[::3]] == [
        "default",
        "alpha=0.1",
        "dropout=0.5,gamma=3",
        "epochs=9",
    ]
    assert [replica.seed for replica in replicas[:3]] == [0, 1, 2]
    assert replicas[3].method.alpha == 0.1
    assert (replicas[6].network.dropout, replicas[6].method.gamma) == (0.5, 3)
    assert replicas[9].protocol.epochs == 9


def test_replicas_go_round_the_splits():
    """Seed 4 of three splits uses the second."""
    replica = make_cell(seeds=(4,)).replicas()[0]
    assert replica.split(["a", "b", "c"]) == "b"


def test_records_survive_the_way_through_arrays():
    """Whatever is an array goes apart, the rest is plain JSON."""
    fitted = [
        Fitted("default", seed, "split_0", {"name": "mlp"}, "none", {"model.a/b": np.ones(seed)})
        for seed in (1, 2)
    ]
    predictions = [
        Prediction(
            "default",
            0,
            "s",
            "",
            "test",
            np.arange(3),
            np.ones((3, 2)),
            {"curvature": np.ones(3), "embedding": np.ones((3, 2), np.float32)},
        ),
        Prediction("default", 0, "s", "noise", "test", np.arange(2), np.ones((2, 2))),
    ]
    for records in (fitted, predictions):
        back = from_arrays(type(records[0]), *to_arrays(records))
        for record, restored in zip(records, back, strict=True):
            assert repr(record) == repr(restored)
            np.testing.assert_equal(vars(record), vars(restored))
