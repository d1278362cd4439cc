"""Embeddings that are kept with predictions, and what metrics and selection make of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from robust_fairness.bench import training
from robust_fairness.bench.maths.embeddings import clusters, same_class_rank
from robust_fairness.bench.training.data import part_rows
from robust_fairness.bench.training.evaluation import evaluate, score
from robust_fairness.bench.training.prediction import (
    UNSHIFTED,
    FittedStack,
    due_quantities,
    predict,
)
from robust_fairness.bench.training.records import Prediction
from robust_fairness.report.embedding_plane import in_plane

from .conftest import make_cell, make_samples
from .test_images import make_image_cell, make_images

METRICS = ("recall_at_by_group", "worst_group_nmi", "u_kl", "delta_er_one_shot", "accuracy")


def fitted_cell(samples, cell):
    """Replicas after one epoch of training."""
    return training.train(samples, cell)[0]


def features_by_hand(fitted, samples, rows) -> np.ndarray:
    """One replica's features of the rows."""
    stack = FittedStack([fitted], samples, torch.device("cpu"))
    with torch.no_grad():
        inputs = stack.inputs(samples, torch.from_numpy(rows)[None])
        return stack.model.features(inputs)[0].double().numpy()


@pytest.mark.parametrize("network", ["mlp", "resnet20"])
def test_embedding_is_the_features_at_length_one(network):
    """Of every replica, on every test set; neighbours and clusters are those of the whole set."""
    if network == "mlp":
        samples, cell = make_samples(classes=3), make_cell(seeds=(0, 1), epochs=1)
    else:
        samples, cell = make_images(), make_image_cell(network=network)
    cell = cell.model_validate(cell.model_dump() | {"metrics": METRICS[:3]})
    fitted = fitted_cell(samples, cell)
    x = samples.x + 1 if network == "mlp" else 255 - samples.x
    test_sets = {UNSHIFTED: samples, "shifted": replace(samples, x=x)}
    predictions = predict(samples, fitted, cell, test_sets)
    assert len(predictions) == 4
    for prediction in predictions:
        (model,) = (model for model in fitted if model.seed == prediction.seed)
        features = features_by_hand(model, test_sets[prediction.test_set], prediction.rows)
        assert features.ndim == 2
        expected = features / np.linalg.norm(features, axis=1, keepdims=True)
        values, y = prediction.values, samples.y[prediction.rows]
        embedding = values["embedding"]
        assert embedding.dtype == np.float32
        np.testing.assert_allclose(embedding, expected, atol=2e-6)
        np.testing.assert_array_equal(values["same_class_rank"], same_class_rank(embedding, y))
        expected_clusters = clusters(embedding, len(np.unique(y)))
        np.testing.assert_array_equal(values["cluster"], expected_clusters)
    of_first_seed = [prediction for prediction in predictions if prediction.seed == 0]
    unshifted, shifted = (prediction.values["embedding"] for prediction in of_first_seed)
    assert not np.array_equal(unshifted, shifted)


def test_places_are_averaged_before_lengths_become_one(monkeypatch):
    """A row of zeros stays one."""
    samples, cell = make_samples(), make_cell(seeds=(0,), epochs=1)
    stack = FittedStack(fitted_cell(samples, cell), samples, torch.device("cpu"))
    rows = part_rows(samples, ["split_0"], "test")
    places = np.random.default_rng(0).normal(size=(1, rows.shape[1], 4, 2, 3))
    places[0, 5] = 0
    monkeypatch.setattr(stack.model, "features", lambda x: torch.from_numpy(places))
    expected = places[0].mean((-1, -2))
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    lengths[5] = 1
    np.testing.assert_allclose(stack.embedding(samples, rows)[0], expected / lengths, rtol=1e-5)


def test_what_is_kept_is_what_is_asked_for():
    """Curvatures on unshifted test rows; on validation rows, what criteria ask for."""
    cell = make_cell(fields={"metrics": METRICS, "selections": ("accuracy", "every")})
    everything = ["curvature_one_shot", "embedding", "same_class_rank", "cluster"]
    assert due_quantities(cell, UNSHIFTED, "test") == everything
    assert due_quantities(cell, "shifted", "test") == everything[1:]
    assert due_quantities(cell, UNSHIFTED, "val") == ["embedding"]
    criteria = {
        "selections": ("accuracy", "worst_group_recall_at(k=4)@unbiased_val"),
        "search_by": "delta_dp subject to 0.9 of the best nmi",
    }
    chosen = make_cell(fields={"metrics": ("accuracy",), **criteria})
    assert due_quantities(chosen, UNSHIFTED, "test") == []
    assert due_quantities(chosen, UNSHIFTED, "val") == ["embedding", "cluster"]
    assert due_quantities(chosen, UNSHIFTED, "unbiased_val") == ["embedding", "same_class_rank"]
    plain = make_cell(fields={"metrics": ("delta_er", "accuracy")})
    assert due_quantities(plain, UNSHIFTED, "val") == []
    assert due_quantities(plain, "shifted", "test") == []


def test_quantity_that_is_not_kept_is_that_of_an_embedding_all_the_same():
    """Where only neighbours are asked for, the embedding is made and dropped."""
    samples = make_samples()
    whole, few = (
        make_cell(seeds=(0,), epochs=1, fields={"metrics": metrics})
        for metrics in (["recall_at", "u_kl"], ["recall_at"])
    )
    fitted = fitted_cell(samples, whole)
    (both,) = predict(samples, fitted, whole, {UNSHIFTED: samples})
    (ranked,) = predict(samples, fitted, few, {UNSHIFTED: samples})
    assert set(ranked.values) == {"same_class_rank"}
    np.testing.assert_array_equal(ranked.values["same_class_rank"], both.values["same_class_rank"])


def test_trials_are_chosen_by_what_their_embeddings_are_worth():
    """A network of one feature has no neighbours to speak of."""
    samples = make_samples(rows=400, classes=4)
    asked = {"metrics": ["recall_at_by_group"], "selections": ["worst_group_recall_at", "nmi"]}
    cell = make_cell(trials=({"features": 1},), seeds=(0, 1), epochs=8, fields=asked)
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    assert len(chosen) == 4
    assert set(chosen["trial"]) == {"default"}
    by_replica = {(prediction.trial, prediction.seed): prediction for prediction in validation}
    for row in chosen.to_dict("records"):
        prediction = by_replica[row["trial"], row["seed"]]
        (scored,) = score([row["selection"]], prediction, samples, samples)
        assert row["score"] == scored["value"]
    predictions = training.predict(samples, fitted, chosen, cell, {})
    table = training.evaluate(samples, predictions, chosen, cell, {})
    assert set(table["group"]) == {"group 0", "group 1"}
    assert table["value"].between(0, 1).all()


def test_continuous_outcome_has_an_embedding_but_no_neighbours_of_a_class():
    """Metrics of classes say that they do not apply."""
    samples = make_samples(classes=0)
    asked = {"metrics": ["u_kl", "recall_at", "nmi"], "selections": ["mean_squared_error"]}
    cell = make_cell(seeds=(0,), epochs=1, fields=asked)
    (prediction,) = predict(samples, fitted_cell(samples, cell), cell, {UNSHIFTED: samples})
    assert set(prediction.values) == {"embedding"}
    rows = score(cell.metrics, prediction, samples, samples)
    assert [row["value"] is None for row in rows] == [False, True, True]
    assert all("not applicable" in row["note"] for row in rows[1:])


def test_attribute_of_a_split_is_scored_for_its_replicas():
    """As the classes that are cut, which are others in every split."""
    samples = make_samples()
    names = np.array(["majority", "minority"])
    sizes = {
        split: pd.DataFrame({"class_size": pd.Categorical(names[(samples.y + number) % 2])})
        for number, split in enumerate(samples.split_names[:2])
    }
    samples = replace(samples, split_attributes=sizes, sensitive=("class_size",))
    for number, split in enumerate(samples.split_names[:2]):
        rows = samples.rows(split, "test")
        outputs = np.eye(2, dtype=np.float32)[np.zeros(len(rows), int)]
        prediction = Prediction("default", number, split, "", "test", rows, outputs)
        scores = score(["accuracy_by_group", "accuracy_majority_gap"], prediction, samples, samples)
        assert {row["attribute"] for row in scores} == {"kind", "class_size"}
        of = {row["group"]: row["value"] for row in scores if row["attribute"] == "class_size"}
        assert (of["majority"], of["minority"]) == ((1, 0) if number == 0 else (0, 1))
        (gap,) = (
            r for r in scores if r["metric"] != "accuracy_by_group" and r["attribute"] != "kind"
        )
        sizes_of_training = sizes[split]["class_size"].iloc[samples.rows(split, "train")]
        majority = sizes_of_training.value_counts().idxmax()
        assert gap["value"] == 2 * of[majority] - 1


def test_every_row_tells_the_network_of_its_own_trial():
    """Trials may have other backbones."""
    samples = make_samples()
    other = {"backbone": {"name": "linear"}}
    fields = {"metrics": ["accuracy"]}
    cell = make_cell("metric_learning", (other,), seeds=(0,), epochs=1, fields=fields)
    fitted = fitted_cell(samples, cell)
    predictions = predict(samples, fitted, cell, {UNSHIFTED: samples})
    assert len({prediction.trial for prediction in predictions}) == 2
    every = pd.DataFrame(
        {"selection": "every", "trial": [prediction.trial for prediction in predictions], "seed": 0}
    )
    rows = evaluate(samples, predictions, every, cell, {})
    networks = rows.set_index("trial")["network"]
    assert networks["default"] == "embedding of mlp"
    assert set(networks.drop("default")) == {"embedding of linear"}


def test_embeddings_of_length_zero_have_values():
    """All rows in one place: no neighbour of the class is near, and no plane but a point."""
    samples = make_samples(classes=3)
    quantities = ("recall_at", "recall_at_by_group", "nmi", "nmi_by_group", "u_kl", "u_kl_by_group")
    alignments = ("positive_alignment", "negative_alignment", "positive_alignment_by_group")
    cell = make_cell("metric_learning", seeds=(0,), epochs=1, fields={"metrics": quantities})
    (fitted,) = fitted_cell(samples, cell)
    state = {
        name: np.zeros_like(array) if ".projection." in name else array
        for name, array in fitted.state.items()
    }
    (prediction,) = predict(samples, [replace(fitted, state=state)], cell, {UNSHIFTED: samples})
    assert not prediction.values["embedding"].any()
    assert np.isfinite(prediction.outputs).all()
    rows = score((*quantities, *alignments), prediction, samples, samples)
    for name in ("recall_at", "recall_at_by_group", *alignments):
        assert {row["value"] for row in rows if row["metric"] == name} == {0.0}, name
    for row in rows:
        assert row["value"] is None or np.isfinite(row["value"])
        assert row["value"] is not None or row["note"]
    assert not in_plane(prediction.values["embedding"]).any()
