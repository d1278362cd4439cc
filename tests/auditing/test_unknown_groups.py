"""Groups of which little is known: what they leave known of gaps, changes and gates."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.gates import parse
from robust_fairness.auditing.verdict import answers
from robust_fairness.core.errors import InputError
from robust_fairness.numbers import verdicts
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.partly import partly_labelled
from robust_fairness.numbers.rates import Rates, interval, linear_gap, rates_of

RATES = {"a": 0.8, "b": 0.5, "c": 0.6}
GAP = "equal_opportunity_difference"


def table(seed: int, small: int, rates=RATES, rows: int = 3000) -> pd.DataFrame:
    """Two groups of as many rows with these true positive rates, and a small one."""
    rng = np.random.default_rng(seed)
    group = np.repeat(["a", "b", "c"], [rows, rows, small])
    y = np.arange(len(group)) % 2
    likely = np.where(y == 1, pd.Series(group).map(rates), 0.2)
    return pd.DataFrame({"g": group, "y": y, "p": (rng.random(len(y)) < likely).astype(int)})


def audit(now: pd.DataFrame, reference: pd.DataFrame | None = None, **options):
    return rf.audit(
        now, y_true="y", y_pred="p", sensitive_features=["g"], reference=reference, **options
    )


def row_of(rows: pd.DataFrame, metric: str = GAP) -> pd.Series:
    return rows[
        (rows["metric"] == metric) & (rows["group"] == "") & (rows["attribute"] == "g")
    ].iloc[0]


def verdict(done, gate: str, rule: str) -> str:
    (judgement,) = done.judged(gate, rule).judgements
    return judgement.verdict


@pytest.mark.parametrize("small", [8, 0])
def test_a_tiny_group_leaves_the_gap_of_the_others_proven(small: int) -> None:
    """Eight rows widen the upper bound and are named; gates and growth are decided as without."""
    now = audit(table(1, small, RATES | {"b": 0.2}), table(2, small))
    row, change = row_of(now.rows), row_of(now.changed)
    alone = row_of(audit(table(1, 0, RATES | {"b": 0.2})).rows)
    assert alone["low"] - 0.01 < row["low"] <= alone["low"] and row["high"] == (
        1 if small else alone["high"]
    )
    assert ("c has 4 rows for the true positive rate, 8 are needed" in row["note"]) == bool(small)
    assert verdict(now, f"{GAP}>0.1", "evidence") == "FAIL"
    assert change["state"] == "grew" and change["p"] < 1e-20 and change["low"] > 0.2
    assert change["high"] == (1 if small else pytest.approx(change["high"]))
    assert verdict(now, f"change({GAP})>0.05", "evidence") == "FAIL"
    if small:
        assert change["note"] == "without c" and f"without it {alone['value']:.3f}" in row["note"]


def test_a_small_gap_beside_a_tiny_group_is_neither_held_nor_within_a_limit() -> None:
    even = RATES | {"b": 0.8}
    done = audit(table(1, 8, even), table(2, 8, even))
    assert verdict(done, f"{GAP}>0.9", "evidence") == "INCONCLUSIVE"
    assert row_of(done.changed)["state"] == "not estimable"
    assert row_of(audit(table(1, 0, even), table(2, 0, even)).changed)["state"] == "held"


@pytest.mark.parametrize(
    ("rule", "large", "none"),
    [("estimate", "FAIL", "INCONCLUSIVE"), ("evidence", "FAIL", "INCONCLUSIVE"),
     ("doubt", "FAIL", "FAIL")],
)  # fmt: skip
def test_an_undefined_gap_fails_only_by_what_is_known(rule: str, large: str, none: str) -> None:
    """A group without positive rows: the value is missing, the others' gap is not."""
    for rates, expected in ((RATES, large), (RATES | {"b": 0.8}, none)):
        some = table(1, 8, rates)
        done = audit(some[(some["g"] != "c") | (some["y"] == 0)])
        row = row_of(done.rows)
        assert np.isnan(row["value"]) and row["high"] == 1
        assert verdict(done, f"{GAP}>0.1", rule) == expected
        assert (row["low"] > 0.25) == (rates is RATES)


def test_the_answer_to_doubt_is_about_what_is_possible() -> None:
    """Of a value that is not defined, and of one that passes while a part of its interval fails."""
    some = table(1, 8, RATES | {"b": 0.8})
    undefined = some[(some["g"] != "c") | (some["y"] == 0)]
    for made, limit in ((undefined, "0.9"), (table(1, 0, RATES | {"b": 0.78}), "0.04")):
        done = audit(made).judged(f"{GAP}>{limit}", "doubt")
        (said,), (judgement,) = answers(done), done.judgements
        assert said.startswith("No: the ") and said.endswith(f"perhaps above {limit}")
        assert not judgement.row.value > float(limit) and judgement.row.high > float(limit)
        assert judgement.reason.endswith("its interval does not exclude values that fail")


@pytest.mark.parametrize(("low", "high"), [(np.nan, 0.3), (0.05, np.nan)])
def test_a_bound_that_is_missing_leaves_every_value_possible(low: float, high: float) -> None:
    rows = pd.DataFrame(
        {"attribute": ["g"], "group": "", "metric": "accuracy", "value": 0.2, "low": low,
         "high": high, "n": 9, "note": "", "small": False, "applies": True}
    )  # fmt: skip
    for text in ("accuracy>0.1", "accuracy<0.1"):
        (judgement,) = parse(text).judgements(rows, "evidence")
        assert judgement.verdict == "INCONCLUSIVE"


def test_a_missing_replicate_weight_is_refused_and_a_group_without_one_is_unknown() -> None:
    """Of a replicate that is 0 in a group no rate of that group has a variance."""
    rng = np.random.default_rng(0)
    some = table(3, 0, rows=400).assign(w=1.0)
    names = [f"r{number}" for number in range(8)]
    some[names] = 2.0 * rng.integers(0, 2, (len(some), 8))
    options = {"sample_weight": "w", "replicate_weights": names}
    known = row_of(audit(some, **options).rows)
    assert 0 < known["low"] < known["value"] < known["high"] < 1
    lacking = some.copy()
    lacking.loc[5, "r3"] = np.nan
    with pytest.raises(InputError, match=r"column r3, row 6: no replicate weight, allowed"):
        audit(lacking, **options)
    some.loc[some["g"] == "b", "r3"] = 0.0
    done = audit(some, **options)
    row = row_of(done.rows)
    assert (row["low"], row["high"]) == (0, 1) and "b has 200 rows" in row["note"]
    assert verdict(done, f"{GAP}>0.1", "evidence") == "INCONCLUSIVE"
    of_b = done.rows.query("metric == 'accuracy_by_group' and group == 'b'").iloc[0]
    assert (of_b["low"], of_b["high"]) == (0, 1)


def coverage(draws: int, tiny: int) -> tuple[float, float, float]:
    """How often bounds contain the gap, growth is claimed of an equal gap, and is found."""
    rng = np.random.default_rng(7)
    n, of = np.array([400, 400, tiny]), linear_gap("largest", 3)

    def drawn(rates) -> Rates:
        hits = rng.binomial(n, rates, (draws, 3)).astype(float)
        return Rates.of_counts(hits, np.broadcast_to(n, hits.shape).astype(float))

    even, grown = np.array([0.6, 0.5, 0.7]), np.array([0.8, 0.4, 0.7])
    low, high = interval(drawn(even), of)
    covered = ((low <= 0.2) & (high >= 0.2)).mean()

    def grew(home, away) -> float:
        pairs = [(drawn_of(home, seed), drawn_of(away, seed)) for seed in range(200)]
        states = [verdicts.judged(verdicts.tested(*pair, of))["state"][0] for pair in pairs]
        return float(np.mean([state == "grew" for state in states]))

    def drawn_of(rates, seed) -> Rates:
        hits = np.random.default_rng((seed, int(1000 * rates[0]), int(1e4 * sum(rates)))).binomial(
            n, rates
        )[None].astype(float)  # fmt: skip
        return Rates.of_counts(hits, n[None].astype(float))

    other = np.array([0.61, 0.51, 0.2])  # the same gap of the known groups
    return float(covered), grew(even, other), grew(even, grown)


@pytest.mark.parametrize(
    "draws", [400, pytest.param(20_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_bounds_beside_a_tiny_group_cover_and_growth_is_found(draws: int) -> None:
    covered, wrong, power = coverage(draws, tiny=5)
    assert covered >= stats.binom.ppf(1e-4, draws, 0.95) / draws
    assert wrong <= stats.binom.ppf(1 - 1e-4, 200, 0.05) / 200 and power > 0.9


def test_eight_labelled_rows_are_eight() -> None:
    """Labels are counted, whatever Student's quantiles take of the rows that they are worth."""
    rng = np.random.default_rng(0)
    y, decided, known = np.ones(500, int), rng.integers(0, 2, 500), np.arange(500) < 8
    score = np.column_stack([np.full(500, 0.4), np.full(500, 0.6)])
    for labels, enough in ((8, True), (7, False)):
        counts = partly_labelled(
            Groups.named(np.zeros(500, int), ["all"]), y, decided, ("0", "1"),
            known & (np.arange(500) < labels), score,
        )  # fmt: skip
        means = counts.means(counts.grid()[1] == 1, counts.grid()[0] == 1)
        rates = rates_of([means], np.array([True]))
        assert means.counted[0] == pytest.approx(labels)
        assert np.isfinite(rates.corrected().variance).all() == enough
