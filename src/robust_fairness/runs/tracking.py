"""MLflow: one parent run a Kedro run, one child run a cell.

Only ``MlflowClient`` with explicit ids is used, so nothing depends on a run that is active in
the process. MLflow being away costs one warning, never a result. ``ROBUST_FAIRNESS_MLFLOW=off``
turns it off, ``no-models`` leaves the models out.

Names of metrics are ``metric/attribute/shift_severity/trial``, as far as they apply. Those of
the trial that the cell's first criterion chose are there again, ``chosen/`` before the name and
without the trial: alike for all methods, so that MLflow compares them in one table.
"""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kedro.framework.hooks import hook_impl

from robust_fairness.core.errors import Failure
from robust_fairness.experiment.parameters import EVERY, CellParameters
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import first_line

logger = logging.getLogger(__name__)

SWITCH = "ROBUST_FAIRNESS_MLFLOW"
EXPERIMENT = "robust_fairness"
NO_MODELS = "no-models"
MODEL = "model"  # its folder among a cell's artifacts
CHOSEN = "chosen"  # first in names that leave the trial out
SILENCE = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
# How long a server is waited for. Whether there is one is known soon; one that has answered before
# may have many others to serve.
TIMEOUT, RETRIES = "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
SHORT_WAITS = {TIMEOUT: "10", RETRIES: "1"}  # seconds, times
WAITS = {TIMEOUT: "30", RETRIES: "3"}
METRICS_AT_ONCE = 1000  # most that a server takes
PARAMETERS_AT_ONCE = 100
LONGEST_PARAMETER = 6000
LONGEST_TAG = LONGEST_NOTE = 5000


class MlflowTracking:
    """Records what nodes leave, after they have left it.

    What is remembered of a run id is only how to reach its MLflow runs, which are found again
    by their tags: a node may run in any process, and a completed run goes on in its old record.
    """

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._without: set[str] = set()

    def _attempt(self, run_id: str, action: Callable[["Record"], None]) -> None:
        """Record something of a run; at the first failure warn once and go on without MLflow."""
        if run_id in self._without or os.environ.get(SWITCH, "on").lower() == "off":
            return
        try:
            if run_id not in self._records:
                self._records[run_id] = Record(run_id)
            with waiting(WAITS):
                action(self._records[run_id])
        except Exception as error:  # whatever its client raises, the run goes on
            self._without.add(run_id)
            logger.warning(
                "MLflow is not available, the run goes on without it: %s", first_line(error)[:200]
            )

    @hook_impl(trylast=True)  # a run that is refused leaves no trace
    def before_pipeline_run(self, run_params: Mapping[str, Any]) -> None:
        """Open the parent run, which also finds out whether there is a server."""
        self._without.discard(run_params["run_id"])
        self._attempt(run_params["run_id"], lambda record: record.reopen())

    @hook_impl
    def after_node_run(
        self, node: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any], run_id: str
    ) -> None:
        """Record parameters and curves of a training, models that predicted, and scores."""
        cell, _, name = node.name.rpartition(".")
        settings: Any = inputs.get(f"params:{cell}.cell")
        if name == "train":
            history = outputs[f"{cell}.history"]
            self._attempt(
                run_id, lambda record: record.training(cell, settings.model_dump(), history)
            )
        elif name == "predict" and os.environ.get(SWITCH, "").lower() != NO_MODELS:
            samples = inputs[f"{settings.dataset}.samples"]
            models, chosen = inputs[f"{cell}.models"], inputs[f"{cell}.selection"]
            self._attempt(
                run_id, lambda record: record.model(cell, settings, samples, models, chosen)
            )
        elif name == "evaluate":
            metrics = outputs[f"{cell}.metrics"]
            self._attempt(run_id, lambda record: record.scores(cell, settings, metrics))

    @hook_impl
    def after_pipeline_run(
        self, run_params: Mapping[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        """Close all runs."""
        self._end(run_params["run_id"], [], "FINISHED", pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: Mapping[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        """Close all runs; the parent and the cells that failed say why."""
        failures = getattr(error, "failures", [Failure("", first_line(error))])
        self._end(run_params["run_id"], failures, "FAILED", pipeline, catalog)

    def _end(
        self, run_id: str, failures: list[Failure], state: str, pipeline: Any, catalog: Any
    ) -> None:
        made = "report" in pipeline.all_outputs() and catalog.exists("report")
        report = catalog.load("report") if made else None
        self._attempt(run_id, lambda record: record.close(state, failures, report))
        self._records.pop(run_id, None)


class Record:
    """The MLflow runs of one Kedro run.

    Args:
        run_id: id of the Kedro run.
    """

    def __init__(self, run_id: str) -> None:
        for name, value in SILENCE.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient

        # MLflow tells every step of its database's migrations
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        # and its client every retry; the one warning is ours
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        given = os.environ.get("MLFLOW_TRACKING_URI")
        store = given or f"sqlite:///{provenance.root() / 'mlflow.db'}"
        files = None if given else (provenance.root() / "mlruns").as_uri()
        with alone(store):
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
        """Id of the experiment, made at first need; another process may be about to make it."""
        from mlflow import MlflowException

        with waiting(SHORT_WAITS):
            known = self._client.get_experiment_by_name(EXPERIMENT)
        if known is not None:
            return str(known.experiment_id)
        try:
            return str(self._client.create_experiment(EXPERIMENT, files))
        except MlflowException:
            known = self._client.get_experiment_by_name(EXPERIMENT)
            if known is None:
                raise
            return str(known.experiment_id)

    def _run(self, name: str, tags: Mapping[str, str]) -> str:
        """Id of the MLflow run of this name, made at first need."""
        if name not in self._ids:
            found = self._search(f"attributes.run_name = '{name}'")
            run = (
                found[0]
                if found
                else self._client.create_run(
                    self._experiment, run_name=name, tags={**self._tags, **tags}
                )
            )
            self._ids[name] = run.info.run_id
        return self._ids[name]

    def _search(self, condition: str) -> list[Any]:
        """The runs of this Kedro run that meet a condition, the oldest first; all pages of them."""
        condition = f"tags.`kedro.run_id` = '{self._tags['kedro.run_id']}' and {condition}"
        oldest = ["attributes.start_time ASC"]
        found: list[Any] = []
        page = None
        while True:
            some = self._client.search_runs(
                [self._experiment], condition, order_by=oldest, page_token=page
            )
            found += some
            page = some.token
            if not page:
                return found

    def _child(self, cell: str) -> str:
        """Id of the run of a cell."""
        dataset, method = cell.split(".")
        tags = {"cell": cell, "dataset": dataset, "method": method}
        return self._run(cell, {"mlflow.parentRunId": self._parent, **tags})

    def reopen(self) -> None:
        """The parent run is running, also where it had ended before."""
        self._client.update_run(self._parent, status="RUNNING")

    def training(self, cell: str, settings: Mapping[str, Any], history: Any) -> None:
        """Parameters of a cell, and its curves as means over replicas, a step an epoch.

        Args:
            cell: name of the cell.
            settings: its parameters, nested.
            history: ``tables.HISTORY``.
        """
        from mlflow.entities import Metric, Param

        run = self._child(cell)
        self._client.update_run(run, status="RUNNING")
        told = [Param(name, str(value)[:LONGEST_PARAMETER]) for name, value in flat(settings)]
        for some in batches(told, PARAMETERS_AT_ONCE):
            self._client.log_batch(run, params=some)
        curves = history.groupby(["trial", "quantity", "epoch"], sort=False)["value"].mean()
        self._log(
            run,
            [
                Metric(key(quantity, trial), value, milliseconds(), epoch)
                for (trial, quantity, epoch), value in curves.items()
            ],
        )

    def model(
        self, cell: str, settings: CellParameters, samples: Any, models: Any, chosen: Any
    ) -> None:
        """The trained replicas of a cell as a model of MLflow, in its folder ``model``.

        Args:
            cell: name of the cell.
            settings: its parameters.
            samples: the dataset.
            models: all its replicas.
            chosen: ``tables.SELECTION``.
        """
        from robust_fairness.runs.serving import save

        with TemporaryDirectory() as folder:
            made = Path(folder) / MODEL
            if save(made, settings, samples, models, chosen):
                self._client.log_artifacts(self._child(cell), str(made), MODEL)

    def scores(self, cell: str, settings: CellParameters, metrics: Any) -> None:
        """Scores of a cell as means over seeds, what tables are made by, and its end.

        A replica that several criteria chose counts once.

        Args:
            cell: name of the cell.
            settings: its parameters.
            metrics: ``tables.METRICS``.
        """
        from mlflow.entities import Metric, RunTag

        criterion = settings.criterion
        rows = metrics[metrics["group"] == ""].dropna(subset="value")
        chosen = rows[rows["selection"] == criterion]
        trials = "" if criterion == EVERY else ", ".join(chosen["trial"].unique())
        means = by_trial(rows)
        if trials:
            alike = by_trial(chosen.assign(trial=""))
            means |= {f"{CHOSEN}/{name}": value for name, value in alike.items()}
        run = self._child(cell)
        self._log(run, [Metric(name, value, milliseconds(), 0) for name, value in means.items()])
        tags = {
            "network": ", ".join(metrics["network"].unique()),
            "shifts": ", ".join(metrics["shift"].unique()),
            "selection": criterion,
            "trial": trials,
        }
        told = [RunTag(name, value[:LONGEST_TAG]) for name, value in tags.items()]
        self._client.log_batch(run, tags=told)
        self._end(run, "FINISHED")

    def close(self, state: str, failures: Sequence[Failure], report: str | None) -> None:
        """End all runs that are still open.

        Args:
            state: how the Kedro run ended, "FINISHED" or "FAILED".
            failures: of nodes; a cell's own are told in its run.
            report: the page, kept with the parent run.
        """
        told = [str(failure) for failure in failures]
        for failure in failures:
            cell = failure.node.rpartition(".")[0]
            if "." in cell:
                self._end(self._child(cell), "FAILED", str(failure))
        still = "attributes.status = 'RUNNING'"
        for run in self._search(f"tags.`mlflow.parentRunId` = '{self._parent}' and {still}"):
            self._end(run.info.run_id, state)
        if report is not None:
            self._client.log_text(self._parent, report, "report.html")
        self._end(self._parent, state, "\n".join(told))

    def _end(self, run: str, state: str, note: str = "") -> None:
        """Close a run; the note is what MLflow shows as its description."""
        self._client.set_tag(run, "mlflow.note.content", note[:LONGEST_NOTE])
        self._client.set_terminated(run, state)

    def _log(self, run: str, metrics: Sequence[Any]) -> None:
        for some in batches(metrics, METRICS_AT_ONCE):
            self._client.log_batch(run, metrics=some)


@contextmanager
def waiting(limits: Mapping[str, str]) -> Iterator[None]:
    """MLflow's client waits so long within it, unless the user has said how long."""
    ours = {name: value for name, value in limits.items() if name not in os.environ}
    os.environ |= ours
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)


@contextmanager
def alone(store: str) -> Iterator[None]:
    """No other process of this machine does the same on a store that is a file.

    The first look into a new file makes its tables, which two processes at once get in the way of.
    """
    scheme, _, path = store.partition(":///")
    if scheme != "sqlite":
        yield
        return
    import fcntl

    with Path(f"{path}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
        yield


def by_trial(rows: Any) -> dict[str, float]:
    """Means over seeds by MLflow's name of a metric.

    Args:
        rows: of ``tables.METRICS``, with values.
    """
    columns = ["metric", "attribute", "shift", "severity", "trial"]
    means = rows.drop_duplicates([*columns, "seed"]).groupby(columns, sort=False)["value"].mean()
    return {
        key(metric, attribute, f"{shift}_{severity:g}", trial): float(value)
        for (metric, attribute, shift, severity, trial), value in means.items()
    }


def milliseconds() -> int:
    """The time as MLflow wants it."""
    return int(time.time() * 1000)


def batches(things: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Parts of no more than ``size`` things."""
    return (things[start : start + size] for start in range(0, len(things), size))


def key(*parts: str) -> str:
    """A metric's name from those parts that apply, with only the characters that MLflow allows."""
    return re.sub(r"[^\w\-./ ]", "_", "/".join(filter(None, parts)))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names, joined by dots, and values of nested dictionaries."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
