"""Settings of a cell, and what is refused."""

import numpy as np
import pytest

from robust_fairness.core.errors import InputError
from robust_fairness.experiment.experiment import Cell, require_replicas
from robust_fairness.training.records import Fitted, Prediction, from_arrays, to_arrays
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": {"name": "cumma"}}, "did you mean 'cuma'"),
        ({"network": {"name": "mpl"}}, "did you mean 'mlp'"),
        ({"metrics": ["acuracy"]}, "did you mean 'accuracy'"),
        ({"selections": ["evry"]}, "unknown"),
        (
            {"selections": [{"objective": "delta_dp", "subject_to": {"acuracy": 0.9}}]},
            "did you mean 'accuracy'",
        ),
        (
            {"selections": [{"objective": "delta_pd", "subject_to": {"accuracy": 0.9}}]},
            "did you mean 'delta_dp'",
        ),
        ({"selections": ["delta_dp with 0.9 of accuracy"]}, "subject_to: {accuracy: 0.9}} now"),
        ({"selections": [{"objective": "delta_dp", "subject": {}}]}, "did you mean 'subject_to'"),
        ({"selections": [{"subject_to": {"accuracy": 0.9}}]}, "allowed: {objective: METRIC"),
        (
            {"selections": [{"objective": "delta_dp", "subject_to": {"accuracy": 0}}]},
            "a share above 0, at most 1",
        ),
        (
            {"selections": [{"objective": "delta_dp", "subject_to": {"accuracy": 1.5}}]},
            "a share above 0, at most 1",
        ),
        (
            {"selections": [{"objective": "every", "subject_to": {"accuracy": 0.9}}]},
            "unknown metric 'every'",
        ),
        (
            {"selections": [{"objective": "delta_dp", "subject_to": {"accuracy@test": 0.9}}]},
            "unknown part of the rows",
        ),
        ({"method": {"name": "cuma", "gamma": -1}}, "greater than or equal to 0"),
        ({"method": {"name": "cuma", "gama": 1}}, "Extra inputs"),
        ({"protocol": {"epochs": 0}}, "greater than or equal to 1"),
        ({"protocol": {"device": "tpu"}}, "'auto', 'cpu' or 'cuda'"),
        ({"seeds": []}, "at least 1 item"),
    ],
)
def test_bad_settings_are_refused(change, message):
    """The message names the field and what is allowed."""
    cell = make_cell("cuma").model_dump()
    good = {
        "dataset": "toy",
        "label": "cuma",
        "method": {"name": "cuma"},
        "network": {"name": "mlp"},
        "seeds": cell["seeds"],
    }
    with pytest.raises(InputError, match=message) as caught:
        Cell.model_validate(good | change)
    assert "\n" not in str(caught.value)


def test_bad_trials_are_refused():
    """A field that nobody has, a value that is not allowed, a trial given twice."""
    with pytest.raises(InputError, match="did you mean 'gamma'"):
        make_cell("cuma", ({"gama": 1},)).replicas()
    with pytest.raises(InputError, match="toy.cuma: gamma: Input should be greater than"):
        make_cell("cuma", ({"gamma": -1},)).replicas()
    with pytest.raises(InputError, match="defined twice"):
        require_replicas(make_cell("cuma", ({"gamma": 2}, {"gamma": 2})).replicas())


def test_records_survive_the_way_through_arrays():
    """Whatever is an array goes apart, the rest is plain JSON."""
    fitted = [
        Fitted("default", seed, "split_0", {"name": "mlp"}, "none", {"model.a/b": np.ones(seed)})
        for seed in (1, 2)
    ]
    predictions = [
        Prediction(
            "default", 0, "s", "", "test", np.arange(3), np.ones((3, 2)), {"curvature": np.ones(3)}
        ),
        Prediction("default", 0, "s", "noise", "test", np.arange(2), np.ones((2, 2))),
    ]
    for records in (fitted, predictions):
        back = from_arrays(type(records[0]), *to_arrays(records))
        for record, restored in zip(records, back, strict=True):
            assert repr(record) == repr(restored)
            np.testing.assert_equal(vars(record), vars(restored))
