"""The closed list of answers, on made-up matrices with known ones."""

import re

import numpy as np
import pandas as pd
import pytest

from robust_fairness.numbers import answers
from robust_fairness.numbers.answers import answer, gated, limit, one_digit, points, worst_first

PAIR = {
    "data": "acs", "attribute": "sex", "place": "NM", "state": "held", "change": 0.01,
    "bound": 0.03, "margin": 0.05, "limit": "rows away", "group": "f", "have": 400.0,
    "needed": 3_700.0, "needed_factor": 9.3, "method": "erm", "least": np.nan, "reason": "",
}  # fmt: skip


def pairs(*rows: dict) -> pd.DataFrame:
    return pd.DataFrame([PAIR | row for row in rows], columns=list(PAIR))


def many(state: str, n: int, **more) -> list[dict]:
    return [{"place": f"t{k}", "state": state} | more for k in range(n)]


UNKNOWN = {"state": "inconclusive", "bound": 0.57, "have": 18.0, "change": 0.2}
GREW = {"state": "grew", "change": 0.28, "least": 0.189, "bound": 0.4}
NOT = {"state": "not estimable", "change": np.nan, "bound": np.nan, "have": 3.0}
AT_LEAST = "grew by at least 18 points"
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
    "grew in one": ([{}, GREW], f"No: the gap by sex {AT_LEAST} in NM"),
    "by one point": (
        [{}, GREW | {"least": 0.01}], "No: the gap by sex grew by at least 1 point in NM"
    ),
    "by less than a point": ([{}, GREW | {"least": 0.009}], "No: the gap by sex grew in NM"),
    "by an estimate": ([GREW | {"least": np.nan}], "No: the gap by sex grew in NM, by 28 points"),
    "grew in two, what is surely the larger leads": (
        [GREW | {"least": 0.1, "change": 0.5}, GREW | {"place": "SD"}],
        f"No: the gap by sex {AT_LEAST} in SD",
    ),
    "of several models": (
        [GREW | {"method": "cuma"}, {}], f"No: the gap by sex {AT_LEAST} in NM (cuma)"
    ),
    "one attribute grew, one held": (
        [{}, GREW | {"attribute": "race"}], f"No: the gap by race {AT_LEAST} in NM"
    ),
    "one attribute grew, one is unknown": (
        [UNKNOWN, GREW | {"attribute": "race"}], f"No: the gap by race {AT_LEAST} in NM"
    ),
    "several datasets": (
        [GREW | {"least": 0.1}, GREW | {"data": "adult"}, {"data": "compas"}],
        f"No: the gap by sex {AT_LEAST} in NM of adult",
    ),
    "1 of 182 grew, the rest is unknown": (
        [*many("inconclusive", 181), GREW], f"No: the gap by sex {AT_LEAST} in NM"
    ),
    "1 of 224 grew, the rest held": (
        [*many("held", 223), GREW], f"No: the gap by sex {AT_LEAST} in NM"
    ),
    "reversed": ([{"state": "reversed"}, UNKNOWN], "No: the gap by sex reversed its sign in NM"),
    "1 of 224 changed": (
        [*many("held", 223), {"state": "changed"}],
        "Unknown: group differences changed in NM; the gap may have",
    ),
    "1 of 224 changed, the rest unknown": (
        [*many("inconclusive", 223, bound=0.57), {"state": "changed"}],
        "Unknown: group differences changed in NM; the gap may have, by up to 57 points",
    ),
    "changed only": (
        [{"state": "changed"}, {"state": "changed", "place": "SD"}],
        "Unknown: group differences changed in NM and SD; the gap may have",
    ),
    "1 of 20 unknown": (
        [*many("held", 19), UNKNOWN],
        "Unknown in 1 of 20 comparisons: changes of up to 57 points are possible",
    ),
    "1 of 20 cannot be estimated": (
        [*many("held", 10), *many("shrank", 9), NOT], "Unknown in 1 of 20 comparisons"
    ),
    "half unknown": (
        [*many("held", 2), UNKNOWN, UNKNOWN | {"bound": 0.3}],
        "Unknown in 2 of 4 comparisons: changes of up to 57 points are possible",
    ),
    "one attribute held, one cannot be estimated": (
        [{}, NOT | {"attribute": "race", "have": np.nan}], "Unknown in 1 of 2 comparisons"
    ),
    "all unknown": (
        [UNKNOWN, UNKNOWN | {"place": "SD", "bound": 0.3, "have": 90.0}],
        "Unknown: changes of up to 57 points are possible",
    ),
    "not estimable": (
        [NOT, NOT | {"place": "SD", "have": 8.0}], "Unknown: the gap by sex cannot be estimated"
    ),
    "not estimable, with a reason": (
        [NOT | {"reason": "HI and ME have opposite gaps"}],
        "Unknown: the gap by sex cannot be estimated; HI and ME have opposite gaps",
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
    assert (word == "No") == counted["state"].isin(["grew", "reversed"]).any()
    sizes = {points(value) for name in ("change", "bound", "margin") for value in table[name]}
    sizes |= {points(np.floor(100 * value) / 100) for value in table["least"]}
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


TO_SEE = "To see a change of 5 points in NM, it takes about"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({}, f"{TO_SEE} 4,000 rows of f in NM (400 now)"),
        ({"limit": "rows at home"}, f"{TO_SEE} 4,000 rows of f where it was trained (400 now)"),
        ({"limit": "refits", "have": 5.0, "needed": 38.0},
         f"{TO_SEE} 40 trainings of each method (5 now)"),
        ({"limit": "refits", "have": 5.0, "needed": np.inf, "needed_factor": 3.1},
         f"{TO_SEE} 20 trainings of each method (5 now), and as many times more of all others"),
        ({"needed": np.inf, "needed_factor": 24.4},
         f"{TO_SEE} 10,000 rows of f in NM (400 now), and as many times more of all others"),
        ({"needed": np.inf, "needed_factor": np.inf, "margin": 0.0},
         "No number of rows shows that a gap held within a margin of 0"),
        ({"needed": np.nan, "needed_factor": np.nan}, "It takes more rows of f in NM (400 now)"),
        ({"reason": "HI and ME have opposite gaps"},
         "More rows do not help: HI and ME have opposite gaps"),
        ({"state": "held"}, ""),
    ],
)  # fmt: skip
def test_what_would_help_is_said_in_plain_numbers(row, expected):
    assert limit(pairs(UNKNOWN | {"have": 400.0} | row)) == expected


def test_what_would_help_names_the_dataset_where_there_are_several():
    several = pairs(UNKNOWN | {"have": 400.0}, {"data": "adult"})
    assert limit(several) == (
        "To see a change of 5 points in NM of acs, it takes about 4,000 rows of f in NM of acs "
        "(400 now)"
    )


def test_what_else_grew_is_said_beside_the_answer():
    """Two things at most, the number of others, and not again what the answer has named."""
    race = GREW | {"attribute": "race"}
    gaps = {
        "gap": pairs(GREW, GREW | {"place": "SD"}, race | {"state": "reversed"}),
        "error": pairs(race | {"place": "west"}, UNKNOWN, {}),
    }
    assert answers.also(gaps, "gap") == (
        "Also: the gap by sex grew in SD; the gap by race reversed its sign in NM; 1 more"
    )
    assert answers.also(gaps, "error").startswith("Also: the gap by sex grew in NM and SD; ")
    assert answers.also({"gap": pairs(GREW, {})}, "gap") == ""
    assert answers.also({"gap": pairs({}, UNKNOWN)}) == ""


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
