"""What other programs read: JSON with a schema."""

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
from robust_fairness.cli.commands import cli

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
