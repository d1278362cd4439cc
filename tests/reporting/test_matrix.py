"""The matrix of the first screen: states of constructed tables with known answers."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.reporting import Results
from robust_fairness.reporting.first_screen import panel
from robust_fairness.reporting.matrix import (
    by_seed,
    matrices,
    other_networks,
    states,
    undefined,
    verdict,
)
from robust_fairness.reporting.statistics import equivalence_p
from tests.reporting.made_up import results, row

SPREAD = np.array([-2, -1, 0, 1, 2]) / 1000  # mean 0
GAP = "delta_eo"


def values(changes: dict[tuple[str, str], list[float]], **columns) -> pd.DataFrame:
    """Rows of ``by_seed``: changes by seed of a method in a domain."""
    rows = [
        {
            "data": "d", "dataset": "d", "shift": "domain", "severity": 0.0, "domain": domain,
            "method": method, "algorithm": method, "network": "mlp", "postprocessing": "",
            "attribute": "", "seed": seed, "at_home": 0.1, "change": change, "accuracy": 0.8,
            "accuracy_change": -0.02, "trivial": False, "margin": 0.05, "n": 90,
            "change_shared": 0.0, "accuracy_change_shared": 0.0,
        }
        | columns
        for (method, domain), own in changes.items()
        for seed, change in enumerate(own)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def state_of(found: pd.DataFrame) -> dict[tuple[str, str], str]:
    keys = zip(found["method"], found["domain"], strict=True)
    return dict(zip(keys, found["state"], strict=True))


def test_equivalence_is_two_one_sided_tests():
    sample = np.array([0.01, 0.03, -0.02, 0.02, 0.015])
    error = stats.sem(sample)
    below = stats.ttest_1samp(sample, -0.05, alternative="greater").pvalue
    above = stats.ttest_1samp(sample, 0.05, alternative="less").pvalue
    assert equivalence_p(sample.mean(), error, 5, 0.05) == pytest.approx(max(below, above))


def test_states_and_p_values_are_those_of_scipy():
    """Growth, fall, a change within the margin, one that is both, and noise."""
    noise = [0.3, -0.3, 0.2, -0.2, 0.1]
    changes = {
        ("erm", "a"): 0.2 + SPREAD,
        ("erm", "b"): -0.2 + SPREAD,
        ("erm", "c"): 0.0001 + SPREAD,
        ("cuma", "a"): 0.01 + SPREAD,  # significant and immaterial
        ("cuma", "b"): noise,
        ("cuma", "c"): noise,
    }
    found = states(values(changes))
    assert state_of(found) == {
        ("erm", "a"): "grew", ("erm", "b"): "shrank", ("erm", "c"): "held",
        ("cuma", "a"): "held", ("cuma", "b"): "inconclusive", ("cuma", "c"): "inconclusive",
    }  # fmt: skip
    assert found["changed"].tolist() == [True, True, False, True, False, False]
    p = [stats.ttest_1samp(own, 0).pvalue for own in changes.values()]
    assert found["p_changed"].to_numpy() == pytest.approx(by_holm(p))
    sides = [
        max(
            stats.ttest_1samp(own, -0.05, alternative="greater").pvalue,
            stats.ttest_1samp(own, 0.05, alternative="less").pvalue,
        )
        for own in changes.values()
    ]
    assert found["p_held"].to_numpy() == pytest.approx(by_holm(sides))


def by_holm(p: list[float]) -> list[float]:
    """Adjusted p-values from the definition: the largest of the smaller ones times their number."""
    return [
        min(1, max(other * sum(third >= other for third in p) for other in p if other <= own))
        for own in p
    ]


def test_few_seeds_and_overlapping_splits_are_inconclusive():
    """A change of 20 points with three seeds, one seed, or with splits that share rows."""
    three = {(method, "a"): [0.15, 0.2, 0.25] for method in "xyzuv"}
    assert set(states(values(three))["state"]) == {"inconclusive"}
    assert states(values({("x", "a"): [0.4]}))["state"].tolist() == ["inconclusive"]
    five = values({("x", "a"): [0.02, 0.03, 0.04, 0.05, 0.03]})
    assert states(five)["changed"].all()
    (line,) = states(five, ratio=pd.Series({"d": 2.0})).to_dict("records")
    assert line["state"] == "inconclusive"
    deviation = np.std([0.02, 0.03, 0.04, 0.05, 0.03], ddof=1)
    assert line["error"] == pytest.approx(deviation * np.sqrt(1 / 5 + 2))


def test_without_variance_nothing_is_significant():
    found = states(values({("x", "a"): [0.3] * 5, ("x", "b"): [0.0] * 5}))
    assert found["state"].tolist() == ["inconclusive"] * 2
    assert found[["p_changed", "p_held"]].isna().all(axis=None)
    assert "no change can be tested" in verdict(found, GAP)


def test_missing_cells_have_their_reason():
    """A method that failed, and a test set without values of a method."""
    rows = values({("x", "a"): 0.2 + SPREAD, ("x", "b"): 0.2 + SPREAD, ("y", "a"): 0.2 + SPREAD})
    found = states(rows, missing={("d", "z"): "out of memory", ("other", "x"): "not here"})
    by_cell = found.set_index(["method", "domain"])
    assert by_cell.loc[("z", "a"), "reason"] == "out of memory"
    assert by_cell.loc[("y", "b"), "reason"] == "no value"
    assert (by_cell["state"] == "missing").tolist() == [False, False, False, True, True, True]
    assert "grew on 3 of 3 pairs" in verdict(found, GAP)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({("x", "a"): 0.2 + SPREAD, ("y", "a"): 0.1 + SPREAD}, "No"),
        ({("x", "a"): SPREAD, ("y", "a"): -0.2 + SPREAD}, "Yes"),
        ({("x", "a"): SPREAD, ("y", "a"): 0.2 + SPREAD}, "Only with 1 of 2 models (x)"),
        ({("x", "a"): 40 * SPREAD, ("y", "a"): 0.2 + SPREAD}, "Not with 1 of 2 models"),
        ({("x", "a"): 40 * SPREAD, ("y", "a"): 30 * SPREAD}, "Too few data to tell"),
    ],
)
def test_the_verdict_begins_with_the_answer_and_counts_the_matrix(changes, answer):
    found = states(values(changes))
    told = verdict(found, GAP)
    assert told.startswith(f"{answer}: the equalized odds gap (Delta-EO) grew on ")
    counts = found["state"].value_counts()
    assert f"grew on {counts.get('grew', 0)} of 2 pairs" in told
    assert told.count(". ") == 1
    assert "With 5 seeds and Holm's correction for 2 tests" in told
    for state, words in (("held", "held within ±5 points"), ("shrank", "shrank")):
        assert (f"{words} on {counts.get(state, 0)}" in told) == (state in counts)


def test_changes_of_all_trainings_are_paired_by_seed():
    """Domains against home by brute force; an overall higher score becomes what it lacks to 1."""
    rng, rows, cells = np.random.default_rng(0), [], []
    for home, seed in product("ab", range(4)):
        name = {"dataset": f"data_{home}", "seed": seed, "metric": "worst_group_accuracy"}
        rows += [row(**name, value=rng.random(), attribute="sex")]
        rows += [
            row(**name, value=rng.random(), attribute="sex", shift="domain", domain=domain)
            for domain in "abc"
            if domain != home
        ]
    for home in "ab":
        cells.append({"dataset": f"data_{home}", "method": "erm", "algorithm": "erm"})
    described = tables.CELLS.table([c | {"network": "mlp"} for c in cells], [{"data": "data"}] * 2)
    frame = tables.table(tables.METRICS, rows)
    found = matrices(Results.of(frame, cells=described))["worst_group_accuracy"]
    assert found["domain"].tolist() == ["b", "c", "a"]
    gap = 1 - frame.set_index(["dataset", "domain", "seed"])["value"]
    of_c = [
        np.mean([gap[f"data_{h}", "c", seed] - gap[f"data_{h}", "", seed] for h in "ab"])
        for seed in range(4)
    ]
    line = found[found["domain"] == "c"].iloc[0]
    assert line["change"] == pytest.approx(np.mean(of_c))
    assert line["p_changed"] <= 3 * stats.ttest_1samp(of_c, 0).pvalue + 1e-12
    assert line["at_home"] == pytest.approx(gap[:, ""].mean())


def test_trivial_predictors_are_those_of_one_class_or_without_skill():
    """By rates of all groups, and by the accuracy of the most frequent class."""
    rows = []
    for method, (shift, severity), seed in product(
        ["skill", "one_class", "no_skill"], [("none", 0.0), ("noise", 1.0)], range(3)
    ):
        own = {"dataset": "d", "method": method, "seed": seed, "shift": shift, "severity": severity}
        accuracy = 0.6 if method == "no_skill" and shift == "noise" else 0.7 + 0.01 * seed
        rates = (0.0, 0.01) if method == "one_class" else (0.0, 0.3)
        rows += [
            row(**own, metric="accuracy", value=accuracy),
            row(**own, metric=GAP, attribute="sex", value=0.1 * seed * (1 + severity)),
            *(
                row(**own, metric="selection_rate_by_group", attribute="sex", group=g, value=rate)
                for g, rate in zip("fm", rates, strict=True)
            ),
        ]
        if shift == "none":
            rows.append(row(**own, metric="constant_accuracy", value=0.6))
    found = matrices(results(rows))[GAP].set_index("method")
    assert found["state"].to_dict() == {
        "skill": "inconclusive", "one_class": "trivial", "no_skill": "trivial",
    }  # fmt: skip


def test_only_the_largest_severity_of_a_shift_is_in_the_matrix():
    rows = [
        row(dataset="d", seed=seed, shift=shift, severity=severity, metric=GAP, attribute="sex")
        for seed in range(3)
        for shift, severity in (("none", 0.0), ("noise", 0.1), ("noise", 0.5), ("blur", 2.0))
    ]
    found = matrices(results(rows))[GAP]
    assert found[["shift", "severity"]].to_numpy().tolist() == [["noise", 0.5], ["blur", 2.0]]


def test_the_margin_is_that_of_the_data():
    changes = {("x", "a"): 0.06 + SPREAD}
    assert states(values(changes))["state"].tolist() == ["grew"]
    found = states(values(changes, margin=0.1))
    assert found["state"].tolist() == ["held"]
    assert "held within ±10 points on 1" in verdict(found, GAP)


def test_significant_changes_of_accuracy_are_those_of_scipy():
    rows = values({("x", "a"): 0.2 + SPREAD, ("x", "b"): 0.2 + SPREAD})
    noise = pd.Series([0.3, -0.3, 0.2, -0.2, 0.1])
    rows["accuracy_change"] = [*(-0.03 + SPREAD), *noise]
    found = states(rows)
    assert found["accuracy_change"].tolist() == pytest.approx([-0.03, noise.mean()])
    assert found["accuracy_changed"].tolist() == [True, False]


def test_plain_training_of_another_network_counts_as_a_model_and_not_as_a_method():
    """Boosted trees keep the gap; with thresholds they lose less than boosted trees without."""
    noise = 3 * np.array([0.3, -0.3, 0.2, -0.2, 0.1]) / 1000
    rows = pd.concat(
        [
            values({("erm", "a"): 0.3 + SPREAD, ("cuma", "a"): 0.3 + SPREAD + noise}),
            values({("trees", "a"): 0.01 + SPREAD}, algorithm="erm", network="trees"),
            values(
                {("fair_trees", "a"): -0.1 + SPREAD + noise},
                algorithm="erm", network="trees", postprocessing="equalized_odds",
            ),
            values({("alone", "a"): -0.2 + SPREAD}, network="embedding"),
        ]
    )  # fmt: skip
    rows.loc[rows["method"] == "cuma", "algorithm"] = "cuma"
    found = states(rows)
    told = verdict(found, GAP)
    assert told.startswith("Only with 3 of 5 models (trees, fair_trees, alone): ")
    assert "; 1 of 2 methods loses significantly less than plain training (fair_trees). " in told
    by_method = found.set_index("method")
    against = by_method["against_plain"].dropna()
    assert against.to_dict() == pytest.approx(
        {"cuma": noise.mean(), "fair_trees": -0.11 + noise.mean()}
    )
    p = [stats.ttest_1samp(mean + noise, 0).pvalue for mean in (0, -0.11)]
    assert by_method.loc[against.index, "p_against_plain"].tolist() == pytest.approx(by_holm(p))
    trivial = states(rows.assign(trivial=rows["method"] == "fair_trees"))
    assert "; 0 of 1 method loses significantly less than plain training. " in verdict(trivial, GAP)


def test_submitted_predictions_are_a_model_that_is_named_as_such():
    rows = values({("erm", "a"): 0.3 + SPREAD, ("theirs", "a"): 0.01 + SPREAD})
    rows.loc[rows["method"] == "theirs", ["algorithm", "network"]] = ["submission", ""]
    found = states(rows)
    assert "Only with 1 of 2 models (theirs)" in verdict(found, GAP)
    notes = {line["name"]: line["note"] for line in panel(found, GAP, "d")["lines"]}
    assert notes == {"erm": "", "theirs": "submitted"}


def test_a_test_set_without_the_gap_is_named_with_its_reason():
    rows = [
        row(dataset="d", seed=seed, shift=shift, severity=severity, metric=GAP, attribute="sex")
        | {
            "domain": domain,
            "value": value,
            "note": "no women of class 1" if np.isnan(value) else "",
        }
        for seed in range(3)
        for shift, severity, domain, value in (
            ("none", 0.0, "", 0.1),
            ("noise", 1.0, "", 0.2),
            ("blur", 2.0, "", np.nan),
            ("none", 0.0, "va", np.nan),  # its rows at home ...
            ("domain", 0.0, "va", np.nan),  # ... and where it is left out of training
        )
    ]
    lines = [f"{name} (no women of class 1)" for name in ("blur 2", "va")]
    assert undefined(results(rows), GAP) == {"d": lines}


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


def test_another_domain_counts_as_one_sample_however_many_seeds_are_tested_on_it():
    """Ten rows per group and class of one distribution: five seeds seldom see a change.

    Seeds share the rows of the other domain. Without the sampling error of these rows a t-test over
    seeds finds a change in many of 60 pairs of domains where there is none.
    """
    rng, runs = np.random.default_rng(0), 60
    rows = []
    for run in range(runs):
        shared = rng.binomial(10, 0.5, 4) / 10
        for seed, domain in product(range(5), ["", "ward"]):
            found = shared if domain else rng.binomial(10 * 20, 0.5, 4) / 200
            own = {"dataset": f"d{run}", "seed": seed, "domain": domain, "attribute": "sex",
                   "shift": "domain" if domain else "none"}  # fmt: skip
            gaps = np.abs(found[:2] - found[2:])
            rows.append(row(**own, metric="equalized_odds_difference", value=gaps.max(), n=10))
            rows.append(row(**own, metric="accuracy", value=0.7, n=40))
            rows += [
                row(**own, metric=f"{kind}_positive_rate_by_group", group=group, value=rate, n=10)
                for (group, kind), rate in zip(product("fm", ["true", "false"]), found, strict=True)
            ]
    metrics = results(rows)
    found = matrices(metrics)["equalized_odds_difference"]
    p = 2 * stats.t.sf(np.abs(found["change"]) / found["error"], 4)
    assert (p < 0.05).mean() <= 0.05
    by_hand = [
        stats.ttest_1samp(own["change"], 0).pvalue
        for _, own in by_seed(metrics, "equalized_odds_difference").groupby("dataset")
    ]
    assert np.mean(np.array(by_hand) < 0.05) > 0.15
    first = "dataset == 'd0' and seed == 0 and domain == 'ward'"
    one = metrics.metrics.query(first).set_index(["metric", "group"])
    variances = {
        kind: sum(
            (p := (one.loc[(f"{kind}_positive_rate_by_group", g), "value"] * 10 + 1) / 12)
            * (1 - p) / 10 for g in "fm"
        )
        for kind in ("true", "false")
    }  # fmt: skip
    seeds = by_seed(metrics, "equalized_odds_difference").query("dataset == 'd0'")
    assert seeds["change_shared"].to_numpy() == pytest.approx(max(variances.values()))
    share = (0.7 * 40 + 1) / 42  # of all rows, however many the gap is of
    assert seeds["accuracy_change_shared"].to_numpy() == pytest.approx(share * (1 - share) / 40)
    spread = seeds["change"].std() / np.sqrt(5)
    assert found["error"][0] == pytest.approx(np.hypot(spread, np.sqrt(max(variances.values()))))
