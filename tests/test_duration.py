"""The CPU time that a run will take is foretold, and nothing of the trainings is kept."""

from pathlib import Path

import pytest

from robust_fairness.cli.duration import seconds_of
from robust_fairness.compute.checkpoints import ROOT_VARIABLE
from tests.training.conftest import make_cell, make_samples


def test_an_epoch_is_trained_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    assert seconds_of(make_samples(), make_cell()) > 0
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
