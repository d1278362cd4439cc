"""A changed file or changed code is never taken for what a run made."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

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
    checkpoints = project.root / "data/checkpoints"
    deadline = time.monotonic() + 240
    while not list(checkpoints.glob(STATES)):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (state,) = checkpoints.glob(STATES)
    return project, state


def flip(path: Path, draw: random.Random) -> bytes:
    """Flip a bit of a file; returns its content before."""
    before = path.read_bytes()
    content = bytearray(before)
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return before


def models(project: Project, run: str) -> bytes:
    return project.file("models.safetensors", run).read_bytes()


def test_a_checkpoint_of_other_code_is_not_continued(tmp_path):
    """The optimiser changes between SIGKILL and completion: the whole training is the new one."""
    project, state = killed_while_training(tmp_path, epochs=100)
    optimisers = project.root / "src/robust_fairness/compute/optimisers.py"
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
@pytest.mark.timeout(3600)  # beside other work
def test_flipped_bits_in_outputs_are_refused(tmp_path):
    """20 in each kind of file, anywhere in it, of every dataset of the smoke run."""
    project, draw = Project.copied_to(tmp_path), random.Random(0)
    project.kedro(*SMOKE, "whole")
    files = sorted((project.root / "data").rglob("whole/*"))
    for kind in KINDS:
        of_kind = [path for path in files if path.stem == kind]
        for _ in range(20):
            path = draw.choice(of_kind)
            before = flip(path, draw)
            said = project.kedro(*SMOKE, "whole", COMPLETE, status=1)
            place = path.relative_to(project.root)
            assert f"run whole differs: {place} was changed after it was saved" in said
            path.write_bytes(before)
    project.kedro(*SMOKE, "whole", COMPLETE)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # beside other work
def test_flipped_bits_in_checkpoints_change_no_model(tmp_path):
    """20, anywhere in the checkpoint of a training that was killed: it begins again."""
    draw = random.Random(0)
    project, state = killed_while_training(tmp_path / "project", epochs=100)
    data, kept = project.root / "data", tmp_path / "data"
    data.rename(kept)
    project.kedro(*SMOKE, "whole")
    expected = models(project, "whole")
    for _ in range(20):
        shutil.rmtree(data)
        shutil.copytree(kept, data)
        flip(state, draw)
        said = project.kedro(*SMOKE, "killed", COMPLETE)
        assert "state.safetensors: damaged checkpoint" in said
        assert models(project, "killed") == expected
