"""A run says how long its trainings will take, and how long those that are left."""

import itertools
import logging
import time
from pathlib import Path

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline

from robust_fairness.bench import training
from robust_fairness.bench.compute.checkpoints import ROOT_VARIABLE
from robust_fairness.runs.runners import fault_tolerant
from robust_fairness.runs.runners.fault_tolerant import TRAINS, Forecast
from tests.training.conftest import make_cell, make_samples


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"epochs": 1}, 1 * (3 * 1 + 1)),  # 3 batches of a second, and a validation
        ({"epochs": 5}, 5 * (3 * 1 + 1)),
        ({"epochs": 5, "trials": ({"learning_rate": 0.1}, {"learning_rate": 0.2})}, 3 * 20),
        ({"epochs": 5, "seeds": (0, 1, 2)}, 20),  # one stack
    ],
)
def test_expected_seconds_of_a_clock(changes, expected, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(tmp_path))
    samples = make_samples()
    rows = len(samples.rows(samples.split_names[0], "train"))
    cell = make_cell(**{"batch_size": -(-rows // 3), **changes})
    clock = itertools.count()
    monkeypatch.setattr(time, "process_time", lambda: float(next(clock)))
    assert training.expected_seconds(samples, cell) == expected
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def run_of(cells: dict[str, str]) -> tuple[Pipeline, DataCatalog]:
    """Nodes that train cells, by the names of their datasets."""
    nodes, catalog = [], DataCatalog()
    for name, dataset in cells.items():
        if dataset not in catalog:
            catalog[dataset] = MemoryDataset(dataset)
        catalog[f"params:{name}"] = MemoryDataset(make_cell(fields={"label": name}))
        nodes.append(Node(max, [dataset, f"params:{name}"], name, name=name, tags=[TRAINS]))
    return Pipeline(nodes), catalog


def test_lines_of_a_run(monkeypatch, caplog) -> None:
    took = {"a": 60.0, "b": 120.0, "c": 60.0}
    monkeypatch.setattr(training, "expected_seconds", lambda samples, cell: took[cell.label])
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    monkeypatch.setattr(time, "monotonic", iter([0.0, 30.0, 150.0, 200.0]).__next__)
    pipeline, catalog = run_of(dict.fromkeys(took, "table"))
    lines = Forecast(pipeline, catalog)
    with caplog.at_level(logging.INFO):
        for node in pipeline.nodes:
            lines.before(node, 2)
            lines.after(node)
    assert [item.message for item in caplog.records if item.name == fault_tolerant.__name__] == [
        "training 9 models of 3 cells takes about 2 minutes on 2 workers",
        "2 cells left to train, about 90 s",  # a quarter took 30 s
        "1 cells left to train, about 50 s",  # three quarters took 150 s
    ]


def test_a_trial_ends_in_time_and_a_failure_costs_nothing(monkeypatch, caplog) -> None:
    """Of every dataset one cell is tried first; the others have the mean time of those tried."""
    clock, tried = [0.0], []

    def expected(samples: str, cell) -> float:
        tried.append(cell.label)
        clock[0] += 0.6
        if cell.label == "x":
            raise ValueError
        return {"a": 10.0, "c": 20.0}[cell.label]

    monkeypatch.setattr(training, "expected_seconds", expected)
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    monkeypatch.setattr(time, "perf_counter", lambda: 3 * clock[0])  # beside busy processes
    pipeline, catalog = run_of({"a": "one", "b": "one", "c": "two", "x": "three"})
    lines = Forecast(pipeline, catalog)
    with caplog.at_level(logging.INFO):
        lines.before(pipeline.nodes[0], 1)
    assert tried == ["a", "c"]
    assert lines._seconds == pytest.approx({"a": 30, "b": 45, "c": 60, "x": 45})
    monkeypatch.setattr(fault_tolerant, "SECONDS", 100.0)
    tried.clear()
    pipeline, catalog = run_of({"a": "one", "x": "three"})
    lines = Forecast(pipeline, catalog)
    lines.before(pipeline.nodes[0], 1)
    assert tried == ["a", "x"] and lines._seconds == pytest.approx({"a": 30, "x": 30})


def test_estimators_are_not_fitted_for_a_forecast(monkeypatch, caplog) -> None:
    monkeypatch.setattr(training, "expected_seconds", pytest.fail)
    nodes = Pipeline([Node(max, ["table", "params:a"], "a", name="a", tags=[TRAINS])])
    cell = make_cell(network={"name": "estimator"})
    lines = Forecast(
        nodes, DataCatalog({"table": MemoryDataset(0), "params:a": MemoryDataset(cell)})
    )
    with caplog.at_level(logging.INFO):
        lines.before(nodes.nodes[0], 1)
        lines.after(nodes.nodes[0])
    assert not [item for item in caplog.records if item.name == fault_tolerant.__name__]
