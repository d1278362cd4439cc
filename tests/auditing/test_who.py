"""The first figure of an audit and its title, on tables whose truth is known."""

import re
from html import unescape
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.who import Figure, Panel
from robust_fairness.core import rendering
from robust_fairness.core.errors import InputError

LOANS = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": ["race", "sex"]}
WORDS = {"rows": "applicants", "positive": "who repay", "predicted": "approved"}
BLACK = {("Black", "f"): 0.4, ("Black", "m"): 0.4}


def loans(rows: int, lower: dict[tuple[str, str], float], seed: int = 0) -> pd.DataFrame:
    """Applicants of whom 63 % of those who repay are approved, and other shares of some groups."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["Asian", "Black", "White"], rows, p=[0.2, 0.3, 0.5])
    sex = rng.choice(["f", "m"], rows)
    repaid = rng.random(rows) < 0.6
    rate = np.array([lower.get(key, 0.63) for key in zip(race, sex, strict=True)])
    approved = rng.random(rows) < np.where(repaid, rate, 0.2)
    columns = {"race": race, "sex": sex, "repaid": repaid.astype(int)}
    return pd.DataFrame({**columns, "approved": approved.astype(int)})


def few_labels() -> pd.DataFrame:
    """200 labels of 50,000."""
    table = loans(50_000, dict.fromkeys(BLACK, 0.2))
    rng = np.random.default_rng(1)
    table["score"] = np.clip(0.25 + 0.5 * table["approved"] + 0.1 * rng.normal(size=50_000), 0, 1)
    table["repaid"] = table["repaid"].astype(float)
    table.loc[rng.permutation(50_000)[200:], "repaid"] = np.nan
    return table


# Table, options, the group that is named (None: nobody), and its true distance from the others.
CASES = {
    "one intersection": (loans(6000, {("Black", "f"): 0.4}), {}, "race & sex = Black & f", 0.23),
    "one group": (loans(6000, BLACK), {}, "race = Black", 0.23),
    "in words": (loans(6000, BLACK), {"words": WORDS}, "Black applicants who repay", 0.23),
    "none": (loans(6000, {}), {}, None, 0.0),
    "too few rows": (loans(60, BLACK), {}, None, 0.23),
    "two periods": (loans(6000, BLACK), {"reference": loans(6000, {}, 5)}, "race = Black", 0.23),
    "few labels": (
        few_labels(), {"labels": "some", "y_pred": "score"}, "race = Black", 0.43,
    ),
    "no labels": (loans(6000, BLACK), {"y_true": None}, "race = Black", 0.6 * 0.23),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_title_names_whom_the_planted_gap_is_of_and_no_more_than_it(case: str) -> None:
    table, options, named, distance = CASES[case]
    done = rf.audit(table, **{**LOANS, **options})
    figure, page = done.figure, unescape(done.to_html())
    assert figure is not None and figure.title[1:] in page
    if named is None:
        assert figure.title.startswith("no group can be named") and not figure.also
        if bound := re.search(r"up to (\d+) points between groups of (.*) are", figure.title):
            assert int(bound[1]) >= 100 * distance and {*bound[2].split(" or ")} == {"race", "sex"}
        return
    assert figure.title.startswith(named)
    bound = re.search(r"at least ([0-9.]+) points less often", figure.title)
    assert bound and 0 < float(bound[1]) <= 100 * distance
    assert figure.beyond == ("above the limit of 10" in figure.title)
    lead = figure.panels[0][0]
    place = lead.pair[0]
    raw = table[table["race"] == "Black"]
    raw = raw[raw["sex"] == "f"] if lead.crossed else raw
    if case not in ("few labels", "no labels"):  # the share that pandas counts
        share = raw.loc[raw["repaid"] == 1, "approved"].mean()
        assert lead.groups["value"].iloc[place] == pytest.approx(share, abs=1e-12)


ODDS = [
    "equalized_odds_difference", "true_positive_rate_by_group", "false_positive_rate_by_group",
]  # fmt: skip


def surest(figure: Figure) -> Panel:
    """The panel with the largest bound."""
    panels = [panel for of_rate in figure.panels for panel in of_rate]
    return max(panels, key=lambda panel: panel.bound)


def test_an_intersection_is_named_only_where_no_attribute_alone_is_nearly_as_sure() -> None:
    """Of a gap by race alone race is named, though an intersection has the larger bound by chance.

    Of one that only women of a race have the intersection is.
    """
    of_race, of_women = (
        [rf.audit(loans(3000, lower, seed), **LOANS, metrics=ODDS).figure for seed in range(8, 14)]
        for lower in (BLACK, {("Black", "f"): 0.4})
    )
    assert all(figure.title.startswith("race = Black") for figure in of_race)
    assert any(surest(figure).crossed for figure in of_race)
    assert all(figure.title.startswith("race & sex = Black & f") for figure in of_women)


@pytest.mark.parametrize(
    ("tables", "rows"), [(60, 800), pytest.param(400, 2000, marks=pytest.mark.slow)]
)
def test_nobody_is_named_where_no_group_differs(tables: int, rows: int) -> None:
    """In at least 95 % of the tables without any difference, and some error of the simulation.

    Then the title is about no group, with a bound of all differences.
    """
    figures = [
        rf.audit(loans(rows, {}, seed), **LOANS, metrics=ODDS).figure for seed in range(tables)
    ]
    named = sum(surest(figure).bound > 0 for figure in figures)
    assert stats.binomtest(named, tables, 0.05, "greater").pvalue > 0.02
    quiet = [figure for figure in figures if figure.title.startswith("no group can be named")]
    assert len(quiet) == tables - named


def test_hidden_groups_are_neither_drawn_nor_named() -> None:
    table = loans(3000, {})
    rare = table.head(40).assign(race="<b>Rare", repaid=1, approved=0)
    table = pd.concat([table, rare], ignore_index=True)
    seen, hidden = (rf.audit(table, **LOANS, suppress=most) for most in (0, 100))
    assert "<b>Rare" in seen.figure.title and "<b>Rare" not in seen.to_html()
    assert "Rare" in seen.to_html()
    first = hidden.to_html()
    assert "Rare" not in first and "Rare" not in hidden.figure.title


def test_errors_that_are_surely_too_high_and_several_classes() -> None:
    rng, table = np.random.default_rng(2), loans(3000, {})
    y = rng.normal(10, 2, 3000)
    table = table.assign(y=y, p=y + rng.normal(size=3000) + 1.5 * (table["race"] == "Black"))
    columns = {"y_true": "y", "y_pred": "p", "sensitive_features": ["race", "sex"]}
    done = rf.audit(table, **columns, continuous=True)
    group = r"race(?: & sex)? = Black(?: & [fm])?"
    too = re.match(f"predictions for {group} are too high by at least ([0-9.]+)", done.figure.title)
    assert too and 1.2 < float(too[1]) <= 1.5
    letters = rng.choice(list("abc"), 3000)
    right = rng.random(3000) < np.where(table["sex"] == "f", 0.4, 0.9)
    done = rf.audit(table.assign(y=letters, p=np.where(right, letters, "a")), **columns)
    title = done.figure.title
    named = re.match(r"sex = f: rows with y = ([bc]) are predicted \1", title)
    bound = re.search(r"at least (\d+) points less often than m", title)
    assert named and bound and 0 < int(bound[1]) <= 50
    of_class = (letters == named[1]) & (table["sex"] == "f")
    assert f"({100 * right[of_class].mean():.0f} % against" in title


def test_an_attribute_of_too_many_groups_is_named() -> None:
    table = loans(3000, BLACK)
    rng = np.random.default_rng(3)
    table["town"] = rng.choice([f"t{number}" for number in range(60)], 3000)
    done = rf.audit(table, **LOANS | {"sensitive_features": ["race", "town"]})
    line = "race & town: 180 groups, at most 100 are compared"
    assert [*done.figure.left_out] == [line] and line in unescape(done.to_html())
    assert done.figure.title.startswith("race = Black")


def test_an_unknown_word_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown word 'people'"):
        rf.audit(loans(100, {}), **LOANS, words={"people": "applicants"})


# Machado, Oliveira and Fernandes (2009), severity 1, of linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


@pytest.mark.parametrize("blindness", BLINDNESS)
def test_good_bad_and_unsure_differ_for_the_colour_blind(blindness: str) -> None:
    """CIE76 distances of the three colours in both themes, as people see them."""
    css = (Path(rendering.__file__).parent / "templates" / "base.html").read_text()
    for theme in (0, 1):
        seen = []
        for state in ("good", "bad", "unsure"):
            text = re.findall(rf"\.{state} {{ color: #([0-9a-fA-F]{{6}})", css)[theme]
            code = np.array([int(text[place : place + 2], 16) for place in (0, 2, 4)]) / 255
            linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
            seen.append(lab(np.clip(np.asarray(BLINDNESS[blindness]) @ linear, 0, 1)))
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


def lab(linear: np.ndarray) -> np.ndarray:
    """CIELAB of linear RGB (D65)."""
    matrix = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    x, y, z = np.cbrt(np.array(matrix) @ linear / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])
