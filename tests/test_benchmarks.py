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


def test_gpu_says_what_to_change(gpu):
    sentences = gpu.advice(
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
    assert sentences == [
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
    """And ``make bench-table`` runs each one that needs no other checkout or idle machine."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    made = importlib.import_module("benchmark_tables")
    page, tables = made.PAGES[0].path.read_text(), made.page_tables()
    assert all(f"table: {name} " in page or f"performance_{name}.csv" in page for name in tables)
    quick = (ROOT / "Makefile").read_text().partition("QUICK := ")[2].partition("\n\n")[0]
    assert set(quick.split()) - {"\\"} == tables.keys() - {
        "machines", "gpu", "default_run", "busy",
    }  # fmt: skip
