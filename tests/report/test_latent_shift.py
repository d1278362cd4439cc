"""Views and claims of Control+Shift, on made-up scores whose right answers are known."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.catalog.schemas import Schema
from robust_fairness.core import tables
from robust_fairness.core.errors import Failure
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.latent_shift import views as study
from robust_fairness.pipelines.evaluation.nodes import join
from robust_fairness.report import Results, report
from robust_fairness.report.views import published
from tests.report.made_up import results
from tests.report.made_up import row as any_row

SECTION = SECTIONS["latent_shift"]
VIEWS = {view.id: view for view in SECTION.views}
ANGLES = (5.0, 15.0, 30.0)
RADII = (0.9, 1.0, 1.1)
TRANSFORMER = "vision_transformer"
SEEDS = 5
# Accuracy unshifted and slope per degree, by label: the middle over seeds.
CELLS = {
    "resnet20": (0.80, -0.004),
    "resnet20_randaugment": (0.88, -0.002),
    TRANSFORMER: (0.70, -0.008),
    f"{TRANSFORMER}_randaugment": (0.75, -0.006),
    "rbf_svm": (0.60, -0.010),
}
# A dataset's own factor of all slopes.
DATASETS = {
    "shapes_extend": ("extend", 1.0),
    "shapes_overlap": ("overlap", 1.0),
    "shapes_overlap_large": ("overlap", 0.97),
    "shapes_overlap_full": ("overlap", 0.0),
    "shapes_truncation": ("truncation", 40.0),
}
PER_DEGREE = {"pixels": 0.1, "features": 0.5}  # of 1-NN distance above the origin
ORIGIN = {"pixels": 2.0, "features": 7.0}


FACETS = {
    "shapes_overlap_large": {"study": "shapes_overlap", "training_set": "large"},
    "shapes_overlap_full": {"study": "shapes_overlap", "training_set": "full"},
} | {
    f"{name}_randaugment": {"classifier": name, "augmentation": "randaugment"}
    for name in ("resnet20", TRANSFORMER)
}
row = partial(
    any_row,
    dataset="shapes_extend",
    method="resnet20",
    network="resnet20",
    selection="accuracy",
)


def tilt(seed: int) -> float:
    """What a seed adds to its slope, as a share of it; 0 in the mean."""
    return 0.02 * (seed - (SEEDS - 1) / 2)


def made_up() -> pd.DataFrame:
    """Accuracies on lines: a seed has its own slope and its own accuracy."""
    rows = []
    for dataset, (shift, factor) in DATASETS.items():
        for method, (accuracy, slope) in CELLS.items():
            for seed in range(SEEDS):
                key = {
                    "dataset": dataset, "method": method, "seed": seed,
                    "network": method.removesuffix("_randaugment"),
                }  # fmt: skip
                of_seed = accuracy + 0.01 * tilt(seed)
                rows.append(row(**key, value=of_seed))
                for severity in RADII if shift == "truncation" else ANGLES:
                    start = RADII[0] if shift == "truncation" else 0.0
                    change = factor * slope * (1 + tilt(seed)) * (severity - start)
                    rows.append(row(**key, shift=shift, severity=severity, value=of_seed + change))
    others = [
        row(metric="delta_eo", attribute="class", value=0.3),
        row(shift="gaussian_noise", severity=0.1, value=0.1),
        row(trial="learning_rate=1", value=0.1),
        row(dataset="diabetes", method="erm", value=0.7),
    ]
    return tables.table(tables.METRICS, rows + others)


def distances() -> pd.DataFrame:
    """Distances that rise with the angle; overlap's were not measured."""
    rows = [
        {
            "dataset": "shapes_extend", "shift": shift, "severity": severity, "space": space,
            "value": ORIGIN[space] + PER_DEGREE[space] * severity, "n": 300,
        }
        for space in ORIGIN
        for shift, severity in (("none", 0.0), *(("extend", angle) for angle in ANGLES))
    ]  # fmt: skip
    return tables.table(tables.DISTANCES, rows)


LOST = 0.001  # by the reference classifier, per degree


def generator_quality() -> pd.DataFrame:
    return tables.table(
        tables.GENERATOR_QUALITY,
        [
            {
                "generator": "shapes", "dataset": "shapes_extend", "shift": shift,
                "severity": severity, "classifier": "svm", "rows": 200,
                "accuracy": 0.95 - LOST * severity, "real_rows": 360, "real_accuracy": 0.99,
            }
            for shift, severity in [("none", 0.0), *(("extend", float(angle)) for angle in ANGLES)]
        ],
    )  # fmt: skip


FURTHER = {"distances": distances(), "generator_quality": generator_quality()}


def run(metrics: pd.DataFrame | None = None, **further) -> Results:
    """The results of a run."""
    return results(made_up() if metrics is None else metrics, FACETS, **further)


def view(name: str, metrics: pd.DataFrame | None = None, **further) -> pd.DataFrame:
    """Rows of a view."""
    return VIEWS[name].rows(run(metrics, **further))


def test_the_made_up_tables_are_tables():
    for name, frame in (
        ("metrics", made_up()),
        ("distances", distances()),
        ("generator_quality", generator_quality()),
    ):
        Schema(name).validate(frame)


def test_slopes_are_those_of_the_made_up_lines():
    """By degree and by distance, with the interval of seeds around them."""
    slopes = view("latent_slopes", **FURTHER).set_index(["dataset", "method", "against"])
    for method, (_, slope) in CELLS.items():
        line = slopes.loc[("shapes_extend", method, "angle")]
        assert line["slope"] == pytest.approx(slope, rel=1e-9)
        assert line["intercept"] == pytest.approx(0, abs=1e-12)
        of_seeds = [slope * (1 + tilt(seed)) for seed in range(SEEDS)]
        expected = stats.ttest_1samp(of_seeds, 0).confidence_interval(0.95)
        assert (line["low"], line["high"]) == pytest.approx((expected.low, expected.high))
        assert (line["points"], line["units"]) == (4 * SEEDS, SEEDS)
        assert 0.99 < line["R squared"] < 1
        for space, rise in PER_DEGREE.items():
            by_distance = slopes.loc[("shapes_extend", method, f"1-NN distance, {space}")]
            assert by_distance["slope"] == pytest.approx(slope / rise, rel=1e-9)
            assert by_distance["intercept"] == pytest.approx(-slope / rise * ORIGIN[space])
        net = slopes.loc[("shapes_extend", method, f"angle{study.NET}")]
        assert net["slope"] == pytest.approx(slope + LOST, rel=1e-9)
    assert not any(study.NET in name for dataset, _, name in slopes.index if "overlap" in dataset)
    against_r = slopes.loc[("shapes_truncation", TRANSFORMER, "R")]
    assert against_r["slope"] == pytest.approx(-0.008 * 40)
    assert against_r["intercept"] == pytest.approx(0.008 * 40 * 0.9)
    assert against_r["points"] == 3 * SEEDS  # the unshifted set's own R is not known
    whole = slopes.loc[("shapes_overlap_full", TRANSFORMER, "angle")]
    assert whole["slope"] == pytest.approx(0, abs=1e-12)
    assert whole["points"] == 3 * SEEDS


def test_lines_without_distances_say_so():
    """Of the datasets that have none, while others have."""
    slopes = view("latent_slopes", **FURTHER)
    missing = slopes[slopes["against"] == "1-NN distance"]
    assert set(missing["dataset"]) == set(DATASETS) - {"shapes_extend"}
    assert (missing["note"] == "not run").all()
    assert missing["slope"].isna().all()
    sets = view("latent_test_sets", **FURTHER)
    assert set(sets[sets["note"] == "not run"]["dataset"]) == set(DATASETS) - {"shapes_extend"}
    without = view("latent_slopes")
    assert (without["against"] == "1-NN distance").sum() == len(CELLS) * len(DATASETS)
    assert view("latent_figure_6").empty


def test_lines_of_figure_6_go_through_all_cells_of_a_kind():
    """Equal to scipy's, and drawn from the nearest to the furthest test set."""
    rows = view("latent_figure_6", **FURTHER)
    pixels = rows[rows["space"] == "pixels"]
    every = view("latent_slopes", **FURTHER).query(
        "method == 'all cells' and against == '1-NN distance, pixels'"
    )
    for kind, methods in (
        ("with augmentation", {"resnet20_randaugment", f"{TRANSFORMER}_randaugment"}),
        ("without augmentation", {"resnet20", TRANSFORMER, "rbf_svm"}),
    ):
        some = pixels[pixels["augmentation"] == kind]
        assert set(some["method"]) == methods
        assert some.groupby("method")["distance"].apply(list).iloc[0] == [2.0, 2.5, 3.5, 5.0]
        line = stats.linregress(some["distance"], some["ours"])
        np.testing.assert_allclose(
            some["fitted"], line.intercept + line.slope * some["distance"], atol=1e-12
        )
        told = every[every["augmentation"] == kind].iloc[0]
        assert told["slope"] == pytest.approx(line.slope)
        assert told["units"] == len(methods)
    augmented = every[every["augmentation"] == "with augmentation"].iloc[0]
    assert augmented["note"] == "" and augmented["low"] < augmented["high"]
    figure = VIEWS["latent_figure_6"].draw(rows)
    drawn = [trace for trace in figure.data if trace.mode == "lines" and len(trace.x)]
    assert len(drawn) == 4  # two spaces, with and without
    assert {trace.line.dash for trace in drawn} == {"solid", "dash"}
    assert all(np.all(np.diff(trace.x) >= 0) for trace in drawn)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert {trace.marker.symbol for trace in points} == {"circle", "x"}


def test_test_sets_are_measured_from_the_unshifted_one():
    rows = view("latent_test_sets", **FURTHER)
    measured = rows[(rows["dataset"] == "shapes_extend") & (rows["space"] == "features")]
    assert measured[["shift", "severity"]].to_numpy().tolist() == [
        ["extend", 5.0], ["extend", 15.0], ["extend", 30.0], ["none", 0.0],
    ]  # fmt: skip
    assert measured["above the unshifted set"].tolist() == pytest.approx([2.5, 7.5, 15.0, 0.0])
    assert (measured["rows"] == 300).all()
    assert "diabetes" not in set(rows["dataset"])


def test_figure_1_shows_the_strongest_set():
    rows = view("latent_figure_1").set_index(["dataset", "method"])
    strongest = rows.loc[("shapes_overlap", "resnet20")]
    assert (strongest["severity"], strongest["seeds"]) == (30.0, SEEDS)
    assert (strongest["unshifted"], strongest["shifted"]) == pytest.approx((0.80, 0.68))
    assert len(rows) == len(CELLS) * len(DATASETS)
    figure = VIEWS["latent_figure_1"].draw(view("latent_figure_1"))
    diagonal = [trace for trace in figure.data if trace.mode == "lines"]
    assert len(diagonal) == len(DATASETS)
    assert all(list(trace.x) == list(trace.y) for trace in diagonal)


def test_figure_3_has_a_line_a_network_with_the_interval_of_its_seeds():
    rows = view("latent_figure_3")
    assert set(rows["dataset"]) == {"shapes_extend", "shapes_overlap", "shapes_truncation"}
    line = rows[(rows["dataset"] == "shapes_extend") & (rows["method"] == TRANSFORMER)]
    assert line["severity"].tolist() == [0.0, 5.0, 15.0, 30.0]
    assert line["ours"].tolist() == pytest.approx([0.7, 0.66, 0.58, 0.46])
    values = [0.7 + 0.01 * tilt(seed) - 0.008 * (1 + tilt(seed)) * 30.0 for seed in range(SEEDS)]
    low, high = stats.t.interval(0.95, SEEDS - 1, np.mean(values), stats.sem(values))
    assert (line["low"].iloc[-1], line["high"].iloc[-1]) == pytest.approx((low, high))
    radii = rows[(rows["dataset"] == "shapes_truncation") & (rows["method"] == TRANSFORMER)]
    assert radii["severity"].tolist() == list(RADII)
    figure = VIEWS["latent_figure_3"].draw(rows)
    drawn = [trace for trace in figure.data if trace.name == f"{TRANSFORMER}, without augmentation"]
    assert len(drawn) == 3
    of_extend = next(
        trace for trace in drawn if len(trace.x) == 4 and trace.y[0] == line["ours"].iloc[0]
    )
    assert list(of_extend.error_y.array)[-1] == pytest.approx(high - np.mean(values))
    titles = [annotation.text for annotation in figure.layout.annotations]
    assert "shapes_truncation, truncation (R)" in titles


def test_an_angle_of_zero_is_the_unshifted_set_once():
    """Whether the grid has it or not; but for a training set of all latent space."""
    metrics = made_up()
    again = metrics[(metrics["shift"] == "none") & metrics["dataset"].isin(DATASETS)]
    shift = again["dataset"].map(lambda name: DATASETS[name][0])
    angles = again[shift != "truncation"].assign(shift=shift, severity=0.0)
    both = pd.concat([metrics, angles], ignore_index=True)
    pd.testing.assert_frame_equal(view("latent_figure_3", both), view("latent_figure_3", metrics))
    rows = view("latent_figure_5_training_sets", both)
    whole = rows[(rows["training set"] == "full support") & (rows["method"] == TRANSFORMER)]
    assert whole["severity"].tolist() == [0.0, *ANGLES]


def test_figure_4_pairs_cells_with_and_without_augmentation():
    """RBF-SVM has no partner."""
    rows = view("latent_figure_4")
    assert set(rows["method"]) == set(CELLS) - {"rbf_svm"}
    assert set(rows["shift"]) == {"extend"}
    points = view("latent_figure_4_slopes").set_index("method")
    for method in set(CELLS) - {"rbf_svm"}:
        assert points.loc[method, ["unshifted", "slope"]].tolist() == pytest.approx(CELLS[method])
    figure = VIEWS["latent_figure_4"].draw(rows)
    assert [annotation.text for annotation in figure.layout.annotations] == [
        "shapes_extend, with augmentation", "shapes_extend, without augmentation",
    ]  # fmt: skip
    assert {trace.name for trace in figure.data} == {"resnet20", TRANSFORMER}
    slopes = VIEWS["latent_figure_4_slopes"].draw(view("latent_figure_4_slopes"))
    assert {len(trace.x) for trace in slopes.data} == {2}


def test_the_drop_stands_beside_the_only_number_of_the_paper():
    rows = view("latent_drop").set_index("method")
    assert rows.loc["resnet20_randaugment", "ours"] == pytest.approx(-0.06)
    assert rows.loc["resnet20_randaugment", "published"] == -0.10
    assert "4.2.1" in rows.loc["resnet20_randaugment", "note"]
    assert np.isnan(rows.loc["resnet20", "published"])
    assert len(published("latent_shift")) == 1


def test_figure_5_compares_training_sets_of_a_network():
    """Twice as large and full support beside the dataset without the ending."""
    rows = view("latent_figure_5_training_sets")
    assert set(rows["dataset"]) == {"shapes_overlap"}
    assert set(rows["method"]) == {"resnet20", TRANSFORMER, "rbf_svm"}
    resnet = rows[(rows["method"] == "resnet20") & (rows["severity"] == 30)].set_index(
        "training set"
    )
    assert resnet["ours"].to_dict() == pytest.approx(
        {"standard": -0.12, "twice as large": -0.1164, "full support": 0.0}, abs=1e-12
    )
    figure = VIEWS["latent_figure_5_training_sets"].draw(rows)
    assert {trace.name for trace in figure.data} == set(resnet.index)
    biases = view("latent_figure_5_biases")
    assert set(biases["dataset"]) == {"shapes_overlap"}
    assert biases[biases["severity"] == 15].set_index("method")["ours"].to_dict() == pytest.approx(
        {"resnet20": -0.06, TRANSFORMER: -0.12, "rbf_svm": -0.15}
    )
    points = view("latent_figure_5_slopes")
    assert len(points) == 9
    large = points.set_index(["dataset", "method"]).loc[("shapes_overlap_large", TRANSFORMER)]
    assert large["slope"] == pytest.approx(-0.00776)


def test_a_network_of_one_training_set_is_not_in_figure_5_left():
    metrics = made_up()
    other = metrics["dataset"].str.endswith(("_large", "_full"))
    metrics = metrics[~other | (metrics["method"] == "resnet20")]
    assert set(view("latent_figure_5_training_sets", metrics)["method"]) == {"resnet20"}
    assert len(view("latent_figure_5_slopes", metrics)) == 5


def test_quality_of_a_generator_has_an_interval():
    rows = view("latent_quality", **FURTHER)
    interval = stats.binomtest(190, 200).proportion_ci(method="wilson")
    unshifted = rows.iloc[0]
    assert (unshifted["low"], unshifted["high"]) == pytest.approx(tuple(interval))
    assert (rows["accuracy on real test rows"] == 0.99).all()
    assert rows["accuracy on generated rows"].tolist()[1:] == pytest.approx([0.945, 0.935, 0.92])
    assert view("latent_quality").empty


def test_one_seed_is_shown_without_an_interval():
    metrics = made_up()
    metrics = metrics[metrics["seed"] == 0]
    rows = view("latent_figure_3", metrics)
    assert rows["low"].isna().all()
    assert (rows["seeds"] == 1).all()
    slopes = view("latent_slopes", metrics, **FURTHER)
    line = slopes[(slopes["against"] == "angle") & (slopes["method"] == TRANSFORMER)].iloc[0]
    assert line["slope"] == pytest.approx(-0.008 * (1 + tilt(0)))
    assert line["note"] == "no interval: fewer than 2 units"


def test_page_shows_every_view_with_what_the_paper_says():
    page = report(run(**FURTHER), [], {"run_id": "x"}, SECTIONS.values())
    for shown in SECTION.views:
        assert f'id="{shown.id}"' in page
        assert (f'id="figure-{shown.id}"' in page) == (shown.draw is not None)
    assert "augmentation raised the baseline accuracy" in page
    (figure_6,) = (shown for shown in SECTION.views if shown.id == "latent_figure_6")
    assert figure_6.rows(run()).empty


def test_tables_of_datasets_are_joined_and_failures_left_out():
    failure = Failure("c.distances", "disk full")
    joined = join("distances", [distances(), distances().assign(dataset="b"), failure])
    Schema("distances").validate(joined)
    assert len(joined) == 2 * len(distances())
    assert set(joined["dataset"]) == {"shapes_extend", "b"}


def test_changes_of_rows_that_were_counted_before_the_shift_are_paired():
    """Against the variance of the change by row, with half a row added to each kind of change."""
    rng = np.random.default_rng(5)
    label = rng.integers(0, 3, 400)
    home = np.where(rng.random(400) < 0.1, rng.integers(0, 3, 400), label)
    away = np.where(rng.random(400) < 0.2, rng.integers(0, 3, 400), home)
    key = {"dataset": "shapes_extend", "method": "resnet20", "trial": "default", "seed": 0}
    scored = [
        any_row(**key, value=(home == label).mean(), n=400),
        any_row(**key, shift="extend", severity=30.0, value=(away == label).mean(), n=400),
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
            study.measured(results(metrics, FACETS, counts=counts)),
            study.measured(results(metrics, FACETS)),
        )
    ]
    change = (away == label).astype(float) - (home == label)
    with_halves = np.concatenate([np.repeat(change, 2), [1, -1, 0, 0]])
    assert changes[0] == pytest.approx(with_halves.var() / 402, rel=1e-3)
    assert changes[0] < 0.9 * changes[1]
