"""Agreement of measures and survival under shift, against scipy and made-up runs."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from robust_fairness.papers import SECTIONS
from robust_fairness.report import Results, agreement
from robust_fairness.report.results import where
from robust_fairness.report.statistics import kendall_tau, rank_agreement, sizes_of_splits
from tests.report.made_up import row

METHODS = ["erm", "cuma", "laftr", "faircocco"]
SEEDS = range(6)


def rows(metric: str, value, dataset: str = "d", shift: str = "none", severity: float = 0.0):
    """Rows of a metric whose value is a function of the method's number and the seed."""
    return pd.DataFrame(
        [
            row(
                dataset=dataset, method=method, seed=seed, shift=shift, severity=severity,
                metric=metric, value=float(value(number, seed)),
            )
            for number, method in enumerate(METHODS)
            for seed in SEEDS
        ]
    )  # fmt: skip


def made_up() -> pd.DataFrame:
    """Two datasets; on the second Delta-EO ranks against Delta-ER, and shift harms cuma only."""
    noise = np.random.default_rng(0).normal(0, 1e-3, (4, 6))
    scores = []
    for dataset, sign in (("one", 1), ("two", -1)):
        scores += [
            rows("delta_er", lambda m, s: 4 - m, dataset),
            rows("delta_eo", lambda m, s, sign=sign: 0.5 - 0.1 * sign * m + noise[m, s], dataset),
            rows(
                "delta_eo",
                lambda m, s, sign=sign: 0.5 - 0.1 * sign * m + noise[m, -s] + 0.3 * (m == 1),
                dataset,
                "gaussian_noise",
                0.5,
            ),
            # weaker than the strongest, so that it counts for the survival alone
            rows("delta_eo", lambda m, s: s, dataset, "gaussian_noise", 0.1),
        ]
    return pd.concat(scores, ignore_index=True)


@given(arrays(np.int64, (2, 7), elements=st.integers(0, 5)))
def test_tau_is_that_of_scipy_with_ties(values):
    a, b = values.astype(np.float64)
    expected = stats.kendalltau(a, b, variant="b").statistic
    assert kendall_tau(a, b) == pytest.approx(expected, nan_ok=True)


def test_tau_of_tables_is_that_of_each_row():
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3, 6))
    taus = kendall_tau(a, b)
    assert taus.shape == (5, 3)
    assert taus[4, 2] == pytest.approx(stats.kendalltau(a[4, 2], b[4, 2]).statistic)


def test_clear_orders_have_no_interval_and_that_of_noise_holds_zero():
    """The same order whatever seeds are drawn; and no order at all."""
    clear = np.arange(5.0) + np.random.default_rng(0).uniform(0, 0.4, (8, 5))
    tau = rank_agreement(clear, -clear)
    assert (tau["tau"], tau["n"]) == (-1, 5) and np.isnan(tau["low"])  # nothing varies
    noise = np.random.default_rng(1).normal(size=(2, 8, 12))
    tau = rank_agreement(*noise)
    assert tau["low"] < 0 < tau["high"] and tau["low"] <= tau["tau"] <= tau["high"]
    assert tau == rank_agreement(*noise)
    assert np.isnan(rank_agreement(clear[:, :2], clear[:, :2])["tau"])
    single = rank_agreement(clear[:1], clear[:1])
    assert single["tau"] == 1 and np.isnan(single["low"])


def test_tau_leaves_out_what_is_missing():
    a, b = np.random.default_rng(2).normal(size=(2, 6))
    a[2] = b[2] = np.nan
    kept = ~np.isnan(a)
    assert kendall_tau(a, b) == pytest.approx(stats.kendalltau(a[kept], b[kept]).statistic)


def test_mean_tau_over_datasets():
    """+1 on one dataset and -1 on the other; each measure in its better direction."""
    metrics = made_up()
    table = agreement.kendall_over_datasets(Results(metrics)).set_index(["first", "second"])
    pair = table.loc["delta_eo", "delta_er"]
    assert (pair["tau"], pair["n"]) == (0, 2)
    assert (pair["low"], pair["high"]) == (-1, 1)  # Student's of two datasets, cut off
    single = metrics[metrics["dataset"] == "one"]
    alone = agreement.kendall_over_datasets(Results(single)).set_index(["first", "second"])
    assert alone.loc[("delta_eo", "delta_er"), "tau"] == 1
    # shifted: cuma (second best by number 1) becomes the worst; of six pairs one turns
    assert alone.loc[("delta_eo", "delta_eo under shift"), "tau"] == pytest.approx(4 / 6)
    accuracy = rows("mean_accuracy_at(alpha=0)", lambda m, s: m, "one")
    both = agreement.kendall_of_proposed(Results(pd.concat([single, accuracy])))
    assert both[["first", "second", "dataset", "tau"]].to_numpy().tolist() == [
        ["delta_er", "mean_accuracy_at(alpha=0)", "one", 1.0]
    ]


def test_survival_counts_what_changes_beyond_chance():
    """One of four methods is worse at the strong shift; at the weak one nothing is certain."""
    survival = agreement.survival(Results(made_up())).set_index(["dataset", "severity"])
    assert set(survival["metric"]) == {"delta_eo"} and set(survival["methods"]) == {4}
    for dataset in ("one", "two"):
        strong = survival.loc[(dataset, 0.5)]
        assert (strong["worse"], strong["better"]) == (1, 0)
        assert strong["change for the worse"] == pytest.approx(0.3 / 4, abs=1e-3)
    assert survival.loc[("one", 0.5), "tau"] == pytest.approx(4 / 6)
    assert np.isnan(survival.loc[("one", 0.1), "tau"])  # all methods alike


def test_holm_is_over_all_methods_and_test_sets():
    """A difference that is certain alone is not among many that are none."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1, (40, 4, 6))
    lucky = 1.2 * np.linspace(0.2, 1, 6)

    def run(count: int) -> pd.DataFrame:
        sets = [rows("delta_eo", lambda m, s: 0)]
        for k in range(count):
            sets.append(
                rows(
                    "delta_eo",
                    lambda m, s, k=k: lucky[s] if (k, m) == (0, 1) else noise[k, m, s],
                    shift="gaussian_noise",
                    severity=k + 1.0,
                )
            )
        return agreement.survival(Results(pd.concat(sets, ignore_index=True)))

    p = stats.ttest_1samp(lucky, 0).pvalue
    assert 0.05 / 160 < p < 0.05 / 4
    assert run(1)["worse"].tolist() == [1]
    assert run(40)["worse"].iloc[0] == 0


def test_against_plain_training():
    """Fairer by the number of the method, on one dataset; on the other the reverse."""
    tests = where(agreement.tests(Results(made_up())), compared=agreement.WITH_PLAIN)
    assert "erm" not in set(tests["method"])
    plain = tests[tests["shift"] == "none"].set_index(["dataset", "method"])
    assert plain.loc["one", "value"].to_numpy() == pytest.approx([0.1, 0.2, 0.3], abs=2e-3)
    assert plain.loc["one", "better"].all() and plain.loc["two", "worse"].all()
    weak = tests[tests["severity"] == 0.1]
    assert (weak["sign"] == 0).all() and weak["p"].isna().all()  # differences of 0 in every seed


def sizes(train: int, test: int, reused: float, dataset: str) -> list[dict]:
    """Two splits of a dataset."""
    sized = {"train_rows": train, "test_rows": test, "reused": reused}
    return [{"dataset": dataset, "split": f"split_{k}", **sized} for k in range(2)]


def test_seeds_that_share_rows_are_no_independent_ones():
    """One dataset's splits overlap so much that nothing is significant; the other's do not."""
    splits = pd.DataFrame(sizes(1, 10**9, 0.5, "one") + sizes(80, 20, 0.0, "two"))
    ratios = sizes_of_splits(splits).set_index("dataset")
    assert ratios["ratio"].to_dict() == {"one": 1e9, "two": 0}
    assert ratios.loc["two", ["splits", "trained on", "tested"]].tolist() == [2, 80, 20]
    key = ["metric", "compared", "tested"]
    plain = agreement.significant(Results(made_up())).set_index(key)
    corrected = agreement.significant(Results(made_up(), splits=splits)).set_index(key)
    row = ("delta_eo", "with erm", "unshifted")
    assert plain.loc[row, ["tests", "better", "worse"]].tolist() == [6, 3, 3]
    assert corrected.loc[row, ["tests", "better", "worse", "better on"]].tolist() == [6, 0, 3, ""]


def test_ceilings_are_taus_of_disjoint_halves_of_the_seeds():
    taus = agreement.ceilings(Results(made_up())).set_index(["shift", "severity"])
    clear = taus.loc[("none", 0.0)]
    assert clear.tolist() == [2, 1, 1]
    assert taus.loc[("gaussian_noise", 0.5), "same seeds"] == pytest.approx((4 / 6 + 2 / 6) / 2)


def test_what_is_kept_of_an_advantage():
    """Three methods are fairer without the shift; with it two still are, and cuma is worse."""
    kept = agreement.kept(Results(made_up())).set_index("severity").loc[0.5]
    assert kept[["fairer without", "fairer with", "worse with"]].tolist() == [3, 2, 1]
    assert kept["share left"] == pytest.approx((0.1 - 0.3 + 0.2 + 0.3) / 0.6, abs=0.01)


def test_a_run_of_few_methods_has_no_views():
    few = made_up()[lambda frame: frame["method"].isin(["erm", "cuma"])]
    for view in SECTIONS["agreement"].views:
        assert (view.id, len(view.rows(Results(few)))) in {
            ("agreement", 0),
            ("agreement_of_proposed", 0),
            ("survival", 4),
            ("kept", 2),
            ("sizes_of_splits", 0),
            ("significant", 3),
            ("ceilings", 3),
            ("average_ranks", 0),
        }
    assert not len(agreement.survival(Results(few.iloc[:0])))
    assert not len(agreement.kept(Results(few.iloc[:0])))


def test_figure_is_a_symmetric_square():
    table = agreement.kendall_over_datasets(Results(made_up()))
    square = agreement.draw_kendall(table).data[0]
    values = np.array(square.z, dtype=float)
    assert list(square.x) == ["delta_eo", "delta_eo under shift", "delta_er"]
    assert np.array_equal(values, values.T) and (np.diag(values) == 1).all()
    assert values[0, 2] == table.set_index(["first", "second"]).loc[("delta_eo", "delta_er"), "tau"]
