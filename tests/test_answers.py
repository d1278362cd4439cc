"""Answers for the official evaluations, from what a run left."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from kedro.io.core import Version

from robust_fairness.bench.training.records import Prediction
from robust_fairness.catalog.arrays import PredictionsDataset, SamplesDataset
from robust_fairness.cli.commands import cli
from robust_fairness.core.questions import Boxes, Questions
from robust_fairness.core.samples import Samples
from robust_fairness.runs import provenance

CLASSES = ("no", "yes", "crème brûlée")
IDS = np.array(["00101448", "201030459", "7", "05"])
CELL = ("gqa_ood", "erm")


def samples(questions: bool = True) -> Samples:
    """Four questions; without, four rows of numbers."""
    boxes = Boxes("nowhere", (1, 1, 2), "abc")
    numbers = np.zeros((4, 1), np.float32)
    words = {"tokens": np.zeros((4, 2), np.int32), "picture": np.zeros(4, np.int32)}
    return Samples(
        x=words if questions else numbers,
        y=np.zeros(4, np.int64),
        attributes=pd.DataFrame(index=range(4)),
        id=IDS,
        splits=pd.DataFrame({"s": pd.Categorical(["train", "test", "test", "test"])}),
        classes=CLASSES,
        questions=Questions(("", "is"), boxes) if questions else None,
    )


def predicted(answers: list[int], trial: str = "default", seed: int = 0) -> Prediction:
    """Of the last rows, in the reverse order."""
    outputs = np.eye(len(CLASSES), dtype=np.float32)[answers]
    rows = np.array([3, 2, 1])[: len(answers)]
    return Prediction(trial, seed, "s", "", "test", rows, outputs)


def left(run_id: str, made: dict, loaded: dict | None = None) -> None:
    """The manifest and files of a finished run."""
    outputs = {}
    for name, data in {"metrics": None, **made}.items():
        path = provenance.root() / "data" / name / run_id / "file.safetensors"
        if data is not None:
            kind = PredictionsDataset if name.endswith("predictions") else SamplesDataset
            kind(filepath=str(path), version=Version(None, None)).write(data, _below(path))
        outputs[name] = {"path": str(path.relative_to(provenance.root())), "content": "x"}
    manifest = {"run_id": run_id, "state": "finished", "started": run_id, "outputs": outputs}
    provenance.write_manifest(manifest | {"loaded": loaded or {}})


def _below(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture(autouse=True)
def runs(tmp_path, monkeypatch) -> None:
    """One run that ingested, and one that predicted with its samples."""
    monkeypatch.chdir(tmp_path)
    left("one", {"gqa_ood.samples": samples()})
    some = [predicted([0, 1, 2]), predicted([2, 2, 2], "explicit=answer"), predicted([1], seed=1)]
    left("two", {"gqa_ood.erm.predictions": some}, {"gqa_ood.samples": "one"})


def said(*words: str, status: int = 0) -> Result:
    """What the command printed."""
    done = CliRunner().invoke(cli, ["answers", *words])
    assert done.exit_code == status, done.output
    return done


def test_answers_are_those_of_the_chosen_replica_by_the_ids_of_its_questions():
    """Ids are text that keeps its zeros; answers are words, whatever their letters."""
    assert json.loads(said(*CELL).stdout) == [
        {"questionId": "05", "prediction": "no"},
        {"questionId": "7", "prediction": "yes"},
        {"questionId": "201030459", "prediction": "crème brûlée"},
    ]
    other = json.loads(said(*CELL, "--trial=explicit=answer", "--run=two").stdout)
    assert {answer["prediction"] for answer in other} == {"crème brûlée"}
    assert json.loads(said(*CELL, "--seed=1").stdout) == [{"questionId": "05", "prediction": "yes"}]


def test_a_file_is_written_whole_where_it_is_named(tmp_path):
    """And its folder is made."""
    printed = said(*CELL).stdout
    path = tmp_path / "new" / "answers.json"
    assert str(path) in said(*CELL, "--output=new/answers.json").stdout
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(printed)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gqa_ood", "emr"), "unknown output of run two 'gqa_ood.emr.predictions': did you mean"),
        ((*CELL, "--trial=explicit=answers"), "did you mean 'explicit=answer'"),
        ((*CELL, "--seed=2"), "unknown seed of predictions '2'. Allowed: 0, 1"),
        ((*CELL, "--test-set=noise"), "unknown test set of predictions 'noise'"),
        ((*CELL, "--run=three"), "unknown run 'three'"),
        ((*CELL, "--run=one"), "unknown output of run one 'gqa_ood.erm.predictions'"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(words, message):
    """With what is."""
    error = said(*words, status=1).stderr
    assert message in error
    assert error.count("\n") == 1


def test_only_questions_have_answers_of_that_form():
    """Nor do predictions of other samples, or a file that is cut."""
    left("two", {"gqa_ood.erm.predictions": [predicted([0])], "gqa_ood.samples": samples(False)})
    assert "answers exist only for" in said(*CELL, status=1).stderr
    few = samples().take(np.array([0]))
    left("two", {"gqa_ood.erm.predictions": [predicted([0])], "gqa_ood.samples": few})
    assert "the samples have 1 rows: they are from another run" in said(*CELL, status=1).stderr
    path = provenance.output("two", "gqa_ood.erm.predictions")
    path.write_bytes(path.read_bytes()[:-3])
    assert "corrupted file" in said(*CELL, status=1).stderr
    path.unlink()
    assert "deleted since run two saved it" in said(*CELL, status=1).stderr
