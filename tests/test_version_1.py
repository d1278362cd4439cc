"""What version 1 wrote works, or one line says what to change.

``version_1/`` has what its commands and its functions wrote: the state of a monitor, a logged
model and the project of ``robust-fairness new``.
"""

import shutil
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml

from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.monitor import Monitor
from robust_fairness.auditing.predictions import Options
from robust_fairness.core.errors import InputError
from tests.project import Project

FOLDER = Path(__file__).with_name("version_1")
STATE = FOLDER / "state.json"


def rows_of(counts: np.ndarray, period: str) -> pd.DataFrame:
    """Rows of a month from its counts ``[group, label and prediction]``."""
    cells = pd.MultiIndex.from_product([["f", "m"], [0, 1], [0, 1]], names=["sex", "y", "pred"])
    table = cells.to_frame(index=False).assign(month=period)
    return table.loc[table.index.repeat(counts.ravel())]


def test_a_state_of_a_monitor_is_continued_as_if_its_rows_were_there(tmp_path):
    kept = Monitor.from_json(STATE.read_text(), "state.json")
    months = [
        rows_of(kept.counts["sex"].n[place, :2], month) for place, month in enumerate(kept.periods)
    ]
    later = rows_of(np.array([[120, 30, 100, 50], [110, 40, 30, 120]]), "2023-06")
    options, period = Options("y", "pred", ["sex"]), {"period": "month", "first": 2}
    monitors = []
    for table, state in ((later, STATE), (pd.concat([*months, later]), None)):
        path = tmp_path / "table.csv"
        table.to_csv(path, index=False)
        done = audit_file(TableFile(path), options, monitored=Monitored(**period, state=state))
        monitors.append(done.monitor)
    assert monitors[0].to_json() == monitors[1].to_json()
    pd.testing.assert_frame_equal(monitors[0].to_frame(), monitors[1].to_frame())


def test_a_logged_model_says_that_it_has_to_be_logged_again(monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    with pytest.raises(InputError, match="SHA256SUMS: missing, as in models of version 1; log the"):
        mlflow.pyfunc.load_model(str(FOLDER / "logged_model"), suppress_warnings=True)


def test_a_project_runs_and_an_entry_of_a_former_type_says_what_it_is_now(tmp_path):
    shutil.copytree(FOLDER / "project", tmp_path, dirs_exist_ok=True)
    project = Project(tmp_path)
    for folder in ("base", "local"):
        (tmp_path / "conf" / folder).mkdir(parents=True)
    words = ["--env=smoke", "--datasets=diabetes", "--methods=erm"]
    source = str(Path(__file__).parents[1] / "src")
    project.kedro("run", *words, "--run-id=first", PYTHONPATH=source)
    assert len(project.metrics("first"))
    entry = {
        "type": "robust_fairness.catalog.files.ParquetDataset",
        "filepath": "data/{dataset}.parquet",
        "versioned": True,
    }
    (tmp_path / "conf/base/catalog.yml").write_text(yaml.safe_dump({"{dataset}.splits": entry}))
    printed = project.kedro("run", *words, "--run-id=second", status=1, PYTHONPATH=source)
    assert "is now robust_fairness.catalog.files.FileDataset with the field dataset" in printed
