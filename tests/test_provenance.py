"""Manifests: what they hold, which runs they refuse, what a rerun compares."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from kedro.framework.hooks.manager import _create_hook_manager, _register_hooks
from kedro.io import DataCatalog, MemoryDataset
from kedro.io.core import Version
from kedro.pipeline import Node, Pipeline

from robust_fairness.bench.experiment.experiment import Experiment
from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core import code
from robust_fairness.core.errors import InputError
from robust_fairness.core.escaping import hidden
from robust_fairness.core.files import HOST, sha256_of
from robust_fairness.core.samples import Samples
from robust_fairness.runs import hooks, provenance, rerun, session
from robust_fairness.runs.hooks import RunRecord
from robust_fairness.runs.runners import RunFailed, SequentialRunner
from tests.files import text_file

CELL = {"dataset": "toy", "label": "erm", "method": "erm", "network": "mlp", "seeds": [0]}
EXPERIMENT = Experiment.model_validate(
    {"datasets": [{"name": "toy", "source": "diabetes", "cells": [CELL]}]}
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """Everything is written below the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def samples(sha256: str) -> Samples:
    """Two rows of a file."""
    return Samples(
        x=np.zeros((2, 1), np.float32),
        y=np.zeros(2, np.int64),
        attributes=pd.DataFrame({"sex": pd.Categorical(["f", "m"])}),
        id=np.arange(2),
        splits=pd.DataFrame({"split_0": pd.Categorical(["train", "test"])}),
        classes=("only",),
        sources={"toy.csv": sha256},
    )


def train(of: Samples) -> str:
    """A model."""
    return f"model of {len(of)} rows"


def breaking(of: Samples) -> str:
    """No model."""
    raise ValueError("broken on purpose")


def pipeline(function=train, sha256: str = "aa") -> Pipeline:
    """Ingest, train, report."""
    return Pipeline(
        [
            Node(lambda: samples(sha256), None, "toy.samples", name="ingest", namespace="toy"),
            Node(function, "toy.samples", "toy.erm.text", name="train", namespace="toy.erm"),
            Node(str.title, "toy.erm.text", "metrics", name="collect", namespace="toy"),
        ]
    )


INGESTION, TRAINING = (Pipeline([node]) for node in pipeline().nodes[:2])
BOTH = Pipeline(
    [
        Node(
            lambda of, text: f"{text} on {len(of)}",
            ["toy.samples", "toy.erm.text"],
            "metrics",
            name="evaluate",
            namespace="toy.erm",
        )
    ]
)


def run(run_id: str, what: Pipeline | None = None, only_missing: bool = False, **changes) -> dict:
    """Run a pipeline as Kedro's session does, give the manifest that it leaves."""
    kinds = {"samples": SamplesDataset, "text": text_file, "metrics": text_file}
    names = {"toy.samples": "samples", "toy.erm.text": "text", "metrics": "metrics"}
    chosen = changes.pop("load_versions", {})
    data = DataCatalog(
        {
            "manifest": MemoryDataset(),
            **{
                name: kinds[file](
                    filepath=f"data/{file}", version=Version(chosen.get(name), run_id)
                )
                for name, file in names.items()
            },
        }
    )
    parameters = changes.pop("written", {"a": 1})
    loader = SimpleNamespace(
        source="conf",
        env=None,
        default_run_env="local",
        written_parameters=parameters,
        selected_experiment=EXPERIMENT,
        used={"method": ["erm"]},
        texts=lambda: {"conf/local/parameters.yml": json.dumps(parameters)},
        require_raw_files=lambda names: None,
    )
    told = dict.fromkeys(provenance.FILTERS) | {
        "run_id": run_id,
        "env": "smoke",
        "pipeline_names": ["__default__"],
        "namespaces": None,
        "runtime_params": {},
        "only_missing_outputs": only_missing,
        "load_versions": chosen,
        **changes,
    }
    manager = _create_hook_manager()
    _register_hooks(manager, (RunRecord(),))
    arguments = {"run_params": told, "pipeline": what or pipeline(), "catalog": data}
    with patch("robust_fairness.runs.hooks.loader", lambda: loader):
        manager.hook.before_pipeline_run(**arguments)
    try:
        SequentialRunner().run(
            arguments["pipeline"], data, manager, run_id, only_missing_outputs=only_missing
        )
    except RunFailed as error:
        manager.hook.on_pipeline_error(error=error, **arguments)
    else:
        manager.hook.after_pipeline_run(run_result={}, **arguments)
    return provenance.load_manifest(run_id)


def known_runs() -> list[str]:
    """Ids of all runs with a readable manifest, oldest first."""
    return [manifest["run_id"] for manifest in provenance.manifests()]


def test_a_manifest_says_what_the_run_was_and_made():
    manifest = run("one")
    assert manifest["state"] == "finished"
    assert manifest["started"] <= manifest["ended"]
    assert manifest["environment"] == "smoke"
    assert manifest["inputs"] == {"toy.samples": {"toy.csv": "aa"}}
    assert manifest["grid"]["cells"] == ["toy.erm"]
    assert {"torch", "numpy", "kedro"} <= manifest["packages"].keys()
    assert {"python", "platform", "device", "threads"} <= manifest.keys()
    assert manifest["outputs"].keys() == {"toy.samples", "toy.erm.text", "metrics"}
    for output in manifest["outputs"].values():
        assert sha256_of(Path(output["path"])) == output["sha256"]
        assert output["code"] == code.code_id()


def test_a_failed_run_names_its_cells_and_can_be_completed():
    failed = run("one", pipeline(breaking))
    assert failed["state"] == "failed"
    assert failed["failed"] == ["toy.erm.train: broken on purpose"]
    assert failed["outputs"].keys() == {"toy.samples"}
    done = run("one", only_missing=True)
    assert (done["state"], done["failed"]) == ("finished", [])
    assert done["started"] == failed["started"]
    assert done["inputs"] == failed["inputs"]


def test_a_run_that_only_reads_stays_with_the_version_it_began_with():
    """Made from the newest version, completed from the same, whatever came in between."""
    run("one")
    behind = Pipeline([pipeline().nodes[-1]])
    assert run("two", behind)["loaded"] == {"toy.erm.text": "one"}
    run("three")
    Path("data/metrics/two/metrics").unlink()
    assert run("two", behind, only_missing=True)["loaded"] == {"toy.erm.text": "one"}


def test_what_a_run_reads_was_made_from_the_samples_that_it_reads(caplog):
    """Samples that differ from those behind a model may have other test rows."""
    run("one")
    run("same", INGESTION)
    assert run("two", BOTH)["loaded"] == {"toy.erm.text": "one", "toy.samples": "same"}
    run("other", Pipeline([pipeline(sha256="bb").nodes[0]]))
    with pytest.raises(InputError) as error:
        run("three", BOTH)
    assert str(error.value) == (
        "toy.erm.text of run one was made from toy.samples of run one, and those of run other "
        "differ; choose by --load-versions=toy.samples:one"
    )
    with caplog.at_level("INFO", "robust_fairness"):
        told = run("three", BOTH, load_versions={"toy.samples": "one"})
    assert told["loaded"] == {"toy.erm.text": "one", "toy.samples": "one"}
    assert "using 2 outputs of run one" in caplog.text


def test_samples_behind_a_model_are_known_through_the_run_that_only_read_them():
    run("one", INGESTION)
    assert run("two", TRAINING)["loaded"] == {"toy.samples": "one"}
    assert run("three", BOTH)["loaded"] == {"toy.erm.text": "two", "toy.samples": "one"}
    run("other", Pipeline([pipeline(sha256="bb").nodes[0]]))
    with pytest.raises(InputError, match="text of run two was made from toy.samples of run one"):
        run("four", BOTH)


def test_samples_of_which_nothing_is_told_are_not_taken_for_the_same():
    run("one")
    run("same", INGESTION)
    manifest = provenance.load_manifest("same")
    provenance.write_manifest(manifest | {"state": "interrupted", "outputs": {}})
    with pytest.raises(InputError, match="those of run same differ"):
        run("two", BOTH)


def test_what_no_run_has_made_cannot_be_read():
    with pytest.raises(InputError, match="toy.erm.text: no version yet"):
        run("two", Pipeline([pipeline().nodes[-1]]))
    assert not known_runs()


def test_a_run_id_is_not_taken_twice():
    run("one")
    with pytest.raises(InputError, match="run one exists; add --only-missing-outputs"):
        run("one")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"env": "paper"}, "environment was smoke, now it is paper"),
        ({"runtime_params": {"grid": {"seeds": "2"}}}, "runtime parameters"),
        ({"written": {"a": 2}}, r"configuration \(conf/local/parameters.yml\) was"),
        ({"pipeline_names": ["training"]}, "pipelines"),
        ({"tags": ["shift.noise"]}, "filters"),
        ({"namespaces": ["toy"]}, "namespaces"),
    ],
)
def test_another_run_is_not_completed_under_this_id(changes, named):
    before = run("one", pipeline(breaking))
    with pytest.raises(InputError, match=f"run one differs: its {named}") as error:
        run("one", only_missing=True, **changes)
    assert len(str(error.value).splitlines()) == 1
    assert provenance.load_manifest("one") == before


def git(*words: str) -> None:
    """Git in the current folder."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, *words], check=True, capture_output=True)


def test_other_code_does_not_complete_a_run(monkeypatch):
    """Sources and plug-ins count, wherever they are; what is no source does not, in Git or not."""
    git("init", "-q")
    Path(".gitignore").write_text("data/\nplugins/\n", encoding="utf-8")
    git("add", "-A")
    git("commit", "-qm", "first")
    clean = run("one", pipeline(breaking))["git"]
    assert (clean["commit"] is not None, clean["dirty"]) == (True, False)
    Path("notes").write_text("1", encoding="utf-8")
    assert run("two", pipeline(breaking))["git"]["dirty"]
    git("add", "-A")
    git("commit", "-qm", "second")
    assert run("one", only_missing=True)["accepted"] == []
    Path("plugins/methods").mkdir(parents=True)
    Path("plugins/methods/.#mine.py").symlink_to("nothing")  # as editors make
    Path("plugins/methods/mine.py").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"its code \(plugins\) was \w+, now it is"):
        run("two", only_missing=True)
    Path("pyproject.toml").write_text('[tool.kedro]\npackage_name = "mine"\n', encoding="utf-8")
    run("three", pipeline(breaking))
    Path("src/mine/pipelines").mkdir(parents=True)
    Path("src/mine/pipelines/nodes.py").write_text("", encoding="utf-8")
    code._imported.cache_clear()  # as in another process
    with pytest.raises(InputError, match=r"its code \(project\) was \w+, now it is"):
        run("three", only_missing=True)
    Path("pyproject.toml").unlink()
    monkeypatch.setattr(provenance, "packages", lambda: dict.fromkeys(code.packages(), "0"))
    monkeypatch.setenv(provenance.ACCEPT_CHANGES, "yes")
    accepted = run("two", only_missing=True)["accepted"]
    assert accepted[0].startswith("its code (plugins) was ")
    assert [change.split(" was ")[0] for change in accepted[1:]] == [
        f"its packages ({name})" for name in code.packages()
    ]
    monkeypatch.delenv(provenance.ACCEPT_CHANGES)
    assert run("two", only_missing=True)["accepted"] == accepted


FILES = ("samples", "text", "metrics")


def changed(path: Path) -> None:
    """Flip a bit of a file; its size and its times stay."""
    times, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("state", ["finished", "failed", "running"])
@pytest.mark.parametrize("file", FILES)
def test_outputs_that_were_changed_are_not_kept_unless_accepted(file, state, monkeypatch):
    """Of a run that ended, failed or was killed: the journal is the manifest until then."""
    nodes = pipeline().nodes
    if state == "failed":
        nodes.append(Node(breaking, "toy.samples", "late", name="late", namespace="toy"))
    with monkeypatch.context() as patched:
        if state == "running":
            patched.setattr(hooks, "_close", lambda *_: None)
        before = run("one", Pipeline(nodes))
    assert before["state"] == state and before["outputs"].keys() >= {"metrics"}
    path = Path(f"data/{file}/one/{file}")
    changed(path)
    damaged, refused = path.read_bytes(), rf"run one differs: data/{file}/one/{file} was changed"
    with pytest.raises(InputError, match=refused) as error:
        run("one", only_missing=True)
    assert len(str(error.value).splitlines()) == 1
    assert provenance.load_manifest("one") == before and path.read_bytes() == damaged
    monkeypatch.setenv(provenance.ACCEPT_CHANGES, "yes")
    after = run("one", only_missing=True)
    assert f"data/{file}/one/{file} was changed" in after["accepted"][0]
    monkeypatch.delenv(provenance.ACCEPT_CHANGES)
    again = run("one", only_missing=True)
    assert (again["state"], again["accepted"]) == ("finished", after["accepted"])


def test_an_output_that_was_not_recorded_is_made_again(caplog):
    """A process was killed between saving and recording, perhaps in the middle of a line."""
    run("one")
    manifest = provenance.load_manifest("one")
    text = manifest["outputs"].pop("toy.erm.text")
    provenance.write_manifest(manifest | {"state": "running"})
    provenance.journal_path("one").write_text('{"outputs": {"toy.erm.text": {"pa')
    changed(Path(text["path"]))
    done = run("one", only_missing=True)
    assert done["accepted"] == [] and done["outputs"]["toy.erm.text"] == text
    assert "a line is cut off" in caplog.text


def test_changed_outputs_are_not_read():
    """Neither by a command nor by another run."""
    run("one")
    for name in ("metrics", "toy.erm.text"):
        assert provenance.load("one", name, text_file)
        changed(Path(provenance.output("one", name)))
        with pytest.raises(InputError, match=r"changed since run one saved it; to record") as error:
            provenance.load("one", name, text_file)
        assert len(str(error.value).splitlines()) == 1
    with pytest.raises(InputError, match=r"run two differs: data/text/one/text was changed"):
        run("two", Pipeline([pipeline().nodes[-1]]))
    Path("data/metrics/one/metrics").unlink()
    with pytest.raises(InputError, match="data/metrics/one/metrics: deleted since run one"):
        provenance.output("one", "metrics")


def test_a_run_with_failed_nodes_and_a_table_is_read(caplog):
    """A failure beside the table counts in the manifest, also before the run ends."""
    failures: list[list[str]] = []

    def look(text: str, manifest: dict) -> str:
        failures.append(manifest["failed"])
        return text

    nodes = [
        *pipeline().nodes[:2],
        Node(breaking, "toy.samples", "late", name="diagnose", namespace="toy"),
    ]
    nodes.append(Node(look, ["toy.erm.text", "manifest"], "metrics", name="look", namespace="toy"))
    manifest = run("one", Pipeline(nodes))
    assert manifest["state"] == "failed"
    assert manifest["failed"] == failures[0] == ["toy.diagnose: broken on purpose"]
    assert provenance.newest_finished_run() == "one"
    assert "run one: 1 failed: toy.diagnose: broken on purpose" in caplog.text


def test_what_an_unfinished_run_collected_is_collected_again():
    """A table made while a cell was missing stays wrong when the cell's output is there later."""
    nodes = pipeline().nodes
    nodes[2] = Node(
        str.title, "toy.erm.text", "metrics", name="collect", namespace="toy", tags=["fan_in"]
    )
    run("one", Pipeline(nodes))
    Path("data/metrics/one/metrics").write_text(
        "made by another process, without this cell", encoding="utf-8"
    )
    provenance.write_manifest(provenance.load_manifest("one") | {"state": "running"})
    run("one", Pipeline(nodes), only_missing=True)
    assert Path("data/metrics/one/metrics").read_text(encoding="utf-8") == "Model Of 2 Rows"


def test_a_run_is_not_taken_from_git_or_its_absence(monkeypatch, folder):
    """Without Git the contents of the code decide."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(folder.parent))
    assert run("one", pipeline(breaking))["git"] == {"commit": None, "dirty": None}
    Path("plugins/shifts").mkdir(parents=True)
    Path("plugins/shifts/mine.py").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"run one differs: its code \(plugins\)"):
        run("one", only_missing=True)


def test_modified_official_files_are_refused_unless_allowed(monkeypatch):
    """Before anything is saved; the manifest names them."""

    def modified() -> Samples:
        return replace(samples(""), sources={"adult/adult.data": "0" * 64, "own.csv": "1" * 64})

    ingestion = Pipeline([Node(modified, None, "toy.samples", name="ingest", namespace="toy")])
    (failure,) = run("one", ingestion)["failed"]
    assert "adult/adult.data differs from the official file; download it again with" in failure
    assert not Path("data/samples/one/samples").exists()
    monkeypatch.setenv(provenance.ALLOW_MODIFIED_DATA, "yes")
    assert run("one", ingestion, only_missing=True)["modified"] == ["adult/adult.data"]


def test_a_killed_process_leaves_no_half_manifest_for_good(folder):
    """Its leftover goes when the manifest is written next."""
    run("one")
    half = provenance.manifest_path("one").with_name(f".one.json.{HOST}.{ended_process()}.part")
    half.touch()
    run("one", only_missing=True)
    assert {path.name for path in half.parent.iterdir()} == {"one.json"}


def ended_process() -> int:
    """Id of a process that is no more."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_another_input_file_fails_before_anything_of_it_is_saved():
    run("one", pipeline(breaking))
    Path("data/samples/one/samples").unlink()
    manifest = run("one", pipeline(sha256="bb"), only_missing=True)
    assert manifest["failed"] == [
        "toy.ingest: toy.samples: toy.csv changed since run one started; use another --run-id"
    ]
    assert not Path("data/samples/one/samples").exists()


def test_samples_that_another_run_has_replaced_are_not_read(monkeypatch):
    run("one", pipeline(breaking))
    Path("data/samples/one/samples").unlink()
    SamplesDataset(filepath="data/samples", version=Version(None, "one")).save(samples("bb"))
    with pytest.raises(InputError, match="run one differs: data/samples/one/samples was changed"):
        run("one", only_missing=True)
    monkeypatch.setenv(provenance.ACCEPT_CHANGES, "yes")
    (failure,) = run("one", only_missing=True)["failed"]
    assert failure.startswith("toy.erm.train: toy.samples: toy.csv changed")


def test_the_newest_finished_run_with_a_table_is_found():
    with pytest.raises(InputError, match="no finished run"):
        provenance.newest_finished_run()
    for name in ("zz", "bb", "aa"):
        run(name)
    run("cc", pipeline(breaking))
    run("dd", Pipeline([pipeline().nodes[0]]))
    assert known_runs() == ["zz", "bb", "aa", "cc", "dd"]
    assert provenance.newest_finished_run() == "aa"
    assert provenance.output("aa", "metrics") == Path.cwd() / "data/metrics/aa/metrics"
    with pytest.raises(InputError, match="unknown output of run aa 'metric': did you mean 'met"):
        provenance.output("aa", "metric")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run_id": "other"}'])
def test_a_corrupted_manifest_is_named(text):
    run("one")
    provenance.manifest_path("one").write_text(text)
    with pytest.raises(InputError, match=r"one\.json: corrupted manifest"):
        provenance.load_manifest("one")
    with pytest.raises(InputError, match="unknown run 'onne': did you mean 'one'"):
        provenance.load_manifest("onne")
    run("two")
    assert provenance.newest_finished_run() == "two"
    assert known_runs() == ["two"]


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../a", "-a", "a b", "a'b", "a\n"])
def test_a_run_id_is_the_name_of_a_file(run_id):
    created = object.__new__(session.Session)
    with pytest.raises(InputError, match="run id"):
        created.run(runtime_params={"run_id": run_id})


def test_a_manifest_has_no_credentials():
    parameters = {"db": {"password": "hunter2"}, "uri": "postgresql://me:hunter2@host/runs"}
    manifest = run("one", runtime_params=parameters)
    assert manifest["runtime_parameters"] == {
        "db": {"password": "***"},
        "uri": "postgresql://host/runs",
    }
    assert hidden("--params=api_key=abc,seeds=2") == "--params=api_key=***,seeds=2"
    assert "hunter2" not in provenance.manifest_path("one").read_text()
    with pytest.raises(InputError, match="its manifest lacks secret parameters"):
        rerun.rerun(str(provenance.manifest_path("one")))


def outputs(run_id: str, **contents: str) -> dict:
    """The part of a manifest that is compared."""
    return {"run_id": run_id, "outputs": {name: {"sha256": c} for name, c in contents.items()}}


def test_a_comparison_counts_the_same_and_names_the_different():
    old = outputs("one", metrics="a", models="b", report="c")
    same = rerun.comparison(old, outputs("two", metrics="a", models="b", report="d"))
    assert same.startswith("2 outputs, same bits (run two")
    for other in ({"models": "b", "metrics": "x"}, {"models": "b"}):
        with pytest.raises(
            InputError, match=r"1 of 2 outputs differ: metrics \(run one: torch was"
        ):
            rerun.comparison(old, outputs("two", **other), ["torch was 1", "now it is 2"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "running"}, "run one is running; only finished runs"),
        (
            {"code": {"package": "0", "plugins": "1"}, "git": {"commit": "ab" * 20, "dirty": True}},
            r"code differs from that of run one \(its code \(package\) was 0, now it is \w+; .*\)$",
        ),
        (
            {"code": {"plugins": "1"}, "git": {"commit": "ab" * 20, "dirty": False}},
            f"git worktree add ../rerun-abababab {'ab' * 20}",
        ),
    ],
)
def test_only_a_finished_run_of_the_same_code_is_rerun(change, said):
    manifest = run("one") | change
    provenance.write_manifest(manifest)
    with pytest.raises(InputError, match=said):
        rerun.rerun("one")
    assert known_runs() == ["one"]
