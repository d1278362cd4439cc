"""Measurements on a GPU at toy size on the CPU, and the tables of performance.md."""

import importlib
import json

import pytest

from tests.project import ROOT


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("gpu")


def test_gpu_measures_everything_at_toy_size(gpu, tmp_path):
    """The CPU against itself: no difference, in no section an error."""
    arguments = ["--device=cpu", "--toy", "--methods=mixup", f"--to={tmp_path}"]
    results = json.loads(gpu.main(arguments).read_text())
    assert not results["left out"]
    rows = [row for section in results["sections"].values() for row in section]
    assert not any("error" in row for row in rows)
    compared = [row for row in rows if "difference" in row]
    assert len(compared) == 3
    assert all(
        row["difference"] == 0 and row["moved"] and row["same bits twice"] for row in compared
    )
    assert all(row["steps/s"] > 0 for row in results["sections"]["images"])
