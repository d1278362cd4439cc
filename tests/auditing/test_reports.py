"""What other programs and authorities read: impact ratios, JSON with a schema, the model card."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

import robust_fairness as rf
from robust_fairness.auditing import estimates
from robust_fairness.auditing.export import SCHEMA, record
from robust_fairness.auditing.impact import ABOVE, IMPACT, LIMITS, SELECTED
from robust_fairness.auditing.intervals import ratio
from robust_fairness.cli.main import cli
from robust_fairness.core.errors import InputError

RNG = np.random.default_rng(0)
ROWS = 1000
TABLE = pd.DataFrame(
    {
        "score": RNG.integers(0, 40, ROWS) / 40,
        "sex": RNG.choice(["f", "m"], ROWS),
        "race": RNG.choice(["a", "b", "c", None], ROWS, p=[0.6, 0.375, 0.015, 0.01]),
        "w": RNG.integers(1, 4, ROWS),
    }
)
OPTIONS = {"y_pred": "score", "sensitive_features": ["sex", "race"], "threshold": 0.6}


def by_hand(table: pd.DataFrame, reached: pd.Series, columns: list[str]) -> pd.DataFrame:
    """Number and rate of every category, and the rate over the highest one, with pandas."""
    known = table.assign(reached=reached).dropna(subset=columns)
    name = known[columns].astype(str).agg(" & ".join, axis=1)
    rates = known.groupby(name)["reached"].agg(["size", "mean"])
    compared = rates["size"] >= 0.02 * len(known)
    return rates.assign(ratio=(rates["mean"] / rates.loc[compared, "mean"].max()).where(compared))


@pytest.mark.parametrize("columns", [["sex"], ["race"], ["sex", "race"]])
def test_impact_ratios_are_those_of_pandas(columns: list[str]) -> None:
    ratios = rf.audit(TABLE, **OPTIONS).impact_ratios()
    assert list(ratios) == list(IMPACT)
    median = TABLE["score"].median()
    for kind, reached in {SELECTED: TABLE["score"] >= 0.6, ABOVE: TABLE["score"] > median}.items():
        expected = by_hand(TABLE, reached, columns)
        rows_of_kind = ratios[
            (ratios["attribute"] == " & ".join(columns)) & (ratios["rate_of"] == kind)
        ]
        unknown = rows_of_kind[rows_of_kind["category"] == ""]
        assert unknown["n"].tolist() == [TABLE[columns].isna().any(axis=1).sum()]
        rows_of_kind = (
            rows_of_kind[rows_of_kind["category"] != ""].set_index("category").loc[expected.index]
        )
        np.testing.assert_array_equal(rows_of_kind["n"], expected["size"])
        np.testing.assert_allclose(rows_of_kind["rate"], expected["mean"])
        np.testing.assert_allclose(rows_of_kind["impact_ratio"], expected["ratio"], equal_nan=True)
        few = rows_of_kind["note"] == "less than 2% of the rows, left out of the ratios"
        np.testing.assert_array_equal(few, expected["ratio"].isna())
        assert few.any() == ("race" in columns)
        top, rows = expected["ratio"].idxmax(), expected["size"]
        for category, row in rows_of_kind[rows_of_kind["ratio_low"].notna()].iterrows():
            n = np.array([rows[category], rows[top]])
            bound = ratio(n * [expected.loc[category, "mean"], expected.loc[top, "mean"]], n)
            assert (row["ratio_low"], row["ratio_high"]) == pytest.approx((bound.low, bound.high))
            assert row["ratio_low"] < row["impact_ratio"] <= row["ratio_high"]


def test_weighted_impact_ratios_are_those_of_repeated_rows() -> None:
    repeated = TABLE.loc[TABLE.index.repeat(TABLE["w"])].reset_index(drop=True)
    plain = rf.audit(repeated, **OPTIONS).impact_ratios()
    weighted = rf.audit(TABLE, **OPTIONS, sample_weight="w").impact_ratios()
    for column in ("rate", "impact_ratio"):
        np.testing.assert_allclose(plain[column], weighted[column], equal_nan=True)


def test_categories_of_few_people_are_hidden_and_numbers_refused() -> None:
    hidden = rf.audit(TABLE, **OPTIONS, suppress=30).impact_ratios()
    assert (hidden["n"] >= 30).all() and "c" not in set(hidden["category"])
    numbers = TABLE.assign(y=RNG.random(ROWS))
    of = {"y_true": "y", "y_pred": "score", "sensitive_features": ["sex"], "continuous": True}
    with pytest.raises(InputError, match="two classes"):
        rf.audit(numbers, **of).impact_ratios()


def test_the_command_writes_impact_ratios_with_the_limits_of_the_rule(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "people.csv", index=False)
    words = ["audit", str(tmp_path / "people.csv"), "--labels=none", "--prediction=score"]
    words += ["--attributes=sex,race", "--threshold=0.6", "--impact-ratios", f"--output={tmp_path}"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    rows = pd.read_csv(tmp_path / "people_impact.csv", keep_default_na=False)
    assert list(rows) == list(IMPACT)
    page = (tmp_path / "people_impact.md").read_text()
    assert LIMITS in page and "four-fifths" in page
    assert page.count("\n### ") == 6
    unknown = TABLE["race"].isna().sum()
    assert f"{unknown} people have no known category and are not in the calculations." in page
    assert "less than 2% of the rows" in page


def labelled(rows: int) -> pd.DataFrame:
    return TABLE[:rows].assign(y=RNG.integers(0, 2, rows), month=np.arange(rows) // (rows // 4))


VALIDATOR = Draft202012Validator(json.loads(SCHEMA.read_text()))


def test_json_has_its_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without and with gates, two periods, several periods, and estimates without labels."""
    monkeypatch.setattr(estimates, "RESAMPLES", 2)
    Draft202012Validator.check_schema(VALIDATOR.schema)
    labelled(400).to_csv(tmp_path / "now.csv", index=False)
    labelled(600).to_csv(tmp_path / "then.csv", index=False)
    base = ["audit", str(tmp_path / "now.csv"), "--target=y", "--prediction=score"]
    base += ["--attributes=sex,race", "--format=json", "--force", f"--output={tmp_path}"]
    reference = f"--reference={tmp_path / 'then.csv'}"
    for words in (
        [], ["--fail-if=equalized_odds_difference>0.01"], [reference], ["--period=month"],
        [reference, "--labels=none"], ["--labels=none"], [reference, "--features=w"],
    ):  # fmt: skip
        done = CliRunner().invoke(cli, [*base, *words])
        assert done.exit_code in (0, 1), done.output
        document = json.loads(done.stdout)
        VALIDATOR.validate(document)
        assert document["schema_version"] == "1.3"
        assert (document["why"] is not None) == ("--features=w" in words)


@pytest.mark.parametrize(
    ("key", "value"),
    [("schema_version", "2.0"), ("verdict", "MAYBE"), ("rows", [{"metric": "accuracy"}]),
     ("gates", None)],
)  # fmt: skip
def test_the_schema_refuses_other_documents(key: str, value: object) -> None:
    document = record(rf.audit(labelled(200), y_true="y", **OPTIONS))
    with pytest.raises(ValidationError):
        VALIDATOR.validate({**document, key: value})
