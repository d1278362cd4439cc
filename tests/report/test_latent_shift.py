"""Views and claims of Control+Shift: lines of the stored scores by scipy, and figures."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.latent_shift import views as study
from robust_fairness.report.views import published
from tests.golden.others import results_of
from tests.report.made_up import results, row

VIEWS = {view.id: view for view in SECTIONS["latent_shift"].views}


def shown(name: str) -> pd.DataFrame:
    """Rows of a view of the stored scores."""
    return VIEWS[name].rows(results_of("latent_shift"))


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    """Stored accuracies by replica and severity, with the change from the unshifted test set."""
    rows = results_of("latent_shift").metrics.query(
        "metric == 'accuracy' and attribute == '' and domain == '' and trial == 'default'"
    )
    keys = ["dataset", "method", "seed", "shift", "severity"]
    rows = rows.drop_duplicates(keys)[[*keys, "value"]]
    home = rows[rows["shift"] == "none"].drop(columns=["shift", "severity"])
    rows = rows.merge(home, on=keys[:3], suffixes=("", "_home"))
    return rows.assign(change=rows["value"] - rows["value_home"])


def test_slopes_are_scipys_with_the_interval_of_the_seeds(scores):
    """By angle through the unshifted set, by R without it; and net of the reference classifier."""
    slopes = shown("latent_slopes").set_index(["dataset", "method", "against"])
    quality = results_of("latent_shift").generator_quality.set_index(["dataset", "shift"])
    compared = 0
    for (dataset, method, shift), part in scores.groupby(["dataset", "method", "shift"]):
        if shift not in study.AXES or "full" in dataset:
            continue
        against, cell = study.AXES[shift], part
        if against == "angle":
            home = part.drop_duplicates("seed").assign(severity=0.0, change=0.0)
            cell = pd.concat([part[part["severity"] > 0], home])
        line = slopes.loc[(dataset, method, against)]
        every = stats.linregress(cell["severity"], cell["change"])
        assert (line["slope"], line["intercept"], line["R squared"]) == pytest.approx(
            (every.slope, every.intercept, every.rvalue**2)
        )
        of_seeds = [
            stats.linregress(seed["severity"], seed["change"]).slope
            for _, seed in cell.groupby("seed")
        ]
        assert (line["points"], line["units"]) == (len(cell), len(of_seeds))
        if not line["note"]:
            expected = stats.ttest_1samp(of_seeds, 0).confidence_interval(0.95)
            assert (line["low"], line["high"]) == pytest.approx((expected.low, expected.high))
        if against == "angle" and (dataset, shift) in quality.index:
            known = quality.loc[(dataset, shift)].set_index("severity")["accuracy"]
            lost = quality.loc[(dataset, "none"), "accuracy"].item() - known
            net = cell["change"] + cell["severity"].map(lost).fillna(0.0)
            expected = stats.linregress(cell["severity"], net).slope
            assert slopes.loc[(dataset, method, against + study.NET), "slope"] == pytest.approx(
                expected
            )
            compared += 1
    assert compared > 20


def test_lines_of_figure_6_go_through_all_cells_of_a_kind():
    """scipy's line through the points, which a solid or a dashed one draws from left to right."""
    rows = shown("latent_figure_6")
    for _, part in rows.groupby(study.LINE):
        points = part.loc[part.index.repeat(part["seeds"])]
        line = stats.linregress(points["distance"], points["ours"])
        expected = line.intercept + line.slope * part["distance"]
        np.testing.assert_allclose(part["fitted"], expected, atol=1e-9)
    figure = VIEWS["latent_figure_6"].draw(rows)
    drawn = [trace for trace in figure.data if trace.mode == "lines" and len(trace.x)]
    assert len(drawn) == len(rows.groupby(study.LINE))
    assert {trace.line.dash for trace in drawn} == {"solid", "dash"}
    assert all(np.all(np.diff(trace.x) >= 0) for trace in drawn)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert {trace.marker.symbol for trace in points} == {"circle", "x"}


def test_a_point_is_the_mean_over_seeds_with_students_interval(scores):
    rows = shown("latent_figure_3")
    keys = ["dataset", "method", "shift", "severity"]
    values = scores[scores["shift"] != "none"].groupby(keys)["value"]
    of_points = rows[rows["severity"] > 0].set_index(keys)
    assert len(of_points) > 200
    for key, point in of_points.iterrows():
        part = values.get_group(key)
        assert (point["ours"], point["seeds"]) == (pytest.approx(part.mean()), len(part))
        if part.nunique() > 1:
            expected = stats.t.interval(0.95, len(part) - 1, part.mean(), stats.sem(part))
            assert (point["low"], point["high"]) == pytest.approx(expected)


def test_an_angle_of_zero_is_the_unshifted_set_once():
    """But for a training set of all latent space, which is at no angle."""
    facets = {"whole": {"training_set": "full"}}
    rows = [
        row(dataset=dataset, shift=shift, severity=severity, value=0.9 - severity / 100)
        for dataset in ("subset", "whole")
        for shift, severity in (("none", 0.0), ("overlap", 0.0), ("overlap", 5.0))
    ]
    points = VIEWS["latent_figure_3"].make(results=results(rows, facets))
    assert points["severity"].tolist() == [0.0, 5.0]
    every = study.accuracies(results(rows, facets)).dropna(subset="position")
    assert every.groupby("dataset")["position"].apply(list).to_dict() == {
        "subset": [0.0, 5.0], "whole": [0.0, 5.0],
    }  # fmt: skip
    assert every.groupby("dataset")["severity"].apply(lambda some: some.isna().sum()).to_dict() == {
        "subset": 1, "whole": 0,
    }  # fmt: skip


def test_the_only_number_of_the_paper_stands_beside_augmented_classifiers():
    rows = shown("latent_drop")
    augmented = rows["augmentation"] == study.WITH
    assert rows[augmented]["published"].eq(-0.10).all()
    assert rows[augmented]["note"].str.contains("4.2.1").all()
    assert rows[~augmented]["published"].isna().all()
    assert len(published("latent_shift")) == 1


def test_quality_of_a_generator_has_wilsons_interval():
    for line in shown("latent_quality").to_dict("records"):
        share, rows = line["accuracy on generated rows"], line["generated rows"]
        expected = stats.binomtest(round(share * rows), rows).proportion_ci(method="wilson")
        assert (line["low"], line["high"]) == pytest.approx(tuple(expected))


def test_figure_1_has_a_diagonal_in_every_panel():
    rows = shown("latent_figure_1")
    figure = VIEWS["latent_figure_1"].draw(rows)
    diagonal = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(diagonal) == len(rows[["dataset", "shift"]].drop_duplicates())
    assert all(list(trace.x) == list(trace.y) for trace in diagonal)


def test_changes_of_rows_that_were_counted_before_the_shift_are_paired():
    """Against the variance of the change by row, with half a row added to each kind of change."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 3, 400)
    home = np.where(rng.random(400) < 0.1, rng.integers(0, 3, 400), label)
    away = np.where(rng.random(400) < 0.2, rng.integers(0, 3, 400), home)
    key = {"dataset": "shapes_extend", "method": "resnet20", "trial": "default", "seed": 0}
    scored = [
        row(**key, value=(home == label).mean(), n=400),
        row(**key, shift="extend", severity=30.0, value=(away == label).mean(), n=400),
    ]
    joint = pd.DataFrame({"label": label, "before": home, "decision": away})
    counted = joint.groupby([*joint], as_index=False).size().rename(columns={"size": "n"})
    counts = counted.assign(
        **key, shift="extend", severity=30.0, domain="", attribute="", sensitive=True, group="",
        **{"class": ""},
    )  # fmt: skip
    counts = tables.table(tables.COUNTS, counts.to_dict("records"))
    metrics = tables.table(tables.METRICS, scored)
    changes = [
        rows[rows["metric"] == "change_at_largest"]["variance"].item()
        for rows in (
            study.measured(results(metrics, counts=counts)),
            study.measured(results(metrics)),
        )
    ]
    change = (away == label).astype(float) - (home == label)
    with_halves = np.concatenate([np.repeat(change, 2), [1, -1, 0, 0]])
    assert changes[0] == pytest.approx(with_halves.var() / 402, rel=1e-3)
    assert changes[0] < 0.9 * changes[1]
