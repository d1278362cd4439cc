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
    found = json.loads(gpu.main(arguments).read_text())
    assert not found["left out"]
    rows = [one for section in found["sections"].values() for one in section]
    assert not any("error" in one for one in rows)
    compared = [one for one in rows if "difference" in one]
    assert len(compared) == 3
    assert all(
        one["difference"] == 0 and one["moved"] and one["same bits twice"] for one in compared
    )
    assert all(one["steps/s"] > 0 for one in found["sections"]["images"])


def test_gpu_says_what_to_change(gpu):
    found = gpu.advice(
        {
            "against the CPU, tables in float32": [
                {"what": "erm", "within": True, "moved": True, "same bits twice": True},
                {"what": "lff", "within": False, "moved": True, "same bits twice": False},
                {"what": "lnl", "error": "RuntimeError: no"},
            ],
            "images": [
                {"what": "erm", "in kernels": 0.3, "waits per step": 0.1},
                {"what": "lff", "in kernels": 0.9, "waits per step": 2.0},
            ],
            "precisions": [
                {"network": "resnet18", "precision": "float32", "steps/s": 10.0},
                {"network": "resnet18", "precision": "bfloat16", "steps/s": 25.0},
            ],
            "stacks of tables": [
                {"what": "1 replicas", "replica steps/s": 10.0},
                {"what": "16 replicas", "replica steps/s": 80.0},
            ],
        }
    )
    assert found == [
        "against the CPU, tables in float32: lff gives other weights than on the CPU.",
        "against the CPU, tables in float32: lff gives other bits when repeated.",
        "lnl (against the CPU, tables in float32) fails: RuntimeError: no",
        "Kernels run in less than half of the time; larger batches, CUDA graphs or several "
        "trainings at once would use the rest: erm.",
        "The CPU waits for the device in every step: lff.",
        "resnet18 in bfloat16: 2.50 x float32, use it.",
        "stacks of tables: 16 replicas is fastest, 8.0 x 1 replicas.",
    ]


def test_performance_md_has_a_table_of_every_benchmark(monkeypatch):
    """And ``make bench-table`` runs each one."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = importlib.import_module("benchmark_tables")
    page, found = made.PAGES[0].path.read_text(), made.page_tables()
    assert all(f"table: {name} " in page or f"performance_{name}.csv" in page for name in found)
    quick = (ROOT / "Makefile").read_text().partition("QUICK := ")[2].partition("\n\n")[0]
    assert set(quick.split()) - {"\\"} == found.keys() - {"machines"}
