"""The worst subgroup: by hand, by simulation, and as users ask for it."""

import json
from dataclasses import replace
from html import escape
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

import robust_fairness as rf
from robust_fairness.auditing.door import check
from robust_fairness.auditing.export import SCHEMA
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.search import searched
from robust_fairness.cli.audit import audit as command
from robust_fairness.core.errors import InputError

ATTRIBUTES = ["u", "v", "w"]
COLUMNS = {"y_true": "y", "y_pred": "p", "sensitive_features": ATTRIBUTES}
OPTIONS = Options("y", "p", ATTRIBUTES)


def table(rows: int, excess: float, seed: int = 0) -> pd.DataFrame:
    """A fifth of the predictions is wrong, more where u, v and w are a."""
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({name: rng.choice(list("abc"), rows) for name in ATTRIBUTES})
    planted = (made == "a").all(axis=1)
    wrong = rng.random(rows) < 0.2 + excess * planted
    y = rng.integers(0, 2, rows)
    return made.assign(y=y, p=np.where(wrong, 1 - y, y))


def test_the_planted_subgroup_is_found_with_the_numbers_of_scipy() -> None:
    rows = table(6000, 0.3)
    accuracy = next(w for w in searched(check(rows, OPTIONS), OPTIONS) if w.metric == "accuracy")
    assert (accuracy.attributes, accuracy.values) == (("u", "v", "w"), ("a", "a", "a"))
    assert accuracy.tried == 9 + 27 + 27
    inside = (rows[ATTRIBUTES] == "a").all(axis=1)
    right = rows["y"] == rows["p"]
    assert accuracy.n == inside.sum()
    assert accuracy.value == pytest.approx(right[inside].mean())
    assert accuracy.rest == pytest.approx(right[~inside].mean())
    parts = [right[inside], right[~inside]]
    cells = [[(~part).sum(), part.sum()] for part in parts]
    p = stats.fisher_exact(cells, alternative="greater").pvalue
    assert accuracy.p == pytest.approx(3 * 63 * p, rel=1e-6)
    # of 63 subgroups, two rates and two sides
    level = 1 - 0.05 / 63 / 2
    wrong = [
        stats.binomtest(int(miss), int(miss + hit)).proportion_ci(level) for miss, hit in cells
    ]
    assert accuracy.low == pytest.approx(wrong[0].low - wrong[1].high, abs=1e-9)
    assert accuracy.high == pytest.approx(wrong[0].high - wrong[1].low, abs=1e-9)


@pytest.mark.parametrize("excess", [0.0, 0.12, 0.3])
def test_the_search_does_not_depend_on_the_order_of_the_rows(excess: float) -> None:
    rows = table(600, excess, 7)
    said = {
        tuple(map(str, searched(check(rows.sample(frac=1, random_state=seed), OPTIONS), OPTIONS)))
        for seed in range(60)
    }
    assert len(said) == 1


@pytest.mark.parametrize("weights", ["equal", "lognormal"])
def test_tables_without_a_worse_subgroup_seldom_say_one(weights: str) -> None:
    """And the intervals, for all subgroups at once, cover 0."""
    said, covered = [], []
    for seed in range(60):
        rows = table(500, 0.0, seed)
        drawn = np.random.default_rng(seed).lognormal(size=500)
        rows["k"] = 1.0 if weights == "equal" else drawn
        options = replace(OPTIONS, sample_weight="k")
        worst = searched(check(rows, options), options)
        said.append(min(each.p for each in worst) < 0.05)
        covered.append(all(each.low <= 0 <= each.high for each in worst))
    assert np.mean(said) <= 0.05 + 2 * (0.05 * 0.95 / 60) ** 0.5
    assert np.mean(covered) >= 0.95 - 2 * (0.05 * 0.95 / 60) ** 0.5


def test_weights_of_equal_rows_change_nothing_and_copies_count() -> None:
    rows = table(3000, 0.2)
    plain = rf.audit(rows, **COLUMNS, search=True).worst
    weighted = rf.audit(rows.assign(k=2.0), **COLUMNS, search=True, sample_weight="k").worst
    for one, other in zip(plain, weighted, strict=True):
        assert (one.attributes, one.values, one.n) == (other.attributes, other.values, other.n)
        assert one.p == pytest.approx(other.p, rel=1e-6)
    assert not rf.audit(rows, **COLUMNS).worst


def test_console_page_and_json_say_it(tmp_path: Path) -> None:
    table(6000, 0.3).to_csv(tmp_path / "now.csv", index=False)
    words = [str(tmp_path / "now.csv"), "--target=y", "--prediction=p", "--attributes=u,v,w",
             "--search", f"--output={tmp_path}", "--force"]  # fmt: skip
    said = CliRunner().invoke(command, words)
    assert said.exit_code == 0, said.output
    line = next(line for line in said.output.splitlines() if line.startswith("search: accuracy"))
    assert line.startswith("search: accuracy of u a, v a, w a is 0.") and "of 63 subgroups" in line
    page = (tmp_path / "now_audit.html").read_text()
    assert f"<p>Search: {escape(line.removeprefix('search: '))}.</p>" in page
    record = json.loads(CliRunner().invoke(command, [*words, "--format=json"]).output)
    jsonschema.validate(record, json.loads(SCHEMA.read_text()))
    assert record["search"][0]["values"] == ["a", "a", "a"]
    none = rf.audit(table(6000, 0.0), **COLUMNS, search=True).worst
    assert all("no subgroup is shown to be worse; " in str(worst) for worst in none)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_true": None}, "search: not with rows without a label"),
        ({"unit": "row"}, "search: not with unit; allowed: independent rows with classes"),
        ({"continuous": True}, "search: not with continuous"),
        ({"sensitive_features": ["row"]}, "attributes have 0 subgroups, allowed: 1 to 100,000"),
        ({"small": 500}, "search: no subgroup has 500 rows, nor have all others"),
        ({"labels": "some", "y_true": "few"}, "search: not with rows without a label"),
    ],
)
def test_bad_input_is_refused_in_one_line(options: dict, message: str) -> None:
    rows = table(300, 0.0).assign(row=np.arange(300) + 0.5)
    rows["few"] = rows["y"].where(rows["row"] < 100)
    with pytest.raises(InputError, match=message):
        rf.audit(rows, **{**COLUMNS, **options}, search=True)
