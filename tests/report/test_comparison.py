"""Two runs below each other."""

import pandas as pd
import pytest
from click.testing import CliRunner

from robust_fairness.cli.commands import cli
from robust_fairness.core import tables
from robust_fairness.report import Results, comparison
from robust_fairness.report.first_screen import answers
from robust_fairness.runs import provenance
from tests.report.test_report import made_up


def test_the_answers_of_both_runs_stand_below_each_other():
    first, second = made_up(), made_up()
    gap = (second["shift"] == "gaussian_noise") & (second["metric"] == "delta_eo")
    second.loc[gap, "value"] -= 0.2
    runs = Results(first), Results(second[second["method"] != "laftr"])
    page = comparison(*runs, ("a", "b"))
    _, *parts = page.split("<h2>Run ")
    for name, part, run in zip("ab", parts, runs, strict=True):
        assert part.startswith(name)
        assert f"<strong>{answers(run)[0]}.</strong>" in part
    assert "laftr" in parts[0] and "laftr" not in parts[1]


@pytest.mark.parametrize("words", ["table --view=natural_diagnosis", "report --compare old old"])
def test_a_run_of_an_earlier_version_is_named_in_one_line(words, tmp_path, monkeypatch):
    """Its table of changes has other columns than the views read."""
    monkeypatch.chdir(tmp_path)
    kept = [name for name in tables.TABLES["diagnosis"] if name != "change"]
    left = {"metrics": made_up(), "diagnosis": pd.DataFrame(columns=kept)}
    outputs = {}
    for name, rows in left.items():
        path = tmp_path / "data" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        rows.to_parquet(path)
        outputs[name] = {"path": str(path.relative_to(tmp_path)), "content": "x"}
    manifest = {"run_id": "old", "state": "finished", "started": "", "outputs": outputs}
    provenance.write_manifest(manifest | {"loaded": {}})
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 1
    assert done.stderr == (
        "Error: run old: an earlier version made it, its table diagnosis has no column change; "
        "make the run again, or read it with that version\n"
    )
