"""What is foretold is what simulated runs find."""

import numpy as np
import pandas as pd
import pytest

from robust_fairness.cli.power import BINARY, RowCounts, foretold, sentences
from robust_fairness.inference import Rates, linear_gap, of_rate, verdicts
from robust_fairness.inference.power import detectable

DRAWS = 2000


@pytest.mark.parametrize(("home", "away"), [([800, 800], [800, 800]), ([5000, 900], [300, 20000])])
def test_a_change_of_this_size_is_found_in_four_of_five_draws(
    home: list[int], away: list[int]
) -> None:
    """Of rates of one half at home, by the verdicts' own test of signed differences."""
    form = linear_gap("largest", len(home))
    (change,), _ = detectable(np.array([home]), np.array([away]), form, tests=1)
    generator = np.random.default_rng(0)

    def drawn(rates: list[float], rows: list[int]) -> Rates:
        share = generator.binomial(rows, rates, (DRAWS, len(rows))) / rows
        n = np.broadcast_to(np.array(rows, float), share.shape)
        return Rates(share[..., None], of_rate(share, n), n)

    elsewhere = [0.5 + change / 2, 0.5 - change / 2]
    table = verdicts.tested(drawn([0.5, 0.5], home), drawn(elsewhere, away), form)
    assert (table["p_signed"] < 0.05).mean() == pytest.approx(0.8, abs=0.04)


def test_the_scarcest_rows_limit_and_a_larger_family_finds_less() -> None:
    form = linear_gap("largest", 2, BINARY)
    home, away = np.array([[900, 700, 60, 800]]), np.array([[500, 400, 500, 600]])
    alone, limit = detectable(home, away, form, tests=1)
    assert limit.tolist() == [2]
    assert detectable(home, away, form, tests=100)[0] > alone
    change, limit = detectable(home, np.array([[500, 3, 500, 600]]), form, tests=1)
    assert np.isnan(change) and limit.tolist() == [4 + 1]


def test_every_attribute_has_a_sentence_with_what_limits_it() -> None:
    labels = ("women, ill", "men, ill", "women, well", "men, well")
    here = np.array([400, 400, 400, 400])
    places = {"Ashford": [900, 900, 900, 900], "Riverside": [90, 900, 900, 900]}
    every = [
        RowCounts("visits", "visits", "sex", name, 3, labels, here, np.array(rows))
        for name, rows in places.items()
    ]
    few = np.array([2, 900, 900, 900])
    every.append(RowCounts("visits", "visits", "race", "Ashford", 3, labels, here, few))
    rows = foretold(every)
    assert rows["change"].isna().tolist() == [False, False, True]
    by_sex, by_race = sentences(rows)
    points = (100 * rows["change"]).map("{:.0f}".format)
    assert by_sex == (
        f"visits, sex: a change of {points[0]} points would be found in Ashford, "
        f"one of {points[1]} in Riverside (limited by 90 rows: women, ill)."
    )
    assert by_race == "visits, race: not estimable in Ashford (2 rows: women, ill): merge levels."
    assert list(sentences(pd.DataFrame(columns=rows.columns))) == []
