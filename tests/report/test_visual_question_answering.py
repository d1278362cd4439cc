"""Views and claims of the study of bias mitigation on questions, on made-up scores."""

import numpy as np
import pandas as pd
import pytest

from robust_fairness.core import tables
from robust_fairness.papers import VIEWS
from robust_fairness.papers.bias_mitigation import views as study
from robust_fairness.papers.bias_mitigation import visual_question_answering as questions
from robust_fairness.papers.bias_mitigation.bias_variables import EXPLICIT
from robust_fairness.report.views import published
from tests.report.made_up import results, row

LEVELS = {"head_tail": 0.5, "answer": 0.3, "global_group": 0.2, "local_group": 0.1}
BETAS = (-0.7, 0.2, 0.9)


def trial_of(variable: str) -> str:
    """Its name in the table."""
    return "default" if variable == "head_tail" else f"explicit={variable}"


def replica(method: str, trial: str, seed: int, mean: float, dataset: str = "gqa_ood") -> list:
    """Rows of one replica: 2 % more in the head, 2 % less in the tail."""
    head, tail = mean + 0.02, mean - 0.02
    rows = [
        ("", "accuracy", mean + 0.01),
        ("head_tail", "mean_group_accuracy", mean),
        ("local_group", "mean_group_accuracy", 0.99),
        ("local_group", "head_accuracy", head),
        ("local_group", "tail_accuracy", tail),
        ("local_group", "head_tail_difference", (head - tail) / tail),
        ("head_tail", "tail_accuracy", 0.99),
        *(
            ("local_group", f"tail_accuracy(beta={beta})", tail + 0.001 * (beta - 0.2))
            for beta in BETAS
        ),
    ]
    return [
        row(
            dataset=dataset, method=method, trial=trial, seed=seed, attribute=attribute,
            metric=metric, value=value,
        )
        for attribute, metric, value in rows
    ]  # fmt: skip


def made_up(seeds: int = 5) -> pd.DataFrame:
    """Explicit methods gain from head and tail and lose with many groups, implicit ones gain."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        for method, level in {"erm": 0.45, "lff": 0.46, "spectral_decoupling": 0.47}.items():
            rows += replica(method, "default", seed, level + rng.normal(0, 0.001))
        for method in EXPLICIT:
            for variable, level in LEVELS.items():
                if variable == "answer" and method in questions.NOT_APPLICABLE:
                    continue
                rows += replica(method, trial_of(variable), seed, level + rng.normal(0, 0.001))
        trial = "explicit=global_group,subgroups=group_and_class"
        rows += replica("group_dro", trial, seed, 0.15)
        rows += replica("group_dro", "step_size=1", seed, 0.9)
    return tables.table(tables.METRICS, rows)


def test_published_column_of_table_1_is_the_mean_of_table_2():
    """Over the runs that apply; LNL's 28.67 is printed as 28.6."""
    frame = published("bias_mitigation")
    frame = frame[frame["dataset"] == "gqa_ood"]
    assert set(frame["metric"]) == {"mean_group_accuracy"}
    two = frame[frame["view"] == "table_2"]
    assert len(two) == 23
    missing = two[two["value"].isna()]
    assert list(missing["method"]) == ["rubi", "lnl"]
    assert set(missing["trial"]) == {"explicit=answer"}
    table_1 = frame[frame["view"] == "table_1"].set_index("method")["value"]
    means = two.groupby("method")["value"].mean()
    for method, value in table_1.items():
        assert means[method] == pytest.approx(value, abs=0.0008)


@pytest.mark.parametrize(
    ("method", "trial", "expected"),
    [
        ("erm", "default", ("", "as configured")),
        ("rubi", "default", ("head_tail", "as configured")),
        ("rubi", "explicit=answer", ("answer", "as configured")),
        ("irmv1", "explicit=local_group,subgroups=group", ("local_group", "group")),
        ("irmv1", "subgroups=group_and_class", ("head_tail", "group_and_class")),
        ("irmv1", "explicit=answer,weight=2", None),
        ("irmv1", "explicit=answer+local_group", None),
        ("irmv1", "weight=2", None),
        ("erm", "explicit=answer", None),
    ],
)
def test_variable_and_subgroups_are_those_of_the_trial(method, trial, expected):
    """A trial that changes anything else is another one."""
    rows = questions.with_subgroups(results(replica(method, trial, 0, 0.5)))
    pairs = rows[["explicit", "subgroups"]].drop_duplicates().itertuples(index=False, name=None)
    assert list(pairs) == ([] if expected is None else [expected])


def test_table_2_has_a_row_a_variable_in_the_order_of_the_study():
    """Both kinds of subgroups beside the one published number, and what does not apply."""
    metrics = made_up()
    table = questions.table_2(results(metrics))
    assert len(table) == 23 + 1
    assert list(dict.fromkeys(table["method"])) == ["erm", *EXPLICIT, *questions.IMPLICIT]
    dro = table[table["method"] == "group_dro"]
    assert list(dro["explicit"]) == [
        "head_tail", "answer", "global_group", "global_group", "local_group",
    ]  # fmt: skip
    by_subgroups = dro[dro["explicit"] == "global_group"].set_index("subgroups")
    assert by_subgroups["published"].tolist() == [0.108, 0.108]
    assert by_subgroups.loc["group_and_class", "ours"] == pytest.approx(0.15)
    scores = metrics.query(
        "method == 'group_dro' and trial == 'explicit=global_group' "
        "and metric == 'mean_group_accuracy' and attribute == 'head_tail'"
    )["value"]
    assert by_subgroups.loc["as configured", "ours"] == pytest.approx(scores.mean())
    assert by_subgroups.loc["as configured", "std"] == pytest.approx(scores.std())
    rubi = table[(table["method"] == "rubi") & (table["explicit"] == "answer")].iloc[0]
    assert rubi["note"].startswith("not applicable")
    assert rubi["seeds"] == 0
    assert np.isnan(rubi["published"])
    standard = table[table["method"] == "erm"].iloc[0]
    assert (standard["explicit"], standard["published"], standard["seeds"]) == ("", 0.448, 5)


def test_table_2_of_generated_scenes_has_nothing_published():
    """And no rows of the dataset that was not run."""
    rows = replica("irmv1", "default", 0, 0.6, "generated_scenes")
    table = questions.table_2(results(tables.table(tables.METRICS, rows)))
    assert table["published"].isna().all()
    assert table["ours"].tolist() == pytest.approx([0.6])
    assert set(table["dataset"]) == {"generated_scenes"}


def test_table_1_averages_over_the_variables_that_apply():
    """Within a seed, and without the trials of other subgroups."""
    table = study.table_1(results(made_up())).set_index("method")
    assert set(table["dataset"]) == {"gqa_ood"}
    assert table.loc["group_dro", "ours"] == pytest.approx(np.mean(list(LEVELS.values())), abs=2e-3)
    assert table["trials"].to_dict() == {
        "erm": 1, "lff": 1, "spectral_decoupling": 1, "group_upweighting": 4, "group_dro": 4,
        "rubi": 3, "lnl": 3, "irmv1": 4,
    }  # fmt: skip
    assert table.loc["rubi", "ours"] == pytest.approx((0.5 + 0.2 + 0.1) / 3, abs=2e-3)
    assert table.loc["rubi", "published"] == 0.241


def test_head_and_tail_are_those_of_local_groups():
    """Not of the other attributes, which have such scores as well."""
    metrics = made_up()
    table = questions.accuracies(results(metrics)).set_index(["method", "explicit", "subgroups"])
    local = table.loc[("group_dro", "global_group", "group_and_class")]
    expected = [0.16, 0.17, 0.13, 0.15, 0.04 / 0.13, 5]
    assert local[[*questions.SHOWN, "seeds"]].tolist() == pytest.approx(expected)
    named = metrics.replace({"metric": {"tail_accuracy": "tail_accuracy(beta=0.2)"}})
    pd.testing.assert_frame_equal(
        questions.accuracies(results(named)), questions.accuracies(results(metrics))
    )
    assert questions.accuracies(results(metrics[metrics["metric"] == "accuracy"])).empty


def test_tail_curve_repeats_ungiven_methods_on_every_chart():
    """As Figure A9 does; the usual size once, though it stands there twice."""
    rows = questions.figure_a9(results(made_up()))
    assert set(rows["explicit"]) == set(questions.VARIABLES)
    for variable, chart in rows.groupby("explicit"):
        expected = {"erm", "lff", "spectral_decoupling", *EXPLICIT}
        if variable == "answer":
            expected -= set(questions.NOT_APPLICABLE)
        assert set(chart["method"]) == expected
    erm = rows[rows["method"] == "erm"]
    assert len(erm) == len(questions.VARIABLES) * len(BETAS)
    assert erm.groupby("beta")["ours"].nunique().eq(1).all()
    assert erm["seeds"].eq(5).all()
    curve = rows.query("method == 'rubi' and explicit == 'local_group'")
    assert curve["beta"].tolist() == list(BETAS)
    assert curve["ours"].tolist() == pytest.approx([0.08 - 0.0009, 0.08, 0.08 + 0.0007], abs=2e-3)
    assert len(VIEWS["bias_figure_a9"].draw(rows).data) == len(rows) / len(BETAS)


def test_a_single_size_is_no_curve():
    """Nothing is drawn."""
    metrics = made_up()
    single = metrics[~metrics["metric"].str.contains("beta")]
    assert questions.figure_a9(results(single)).empty


def test_hyperparameters_of_the_search_stand_beside_those_of_the_study():
    """The search on a tenth of the rows is that of the whole."""
    chosen = made_up(1).assign(dataset="gqa_ood_tenth", selection="mean_group_accuracy")
    table = study.table_a6(results(chosen, {"gqa_ood_tenth": {"study": "gqa_ood"}})).set_index(
        "method"
    )
    assert "environments_per_batch = 16" in table.loc["irmv1", "published"].iloc[0]
    assert "learning_rate = 1e-3" in table.loc["lnl", "published"].iloc[0]
