"""A run id has one owner, whose death frees it."""

import json
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.compute.checkpoints import Checkpoint
from robust_fairness.core import files
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import boot
from robust_fairness.runs import provenance
from robust_fairness.runs.session import owned
from tests.faults.counting import report
from tests.project import Project, small

OWNER = """
import sys
from robust_fairness.runs.session import owned
with owned("one"):
    print("owned", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Everything is written below the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lock():
    """The lock file of the run."""
    path = provenance.manifest_path("one").with_name(".one.lock")
    path.parent.mkdir(parents=True)
    return path


def test_a_second_start_names_the_owner_and_follows_its_death(lock):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert "owned\n" in owner.stdout  # after what Kedro logs
        taken = pytest.raises(InputError, match=f"run one is in progress: process {owner.pid} on ")
        with taken, owned("one"):
            pass
        with owned("two"):
            owner.send_signal(signal.SIGKILL)
            owner.wait()
    assert json.loads(lock.read_text())["process"] == owner.pid
    with owned("one"), pytest.raises(InputError, match="in progress"), owned("one"):
        pass
    assert not lock.exists()


def test_an_owner_on_another_machine_is_not_taken_for_dead(lock):
    """Not every shared file system passes locks on to other machines."""
    holder = {"host": "elsewhere", "boot": "another", "process": 7, "started": "today"}
    lock.write_text(json.dumps(holder))
    taken = pytest.raises(InputError, match=r"process 7 on elsewhere, .* delete .*\.one\.lock")
    with taken, owned("one"):
        pass
    for ended in ({**holder, "boot": boot()}, "cut off"):  # the kernel would hold its lock
        lock.write_text(json.dumps(ended)[:-1] if ended == "cut off" else json.dumps(ended))
        with owned("one"):
            pass


HOLDER = """
import sys
from pathlib import Path
from robust_fairness.core.files import locked
with locked(Path("some.lock")):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_lock_that_is_held_elsewhere_is_named(monkeypatch, caplog):
    """After some seconds by a warning, after more by an error; a killed holder frees it."""
    monkeypatch.setattr(files, "WARNS_AFTER", 0.05)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "locked\n"
        named = rf"some\.lock: locked by process {holder.pid} on .* for \d s; end that process"
        with pytest.raises(InputError, match=named), files.locked(Path("some.lock"), limit=0.2):
            pass
        assert caplog.text.count(f"some.lock: locked by process {holder.pid} on") == 1
        holder.kill()
    with files.locked(Path("some.lock"), limit=0.2):
        pass
    assert not Path("some.lock").exists()


def test_a_run_deletes_only_the_checkpoints_it_used():
    ours, other = Checkpoint("toy.erm", "aa"), checkpoints.root() / "toy.erm/bb/state"
    ours.save({})
    other.parent.mkdir()
    other.touch()
    checkpoints.drop("toy.erm")
    assert not ours.path.parent.exists() and other.exists()
    ours.save({})  # its folder is made again
    assert ours.load() == {}


@pytest.mark.slow
@pytest.mark.timeout(3600)  # beside other work
@pytest.mark.parametrize(("how", "times"), [(signal.SIGKILL, 50), (signal.SIGTERM, 20)])
def test_a_run_killed_at_random_moments_is_completed_to_the_same_bits(folder, how, times):
    """At moments from the start to the report, by its id alone; the last one is left alone."""
    project, draw = small(Project.copied_to(folder)), random.Random(0)
    words = ("run", "--env=smoke", "--run-id")
    started = time.monotonic()
    project.kedro(*words, "whole", ROBUST_FAIRNESS_MLFLOW="on")
    duration = time.monotonic() - started
    kills, runs = 0, []
    while kills < times:
        runs.append(f"killed-{len(runs)}")
        while kills < times and runs[-1] not in finished():
            words_now = started_or_continued(words, runs[-1])
            child = project.start(*words_now, ROBUST_FAIRNESS_MLFLOW="on")
            with suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=draw.uniform(0, duration))
            kills += child.poll() is None
            child.send_signal(how)
            child.communicate()
    for run_id in {*runs} - finished():
        project.kedro(*started_or_continued(words, run_id), ROBUST_FAIRNESS_MLFLOW="on")
    wrong = [run_id for run_id in runs if contents(run_id) != contents("whole")]
    report(f"{how.name} of {len(runs)} runs", kills, kills - len(wrong), len(wrong))
    assert wrong == []


def finished() -> set[str]:
    return {run["run_id"] for run in provenance.manifests() if run["state"] == "finished"}


def started_or_continued(words: tuple[str, ...], run_id: str) -> tuple[str, ...]:
    """The words that start a run, or continue it by its id alone."""
    if provenance.manifest_path(run_id).exists():
        return ("run", "--run-id", run_id, "--only-missing-outputs")
    return (*words, run_id)


def contents(run_id: str) -> dict[str, str]:
    """Content hash of every output of a run but the report, which names the run."""
    outputs = provenance.load_manifest(run_id)["outputs"]
    return {name: output["sha256"] for name, output in outputs.items() if name != "report"}
