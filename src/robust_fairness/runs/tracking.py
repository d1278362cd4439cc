"""MLflow: one parent run per Kedro run, one child run per cell.

Only ``MlflowClient`` with explicit ids is used, so that nothing depends on the active run of the
process. Without a server there is one warning and the run continues.
``ROBUST_FAIRNESS_MLFLOW=off`` turns tracking off, ``no-models`` leaves out the models. A server
gets no rows of the data, neither in models that keep training rows nor in contact sheets of the
report, unless it is ``with-data``.

Names of metrics are ``metric/attribute/shift_severity/trial``, as far as they apply. Those of
the trial that the cell's first criterion selected are logged again as ``chosen/...`` without the
trial: equal names for all methods, which MLflow compares in one table.
"""

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from kedro.framework.hooks import hook_impl

from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.registry import find
from robust_fairness.experiment.experiment import Cell
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import first_line
from robust_fairness.runs.secrets import hidden
from robust_fairness.runs.session import environment

logger = logging.getLogger(__name__)

SWITCH = "ROBUST_FAIRNESS_MLFLOW"
EXPERIMENT = "robust_fairness"
SHEET = "contact_sheet"
MODEL = "model"  # its folder among a cell's artifacts
SILENCE = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
# A short timeout finds out whether there is a server; later it may be busy with other clients.
TIMEOUT, RETRIES = "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
SHORT_WAITS = {TIMEOUT: "10", RETRIES: "1"}  # seconds, times
WAITS = {TIMEOUT: "30", RETRIES: "3"}
MOST_RUNS = 50_000  # limits of the server
METRICS_PER_REQUEST = 1000
PARAMETERS_PER_REQUEST = 100
LONGEST_PARAMETER = 6000
LONGEST_TAG = LONGEST_NOTE = 5000


class MlflowTracking:
    """Logs the outputs of nodes to MLflow.

    MLflow runs are found by their tags: a node may run in any process, and the completion of a
    run continues its MLflow run.
    """

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._without: set[str] = set()

    def _attempt(self, run_id: str, action: Callable[["Record"], None]) -> None:
        """Log something of a run; the first failure is a warning and turns tracking off."""
        if run_id in self._without or os.environ.get(SWITCH, "on").lower() == "off":
            return
        try:
            if run_id not in self._records:
                self._records[run_id] = Record(run_id)
            with waiting(WAITS):
                action(self._records[run_id])
        except Exception as error:  # of any type, raised by the client
            self._without.add(run_id)
            logger.warning(
                "MLflow is not available, the run continues without it: %s",
                hidden(first_line(error))[:200],
            )

    @hook_impl(trylast=True)  # after the checks of other hooks
    def before_pipeline_run(self, run_params: Mapping[str, Any]) -> None:
        """Open the parent run; without a server tracking is turned off."""
        self._without.discard(run_params["run_id"])
        self._attempt(run_params["run_id"], lambda record: record.reopen())

    @hook_impl
    def after_node_run(
        self, node: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any], run_id: str
    ) -> None:
        """Log hyperparameters and curves of a training, models, and scores."""
        cell: Any = inputs.get(f"params:{node.namespace}.cell")
        if cell is None:
            return
        made = {names.parse(name).part: one for name, one in {**inputs, **outputs}.items()}
        if node.short_name == "train":
            self._attempt(run_id, lambda record: record.training(cell, made["history"]))
        elif node.short_name == "evaluate":
            self._attempt(run_id, lambda record: record.scores(cell, made["metrics"]))
        elif node.short_name == "predict" and os.environ.get(SWITCH, "").lower() != "no-models":
            if find("network", cell.network.name).keeps_training_rows and not may_send_data():
                logger.warning(
                    "%s: its model keeps training rows and is not sent to the MLflow server; "
                    "%s=with-data sends it", cell.name, SWITCH,
                )  # fmt: skip
                return
            parts = made["samples"], made["models"], made["selection"]
            self._attempt(run_id, lambda record: record.model(cell, *parts))

    @hook_impl
    def after_pipeline_run(
        self, run_params: Mapping[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        self._end(run_params["run_id"], [], "FINISHED", pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: Mapping[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        """Close all runs, with the errors in the parent run and in those of failed cells."""
        failures = getattr(error, "failures", [Failure("", first_line(error))])
        self._end(run_params["run_id"], failures, "FAILED", pipeline, catalog)

    def _end(
        self, run_id: str, failures: list[Failure], state: str, pipeline: Any, catalog: Any
    ) -> None:
        outputs = pipeline.all_outputs()
        # the project's own store needs no copy of a file that is beside it
        elsewhere = bool(os.environ.get("MLFLOW_TRACKING_URI"))
        sent = elsewhere and "report" in outputs and catalog.exists("report")
        if sent and not may_send_data() and any(names.parse(one).part == SHEET for one in outputs):
            logger.warning(
                "the report shows images of the data and is not sent to the MLflow server; "
                "%s=with-data sends it", SWITCH,
            )  # fmt: skip
            sent = False
        report = catalog.load("report") if sent else None
        cells = [f"params:{failure.namespace}.cell" for failure in failures]
        failed = [
            (catalog.load(cell), failure)
            for cell, failure in zip(cells, failures, strict=True)
            if cell in catalog
        ]
        note = "\n".join(map(str, failures))
        self._attempt(run_id, lambda record: record.close(state, note, failed, report))
        self._records.pop(run_id, None)


class Record:
    """The MLflow runs of one Kedro run."""

    def __init__(self, run_id: str) -> None:
        for name, value in SILENCE.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        # MLflow logs every migration of its database,
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        # and its client every retry
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        store = uri or f"sqlite:///{provenance.root() / 'mlflow.db'}"
        files = None if uri else (provenance.root() / "mlruns").as_uri()
        with locked_store(store):
            self._client = MlflowClient(store)
            self._experiment = self._id_of_experiment(files)
        self._ids: dict[str, str] = {}
        manifest = provenance.load_manifest(run_id)
        self._tags = {
            "kedro.run_id": run_id,
            "kedro.env": manifest["environment"],
            "mlflow.source.git.commit": manifest["git"]["commit"] or "unknown",
        }
        with waiting(WAITS):
            self._parent = self._run(run_id, {})

    def _id_of_experiment(self, files: str | None) -> str:
        """Id of the experiment, created if needed; another process may create it meanwhile."""
        from mlflow import MlflowException

        with waiting(SHORT_WAITS):
            known = self._client.get_experiment_by_name(EXPERIMENT)
        if known is not None:
            if files is not None and known.artifact_location != files:
                raise InputError(
                    f"mlflow.db keeps its files in {known.artifact_location}, as this project was "
                    "moved or copied; move mlflow.db away, or set MLFLOW_TRACKING_URI"
                )
            return str(known.experiment_id)
        try:
            return str(self._client.create_experiment(EXPERIMENT, files))
        except MlflowException:
            known = self._client.get_experiment_by_name(EXPERIMENT)
            if known is None:
                raise
            return str(known.experiment_id)

    def _run(self, name: str, tags: dict[str, str]) -> str:
        if name not in self._ids:
            run, *_ = self._search(f"attributes.run_name = '{name}'") or [
                self._client.create_run(self._experiment, run_name=name, tags=self._tags | tags)
            ]
            self._ids[name] = run.info.run_id
        return self._ids[name]

    def _search(self, condition: str) -> list[Any]:
        condition = f"tags.`kedro.run_id` = '{self._tags['kedro.run_id']}' and {condition}"
        oldest = ["attributes.start_time ASC"]
        return self._client.search_runs(
            [self._experiment], condition, max_results=MOST_RUNS, order_by=oldest
        )

    def _child(self, cell: Cell) -> str:
        tags = {"cell": cell.name, "dataset": cell.dataset, "method": cell.label}
        return self._run(cell.name, {"mlflow.parentRunId": self._parent, **tags})

    def reopen(self) -> None:
        """Set the parent run to running, also if it had ended before."""
        self._client.update_run(self._parent, status="RUNNING")

    def training(self, cell: Cell, history: Any) -> None:
        """Log the settings of a cell and its curves: means over replicas, one step per epoch."""
        import pandas as pd
        from mlflow.entities import Metric, Param
        from mlflow.utils.time import get_current_time_millis

        run = self._child(cell)
        self._client.update_run(run, status="RUNNING")
        (settings,) = pd.json_normalize(cell.model_dump()).to_dict("records")
        params = [
            Param(str(name), str(one)[:LONGEST_PARAMETER]) for name, one in hidden(settings).items()
        ]
        for some in batches(params, PARAMETERS_PER_REQUEST):
            self._client.log_batch(run, params=some)
        curves = history.groupby(["trial", "quantity", "epoch"], sort=False)["value"].mean()
        now = get_current_time_millis()
        metrics = [
            Metric(key(quantity, trial), value, now, epoch)
            for (trial, quantity, epoch), value in curves.items()
        ]
        self._log(run, metrics)

    def model(self, cell: Cell, samples: Any, models: Any, chosen: Any) -> None:
        from robust_fairness.runs.serving import save

        with TemporaryDirectory() as folder:
            made = Path(folder) / MODEL
            if save(made, cell, samples, models, chosen):
                self._client.log_artifacts(self._child(cell), str(made), MODEL)

    def scores(self, cell: Cell, metrics: Any) -> None:
        """Log the scores of a cell, means over seeds, and close its run.

        A replica that several criteria selected counts once.
        """
        from mlflow.entities import Metric, RunTag
        from mlflow.utils.time import get_current_time_millis

        from robust_fairness.metrics.criteria import EVERY

        criterion = cell.criterion
        rows = metrics[metrics["group"] == ""].dropna(subset="value")
        chosen = rows[rows["selection"] == criterion]
        trials = "" if criterion == EVERY else ", ".join(chosen["trial"].unique())
        means = by_trial(rows)
        if trials:
            selected = by_trial(chosen.assign(trial=""))
            means |= {f"chosen/{name}": value for name, value in selected.items()}
        run = self._child(cell)
        now = get_current_time_millis()
        self._log(run, [Metric(name, value, now, 0) for name, value in means.items()])
        tags = {
            "network": ", ".join(metrics["network"].unique()),
            "shifts": ", ".join(metrics["shift"].unique()),
            "selection": criterion,
            "trial": trials,
        }
        self._client.log_batch(
            run, tags=[RunTag(name, value[:LONGEST_TAG]) for name, value in tags.items()]
        )
        self._end(run, "FINISHED")

    def close(
        self, state: str, note: str, failed: Sequence[tuple[Cell, Failure]], report: str | None
    ) -> None:
        """Close all runs that are still open, those of failed cells with their failures."""
        for cell, failure in failed:
            self._end(self._child(cell), "FAILED", str(failure))
        children = f"tags.`mlflow.parentRunId` = '{self._parent}'"
        for run in self._search(f"{children} and attributes.status = 'RUNNING'"):
            self._end(run.info.run_id, state)
        if report is not None:
            self._client.log_text(self._parent, report, "report.html")
        self._end(self._parent, state, note)

    def _end(self, run: str, state: str, note: str = "") -> None:
        """Close a run; MLflow shows the note as its description."""
        self._client.set_tag(run, "mlflow.note.content", note[:LONGEST_NOTE])
        self._client.set_terminated(run, state)

    def _log(self, run: str, metrics: Sequence[Any]) -> None:
        for some in batches(metrics, METRICS_PER_REQUEST):
            self._client.log_batch(run, metrics=some)


def forget(run_id: str) -> None:
    """Delete the MLflow runs of a run, and their files where they are in this project."""
    uri = os.environ.get("MLFLOW_TRACKING_URI")
    database = provenance.root() / "mlflow.db"
    if os.environ.get(SWITCH, "on").lower() == "off" or not (uri or database.exists()):
        return
    from mlflow import MlflowClient

    client = MlflowClient(uri or f"sqlite:///{database}")
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is None:
        return
    condition = f"tags.`kedro.run_id` = '{run_id}'"
    for run in client.search_runs([experiment.experiment_id], condition, max_results=MOST_RUNS):
        client.delete_run(run.info.run_id)
        folder = provenance.root() / "mlruns" / run.info.run_id
        shutil.rmtree(folder, ignore_errors=True)


def may_send_data() -> bool:
    """Whether what is logged stays on this machine, or rows of the data may be sent."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    is_local = urlsplit(uri).scheme in ("", "file", "sqlite")
    return is_local or os.environ.get(SWITCH, "").lower() == "with-data"


def waiting(limits: Mapping[str, str]) -> AbstractContextManager[None]:
    """Set the timeouts of MLflow's client, unless the user has set them."""
    return environment({name: os.environ.get(name, value) for name, value in limits.items()})


@contextmanager
def locked_store(store: str) -> Iterator[None]:
    """Lock a store that is a file against other processes.

    The first access creates the tables, which fails if two processes do so concurrently.
    """
    scheme, _, path = store.partition(":///")
    if scheme != "sqlite":
        yield
        return
    import fcntl

    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when closed
        yield


def by_trial(rows: Any) -> dict[str, float]:
    """Means over seeds, by name of the metric in MLflow; without single domains trained on."""
    rows = rows[(rows["domain"] == "") | (rows["shift"] != "none")]
    columns = ["metric", "attribute", "shift", "severity", "domain", "trial"]
    means = rows.drop_duplicates([*columns, "seed"]).groupby(columns, sort=False)["value"].mean()
    return {
        key(metric, attribute, f"{shift}_{severity:g}", domain, trial): float(value)
        for (metric, attribute, shift, severity, domain, trial), value in means.items()
    }


def batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Parts of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))


def key(*parts: str) -> str:
    """Name of a metric in MLflow from its nonempty parts, without forbidden characters."""
    return re.sub(r"[^\w\-./ ]", "_", "/".join(filter(None, parts)))
