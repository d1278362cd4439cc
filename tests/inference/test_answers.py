"""The closed list of answers, on made-up matrices with known ones."""

import re

import numpy as np
import pandas as pd
import pytest

from robust_fairness.inference import answers
from robust_fairness.inference.answers import answer, gated, limit, one_digit, points, worst_first

PAIR = {
    "data": "acs", "attribute": "sex", "place": "NM", "state": "held", "change": 0.01,
    "bound": 0.03, "margin": 0.05, "limit": "rows away", "group": "f", "have": 400.0,
    "needed": 3_700.0, "needed_factor": 9.3,
}  # fmt: skip


def pairs(*rows: dict) -> pd.DataFrame:
    return pd.DataFrame([PAIR | row for row in rows], columns=list(PAIR))


def many(state: str, n: int, **more) -> list[dict]:
    return [{"place": f"t{k}", "state": state} | more for k in range(n)]


UNKNOWN = {"state": "inconclusive", "bound": 0.57, "have": 18.0, "change": 0.2}
GREW = {"state": "grew", "change": 0.28, "bound": 0.4}
NOT = {"state": "not estimable", "change": np.nan, "bound": np.nan, "have": 3.0}
ANSWERS = {
    "all held": (many("held", 3), "Yes: the gap by sex held within 5 points everywhere"),
    "a single test set": ([{}], "Yes: the gap by sex held within 5 points in NM"),
    "60 test sets": (many("held", 60), "Yes: the gap by sex held within 5 points everywhere"),
    "two attributes held": (
        [{}, {"attribute": "race", "place": "SD"}], "Yes: every gap held within 5 points everywhere"
    ),
    "some shrank": (
        [{}, {"state": "shrank", "place": "SD"}],
        "Yes: the gap by sex held within 5 points or shrank everywhere",
    ),
    "all shrank": (many("shrank", 2), "Yes: the gap by sex shrank everywhere"),
    "of no attribute": ([{"attribute": ""}], "Yes: the gap held within 5 points in NM"),
    "grew in one": ([{}, GREW], "No: the gap by sex grew in NM, by 28 points"),
    "by one point": ([{}, GREW | {"change": 0.01}], "No: the gap by sex grew in NM, by 1 point"),
    "grew in two, the larger first": (
        [GREW | {"change": 0.1}, GREW | {"place": "SD"}],
        "No: the gap by sex grew in SD and NM, by up to 28 points",
    ),
    "grew in 60 test sets": (
        many("grew", 60, change=0.3), "No: the gap by sex grew in 60 test sets, by up to 30 points"
    ),
    "one attribute grew, one held": (
        [{}, GREW | {"attribute": "race"}], "No: the gap by race grew in NM, by 28 points"
    ),
    "one attribute grew, one is unknown": (
        [UNKNOWN, GREW | {"attribute": "race"}], "No: the gap by race grew in NM, by 28 points"
    ),
    "both attributes grew": (
        [GREW | {"change": 0.1}, GREW | {"attribute": "race", "place": "SD"}],
        "No: 2 of 2 gaps grew, by up to 28 points in SD",
    ),
    "several datasets": (
        [GREW, GREW | {"data": "adult", "change": 0.4}, {"data": "compas"}],
        "No: 2 of 3 gaps grew, by up to 40 points in NM",
    ),
    "1 of 182 grew, the rest is unknown": (
        [*many("inconclusive", 181), GREW],
        "No: the gap by sex grew in 1 of 182 comparisons; 181 are unknown",
    ),
    "reversed": ([{"state": "reversed"}, UNKNOWN], "No: the gap by sex reversed in NM"),
    "1 of 224 grew": (
        [*many("held", 223), GREW],
        "Mostly: held in 223 of 224 comparisons; grew in NM, by 28 points",
    ),
    "10 of 224 grew": (
        [*many("held", 214), *many("grew", 10, change=0.12)],
        "Mostly: held in 214 of 224 comparisons; grew in 10, by up to 12 points",
    ),
    "1 of 224 changed": (
        [*many("held", 223), {"state": "changed"}],
        "Mostly: held in 223 of 224 comparisons; a difference changed in 1",
    ),
    "1 of 224 changed, the rest unknown": (
        [*many("inconclusive", 223, bound=0.57), {"state": "changed"}],
        "Unknown: a difference changed in NM; changes up to 57 points are possible",
    ),
    "changed only": (
        [{"state": "changed"}, {"state": "changed", "place": "SD"}],
        "Unknown: a difference changed in NM and SD; whether the gap grew is unclear",
    ),
    "1 of 20 unknown": (
        [*many("held", 19), UNKNOWN],
        "Mostly: held in 19 of 20 comparisons; 1 may change by up to 57 points",
    ),
    "1 of 20 cannot be estimated": (
        [*many("held", 10), *many("shrank", 9), NOT],
        "Mostly: held or shrank in 19 of 20 comparisons; 1 cannot be judged",
    ),
    "half unknown": (
        [*many("held", 2), UNKNOWN, UNKNOWN | {"bound": 0.3}],
        "Unknown in 2 of 4 comparisons: changes up to 57 points are possible",
    ),
    "one attribute held, one cannot be estimated": (
        [{}, NOT | {"attribute": "race", "have": np.nan}], "Unknown in 1 of 2 comparisons"
    ),
    "all unknown": (
        [UNKNOWN, UNKNOWN | {"place": "SD", "bound": 0.3, "have": 90.0}],
        "Unknown: changes up to 57 points are possible; only 18 rows of f in NM",
    ),
    "unknown at home": (
        [UNKNOWN | {"limit": "rows at home"}],
        "Unknown: changes up to 57 points are possible; only 18 rows of f at home",
    ),
    "too few refits": (
        [UNKNOWN | {"limit": "refits", "have": 5.0}],
        "Unknown: changes up to 57 points are possible; 5 refits are too few",
    ),
    "more refits alone would not do": (
        [UNKNOWN | {"limit": "refits", "have": 5.0, "needed": np.inf}],
        "Unknown: changes up to 57 points are possible",
    ),
    "not estimable": (
        [NOT, NOT | {"place": "SD", "have": 8.0}],
        "Unknown: the gap by sex cannot be estimated; only 3 rows of f in NM",
    ),
    "not estimable, no rows known": (
        [NOT | {"have": np.nan}], "Unknown: the gap by sex cannot be estimated"
    ),
    "not estimable without rows": (
        [NOT | {"have": 0.0}], "Unknown: the gap by sex cannot be estimated; no rows of f in NM"
    ),
    "one row": (
        [NOT | {"have": 1.0}], "Unknown: the gap by sex cannot be estimated; only 1 row of f in NM"
    ),
    "60 unknown test sets": (
        many("inconclusive", 60, bound=0.57, have=18.0),
        "Unknown: changes up to 57 points are possible; only 18 rows of f in t0",
    ),
    "all trivial": (
        many("trivial", 3), "Unknown: every model predicts one class or no better than that"
    ),
    "trivial models do not count": (
        [*many("trivial", 3), *many("missing", 2), {}],
        "Yes: the gap by sex held within 5 points in NM",
    ),
    "all failed": (many("missing", 3), "Unknown: every model failed"),
    "nothing": ([], "Unknown: no gap was measured both at home and in another test set"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_is_in_the_closed_list(name):
    """At most fifteen words; what is not certain everywhere never begins with Yes."""
    rows, expected = ANSWERS[name]
    table = pairs(*rows)
    said = answer(table)
    assert said == expected
    assert len(said.split()) <= 15
    word = re.match(r"\w+", said)[0]
    counted = table[~table["state"].isin(["trivial", "missing"])]
    fine = counted["state"].isin(["held", "shrank"])
    assert (word == "Yes") == bool(len(counted) and fine.all())
    assert (word == "Mostly") == bool(0.9 <= fine.mean() < 1)
    if word == "No":
        assert counted["state"].isin(["grew", "reversed"]).any()
    sizes = {points(value) for name in ("change", "bound", "margin") for value in table[name]}
    assert {*re.findall(r"(\d+) points?\b", said)} <= sizes


def test_answers_of_random_matrices_do_not_depend_on_the_order_and_stay_short():
    rng = np.random.default_rng(0)
    states = [*answers.RANKS, "trivial", "missing"]
    for _ in range(300):
        size = rng.integers(1, 40)
        table = pairs(
            *(
                {
                    "state": rng.choice(states[: rng.integers(1, len(states) + 1)]),
                    "place": f"t{rng.integers(9)}", "attribute": rng.choice(["sex", "race"]),
                    "data": rng.choice(["acs", "adult"]), "change": rng.normal(), "have": 40.0,
                    "bound": rng.random(),
                }
                for _ in range(size)
            )
        )  # fmt: skip
        said = answer(table)
        assert said == answer(table.sample(frac=1, random_state=1))
        assert len(said.split()) <= 15, said
        worst = worst_first(table)
        assert worst["state"].map(answers.RANKS).is_monotonic_increasing


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, "To see a change of 5 points in NM: about 4,000 rows of f there"),
        ({"limit": "rows at home"},
         "To see a change of 5 points in NM: about 4,000 rows of f at home"),
        ({"limit": "refits", "have": 5.0, "needed": 38.0},
         "To see a change of 5 points in NM: about 40 refits"),
        ({"needed": np.inf},
         "To see a change of 5 points in NM: about 9 times as much data, at home and there"),
        ({"needed": np.inf, "needed_factor": 388.2},
         "To see a change of 5 points in NM: about 400 times as much data, at home and there"),
        ({"needed": np.inf, "needed_factor": 1.36},
         "To see a change of 5 points in NM: about 1.4 times as much data, at home and there"),
        ({"needed": 90_000.0}, "To see a change of 5 points in NM: about 90,000 rows of f there"),
        ({"needed": np.nan, "needed_factor": np.nan}, ""),
        ({"state": "held"}, ""),
    ],
)  # fmt: skip
def test_what_limits_an_answer_has_one_digit(row, expected):
    assert limit(pairs(UNKNOWN | {"have": 400.0} | row)) == expected


def test_what_limits_an_answer_names_the_dataset_where_there_are_several():
    several = pairs(UNKNOWN | {"have": 400.0}, {"data": "adult"})
    assert limit(several) == "To see a change of 5 points in NM of acs: about 4,000 rows of f there"


@pytest.mark.parametrize(
    ("value", "text"), [(388.2, "400"), (7.4, "7"), (1_834, "2,000"), (0.96, "1"), (94, "90")]
)
def test_numbers_of_one_digit(value, text):
    assert one_digit(value) == text


@pytest.mark.parametrize(
    ("verdicts", "evident", "expected"),
    [
        (["FAIL", "PASS"], True, "No: gap by race is 0.22, above 0.1"),
        (["FAIL"], False, "No, by the estimate alone: gap by race is 0.22, above 0.1"),
        (["INCONCLUSIVE", "PASS"], True, "Unknown: gap by race is 0.22, perhaps above 0.1"),
        (["PASS"], True, "Yes: gap by race is 0.22, not above 0.1"),
        (["PASS", "PASS"], True, "Yes: both values are within their limits"),
        (["PASS"] * 3, True, "Yes: all 3 values are within their limits"),
    ],
)
def test_answers_about_gates(verdicts, evident, expected):
    said = gated(verdicts, "gap by race", "0.22", "above 0.1", evident)
    assert said == expected and len(said.split()) <= 15


def test_a_gate_that_fails_by_doubt_does_not_say_that_the_value_fails():
    said = gated(["FAIL"], "gap by race", "0.04 to 0.22", "above 0.1", False, False)
    assert said == "No: gap by race is 0.04 to 0.22, perhaps above 0.1"
