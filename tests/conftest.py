"""Fixtures for the whole test suite."""

import os
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

# Shared cores: no deadline for an example.
settings.register_profile("robust_fairness", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=50)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "robust_fairness"))

ROOT = Path(__file__).parents[1]
# Packages that declare shapes: they and types are checked in every call. `make coverage` and
# `make test-slow` check all packages, which costs more.
SHAPED = [
    f"robust_fairness.bench.{name}"
    for name in ("generation", "methods", "miners", "objectives", "training")
]
# An int is a float, as it is for mypy (PEP 484).
CHECKER = "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))"


def pytest_configure(config):
    """Check shapes and types, also in the processes of pytest-xdist."""
    every = config.getoption("types_of_all")
    install_import_hook("robust_fairness" if every else SHAPED, CHECKER)


def pytest_addoption(parser):
    """The options of `make coverage`, `make test-slow` and `make random`."""
    parser.addoption("--types-of-all", action="store_true", help="check types in all packages")
    parser.addoption("--order", type=int, metavar="SEED", help="run tests in random order")


def pytest_collection_modifyitems(config, items):
    """Shuffle modules, and the tests of each; the same in all processes of pytest-xdist."""
    seed = config.getoption("order")
    if seed is not None:
        random = Random(seed)
        modules = list(dict.fromkeys(item.module.__name__ for item in items))
        random.shuffle(modules)
        random.shuffle(items)
        items.sort(key=lambda item: modules.index(item.module.__name__))


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
