"""Fault-tolerant runners on small pipelines."""

import pickle
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kedro.framework.hooks.manager import _create_hook_manager
from kedro.io import DataCatalog, MemoryDataset
from kedro.io.core import DatasetError, Version
from kedro.pipeline import Node, Pipeline

from robust_fairness.core.errors import Failure
from robust_fairness.runs.runners import FAN_IN, FaultTolerantRunner, RunFailed, SequentialRunner
from robust_fairness.runs.runners.fault_tolerant import CatalogWithFailures, completion, reason_of
from tests.files import text_file


class Threads(FaultTolerantRunner):
    """Runs nodes on three threads."""

    workers = 3

    def _get_executor(self, max_workers: int) -> Executor:
        return ThreadPoolExecutor(max_workers)


RUNNERS = [SequentialRunner, Threads]
CELLS = ("adult.erm", "adult.cuma", "german.erm", "german.cuma")


def table(cell: str) -> str:
    """Name of the scores of a cell; Kedro keeps dots for namespaces."""
    return f"{cell.replace('.', '_')}_metrics"


def training(cell: str, breaks: bool) -> Callable[[str], str]:
    """A function that gives a model, or an error of two lines."""

    def train(text: str) -> str:
        if breaks:
            raise RuntimeError(f"{cell} does not converge\nat all")
        return f"{cell} on {text}"

    return train


def joined(**parts: object) -> str:
    """All parts in one line."""
    return "; ".join(f"{name}={part}" for name, part in sorted(parts.items()))


OUTPUTS = {"report", *(f"{cell}.models" for cell in CELLS), *map(table, CELLS)}


def pipeline(*broken: str) -> Pipeline:
    """Train and score two methods on two datasets, then join."""
    nodes = []
    for cell in CELLS:
        train = training(cell, cell in broken)
        nodes += [
            Node(train, "raw", f"{cell}.models", name="train", namespace=cell),
            Node(str.upper, f"{cell}.models", table(cell), name="evaluate", namespace=cell),
        ]
    inputs = {cell.replace(".", "_"): table(cell) for cell in CELLS}
    nodes.append(Node(joined, inputs, "report", name="report", tags=FAN_IN))
    return Pipeline(nodes)


def catalog(folder: Path, run: str) -> DataCatalog:
    """Every output is a file with the run's id as its version."""
    files = {
        name: text_file(filepath=str(folder / name), version=Version(run, run)) for name in OUTPUTS
    }
    return DataCatalog({"raw": MemoryDataset("rows"), **files})


def run(
    runner: type[FaultTolerantRunner], data: DataCatalog, what: Pipeline, **options: bool
) -> None:
    """Run a pipeline under the id "one"."""
    runner().run(what, data, _create_hook_manager(), run_id="one", **options)


def written(folder: Path) -> set[str]:
    """Names of all files below a folder."""
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_failed_cell_fails_alone_and_leaves_no_file(tmp_path, runner):
    data = catalog(tmp_path, "one")
    with pytest.raises(RunFailed) as error:
        run(runner, data, pipeline("adult.cuma"))
    assert error.value.failures == [Failure("adult.cuma.train", "adult.cuma does not converge")]
    assert error.value.exit_code == 1
    assert written(tmp_path) == OUTPUTS - {"adult.cuma.models", "adult_cuma_metrics"}
    assert "adult_cuma=adult.cuma.train: adult.cuma does not converge;" in data.load("report")
    assert "german_erm=GERMAN.ERM ON ROWS" in data.load("report")


@pytest.mark.parametrize("runner", RUNNERS)
@given(broken=st.sets(st.sampled_from(CELLS)))
def test_whatever_fails_everything_that_can_run_does(runner, broken):
    what = pipeline(*broken)
    data = DataCatalog({"raw": MemoryDataset("rows"), "report": MemoryDataset()})
    try:
        run(runner, data, what)
        failed = []
    except RunFailed as error:
        failed = error.failures
    assert {failure.node for failure in failed} == {f"{cell}.train" for cell in broken}
    told = dict(part.split("=") for part in data.load("report").split("; "))
    for cell in CELLS:
        expected = f"{cell}.train: {cell} does not converge"
        expected = expected if cell in broken else f"{cell} on rows".upper()
        assert told[cell.replace(".", "_")] == expected


def test_completing_makes_what_is_missing_and_what_is_stale_and_nothing_else(tmp_path):
    with pytest.raises(RunFailed):
        run(SequentialRunner, catalog(tmp_path, "one"), pipeline("adult.cuma"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    data = catalog(tmp_path, "one")
    run(SequentialRunner, data, pipeline(), only_missing_outputs=True)
    assert "adult_cuma=ADULT.CUMA ON ROWS" in data.load("report")
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    changed = {path.name for path in after if before.get(path) != after[path]}
    assert changed == {"report", "adult.cuma.models", "adult_cuma_metrics"}


def test_completing_a_complete_run_does_nothing(tmp_path):
    run(SequentialRunner, catalog(tmp_path, "one"), pipeline())
    run(SequentialRunner, catalog(tmp_path, "one"), pipeline(*CELLS), only_missing_outputs=True)


def test_another_run_counts_for_nothing_when_one_is_completed(tmp_path):
    run(SequentialRunner, catalog(tmp_path, "zero"), pipeline())
    data = catalog(tmp_path, "one")
    with pytest.raises(RunFailed) as error:
        run(SequentialRunner, data, pipeline("german.erm"), only_missing_outputs=True)
    assert len(error.value.failures) == 1
    assert "german.erm does not converge" in data.load("report")


def test_an_interrupt_is_no_failure(tmp_path):
    def interrupted(text: str) -> str:
        raise KeyboardInterrupt

    what = Pipeline([Node(interrupted, "raw", "report", name="report")])
    with pytest.raises(KeyboardInterrupt):
        run(SequentialRunner, catalog(tmp_path, "one"), what)


def test_a_file_that_cannot_be_saved_is_a_failure_with_its_reason(tmp_path):
    (tmp_path / "adult.erm.models").write_text("a file where a folder must be")
    with pytest.raises(RunFailed) as error:
        run(SequentialRunner, catalog(tmp_path, "one"), pipeline())
    (failure,) = error.value.failures
    assert failure.node == "adult.erm.train"
    assert "adult.erm.models" in failure.message


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("first\nsecond"), "first"),
        (ValueError("\n  \nlater"), "later"),
        (ValueError(), "ValueError"),
        (DatasetError("Failed while saving x.\nNo space left\nmore"),
         "Failed while saving x. No space left"),
    ],
)  # fmt: skip
def test_an_error_is_told_in_one_line(error, line):
    assert reason_of(error) == line


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["run"], "kedro run --run-id one --only-missing-outputs"),
        (
            ["run", "--env=smoke", "--run-id", "zero", "--datasets", "a,b"],
            "kedro run --env=smoke --datasets a,b --run-id one --only-missing-outputs",
        ),
        (
            ["--verbose", "run", "--run-id=zero", "--only-missing-outputs", "--params", "a=b c"],
            "kedro run --params 'a=b c' --run-id one --only-missing-outputs",
        ),
    ],
)
def test_the_completing_command_keeps_the_options_of_the_run(monkeypatch, words, command):
    monkeypatch.setattr(sys, "argv", ["kedro", *words])
    assert completion("one") == command


def test_a_catalog_with_failures_travels_to_other_processes():
    failures: Mapping[str, Failure] = {"a": Failure("a.train", "no")}
    sent = pickle.dumps(CatalogWithFailures(DataCatalog({"b": MemoryDataset(2)}), failures))
    received = pickle.loads(sent)  # noqa: S301 - of our own making, in this very test
    assert received.load("a") == failures["a"]
    assert received.load("b") == 2
