"""Exit statuses: 1 is a failed gate and nothing else."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from robust_fairness.auditing import command
from robust_fairness.cli.commands import Command, cli
from robust_fairness.core.errors import InputError

BUG = "this is a bug; please report it"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The command for a table in which nobody of a group is selected."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 200)
    table = pd.DataFrame({"sex": sex, "y": rng.integers(0, 2, 200), "p": (sex == "m").astype(int)})
    table.to_csv(tmp_path / "t.csv", index=False)
    given = ["--target=y", "--prediction=p", "--attributes=sex", "--force"]
    return ["audit", str(tmp_path / "t.csv"), *given, f"--output={tmp_path}"]


@pytest.mark.parametrize(
    ("further", "status"),
    [
        ([], 0),
        (["--fail-if=demographic_parity_difference>2"], 0),
        (["--fail-if=demographic_parity_difference>0.5"], 1),
        (["--fail-if=nonsense>0.5"], 2),
        (["--nonsense"], 2),
        (["--delimiter=,,"], 2),
        (["--output=/dev/null/x"], 2),
    ],
)
def test_statuses_of_gates_and_of_wrong_input(words, further, status) -> None:
    done = CliRunner().invoke(cli, [*words, *further])
    assert done.exit_code == status, done.output
    assert BUG not in done.output


@pytest.mark.parametrize("place", ["audit_file", "files_of"])
@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ZeroDivisionError("division by zero"), 3, BUG),
        (KeyError("sex"), 3, BUG),
        (RuntimeError("gate"), 3, BUG),
        (ValueError("of numpy"), 3, BUG),
        (SystemError("of C"), 3, BUG),
        (InputError("t.csv: wrong"), 2, "Error: t.csv: wrong"),
        (OSError(errno.ENOSPC, "No space left", "t_audit.csv"), 2, "t_audit.csv: No space"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 2, "Broken pipe"),
        (MemoryError(), 2, "not enough memory"),
        (KeyboardInterrupt(), 130, "Interrupted"),
    ],
    ids=repr,
)  # fmt: skip
def test_an_error_inside_of_the_audit_is_no_failed_gate(
    words, monkeypatch, place, error, status, said
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(command, place, failing)
    done = CliRunner().invoke(cli, [*words, "--fail-if=demographic_parity_difference>0.5"])
    assert done.exit_code == status
    last = done.output.splitlines()[-1]
    assert said in last
    assert ("Traceback" in done.output) == (status == 3)


@pytest.mark.parametrize(
    ("further", "broken", "status"),
    [
        ([], "", 0),
        (["--fail-if=demographic_parity_difference>0.5"], "", 1),
        (["--nonsense"], "", 2),
        ([], "from robust_fairness.auditing import command; command.audit_file = None; ", 3),
    ],
)
def test_a_closed_pipe_changes_no_status(words, further, broken, status) -> None:
    """``robust-fairness audit ... 2>&1 | head -1``: the files are written, the gates are judged."""
    code = f"{broken}from robust_fairness.__main__ import main; main()"
    read, write = os.pipe()
    os.close(read)
    try:
        process = [sys.executable, "-c", code, *words, *further]
        assert subprocess.run(process, check=False, stdout=write, stderr=write).returncode == status
    finally:
        os.close(write)


def test_other_commands_end_with_status_3_after_an_unexpected_error() -> None:
    def failing() -> None:
        raise ZeroDivisionError

    def mistaken() -> None:
        raise InputError("wrong")

    codes = [
        CliRunner().invoke(Command("x", callback=callback)).exit_code
        for callback in (failing, mistaken, lambda: click.get_current_context().exit(0))
    ]
    assert codes == [3, 1, 0]
