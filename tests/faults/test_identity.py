"""A changed file or changed code is never taken for what a run made."""

import random
import signal
import time
from pathlib import Path

import pytest

from robust_fairness.bench.compute import checkpoints
from tests.faults.counting import flipped, report
from tests.project import Project, small

SMOKE = ("run", "--env=smoke", "--run-id")
COMPLETE = "--only-missing-outputs"
STATES = "diabetes.cuma/*/state.safetensors"
KINDS = ("samples", "models", "predictions", "metrics")


def killed_while_training(folder: Path, epochs: int) -> tuple[Project, Path]:
    """A project whose run ``killed`` of one cell has ended by SIGKILL; the cell's checkpoint."""
    project = small(Project.copied_to(folder))
    datasets = {"diabetes": {"methods": {"erm": None}}}
    project.configure("smoke/experiment.yml", {"datasets": datasets})
    protocol = {"tabular": {"epochs": epochs, "checkpoint_seconds": 0}}
    project.configure("smoke/parameters.yml", {"protocols": protocol})
    child = project.start(*SMOKE, "killed")
    folder = project.root / "data/checkpoints"
    deadline = time.monotonic() + 240
    while not list(folder.glob(STATES)):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (state,) = folder.glob(STATES)
    return project, state


def flip(path: Path, draw: random.Random) -> bytes:
    """Flip a bit of a file; returns its content before."""
    before = path.read_bytes()
    path.write_bytes(flipped(before, draw))
    return before


def models(project: Project, run: str) -> bytes:
    return project.file("models.safetensors", run).read_bytes()


def test_a_checkpoint_of_other_code_is_not_continued(tmp_path):
    """The optimiser changes between SIGKILL and completion: the whole training is the new one."""
    project, state = killed_while_training(tmp_path, epochs=100)
    optimisers = project.root / "src/robust_fairness/bench/compute/optimisers.py"
    source = optimisers.read_text()
    changed = source.replace("weights), lr, weight_decay", "weights), lr * 0, weight_decay")
    assert changed != source
    optimisers.write_text(changed)
    refused = project.kedro(*SMOKE, "killed", COMPLETE, status=1)
    assert "run killed differs: its code (package) was " in refused
    project.kedro(*SMOKE, "killed", COMPLETE, "--accept-changes")
    assert state.exists()  # a training deletes the checkpoint that it continues
    project.kedro(*SMOKE, "whole")
    assert models(project, "killed") == models(project, "whole")


@pytest.mark.slow
def test_flipped_bits_in_outputs_are_refused(tmp_path):
    """At least 80 anywhere in the files of the smoke run: one in each file, in three rounds."""
    project, draw = Project.copied_to(tmp_path), random.Random(0)
    project.kedro(*SMOKE, "whole")
    files = [path for path in (project.root / "data").rglob("whole/*") if path.stem in KINDS]
    files += (project.root / "data/02_samples").rglob("shifted/*/whole/*")
    assert {path.stem for path in files} >= set(KINDS) and 3 * len(files) >= 80
    for _ in range(3):
        before = {path: flip(path, draw) for path in files}
        said = project.kedro(*SMOKE, "whole", COMPLETE, status=1)
        accepted = [
            path
            for path in files
            if f"{path.relative_to(project.root)} was changed after it was saved" not in said
        ]
        report("flipped bits of outputs", len(files), len(files) - len(accepted), len(accepted))
        assert accepted == []
        for path, content in before.items():
            path.write_bytes(content)
    project.kedro(*SMOKE, "whole", COMPLETE)


@pytest.mark.slow
def test_flipped_bits_in_checkpoints_change_no_model(tmp_path):
    """20 anywhere in the checkpoint of a training that was killed; with the last it is completed.

    The training begins again, and its models are those of an undisturbed run.
    """
    draw = random.Random(0)
    project, state = killed_while_training(tmp_path, epochs=100)
    content = state.parent.name
    assert checkpoints.read(state, content) is not None
    for _ in range(20):
        before = flip(state, draw)
        assert checkpoints.read(state, content) is None
        damaged = state.read_bytes()
        state.write_bytes(before)
    state.write_bytes(damaged)
    said = project.kedro(*SMOKE, "killed", COMPLETE)
    assert "state.safetensors: damaged checkpoint" in said
    project.kedro(*SMOKE, "whole")
    assert models(project, "killed") == models(project, "whole")
