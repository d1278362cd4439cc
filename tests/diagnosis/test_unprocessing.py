"""Every cell unprocessed: points that are computed by hand, and the view of them."""

from dataclasses import replace

import numpy as np
import pytest

from robust_fairness.core import tables
from robust_fairness.diagnosis.unprocessing import frontier
from robust_fairness.reporting.results import Results
from robust_fairness.reporting.unprocessing import draw, unprocessing
from robust_fairness.training.records import Prediction
from tests.training.conftest import make_samples


def predictions_of(samples, score, *parts) -> list[Prediction]:
    outputs = np.log(np.stack([1 - score, score], axis=1)).astype(np.float32)
    predictions = []
    for part in parts:
        rows = samples.rows("split_0", part)
        predictions.append(Prediction("default", 0, "split_0", "", part, rows, outputs[rows]))
    return predictions


def points() -> tuple:
    samples = make_samples(rows=600, domains=3)
    score = np.random.default_rng(0).uniform(0.1, 0.9, len(samples)) * 0.6 + 0.3 * samples.y
    cells = {
        name: tuple(
            predictions_of(samples, scores, *parts) for parts in (["val"], ["test", "ood_test"])
        )
        for name, scores in {"good": score, "noise": 1 - score}.items()
    }
    return samples, score, frontier("toy", samples, cells)


def test_points_are_those_of_the_rows_in_distribution_and_in_each_domain():
    samples, score, table = points()
    plain = table[table["tolerance"].isna() & (table["method"] == "good")].set_index("domain")
    assert plain.index.tolist() == ["", "site 0", "site 1", "site 2"]
    assert plain["away"].tolist() == [False, False, False, True]
    group = samples.attributes["kind"].cat.codes.to_numpy()
    for domain, part in (("", "test"), ("site 2", "ood_test")):
        rows = samples.rows("split_0", part)
        y, decided = samples.y[rows], score[rows] > 0.5
        rates = [[decided[(y == k) & (group[rows] == g)].mean() for g in (0, 1)] for k in (0, 1)]
        assert plain.loc[domain, "accuracy"] == pytest.approx((decided == y).mean())
        assert plain.loc[domain, "gap"] == pytest.approx(max(np.ptp(rate) for rate in rates))
    free = table[(table["tolerance"] == 1) & (table["method"] == "good")]
    assert free["validation_accuracy"].nunique() == 1


def test_the_view_compares_with_the_best_model_on_validation_rows():
    *_, table = points()
    metrics = tables.table(tables.METRICS, [])
    rows = unprocessing(Results.of(metrics, frontier=table))
    assert set(rows["frontier of"]) == {"good"}
    noise = rows[rows["method"] == "noise"]
    assert (noise["difference"].dropna() < 0).all() and noise["difference"].notna().any()
    assert len(draw(rows).data) == 2 * 3  # the frontier and two methods, at home and elsewhere


def test_nothing_is_unprocessed_without_two_classes_or_a_class_in_some_group():
    samples, score, _ = points()
    predicted = predictions_of(samples, score, "val"), predictions_of(samples, score, "test")
    one_class = samples.y * (samples.attributes["kind"].cat.codes.to_numpy() == 0)
    assert frontier("toy", replace(samples, y=one_class), {"good": predicted}).empty
    assert frontier("toy", replace(samples, sensitive=()), {"good": predicted}).empty
