"""The matrix of the first screen: verdicts of constructed tables with known answers."""

import re
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from robust_fairness.core import tables
from robust_fairness.numbers.rates import Rates, linear_gap
from robust_fairness.numbers.verdicts import judged
from robust_fairness.numbers.verdicts import tested as unadjusted
from robust_fairness.report import Results
from robust_fairness.report.first_screen import answers, panel, panels
from robust_fairness.report.matrix import matrices, other_networks, undefined
from robust_fairness.report.matrix_shown import MOST_LINES
from tests.report.made_up import results, row

GAP = "equalized_odds_difference"
ACS = pd.read_csv(Path(__file__).parents[1] / "numbers" / "acs_changes.csv")
RATES = {"tpr": "true_positive_rate_by_group", "fpr": "false_positive_rate_by_group"}


def scored(rates: dict[tuple[str, str], float], n: float = 4000, **place) -> list[dict]:
    """Rows of rates by rate and group, of the gap that they make, and of accuracy."""
    place = {"attribute": "sex", **place}
    largest = max(
        np.ptp([value for (kind, _), value in rates.items() if kind == rate]) for rate in RATES
    )
    return [
        *(
            row(**place, metric=RATES[kind], group=group, value=value, n=n)
            for (kind, group), value in rates.items()
        ),
        row(**place, metric=GAP, value=largest, n=n),
        row(**{**place, "attribute": ""}, metric="accuracy", value=0.8, n=4 * n),
    ]


def rates(gap_of_tpr: float, gap_of_fpr: float = 0.0) -> dict[tuple[str, str], float]:
    """Rates of two groups with these differences."""
    return {
        ("tpr", "f"): 0.5 - gap_of_tpr / 2, ("tpr", "m"): 0.5 + gap_of_tpr / 2,
        ("fpr", "f"): 0.3 - gap_of_fpr / 2, ("fpr", "m"): 0.3 + gap_of_fpr / 2,
    }  # fmt: skip


def elsewhere(domain: str) -> dict[str, str]:
    return {"shift": "domain", "domain": domain}


def with_splits(metrics: list[dict], sensitive: str = "sex", splits: int = 1) -> Results:
    """Results with the table of splits: one split is one set of test rows for all seeds."""
    rows = [
        {"dataset": name, "split": f"split_{k}", "train_rows": 100, "test_rows": 100,
         "reused": 0.5 * (splits > 1)}
        for name, k in product({score["dataset"] for score in metrics}, range(splits))
    ]  # fmt: skip
    return results(
        metrics, splits=tables.table(tables.SPLITS, rows), counts=counted(metrics, sensitive)
    )


def counted(metrics: list[dict], sensitive: str = "sex") -> pd.DataFrame:
    """Rows by class and decision that have the rates of some metrics."""
    labels = {"tpr": 1, "fpr": 0}
    label_of = {metric: labels[rate] for rate, metric in RATES.items()} | {"accuracy": 1}
    rows = [
        score
        | {
            "label": label_of[score["metric"]],
            "before": -1,
            "decision": decision,
            "n": n,
            "sensitive": score["attribute"] in sensitive.split(", "),
        }
        for score in metrics
        if score["metric"] in label_of
        for decision, n in enumerate(
            (score["n"] * (1 - score["value"]), score["n"] * score["value"])
        )
    ]
    counted_of = {(entry["dataset"], entry["attribute"]) for entry in rows}
    rows += [  # every attribute is counted, whether it has rates or not
        score
        | {"group": "x", "label": 1, "before": -1, "decision": 1, "n": 99,
           "sensitive": score["attribute"] in sensitive.split(", ")}
        for score in metrics
        if score["attribute"] and (score["dataset"], score["attribute"]) not in counted_of
    ]  # fmt: skip
    return tables.table(tables.COUNTS, rows)


def states(run: Results, name: str = GAP, **options) -> dict[tuple[str, str], str]:
    rows = matrices(run, **options)[name]
    return dict(zip(zip(rows["method"], rows["domain"], strict=True), rows["state"], strict=True))


def test_a_dataset_without_another_test_set_stands_beside_one_with_shifts():
    """Of five seeds, whose splits share rows, the matrix has the pairs of the other dataset."""
    rows = [
        score
        for seed in range(5)
        for name, places in (("shifted", ({}, elsewhere("b"))), ("alone", ({},)))
        for place in places
        for score in scored(rates(0.1 + 0.01 * seed), dataset=name, seed=seed, **place)
    ]
    changes = matrices(with_splits(rows, splits=5))[GAP]
    assert changes["dataset"].to_list() == ["shifted"]
    assert changes["accuracy"].to_list() == pytest.approx([0.8])


def test_changes_between_states_are_those_of_scipy():
    """56 pairs of boosted trees: the same 16 of 112 changes of rates, as pairs, are significant."""
    rows = []
    for (trained, target), part in ACS.groupby(["trained_on", "tested_on"]):
        for place, at in (("home", {}), ("elsewhere", elsewhere(target))):
            by_rate = part.set_index("rate")
            changes = {
                (rate, sex): by_rate.loc[rate, f"{place}_k_{sex}"]
                / by_rate.loc[rate, f"{place}_n_{sex}"]
                for rate in RATES
                for sex in "fm"
            }
            made = scored(changes, dataset=trained, **at)
            for pair in made:
                for rate, metric in RATES.items():
                    if pair["metric"] == metric:
                        pair["n"] = by_rate.loc[rate, f"{place}_n_{pair['group']}"]
            rows += made
    metrics = tables.table(tables.METRICS, rows).drop_duplicates()
    names = sorted(ACS["trained_on"].unique())
    cells = tables.CELLS.table(
        [{"dataset": name, "method": "erm", "algorithm": "erm", "network": "mlp"}
         for name in names],
        [{"data": "acs", "trained_on": name} for name in names],
    )  # fmt: skip
    splits = tables.table(
        tables.SPLITS,
        [{"dataset": name, "split": "s", "train_rows": 1, "test_rows": 1, "reused": 0.0}
         for name in names],
    )  # fmt: skip
    counts = counted(metrics.to_dict("records"))
    changes = matrices(Results.of(metrics, cells=cells, splits=splits, counts=counts))[GAP]
    assert len(changes) == 56
    pairs = set(zip(changes["trained_on"], changes["domain"], strict=True))
    assert pairs == set(zip(ACS["trained_on"], ACS["tested_on"], strict=True))
    changed = changes[changes["changed"]]
    certain = ACS[ACS["holm"] < 0.05]
    assert set(zip(changed["trained_on"], changed["domain"], strict=True)) == set(
        zip(certain["trained_on"], certain["tested_on"], strict=True)
    )
    content = panel(changes, GAP, "acs", with_splits(metrics.to_dict("records")))
    places, possible = changed["domain"].nunique(), changes[changes["state"] == "inconclusive"]
    assert content["answer"] == (
        f"Unknown: group differences changed in {places} test sets; the gap may have, "
        f"by up to {100 * possible['bound'].max():.0f} points"
    )
    (drawn,) = content["plots"]
    sources = changed["trained_on"] + " → " + changed["domain"]
    lines = re.findall(r"<th scope=row rowspan=1>([^<]*)</th>", drawn)
    assert len(lines) == MOST_LINES and {*lines} <= {*sources}
    assert f"the {MOST_LINES} worst of 56 test sets" in drawn


def test_a_planted_change_is_found_and_no_other():
    """Ten sites, seven trained on, 20,000 rows a site: .06 in one group's true positive rate."""
    rng, detected, others = np.random.default_rng(0), 0, 0
    n, groups, form = 5000, 2, linear_gap("largest", 2, 2)
    truth = np.array([0.7, 0.7, 0.2, 0.2])
    for _ in range(200):
        at_home = rng.binomial(7 * n // 5, truth) / (7 * n // 5)
        sites = np.array([truth, truth, truth - [0.06, 0, 0, 0]])
        away = rng.binomial(n, sites) / n
        home = Rates.of_counts(
            np.tile(at_home, (3, 1)) * (7 * n // 5), np.full((3, 2 * groups), 7 * n // 5)
        )
        states = judged(unadjusted(home, Rates.of_counts(away * n, np.full(away.shape, n)), form))
        detected += states["state"].iloc[2] in ("grew", "reversed")
        others += states["changed"].iloc[:2].any()
    assert detected >= 190
    assert others <= 10 + 2 * np.sqrt(200 * 0.05 * 0.95)


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_states_of_known_changes(seeds):
    """Growth, fall, a turned sign and a change within the margin; with few seeds of the model."""
    rows = []
    places = {"a": (0.3, 0), "b": (0.1, 0), "c": (-0.25, 0), "d": (0.2, 0.01)}
    rng = np.random.default_rng(0)
    for seed in range(seeds):
        wobble = rng.normal(0, 0.002, 5)
        rows += scored(rates(0.2 + wobble[0]), 40_000, dataset="d", seed=seed)
        for place, (name, (tpr, fpr)) in enumerate(places.items()):
            rows += scored(
                rates(tpr + wobble[place + 1], fpr), 40_000, dataset="d", seed=seed,
                **elsewhere(name),
            )  # fmt: skip
    run = with_splits(rows)
    expected = {"a": "grew", "b": "shrank", "c": "reversed", "d": "held"}
    assert states(run) == {("erm", name): state for name, state in expected.items()}
    assert matrices(run)[GAP]["question"].unique().tolist() == ["this model"]
    if seeds >= 5:
        assert states(run, question="this method") == states(run)


def test_refits_count_for_the_method_and_not_for_the_model():
    """Seeds that differ by 10 points: the first model changed, the method cannot be said to.

    The answer is about the model, and the other one follows.
    """
    rows = []
    for seed, noise in enumerate([0.0, 0.1, -0.1, 0.12, -0.12]):
        rows += scored(rates(0.1), dataset="d", seed=seed)
        rows += scored(rates(0.2 + noise), dataset="d", seed=seed, **elsewhere("a"))
    run = with_splits(rows)
    assert states(run, question="this method") == {("erm", "a"): "inconclusive"}
    assert states(run, question="this model") == states(run) == {("erm", "a"): "grew"}
    least = matrices(run)[GAP]["least"].item()
    answer, again = answers(run)
    assert answer == f"No: the gap by sex grew by at least {100 * least:.0f} points in a"
    (shown,) = panels(run)
    assert (shown["answer"], shown["again"]) == (answer, again)
    assert "trained again (5 trainings of each): Unknown: changes of up to" in again
    assert "trainings of each method (5 now)" in again
    assert shown["about"].endswith("about the trained models (the first training of 5).")


def test_every_declared_attribute_has_its_line_also_one_that_cannot_be_scored():
    rows = []
    for at in ({}, elsewhere("a")):
        rows += scored(rates(0.1), dataset="d", **at)
        rows += scored(rates(0.1), dataset="d", **{"attribute": "race", **at})
        rows += scored(rates(0.1), dataset="d", **{"attribute": "hospital", **at})
        rows.append(row(dataset="d", attribute="creed", metric=GAP, value=np.nan, n=0,
                        note="group x: no rows of class 1", **at))  # fmt: skip
        nations = {"dataset": "d", "attribute": "nation", **at}
        rows.append(row(metric=GAP, value=1.0, **nations))
        rows += [
            row(metric=f"{rate}_by_group", value=0.5, group=f"n{place:02}", n=50 if place else 2,
                **nations)
            for rate in ("true_positive_rate", "false_positive_rate")
            for place in range(20)
        ]  # fmt: skip
    overall, _, *told = answers(with_splits(rows, "sex, race, creed, nation"))
    assert overall == "Unknown in 2 of 4 comparisons"
    assert [line.partition(":")[0] for line in told] == [
        "d, sex",
        "d, race",
        "d, creed",
        "d, nation",
    ]
    assert "the gap cannot be estimated; group x: no rows of class 1" in told[2]
    assert "20 groups" in told[3]
    assert "fewer than 30 rows of a class: n00; merge" in told[3]
    alone = with_splits([entry for entry in rows if entry["attribute"] == "nation"], "nation")
    assert answers(alone) == ["Unknown: the gap by nation cannot be estimated"]
    (shown,) = panels(alone)
    assert shown["answer"] == answers(alone)[0] and "20 groups" in shown["answers"][0][1]
    assert shown["matrices"] == shown["trade_off"] == shown["plots"] == []
    only, *_ = answers(results(rows))  # an older table does not say which are declared
    assert "the gap by sex" in only


def test_small_groups_are_not_estimable_and_say_what_is_missing():
    rows = scored(rates(0.1), dataset="d") + scored(rates(0.5), 4, dataset="d", **elsewhere("a"))
    run = with_splits(rows)
    assert states(run) == {("erm", "a"): "not estimable"}
    assert answers(run)[:2] == [
        "Unknown: the gap by sex cannot be estimated", "It takes more rows of f in a (4 now)",
    ]  # fmt: skip


def test_rates_of_0_and_1_have_the_variance_of_their_rows():
    """A constant prediction at home, all but two rows elsewhere: nothing is significant."""
    home = dict.fromkeys(rates(0), 1.0)
    rows = scored(home, 30, dataset="d")
    rows += scored(home | {("fpr", "m"): 28 / 30}, 30, dataset="d", **elsewhere("a"))
    (change,) = matrices(with_splits(rows))[GAP].to_dict("records")
    assert change["state"] == "inconclusive" and not change["changed"]
    # Agresti and Caffo: a row on either side of four rates that decide
    share = np.array([31 / 32, 31 / 32, 31 / 32, 29 / 32])
    assert change["error"] == pytest.approx(np.sqrt((share * (1 - share) / 32).sum()))


def test_a_gap_without_rates_needs_five_seeds():
    def made(seeds: int) -> Results:
        return with_splits(
            [
                row(dataset="d", seed=seed, attribute="sex", metric="faircocco_eo", **at,
                    value=0.1 + 0.2 * bool(at) + 0.001 * (-1) ** (seed * bool(at)))
                for seed in range(seeds)
                for at in ({}, elsewhere("a"))
            ]
        )  # fmt: skip

    assert states(made(3), "faircocco_eo") == {("erm", "a"): "not estimable"}
    assert states(made(6), "faircocco_eo") == {("erm", "a"): "grew"}


def test_trivial_predictors_and_failed_cells_are_marked():
    """By rates of all groups, and by the accuracy of the most frequent class."""
    rows = []
    for method, at in product(["skill", "one_class", "no_skill"], [{}, elsewhere("a")]):
        replica = {"dataset": "d", "method": method, **at}
        rows += [score for score in scored(rates(0.1), **replica) if score["metric"] != "accuracy"]
        accuracy = 0.6 if method == "no_skill" and at else 0.7
        rows += [
            row(**replica, metric="accuracy", value=accuracy),
            row(**replica, metric="constant_accuracy", value=0.6),
            *(
                row(
                    **replica,
                    metric="selection_rate_by_group",
                    attribute="sex",
                    group=g,
                    value=rate,
                )
                for g, rate in zip("fm", (0, 0.01 if method == "one_class" else 0.3), strict=True)
            ),
        ]
    failed = {("d", "z"): "out of memory", ("other", "x"): "not here"}
    run = with_splits(rows)
    by_method = {name: state for (name, _), state in states(run, failed=failed).items()}
    assert by_method == {
        "skill": "held", "one_class": "trivial", "no_skill": "trivial", "z": "missing",
    }  # fmt: skip
    shown = panel(matrices(run, failed)[GAP], GAP, "d", run)["matrices"][0]
    assert {line["name"]: line["cells"][0]["mark"] for line in shown["lines"]} == {
        "skill": "=", "one_class": "T", "no_skill": "T", "z": "–",
    }  # fmt: skip
    assert panels(run, failed)[0]["answer"] == "Yes: the gap by sex held within 5 points in a"


@pytest.mark.parametrize(
    ("question", "trivial", "expected"),
    [
        ("this model", [0], "trivial"),  # the model that is answered for, whatever the others are
        ("this model", [1, 2, 3, 4], "held"),
        ("this method", [0], "held"),
        ("this method", [1, 3, 4], "trivial"),
    ],
)
def test_the_answer_for_a_model_asks_whether_that_model_is_trivial(question, trivial, expected):
    rows = []
    for seed, at in product(range(5), [{}, elsewhere("a")]):
        made = rates(0.0) if seed in trivial else rates(0.1)
        rows += scored(made, dataset="d", seed=seed, n=1e6, **at)
        rows += [
            row(dataset="d", seed=seed, metric="selection_rate_by_group", attribute="sex", group=g,
                value=0.0 if seed in trivial else 0.3, **at)
            for g in "fm"
        ]  # fmt: skip
    assert states(with_splits(rows, splits=5), question=question) == {("erm", "a"): expected}


def test_only_the_largest_severity_of_a_shift_is_in_the_matrix():
    rows = [
        score
        for shift, severity in (("none", 0.0), ("noise", 0.1), ("noise", 0.5), ("blur", 2.0))
        for score in scored(rates(0.1), dataset="d", shift=shift, severity=severity)
    ]
    matrix = matrices(with_splits(rows))[GAP]
    assert matrix[["shift", "severity"]].to_numpy().tolist() == [["noise", 0.5], ["blur", 2.0]]


def test_accuracy_and_the_largest_gap_are_drawn_with_their_intervals():
    """Means over test sets and the largest gap; the list below the drawing has the numbers."""
    rng, rows = np.random.default_rng(3), []
    for number in range(12):
        cell = {"dataset": "d", "method": f"m{number}"}
        for at in ({}, elsewhere("a"), elsewhere("b")):
            rows += [score for score in scored(rates(rng.uniform(0, 0.4)), **cell, **at)
                     if score["metric"] != "accuracy"]  # fmt: skip
            rows.append(row(**cell, **at, metric="accuracy", value=rng.uniform(0.6, 0.9), n=9000))
    run = with_splits(rows)
    matrix = matrices(run)[GAP]
    for low, value, high in (
        ("home_low", "at_home", "home_high"), ("away_low", "away", "away_high"),
        ("lower", "away", "upper"),
    ):  # fmt: skip
        assert (matrix[low] < matrix[value]).all() and (matrix[value] < matrix[high]).all()
    assert (matrix["upper"] > matrix["away_high"]).all()  # holds for both test sets
    (drawn,) = panel(matrix, GAP, "d", run)["trade_off"]
    listed = re.findall(
        r"</svg>(m\d+) <span class=note>(\d+) \((\d+) to (\d+)\); (\d+) \((\d+) to (\d+)\)<", drawn
    )
    assert len(listed) == 12
    for name, *numbers in listed:
        part = matrix[matrix["method"] == name]
        there = part["accuracy"] + part["accuracy_change"]
        expected = (
            there.mean(), part["accuracy_low"].mean(), part["accuracy_high"].mean(),
            part["away"].max(), part["lower"].max(), part["upper"].max(),
        )  # fmt: skip
        assert numbers == [f"{100 * value:.0f}" for value in expected]
        share = there.mean() + np.array([-1, 1]) * 1.96 * np.sqrt(there.mean() * 0.25 / 9000)
        assert part["accuracy_low"].mean() == pytest.approx(share[0], abs=0.004)
        assert part["accuracy_high"].mean() == pytest.approx(share[1], abs=0.004)


def test_the_numbers_of_a_sentence_are_those_of_its_plot():
    """And the worst test sets are drawn, at most twelve lines, of at most six models."""
    rng, rows = np.random.default_rng(5), []
    for number in range(9):
        cell = {"dataset": "d", "method": "erm" if not number else f"m{number}"}
        rows += scored(rates(0.05), 900, **cell)
        for site in range(60):
            rows += scored(rates(rng.uniform(0, 0.2)), 900, **cell, **elsewhere(f"s{site}"))
    run = with_splits(rows)
    (content,) = panels(run)
    (drawn,) = content["plots"]
    matrix = matrices(run)[GAP]
    grew = matrix[matrix["state"] == "grew"]
    worst = grew.loc[grew["least"].idxmax()]
    least = int(100 * worst["least"])
    assert content["answer"] == (
        f"No: the gap by sex grew by at least {least} point{'s' * (least > 1)} in "
        f"{worst['domain']} ({worst['method']})"
    )
    assert f"▲ +{100 * worst['change']:.0f}<" in drawn
    assert worst["domain"] in re.findall(r"rowspan=6>(s\d+)<", drawn)
    assert drawn.count("<tr") - 1 <= 36 and "6 worst of 9 models" in drawn
    assert "<td class=name>" in drawn and ">erm<" in drawn
    assert "http" not in drawn and "<script" not in drawn


def test_plain_training_of_another_network_is_no_method():
    cells = pd.DataFrame(
        [
            ("d", "erm", "erm", "mlp", ""), ("d", "svm", "erm", "svm", ""),
            ("d", "cuma", "cuma", "mlp", ""), ("d", "metric", "margin_distance", "embedding", ""),
            ("d", "fair_svm", "erm", "svm", "equalized_odds"), ("e", "vit", "erm", "vit", ""),
        ],
        columns=["dataset", "method", "algorithm", "network", "postprocessing"],
    )  # fmt: skip
    assert other_networks(cells, "dataset").tolist() == [False, True, *[False] * 4]


def test_other_networks_are_named_as_such():
    rows = []
    for method, network in (("erm", "mlp"), ("cuma", "mlp"), ("trees", "trees")):
        for at in ({}, elsewhere("a")):
            rows += scored(rates(0.1), dataset="d", method=method, network=network, **at)
    run = results(rows, algorithms={"trees": "erm"})
    shown = panels(run)[0]["matrices"][0]["lines"]
    notes = {line["name"]: line["note"] for line in shown}
    assert notes == {"erm": "", "cuma": "", "trees": "another network"}
    assert undefined(run, GAP) == {}
