"""States of monitors: nothing lost and nothing silent, whoever writes, whatever breaks."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.counting import report, silent_flips

ROWS = "period,sex,y,p\n" + "".join(
    f"{{period}},{sex},{number % 2},{number % 3 % 2}\n" for sex in "fm" for number in range(60)
)


def audit(folder: Path, name: str, **options) -> subprocess.Popen:
    """Start an audit of a table with one period, with a state."""
    (folder / f"{name}.csv").write_text(ROWS.format(period=name))
    words = ["audit", f"{name}.csv", "--target=y", "--prediction=p", "--attributes=sex",
             "--period=period", "--state=s.json", "--force"]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-m", "robust_fairness", *words], cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def periods(folder: Path) -> list[str]:
    return json.loads((folder / "s.json").read_text())["periods"]


@pytest.mark.parametrize(
    "pairs", [1, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_two_writers_of_a_state_lose_no_period(tmp_path, pairs):
    """Each adds its period or says why not: it is earlier than that of the other."""
    first = audit(tmp_path, "a")
    assert first.communicate()[1] == "" and first.returncode == 0
    lost = 0
    for pair in range(pairs):
        names = [f"b{pair:02d}1", f"b{pair:02d}2"]
        for name, writer in [(name, audit(tmp_path, name)) for name in names]:
            said = writer.communicate()[1]
            added = name in periods(tmp_path)
            lost += added != (writer.returncode == 0)
            assert added or said.count("\n") == 1
    report("pairs of writers of a state", pairs, pairs - lost, lost)
    assert lost == 0 and not [*tmp_path.glob(".*")]


def test_one_of_four_audits_that_write_to_one_path_wins(tmp_path):
    """Without ``--force`` the others say in one line that the file exists; nothing is mixed."""
    (tmp_path / "t.csv").write_text("sex,y,p,q,r,s\n" + "f,1,0,1,1,1\nm,0,1,0,1,1\n" * 60)
    command = [sys.executable, "-m", "robust_fairness", "audit", "t.csv", "--target=y"]
    writers = {
        column: subprocess.Popen([*command, "--attributes=sex", f"--prediction={column}"],
                                 cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        for column in "pqrs"
    }  # fmt: skip
    said = {column: writer.communicate()[1] for column, writer in writers.items()}
    (winner,) = (column for column, writer in writers.items() if writer.returncode == 0)
    assert said.pop(winner) == ""
    for line in said.values():
        assert line.count("\n") == 1 and "t_audit.html: exists, allowed: --force" in line
    made = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert {path.name for path in made} == {"t.csv", "t_audit.html", "t_audit.csv"}
    alone = [*command, "--attributes=sex", f"--prediction={winner}", "--force"]
    subprocess.run(alone, cwd=tmp_path, check=True, capture_output=True)
    assert {path: path.read_bytes() for path in made} == made


@pytest.mark.parametrize("flips", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_a_flipped_bit_of_a_state_is_named(tmp_path, flips):
    """Or it changes nothing: a space between two values, say."""
    from robust_fairness.auditing.monitor import Monitor

    audit(tmp_path, "a").communicate()
    content = (tmp_path / "s.json").read_bytes()

    def read(content: bytes) -> str:
        return Monitor.from_json(content, "s.json").to_json()

    assert silent_flips(content, flips, read, "s.json: ") == 0


@pytest.mark.parametrize("room", [0, 200, 20_000])
def test_a_full_disk_leaves_the_page_and_the_state_of_before(tmp_path, room):
    audit(tmp_path, "a").communicate()
    for path in tmp_path.glob("a*"):
        path.rename(path.with_name(path.name.replace("a", "b", 1)))
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.name != "b.csv"}

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    writer = audit(tmp_path, "b", preexec_fn=full)
    said = writer.communicate()[1]
    assert writer.returncode == 2 and said.count("\n") == 1
    after = {path: path.read_bytes() for path in tmp_path.iterdir() if path.name != "b.csv"}
    assert before == after
