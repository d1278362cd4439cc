"""The study of natural shift: its page is that of the scores beside it, and its statistics."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from tests.test_documents import DOCUMENTS, module


@pytest.fixture(scope="module")
def study():
    return module(DOCUMENTS / "natural_study.py")


def rows(study, tpr: float, tested_on: str = "", shift: str = "none", seed: int = 0, method="a"):
    """One model whose true positive rate is ``tpr`` for group 1 and .5 for group 0."""
    found = {"method": method, "seed": seed, "trained_on": "x", "shift": shift, "severity": 0.0,
             "tested_on": tested_on, "accuracy": 0.8, "delta_er": np.nan}  # fmt: skip
    rates = {"tpr_0": 0.5, "tpr_1": tpr, "fpr_0": 0.0, "fpr_1": 0.0}
    counts = {f"{rate}_rows_{group}": 101 for rate in ("tpr", "fpr") for group in (0, 1)}
    return study.differences(pd.DataFrame([found | rates | counts]))


def test_movement_is_net_of_the_variance_of_both_ends(study):
    """Changes of .1 and .3 of one rate, none of the other; variances p (1 - p) / 100 by hand."""
    moved = pd.concat([rows(study, 0.5), rows(study, 0.6, "y", "domain"),
                       rows(study, 0.8, "z", "domain")])  # fmt: skip
    away = study.away(moved)
    gross = study.movement(away, "method", net=False)["a"]
    assert gross**2 == pytest.approx((0.1**2 + 0.3**2) / 4)
    noise = [0.25 + 0.25 + 0.25 + 0.24, 0.25 + 0.25 + 0.25 + 0.16]
    net = study.movement(away, "method", net=True)["a"]
    assert net**2 == pytest.approx(gross**2 - sum(noise) / 100 / 4)


def test_a_group_of_one_row_has_no_variance(study):
    """Also if its decision is random: the movement is that of the other rows."""
    moved = pd.concat([rows(study, 0.5), rows(study, 0.8, "z", "domain")])
    one = moved.assign(tested_on="y", tpr_rows_0=1)[moved["tested_on"] == "z"]
    both = study.away(study.differences(pd.concat([moved, one])))
    assert both["tpr_variance"].isna().tolist() == [False, True]
    alone = study.movement(study.away(moved), "method", net=True)
    assert study.movement(both, "method", net=True)["a"] == alone["a"] > 0


def test_forecasts_take_another_split(study):
    """Concordant minus discordant pairs of methods, counted, of each split with the other."""
    gaps = np.array([[0.1, 0.2, 0.3, 0.4], [0.2, 0.1, 0.3, 0.4]])
    home = pd.concat(
        rows(study, 0.5 + gap, seed=seed, method=f"m{number}")
        for seed, one in enumerate(gaps)
        for number, gap in enumerate(one)
    )
    elsewhere = pd.concat(
        rows(study, 0.5 + gap, "y", "domain", seed, f"m{number}")
        for seed, one in enumerate(gaps[:, ::-1])
        for number, gap in enumerate(one)
    )
    signs = [
        np.sign(
            (gaps[1 - seed][i] - gaps[1 - seed][j]) * (gaps[seed][::-1][i] - gaps[seed][::-1][j])
        )
        for seed in (0, 1)
        for i, j in combinations(range(4), 2)
    ]
    (tau,) = study.taus(home, elsewhere)["tau"]
    assert tau == pytest.approx(np.mean(signs))


def test_states_count_on_both_sides_of_a_pair(study):
    """Distances between states: independent values per state reject a mean of 0 too often.

    With the jackknife a t-test rejects at most a tenth of true null hypotheses at 5 %.
    """
    rng, found = np.random.default_rng(0), []
    states = [f"s{number}" for number in range(8)]
    pairs = pd.MultiIndex.from_product([states, states], names=["trained_on", "tested_on"])
    for _ in range(30):
        effects = rng.normal(size=8)
        values = (effects[:, None] + effects + rng.normal(size=(8, 8))).ravel()
        table = pd.DataFrame({"change": values}, pairs).reset_index()
        table = table[table["trained_on"] != table["tested_on"]]
        by_target = lambda rows: rows.groupby("tested_on")["change"].mean()  # noqa: E731
        planned = study.test_of(by_target(table))
        tested = study.over_states(by_target, table)
        assert (tested.mean, tested.n) == (planned.mean, 8)
        found.append((tested.p < 0.05, planned.p < 0.05))
    crossed, independent = np.mean(found, axis=0)
    assert crossed <= 0.1
    assert independent > 0.2
