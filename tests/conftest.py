"""Fixtures for the whole test suite."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Shared cores: no deadline for an example.
settings.register_profile("robust_fairness", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "robust_fairness"))

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real data files; tests that need it are skipped where there is none."""
    folder = Path(os.environ.get("ROBUST_FAIRNESS_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no real data: set ROBUST_FAIRNESS_DATA (looked in {folder})")
    return folder.resolve()


@pytest.fixture(autouse=True)
def own_checkpoints(tmp_path, monkeypatch):
    """Keep every test's checkpoints apart."""
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "checkpoints"))
