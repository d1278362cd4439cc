"""Which training rows a prediction is scored by."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from robust_fairness import metrics
from robust_fairness.bench import training
from robust_fairness.bench.training.evaluation import count, criterion_scores, evaluate, score
from robust_fairness.bench.training.records import (
    EARLIER,
    Fitted,
    Prediction,
    from_arrays,
    to_arrays,
)
from robust_fairness.bench.training.search import choose

from .conftest import make_cell, make_samples
from .test_images import make_images

METRICS = ("accuracy_at(alpha=1)", "unbiased_accuracy", "majority_accuracy")


def predictions(samples, part: str, test_set: str = "") -> list[Prediction]:
    """Of two replicas with splits of their own."""
    result = []
    for seed, split in enumerate(samples.split_names[:2]):
        rows = samples.rows(split, part)
        outputs = np.random.default_rng(seed).normal(size=(len(rows), 2)).astype(np.float32)
        result.append(Prediction("default", seed, split, test_set, part, rows, outputs))
    return result


def evaluated(samples, predicted, shifted=None, **fields):
    """The scores of predictions of the replicas that accuracy selects."""
    validation = predictions(samples, "val")[:1]
    chosen = choose(criterion_scores(["accuracy"], validation, samples), ["accuracy"])
    return evaluate(samples, predicted, chosen, make_cell(fields=fields), shifted or {})


@pytest.mark.parametrize(
    ("samples", "network", "trials"),
    [
        (make_samples(domains=3), None, ({"learning_rate": 0.01},)),
        (make_images(), {"name": "resnet20", "blocks": 1}, ({"weight_decay": 0.1},)),
    ],
)
def test_scores_are_means_over_the_last_epochs(samples, network, trials):
    """Of trainings that end after each of them, which a constant learning rate makes equal."""
    names = ["accuracy", "accuracy_by_group", "unbiased_accuracy", "worst_group_accuracy"]
    fields = {"metrics": names, "selections": ["every", "accuracy"]}

    def scores(epochs, scored=1):
        changes = {"epochs": epochs, "scored_epochs": scored, "schedule": "constant"}
        cell = make_cell(network=network, trials=trials, fields=fields, seeds=(0, 1), **changes)
        fitted, validation, *_ = training.train(samples, cell)
        chosen = training.select(samples, validation, cell)
        arrays, rest = to_arrays(fitted)
        fitted = from_arrays(Fitted, arrays, rest)  # as a run stores them
        predicted = training.predict(samples, fitted, chosen, cell, {})
        rows = training.evaluate(samples, predicted, chosen, cell, {})
        rows = rows[rows["selection"] == "every"].reset_index(drop=True)
        return criterion_scores(["accuracy"], validation, samples), rows

    (validated, tested), *alone = scores(3, scored=2), scores(2), scores(3)
    means = sum(table["value"] for table, _ in alone) / 2
    np.testing.assert_allclose(validated["value"], means, rtol=1e-12)
    keys = ["trial", "seed", "domain", "attribute", "group", "metric", "n"]
    pd.testing.assert_frame_equal(tested[keys], alone[-1][1][keys])
    for column in ("value", "variance"):
        means = sum(table[column] for _, table in alone) / 2
        np.testing.assert_allclose(tested[column], means, rtol=1e-12)
    assert (tested["value"] != alone[-1][1]["value"]).any()


def test_a_score_that_one_epoch_lacks_is_missing():
    """As the ratio of an epoch without positive decisions; ``n`` and note say so."""
    samples = make_samples()
    (item, _) = predictions(samples, "test")
    none = np.zeros_like(item.outputs)
    together = replace(item, values={EARLIER: np.stack([none, item.outputs], axis=1)})
    names = ["demographic_parity_ratio", "accuracy"]
    rows = {row["metric"]: row for row in score(names, together, samples, samples)}
    assert rows["demographic_parity_ratio"]["value"] is None
    assert rows["demographic_parity_ratio"]["note"] == "0 in every group"
    accuracy = (item.outputs.argmax(1) == samples.y[item.rows]).mean()
    expected = ((samples.y[item.rows] == 0).mean() + 2 * accuracy) / 3
    assert rows["accuracy"]["value"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("part", ["test", "val"])
def test_shares_and_majorities_are_those_of_the_replicas_own_training_rows(part):
    """Another split's training rows give another value."""
    samples = make_samples()
    for prediction, other_split in zip(
        predictions(samples, part), ("split_1", "split_0"), strict=True
    ):
        scored = pd.DataFrame(score(METRICS, prediction, samples, samples))
        seen = samples.take(prediction.rows)
        expected, wrong = (
            pd.DataFrame(
                metrics.evaluate(METRICS, seen, prediction.outputs, train=samples.take(rows))
            )
            for rows in (samples.rows(split, "train") for split in (prediction.split, other_split))
        )
        pd.testing.assert_frame_equal(scored, expected, check_exact=True)
        assert not scored["value"].equals(wrong["value"])


def test_shifted_rows_are_scored_by_the_unshifted_training_rows():
    """A shifted sample set holds test rows only."""
    samples = make_samples()
    (plain, _), split = predictions(samples, "test"), "split_0"
    shifted = replace(samples, x=samples.x + 1).take(samples.rows(split, "test"))
    moved = replace(plain, test_set="noise", rows=np.arange(len(plain.rows)))
    fields = {"metrics": METRICS, "test_sets": {"noise": ("gaussian_noise", 0.1)}}
    table = evaluated(samples, [plain, moved], {"noise": shifted}, **fields)
    values = table.groupby("shift")["value"].apply(list)
    assert values["none"] == values["gaussian_noise"]
    assert len(values["none"]) == len(METRICS)


def test_combinations_of_the_cell_are_scored_beside_each_attribute():
    """By metrics of groups only."""
    samples = make_samples()
    attributes = samples.attributes.assign(half=samples.attributes["kind"].to_numpy()[::-1])
    samples = replace(samples, attributes=attributes.astype("category"))
    fields = {"metrics": ("accuracy_by_group", "accuracy"), "groupings": (("kind", "half"),)}
    table = evaluated(samples, predictions(samples, "test")[:1], **fields)
    assert set(table["attribute"]) == {"kind", "half", "kind & half", ""}


def test_criterion_with_options_is_scored_on_the_part_that_it_names():
    """Each prediction by the criteria of its own part."""
    samples = make_samples()
    criteria = ["accuracy_at(alpha=-1)", "unbiased_accuracy@test"]
    both = [*predictions(samples, "val"), *predictions(samples, "test")]
    scores = criterion_scores(criteria, both, samples).dropna(subset="value")
    for criterion, part in zip(criteria, ("val", "test"), strict=True):
        expected = [
            row["value"]
            for prediction in predictions(samples, part)
            for row in score([criterion.partition("@")[0]], prediction, samples, samples)
        ]
        assert scores[scores["criterion"] == criterion]["value"].tolist() == expected


def test_criterion_with_a_condition_is_scored_by_both_its_parts():
    """Each once, whatever else asks for it; and a trial can be chosen by it."""
    samples = make_samples()
    validation = predictions(samples, "val")
    criteria = ["delta_dp subject to 0.5 of the best accuracy", "accuracy", "every"]
    scores = criterion_scores(criteria, validation, samples).dropna(subset="value")
    assert scores["criterion"].value_counts().to_dict() == {"delta_dp": 2, "accuracy": 2}
    chosen = choose(scores, criteria[:1])
    assert chosen["score"].tolist() == scores[scores["criterion"] == "delta_dp"]["value"].tolist()


def test_shifted_rows_are_counted_with_what_was_predicted_before():
    """The shifted set has the tested rows only, under other numbers."""
    samples = make_samples()
    home = predictions(samples, "test")
    places = np.flatnonzero((samples.splits == "test").any(axis=1))
    shifted = samples.take(places)
    away = [
        replace(
            item, test_set="noise", rows=np.searchsorted(places, item.rows), outputs=-item.outputs
        )
        for item in home
    ]
    assert not np.array_equal(away[0].rows, home[0].rows)
    cell = make_cell(fields={"test_sets": {"noise": ("gaussian_noise", 0.1)}})
    counted = count(samples, [*home, *away], cell, {"noise": shifted})
    counted = counted[(counted["attribute"] == "") & (counted["shift"] == "gaussian_noise")]
    for item in home:
        rows = counted[counted["seed"] == item.seed]
        assert (rows["before"] + rows["decision"] == 1).all()
        assert rows.groupby("before")["n"].sum().to_list() == list(
            np.bincount(item.outputs.argmax(1))
        )
    moved = [replace(item, rows=item.rows[::-1]) for item in away]
    unpaired = count(samples, [*home, *moved], cell, {"noise": shifted})
    assert (unpaired["before"] == -1).all()
