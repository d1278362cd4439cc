"""The second line of the first screen: bounds of constructed scores, by scipy."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.core import tables
from robust_fairness.report.first_screen import advantages, panels
from robust_fairness.report.matrix import matrices
from tests.report.made_up import results, row

GAP = "delta_eo"
SEEDS = 6
RATIO = 0.25
NOISE = {"none": 0.0, "gaussian_noise": 0.06, "uniform_noise": 0.06}


def run_of(gaps: dict[str, dict[str, np.ndarray]], **networks: str):
    """A run of one dataset with gaps by method and shift, an array over seeds."""
    rows = [
        row(dataset="d", method=method, network=networks.get(method, "mlp"), seed=seed,
            shift=shift, severity=NOISE[shift], attribute=attribute, metric=metric,
            value=value, n=1000)
        for method, by_shift in gaps.items()
        for shift, of_seeds in by_shift.items()
        for seed, gap in enumerate(of_seeds)
        for metric, attribute, value in ((GAP, "sex", gap), ("accuracy", "", 0.8))
    ]  # fmt: skip
    splits = [
        {"dataset": "d", "split": f"split_{k}", "train_rows": 400, "test_rows": 100, "reused": 0.5}
        for k in range(SEEDS)
    ]
    return results(rows, splits=tables.table(tables.SPLITS, splits))


def drawn(means: dict[str, float], seeds: int = SEEDS) -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(5)
    return {
        method: {shift: mean + 0.02 * rng.standard_normal(seeds) for shift in NOISE}
        for method, mean in means.items()
    }


def test_bounds_are_those_of_scipy_in_the_worst_test_set():
    """Two methods in two test sets: one-sided, at half of the level, on splits that share rows."""
    gaps = drawn({"erm": 0.4, "cuma": 0.2, "laftr": 0.38})
    run = run_of(gaps)
    found = advantages(matrices(run)[GAP], GAP, run).set_index("method")["least"]
    for method in ("cuma", "laftr"):
        bounds = []
        for shift in list(NOISE)[1:]:
            values = gaps["erm"][shift] - gaps[method][shift]
            error = values.std(ddof=1) * np.sqrt(1 / SEEDS + RATIO)
            bounds.append(values.mean() - stats.t.isf(0.05 / 2, SEEDS - 1) * error)
        assert found[method] == pytest.approx(min(bounds), abs=1e-6)
    assert found["cuma"] > 0 > found["laftr"]
    (said,) = {content["fairer"] for content in panels(run) if content["gap"] == GAP}
    points = int(100 * found["cuma"])
    assert said.endswith(f"shift: cuma, by at least {points} points (d)")


@pytest.mark.parametrize(
    ("means", "seeds", "networks", "said"),
    [
        ({"erm": 0.4, "cuma": 0.2}, 4, {}, "unknown; it takes 5 seeds"),
        ({"erm": 0.4, "cuma": 0.39}, SEEDS, {}, "unknown; shown of none of 1 method"),
        ({"erm": 0.2, "cuma": 0.4}, SEEDS, {}, "unknown; shown of none of 1 method"),
        ({"erm": 0.4}, SEEDS, {}, ""),
        ({"erm": 0.4, "cuma": 0.2}, SEEDS, {"cuma": "linear"}, ""),
        ({"cuma": 0.4, "laftr": 0.2}, SEEDS, {}, ""),
    ],
)
def test_what_is_not_known_is_no_good_news(means, seeds, networks, said):
    """Few seeds, a small or a wrong difference, no plain training with the same network."""
    run = run_of(drawn(means, seeds), **networks)
    (told,) = {content["fairer"] for content in panels(run) if content["gap"] == GAP}
    assert told == (said and f"Fairer than plain training under shift: {said}")
