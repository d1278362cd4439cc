"""What rows show with a probability of 80 %: by hand, and by simulation."""

import numpy as np
import pandas as pd
import pytest

import robust_fairness as rf
from robust_fairness.auditing.export import record
from robust_fairness.auditing.verdict import console
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.intervals import bounds_of_gap

COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ["sex"]}
METRIC = "demographic_parity_difference"
Z = 1.959964 + 0.841621  # of 2.5 % and of 80 %


def halves(rows: dict[str, int], weight: float = 1.0) -> pd.DataFrame:
    """Groups of so many rows, of which half are selected."""
    sex = np.repeat(list(rows), list(rows.values()))
    p = np.concatenate([np.arange(n) % 2 for n in rows.values()])
    return pd.DataFrame({"y": np.arange(len(sex)) // 2 % 2, "p": p, "sex": sex, "w": weight})


@pytest.mark.parametrize("rows", [{"f": 500, "m": 500}, {"f": 100, "m": 900}])
def test_two_groups_by_hand(rows: dict[str, int]) -> None:
    """A row is added on either side of each rate (Agresti and Caffo 2000)."""
    error = np.sqrt(sum(0.25 / (n + 2) for n in rows.values()))
    table = halves(rows)
    (shown,) = rf.audit(table, **COLUMNS, metrics=METRIC).power
    assert (shown.attribute, shown.metric, shown.rate) == ("sex", METRIC, "selection rate")
    assert shown.gap == pytest.approx(Z * error, rel=1e-5)
    assert shown.change == pytest.approx(Z * error * np.sqrt(2), rel=1e-5)
    if rows["f"] != rows["m"]:
        assert (shown.group, shown.n) == ("f", 100)
    large = rf.audit(table, **COLUMNS, metrics=METRIC, reference=halves({"f": 10**5, "m": 10**5}))
    both = np.sqrt(error**2 + 2 * 0.25 / (10**5 + 2))
    assert large.power[0].change == pytest.approx(Z * both, rel=1e-5)
    weighted = rf.audit(table, **COLUMNS, metrics=METRIC, sample_weight="w").power[0]
    assert weighted.gap == pytest.approx(shown.gap, rel=1e-6)


def test_the_gap_is_shown_in_four_of_five_tables() -> None:
    """With a low selection rate: that of the other group varies more."""
    rng = np.random.default_rng(0)

    def table(share: float) -> pd.DataFrame:
        p = np.concatenate([np.arange(200) < 200 * value for value in (0.1, share)]).astype(int)
        return pd.DataFrame({"sex": np.repeat(["f", "m"], 200), "p": p})

    plain = {"y_pred": "p", "sensitive_features": "sex", "metrics": METRIC}
    (shown,) = rf.audit(table(0.1), **plain).power
    gap = find_metric(METRIC).gap
    assert gap is not None
    hits = rng.binomial(200, [0.1, 0.1 + shown.gap], (4000, 2))
    n = np.zeros((4000, 2, 2, 2), np.int64)
    n[:, :, 0, 0], n[:, :, 0, 1] = 200 - hits, hits
    low, _ = bounds_of_gap(gap, Counts.of_rows(n))
    assert 0.77 < (low > 0).mean() < 0.88


def test_console_and_json_say_it_once_and_nothing_is_said_of_too_few_rows() -> None:
    done = rf.audit(halves({"f": 100, "m": 900}), **COLUMNS)
    (line,) = [line for line, _ in console(done) if "power" in line]
    assert line.startswith("80 % power: sex: equalized odds difference, gaps from 0.")
    powers = {power["metric"]: power for power in record(done)["power"]}
    assert line.endswith(f"({powers['equalized_odds_difference']['group']}, 50 rows of the "
                         f"{powers['equalized_odds_difference']['rate']})")  # fmt: skip
    of_metric = next(power for power in done.power if power.metric == METRIC)
    assert powers[METRIC]["gap"] == pytest.approx(of_metric.gap)
    few = rf.audit(halves({"f": 6, "m": 900}), **COLUMNS)
    assert "no gaps and no changes of any kind (f, 2 rows" in "".join(
        line for line, _ in console(few)
    )
    assert {power["gap"] for power in record(few)["power"]} == {None}
    assert "80 % power: sex" in few.to_html()
