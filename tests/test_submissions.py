"""Models from elsewhere: the page's commands and its program, with a run of one method."""

import re

import numpy as np
import pandas as pd
import pytest

from robust_fairness.core.registry import find
from robust_fairness.datasets.files import Files
from tests.project import Project, blocks, small

PAGE = "submissions.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A project with a short run, its exported rows, and what the page's program predicts."""
    project = small(Project.copied_to(tmp_path_factory.mktemp("project")))
    project.configure("smoke/parameters.yml", {"protocols": {"tabular": {"epochs": 1}}})
    (run, export), (_, program), (submit,) = (
        [line for line in text.splitlines() if line] if language == "sh" else (language, text)
        for language, text in blocks(PAGE)
    )
    _, *words = run.split()
    project.commands(f"{' '.join(words)} --methods=erm", export.partition(" ")[2])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.root)
        exec(program, {})
    project.commands(f"{submit.partition(' ')[2]} --sees groups")
    return project


def test_a_submitted_model_has_the_scores_of_its_predictions(project):
    """Accuracy by hand, from the labels of the dataset; in the table and in the report."""
    folder = project.root / "data/08_reporting/submissions/mine"
    scores = pd.read_parquet(folder / "diabetes/logistic.parquet")
    assert set(scores["method"]) == {"logistic"}
    samples = find("dataset", "diabetes")().load(Files(project.root), 1)
    label = pd.Series(samples.y, index=samples.id.astype(str))
    sent = pd.read_csv(project.root / "predictions.csv", dtype={"id": str})
    right = (sent["probability"] > 0.5) == label.loc[sent["id"]].to_numpy()
    expected = right.groupby(sent["test_set"]).mean()
    accuracies = scores[(scores["metric"] == "accuracy") & (scores["group"] == "")]
    accuracies = accuracies.drop_duplicates(["shift", "severity"]).set_index("shift")["value"]
    assert accuracies["none"] == pytest.approx(expected["unshifted"])
    assert accuracies["gaussian_noise"] == pytest.approx(expected["gaussian_noise_0_06"])
    report = (folder / "report.html").read_text()
    assert {"erm", "logistic"} <= set(re.findall(r"\w+", report))


def test_wrong_predictions_end_the_command_in_one_line(project):
    sent = pd.read_csv(project.root / "predictions.csv")
    sent.assign(probability=np.nan).to_csv(project.root / "wrong.csv", index=False)
    said = project.kedro("submit", "diabetes", "other", "wrong.csv", "--run=mine", status=1)
    pattern = (
        r"Error: predictions: probability of id \d+ is missing \(\d+ such rows\), allowed: .*\n"
    )
    assert re.fullmatch(pattern, said)
    assert not list(project.root.glob("data/08_reporting/submissions/mine/diabetes/other*"))
