"""Every environment that is delivered, run to its end as small as it goes."""

import pytest
from mlflow import MlflowClient

from robust_fairness.runs.tracking_record import EXPERIMENT
from tests.project import ROOT, Project

# A dataset and a method of each that take seconds.
SMALLEST = {
    "base": ("heart", "erm"),
    "cross": ("drugs", "erm"),
    "demo": ("acs_states", "boosted_trees"),
    "digits_full": ("coloured_digits", "erm"),
    "estimators": ("adult_budget", "boosted_trees"),
    "natural": ("heart_without_va", "boosted_trees"),
    "paper": ("communities_divorce", "erm"),
    "reduced": ("german", "erm"),
    "smoke": ("diabetes", "erm"),
}


def test_every_environment_has_a_smallest_cell() -> None:
    delivered = {path.name for path in (ROOT / "conf").iterdir() if path.is_dir()} - {"local"}
    assert delivered == SMALLEST.keys()


@pytest.mark.slow
@pytest.mark.parametrize("environment", SMALLEST)
def test_an_environment_runs_to_its_end(environment: str, tmp_path) -> None:
    """MLflow's run of the whole run is finished and has its metrics and its report."""
    project = Project.copied_to(tmp_path)
    dataset, method = SMALLEST[environment]
    server = f"sqlite:///{tmp_path / 'mlflow.db'}"
    project.kedro(
        "run", f"--env={environment}", f"--datasets={dataset}", f"--methods={method}", "--seeds=1",
        "--run-id=one", ROBUST_FAIRNESS_MLFLOW="on", MLFLOW_TRACKING_URI=server,
    )  # fmt: skip
    client = MlflowClient(server)
    runs = client.search_runs([client.get_experiment_by_name(EXPERIMENT).experiment_id])
    (parent,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) > 1 and parent.data.metrics
    assert any("report" in item.path for item in client.list_artifacts(parent.info.run_id))
