"""Views and claims of the study of bias mitigation, on made-up scores."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.core.intervals import wilson_interval
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.bias_mitigation import views as study
from robust_fairness.papers.bias_mitigation.bias_variables import EXPLICIT
from robust_fairness.report import report
from robust_fairness.report.views import published, subgroups
from tests.report.made_up import results
from tests.report.made_up import row as any_row

EXPLICIT_TRIALS = {
    variable: "default" if variable == "distractor_shape" else f"explicit={variable}"
    for variable in study.VARIABLES
}

SECTION = SECTIONS["bias_mitigation"]
VIEWS = {view.id: view for view in SECTION.views}
row = partial(any_row, dataset="biased_mnist", metric="unbiased_accuracy", n=100)


def made_up(seeds: int = 5) -> pd.DataFrame:
    """Explicit methods below erm, lff above, and the told variable exploited least."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        for method, level in {"erm": 0.42, "lff": 0.56, "spectral_decoupling": 0.41}.items():
            rows += _replica(rng, method, "default", seed, level)
        for place, method in enumerate(EXPLICIT):
            for number, (variable, trial) in enumerate(EXPLICIT_TRIALS.items()):
                level = 0.25 + 0.01 * place + 0.002 * number
                rows += _replica(rng, method, trial, seed, level, variable)
            trial = "explicit=" + "+".join(study.PUBLISHED_ORDER)
            level = 0.6 if method == "group_upweighting" else 0.1
            rows += _replica(rng, method, trial, seed, level)
    return tables.table(tables.METRICS, rows)


def _replica(rng, method, trial, seed, level, told="") -> list[dict]:
    key = {"method": method, "trial": trial, "seed": seed}
    exploited = 0.1 if method == "lff" else 0.3
    gaps = {name: 0.05 if name == told else exploited for name in study.VARIABLES}
    rows = [
        row(**key, value=level + rng.normal(0, 0.002)),
        row(**key, metric="mean_majority_minority_difference", value=np.mean(list(gaps.values()))),
    ]
    for name, gap in gaps.items():
        of = {**key, "attribute": name}
        rows += [
            row(**of, metric="majority_minority_difference", value=gap + rng.normal(0, 0.002)),
            row(**of, metric="majority_accuracy", value=level + gap),
            row(**of, metric="minority_accuracy", value=level),
        ]
    return rows


def test_published_numbers_agree_with_each_other():
    """Table 1 is the mean of the seven runs of Table A4; A5 begins with one of them."""
    frame = published("bias_mitigation")
    place = ["view", "dataset", "method", "trial", "attribute", "group", "metric"]
    assert (
        not frame.duplicated(place).any() or set(frame[frame.duplicated(place)]["method"]) == set()
    )
    assert frame["value"].dropna().between(0, 1).all()
    assert frame.groupby("view").size().to_dict() == {
        "table_1": 24, "table_2": 23, "table_a3": 40, "table_a4": 570, "table_a5": 570,
    }  # fmt: skip
    unbiased = frame[frame["metric"] == "unbiased_accuracy"]
    a4 = unbiased[unbiased["view"] == "table_a4"].groupby("method")["value"].mean()
    first = unbiased[(unbiased["view"] == "table_1") & (unbiased["dataset"] == "biased_mnist")]
    for method, value in zip(first["method"], first["value"], strict=True):
        assert a4[method] == pytest.approx(value, abs=0.0011)
    values = frame.set_index(["view", "method", "trial", "attribute", "metric"])["value"]
    key = ("group_upweighting", "explicit=background_color", "background_color")
    assert values["table_a4", *key, "majority_accuracy"] == 0.42
    for view in ("table_a4", "table_a5"):
        assert values[view, "rubi", "default", "", "unbiased_accuracy"] == 0.345


@pytest.mark.parametrize(
    ("method", "trial", "expected"),
    [
        ("erm", "default", [("", 0)]),
        ("rubi", "default", [("distractor_shape", 1)]),
        ("rubi", "explicit=a+b", [("a+b", 2)]),
        ("rubi", "learning_rate=0.1", []),
    ],
)
def test_explicit_variables_are_those_of_the_trial(method, trial, expected):
    """The default trial mitigates the shape of the distractors."""
    rows = study.by_variables(results([row(method=method, trial=trial)]), "unbiased_accuracy")
    assert list(rows[["explicit", "variables"]].itertuples(index=False, name=None)) == expected


def test_table_1_averages_the_single_variables_within_a_seed():
    """And stands beside the published number; several variables at once do not count."""
    metrics = made_up()
    table = study.table_1(results(metrics)).set_index("method")
    single = metrics[
        (metrics["method"] == "rubi")
        & (metrics["metric"] == "unbiased_accuracy")
        & metrics["trial"].isin(EXPLICIT_TRIALS.values())
    ]
    by_seed = single.groupby("seed")["value"].mean()
    assert table.loc["rubi", "ours"] == pytest.approx(by_seed.mean())
    assert table.loc["rubi", "std"] == pytest.approx(by_seed.std())
    assert table.loc["rubi", ["published", "seeds", "trials"]].tolist() == [0.389, 5, 7]
    assert table.loc["lff", "published"] == 0.566


def test_figure_3_tells_the_told_variable_from_the_others():
    """By the trial's own variables."""
    rows = study.figure_3(results(made_up())).set_index(["method", "attribute", "variable"])["ours"]
    assert rows["rubi", "texture", "explicit"] == pytest.approx(0.05, abs=0.01)
    assert rows["rubi", "texture", "implicit"] == pytest.approx(0.3, abs=0.01)
    assert ("erm", "texture", "explicit") not in rows
    for name in ("bias_figure_3", "bias_figure_3b"):
        VIEWS[name].draw(rows.reset_index().assign(dataset="biased_mnist"))


def test_order_of_variables_by_the_published_table_is_not_the_published_order():
    """Largest difference of the standard model first."""
    orders = study.order_of_variables(results(made_up()))
    assert orders["by the published Table A4"].tolist() == [
        "digit_color", "background_color", "texture", "distractor_shape",
        "distractor_color", "texture_color", "digit_position",
    ]  # fmt: skip
    assert orders["published order"].tolist()[0] == "distractor_shape"


def test_figure_5_has_the_number_of_variables():
    """0 for implicit methods, 7 with all."""
    rows = study.figure_5(results(made_up()))
    numbers = rows.groupby("method")["variables"].unique().map(sorted).to_dict()
    assert numbers["erm"] == [0]
    assert numbers["rubi"] == [1, 7]
    VIEWS["bias_figure_5"].draw(rows)


def test_figure_6_reads_alpha_from_the_criterion():
    """Biased MNIST by majority and minority, CelebA by the rarest group and the rest."""
    rows = []
    for alpha, value in ((-1, 0.2), (1.5, 0.6)):
        of = {"selection": f"mean_accuracy_at(alpha={alpha})@val", "trial": f"t={alpha}"}
        rows += [
            row(**of, metric="majority_accuracy", attribute=name, value=value + 0.1)
            for name in study.VARIABLES
        ]
        rows += [
            row(**of, metric="minority_accuracy", attribute=name, value=value)
            for name in study.VARIABLES
        ]
        for group, accuracy in {study.MINORITY: 0.1, "Male & not": 0.7, "x": 0.9}.items():
            rows.append(
                row(
                    **of, dataset="celeba_hair", attribute="Male", group=group, value=accuracy,
                    metric="accuracy_by_subgroup",
                )
            )  # fmt: skip
    rows.append(row(metric="majority_accuracy"))
    table = study.figure_6(results(tables.table(tables.METRICS, rows))).set_index(
        ["dataset", "alpha"]
    )
    assert table.loc[("biased_mnist", -1), "majority"] == pytest.approx(0.3)
    assert table.loc[("biased_mnist", 1.5), "minority"] == pytest.approx(0.6)
    assert table.loc[("celeba_hair", -1), "majority"] == pytest.approx(0.8)
    assert table.loc[("celeba_hair", -1), "minority"] == pytest.approx(0.1)
    assert len(table) == 4


def test_figure_a7_takes_the_bias_from_the_facets():
    """A single strength is no sweep."""
    rows = [
        row(dataset=name, value=value)
        for name, value in {"biased_mnist_p_0_3": 0.9, "biased_mnist": 0.4}.items()
    ]
    facets = {
        "biased_mnist_p_0_3": {"study": "biased_mnist", "p_bias": 0.3},
        "biased_mnist": {"p_bias": 0.7},
    }
    table = study.figure_a7(results(rows, facets))
    assert table["p_bias"].tolist() == [0.3, 0.7]
    assert table["ours"].tolist() == [0.9, 0.4]
    assert study.figure_a7(results(rows[:1], facets)).empty


def test_figure_a8_has_learning_rate_and_weight_decay():
    """Read from the trial; the cell's own stand as configured; a second stage is left out."""
    rows = [
        row(value=0.4),
        row(trial="learning_rate=0.1,weight_decay=0", value=0.2),
        row(trial="learning_rate=0.1,weight_decay=0,alpha=1", value=0.3),
        row(method="lff", value=0.9),
    ]
    table = study.figure_a8(results(tables.table(tables.METRICS, rows)))
    assert table["learning_rate"].tolist() == ["as configured", "0.1"]
    assert table["ours"].tolist() == [0.4, 0.2]


def celeba(seeds: int = 2) -> pd.DataFrame:
    """Two methods on the four groups of CelebA."""
    rows = []
    for seed in range(seeds):
        for method, level in {"erm": 0.4, "rubi": 0.7}.items():
            for group, n in {study.MINORITY: 81, "Male & not Blond_Hair": 4000}.items():
                rows.append(
                    row(
                        dataset="celeba_hair", method=method, seed=seed, attribute="Male",
                        group=group, metric="accuracy_by_subgroup", value=level + 0.1 * seed, n=n,
                    )
                )  # fmt: skip
    return tables.table(tables.METRICS, rows)


def test_groups_of_celeba_stand_with_their_rows_and_wilson_intervals():
    """Against scipy; published numbers beside."""
    table = study.table_a3(results(celeba())).set_index(["method", "group"])
    minority = table.loc[("erm", study.MINORITY)]
    expected = stats.binomtest(round(0.45 * 80), 80).proportion_ci(method="wilson")
    low, high = wilson_interval(np.array([36 / 80]), np.array([80]))
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))
    assert minority["rows"] == 81
    assert minority["published"] == 0.428
    assert minority["ours"] == pytest.approx(0.45)
    assert minority["low"] < 0.45 < minority["high"]
    assert np.isnan(wilson_interval(np.array([np.nan]), np.array([0]))[0][0])
    assert subgroups("celeba_chubby", "Chubby", results(celeba())).empty


def test_improvement_is_over_the_standard_model_of_the_same_seed():
    """By group, paired."""
    table = study.figure_4(results(celeba())).set_index(["method", "group"])
    assert table.loc[("rubi", study.MINORITY), "ours"] == pytest.approx(0.3)
    assert table.loc[("rubi", study.MINORITY), "std"] == pytest.approx(0)


def test_hyperparameters_outside_the_printed_grids_are_named():
    """IRMv1's weight on Biased MNIST, LNL's weight decay on CelebA."""
    frame = published("bias_mitigation", "hyperparameters").set_index(
        ["dataset", "method", "field"]
    )["note"]
    assert "outside the printed grid" in frame["biased_mnist", "irmv1", "weight"]
    assert "outside the printed grid" in frame["celeba_hair", "lnl", "weight_decay"]
    assert not frame["biased_mnist", "irmv1", "learning_rate"]
    chosen = made_up().assign(selection="unbiased_accuracy@unbiased_val")
    table = study.table_a6(results(chosen)).set_index("method")
    assert "weight = 0.01" in table.loc["irmv1", "published"].iloc[0]


def test_page_folds_long_views_and_holds_images():
    """Every view of the study is on the page once it was run."""
    picture = np.zeros((4, 4, 3), dtype=np.uint8)
    run = results(made_up())
    page = report(
        run, [], {"run_id": "x"}, SECTIONS.values(), {"biased_mnist": (picture, "ten <digits>")}
    )
    for view in SECTION.views:
        assert (f'id="{view.id}"' in page) == bool(len(view.rows(run)))
    assert "<summary>All 570 rows</summary>" in page
    assert "data:image/png;base64," in page
    assert 'alt="biased_mnist: ten &lt;digits&gt;"' in page
