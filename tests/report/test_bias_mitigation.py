"""Views and claims of the study of bias mitigation: printed numbers, stored and made-up scores."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.papers import SECTIONS
from robust_fairness.papers.bias_mitigation import views as study
from robust_fairness.report import report
from robust_fairness.report.views import published, subgroups
from tests.report.made_up import results
from tests.report.made_up import row as any_row

row = partial(any_row, dataset="biased_mnist", metric="unbiased_accuracy", n=100)


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
    """Beside the published number; several variables at once do not count."""
    trials = {"default": 0.2, "explicit=texture": 0.4, "explicit=texture+digit_color": 0.9}
    rows = [
        row(method="rubi", trial=trial, seed=seed, value=value + 0.1 * seed)
        for trial, value in trials.items()
        for seed in range(2)
    ]
    (line,) = study.table_1(results(rows)).to_dict("records")
    assert (line["ours"], line["std"]) == pytest.approx((0.35, 0.1 / np.sqrt(2)))
    assert (line["published"], line["seeds"], line["trials"]) == (0.389, 2, 2)


def test_figure_5_has_the_number_of_variables():
    """0 for implicit methods, 7 with all."""
    every = "explicit=" + "+".join(study.PUBLISHED_ORDER)
    rows = study.figure_5(
        results([row(), *(row(method="rubi", trial=trial) for trial in ("default", every))])
    )
    numbers = rows.groupby("method")["variables"].unique().map(sorted).to_dict()
    assert numbers == {"erm": [0], "rubi": [1, 7]}


def test_groups_of_celeba_have_wilsons_interval_of_their_fewest_rows():
    rows = [
        row(
            dataset="celeba_hair", seed=seed, attribute="Male", group=study.MINORITY, n=80 + seed,
            metric="accuracy_by_subgroup", value=0.4 + 0.1 * seed,
        )
        for seed in range(2)
    ]  # fmt: skip
    (minority,) = study.table_a3(results(rows)).to_dict("records")
    expected = stats.binomtest(36, 80).proportion_ci(method="wilson")
    assert (minority["low"], minority["high"]) == pytest.approx((expected.low, expected.high))
    assert (minority["rows"], minority["published"]) == (80, 0.428)
    assert np.isnan(wilson_interval(np.array([np.nan]), np.array([0]))[0][0])
    assert subgroups("celeba_chubby", "Chubby", results(rows)).empty


def test_hyperparameters_outside_the_printed_grids_are_named():
    """IRMv1's weight on Biased MNIST, LNL's weight decay on CelebA."""
    frame = published("bias_mitigation", "hyperparameters")
    notes = frame.set_index(["dataset", "method", "field"])["note"]
    assert "outside the printed grid" in notes["biased_mnist", "irmv1", "weight"]
    assert "outside the printed grid" in notes["celeba_hair", "lnl", "weight_decay"]
    assert not notes["biased_mnist", "irmv1", "learning_rate"]


def test_page_folds_long_views_and_holds_images():
    picture = {"biased_mnist": (np.zeros((4, 4, 3), dtype=np.uint8), "ten <digits>")}
    rows = [row(method="rubi", metric="majority_accuracy", attribute="texture")]
    page = report(results(rows), [], {"run_id": "x"}, [SECTIONS["bias_mitigation"]], picture)
    assert "<summary>All 570 rows</summary>" in page
    assert "data:image/png;base64," in page
    assert 'alt="biased_mnist: ten &lt;digits&gt;"' in page
