"""Texts of a user stay texts: in CSV, Markdown, the console and the log of a GitHub action."""

import csv
import io

import pandas as pd
import pytest
from click.testing import CliRunner

import robust_fairness as rf
from robust_fairness.auditing.export import model_card
from robust_fairness.cli.audit import audit
from robust_fairness.core import tables
from robust_fairness.core.escaping import for_console

NAMES = [
    "f\r=cmd|'/c calc'!A0", "a | 0.999 | 0.99", "**Yes: all pass.**", "![x](http://a.b/c)",
    "m\n::error title=fake::x\n::stop-commands::tok\n\x1b[2K\x1b[1Apassed", "::stop-commands::x",
    "<b>bold</b>", "\u202etxet", "`code`", "x\x00y", "\u2028line", "##[error]no",
]  # fmt: skip


def table(name: str) -> pd.DataFrame:
    groups, numbers = [name] * 60 + ["other"] * 60, range(120)
    return pd.DataFrame(
        {"g": groups, "y": [k % 2 for k in numbers], "p": [k % 3 % 2 for k in numbers]}
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_name_forges_no_row_no_line_and_no_command(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    usual = rf.audit(table("usual"), y_true="y", y_pred="p", sensitive_features=["g"])
    done = rf.audit(table(name), y_true="y", y_pred="p", sensitive_features=["g"])
    rows = list(csv.reader(io.StringIO(tables.csv(done.to_frame()), newline="")))
    assert {len(row) for row in rows} == {len(done.to_frame().columns)}
    assert not any(cell.startswith(tables.FORMULA) and not cell[1:2].isdigit() for row in rows
                   for cell in row)  # fmt: skip
    card = model_card(done)
    assert card.isprintable() or set(card) - {"\n"} and "".join(card.split("\n")).isprintable()
    cells = [line.replace("\\|", "").count("|") for line in model_card(usual).split("\n")]
    assert [line.replace("\\|", "").count("|") for line in card.split("\n")] == cells
    table(name).to_parquet("t.parquet")
    words = ["t.parquet", "--target=y", "--prediction=p", "--attributes=g"]
    printed = CliRunner().invoke(audit, words).output
    lines = printed.splitlines()
    assert len(lines) == printed.count("\n") and all(line.isprintable() for line in lines)
    assert not any(line.lstrip().startswith(("::", "##[")) for line in lines)


def test_other_texts_stay_as_they_are():
    for line in ("Müller, 70 % – 0.3", "sex: 女 [a]", ""):
        assert for_console(line) == line
    frame = pd.DataFrame({"group": ["a,b", 'say "x"', "two\nlines", None], "n": [1, 2, 3, 4]})
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(tables.csv(frame))), frame)
