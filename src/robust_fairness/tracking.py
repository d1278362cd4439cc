"""MLflow: one parent run a Kedro run, one child run a cell.

Only ``MlflowClient`` with explicit ids is used, so nothing depends on a run that is active in
the process. MLflow being away costs one warning, never a result. ``ROBUST_FAIRNESS_MLFLOW=off``
turns it off.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from kedro.framework.hooks import hook_impl

logger = logging.getLogger(__name__)

SWITCH = "ROBUST_FAIRNESS_MLFLOW"
EXPERIMENT = "robust_fairness"
DEFAULT_URI = "sqlite:///mlflow.db"
SHORT_WAITS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
}
BATCH = 1000  # most metrics that a server takes at once
LONGEST_VALUE = 6000


class MlflowTracking:
    """Records what nodes leave, after they have left it."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Start anew: one object serves all runs of a process."""
        self._client: Any = None
        self._experiment = ""
        self._parent = ""
        self._children: dict[str, str] = {}
        self._report = ""

    def _attempt(self, action: Callable[[], Any]) -> Any:
        """Do something with MLflow; at the first failure warn once and do without it."""
        try:
            return action()
        except Exception as error:  # whatever its client raises, the run goes on
            first = (str(error).splitlines() or [type(error).__name__])[0]
            logger.warning("MLflow is not available, the run goes on without it: %s", first[:200])
            self._client = None
            return None

    @hook_impl
    def before_pipeline_run(self, run_params: Mapping[str, Any]) -> None:
        """Open the parent run."""
        self._forget()
        if os.environ.get(SWITCH, "on").lower() != "off":
            self._attempt(lambda: self._open(run_params))

    def _open(self, run_params: Mapping[str, Any]) -> None:
        for name, value in SHORT_WAITS.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        # MLflow tells every step of its database's migrations
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_URI)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        self._experiment = (
            experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT)
        )
        tags = {"kedro.run_id": run_params["run_id"], "kedro.env": str(run_params["env"])}
        run = client.create_run(self._experiment, run_name=run_params["run_id"], tags=tags)
        self._client, self._parent = client, run.info.run_id

    @hook_impl
    def after_node_run(self, node: Any, inputs: Mapping[str, Any], outputs: Any) -> None:
        """Record the parameters and curves of a training, the scores of an evaluation."""
        if self._client is None or node.namespace is None:
            return
        name = node.name.rpartition(".")[2]
        if name == "train":
            self._attempt(lambda: self._record_training(node.namespace, inputs, outputs))
        elif name == "evaluate":
            metrics = outputs[f"{node.namespace}.metrics"]
            self._attempt(lambda: self._record_scores(node.namespace, metrics))

    @hook_impl
    def on_node_error(self, node: Any) -> None:
        """Close the child run of a cell that failed."""
        if self._client is not None and node.namespace and node.namespace.count(".") == 1:
            self._attempt(lambda: self._close(self._child(node.namespace), "FAILED"))

    @hook_impl
    def after_dataset_saved(self, dataset_name: str, data: Any) -> None:
        """Keep the report for the parent run."""
        if dataset_name == "report":
            self._report = data

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Close the parent run."""
        self._end("FINISHED")

    @hook_impl
    def on_pipeline_error(self) -> None:
        """Close the parent run as failed."""
        self._end("FAILED")

    def _end(self, state: str) -> None:
        if self._client is None:
            return
        if self._report:
            self._attempt(lambda: self._client.log_text(self._parent, self._report, "report.html"))
        if self._client is not None:
            self._attempt(lambda: self._close(self._parent, state))

    def _close(self, run: str, state: str) -> None:
        self._client.set_terminated(run, state)

    def _child(self, cell: str) -> str:
        """Id of the run of a cell, made at first need."""
        if cell not in self._children:
            dataset, method = cell.split(".")
            tags = {
                "mlflow.parentRunId": self._parent,
                "dataset": dataset,
                "method": method,
                "cell": cell,
            }
            run = self._client.create_run(self._experiment, run_name=cell, tags=tags)
            self._children[cell] = run.info.run_id
        return self._children[cell]

    def _record_training(self, cell: str, inputs: Mapping[str, Any], outputs: Any) -> None:
        from mlflow.entities import Metric, Param

        settings = inputs["params:" + cell + ".cell"].model_dump()
        parameters = [
            Param(name, str(value)[:LONGEST_VALUE]) for name, value in flat(settings).items()
        ]
        run = self._child(cell)
        for start in range(0, len(parameters), 100):
            self._client.log_batch(run, params=parameters[start : start + 100])
        history = outputs[f"{cell}.history"]
        curves = history.groupby(["trial", "quantity", "epoch"], sort=False)["value"].mean()
        now = int(time.time() * 1000)
        self._log(
            run,
            [
                Metric(key(f"{quantity}/{trial}"), value, now, epoch)
                for (trial, quantity, epoch), value in curves.items()
            ],
        )

    def _record_scores(self, cell: str, metrics: Any) -> None:
        from mlflow.entities import Metric

        rows = metrics[metrics["group"] == ""].dropna(subset="value")
        columns = ["metric", "attribute", "shift", "severity", "trial"]
        means = rows.groupby(columns, sort=False)["value"].mean()
        now, run = int(time.time() * 1000), self._child(cell)
        self._log(
            run,
            [
                Metric(
                    key("/".join(filter(None, (m, attribute, f"{shift}_{severity:g}", trial)))),
                    value,
                    now,
                    0,
                )
                for (m, attribute, shift, severity, trial), value in means.items()
            ],
        )
        self._close(run, "FINISHED")

    def _log(self, run: str, metrics: list[Any]) -> None:
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(run, metrics=metrics[start : start + BATCH])


def key(text: str) -> str:
    """A metric's name with only the characters that MLflow allows."""
    return re.sub(r"[^\w\-./ ]", "_", text)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, keys joined by dots."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
