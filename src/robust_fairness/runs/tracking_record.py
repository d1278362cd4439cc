"""The MLflow runs of one Kedro run, as MLflow's client writes them."""

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL, Cell
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.escaping import hidden
from robust_fairness.core.files import locked
from robust_fairness.runs import provenance
from robust_fairness.runs.session import environment
from robust_fairness.runs.tracked_values import (
    HPARAMS,
    digest_of,
    hyperparameters,
    key,
    means,
    plain,
)

URI, EXPERIMENT_NAME = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
SYSTEM_METRICS = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
EXPERIMENT = "robust_fairness"  # unless another is named
SILENCE = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}
# A short timeout finds out whether there is a server; later it may be busy with other clients.
TIMEOUT, RETRIES = "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
SHORT_WAITS = {TIMEOUT: "10", RETRIES: "1"}  # seconds, times
WAITS = {TIMEOUT: "30", RETRIES: "3"}
MOST_RUNS = 50_000  # limits of the server
METRICS_PER_REQUEST = 800  # with parameters and tags 1000
PARAMETERS_PER_REQUEST = 100  # and as many tags
LONGEST_PARAMETER = 6000
LONGEST_TAG = 5000
NOTHING: Mapping[str, str] = MappingProxyType({})
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"


class Record:
    """The MLflow runs of one Kedro run."""

    def __init__(self, run_id: str) -> None:
        for name, value in SILENCE.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient
        from mlflow.tracking.context.jupyter_notebook_context import JupyterNotebookRunContext
        from mlflow.tracking.context.registry import resolve_tags

        # MLflow logs every migration of its database,
        logging.getLogger("alembic").setLevel(logging.WARNING)
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        # and its client every retry
        logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
        uri = os.environ.get(URI)
        self._store = uri or f"sqlite:///{provenance.root() / 'mlflow.db'}"
        files = None if uri else (provenance.root() / "mlruns").as_uri()
        with locked_store(self._store):
            self._client = MlflowClient(self._store)
            self._experiment = self._id_of_experiment(files)
        self._ids: dict[str, str] = {}
        self._continued: set[str] = set()  # ids of runs that an earlier process began
        self._models: dict[str, str] = {}
        self._monitor: Any = None
        self._manifest = provenance.load_manifest(run_id)
        tags = {
            "kedro.run_id": run_id,
            "kedro.env": self._manifest["environment"],
            "mlflow.source.git.commit": self._manifest["git"]["commit"] or "unknown",
            "mlflow.source.git.dirty": str(self._manifest["git"]["dirty"]).lower(),
        }
        # To find out that this is no notebook, MLflow imports all of IPython.
        ignored = [] if "IPython" in sys.modules else [JupyterNotebookRunContext]
        self._tags = resolve_tags(tags, ignored)
        with waiting(WAITS):
            self._parent = self._run(run_id, {})

    def _id_of_experiment(self, files: str | None) -> str:
        """Id of the experiment, created if needed; another process may create it meanwhile."""
        from mlflow import MlflowException

        name = os.environ.get(EXPERIMENT_NAME) or EXPERIMENT
        with waiting(SHORT_WAITS):
            known = self._client.get_experiment_by_name(name)
        if known is not None:
            if files is not None and known.artifact_location != files:
                raise InputError(
                    f"mlflow.db keeps its files in {known.artifact_location}, as this project was "
                    "moved or copied; move mlflow.db away, or set MLFLOW_TRACKING_URI"
                )
            return str(known.experiment_id)
        # what MLflow's page infers otherwise
        kind = {"mlflow.experimentKind": "custom_model_development"}
        try:
            return str(self._client.create_experiment(name, files, tags=kind))
        except MlflowException:
            known = self._client.get_experiment_by_name(name)
            if known is None:
                raise
            return str(known.experiment_id)

    def _run(self, name: str, tags: dict[str, str], is_new: bool = False) -> str:
        """The open run of this name, also if it had ended before; of a new one none is searched."""
        if name not in self._ids:
            known = [] if is_new else self._search(f"attributes.run_name = '{name}'")
            if known:
                self._ids[name] = known[0].info.run_id
                self._continued.add(self._ids[name])
                self._client.update_run(self._ids[name], status="RUNNING")
            else:
                tags = self._tags | tags
                run = self._client.create_run(self._experiment, run_name=name, tags=tags)
                self._ids[name] = str(run.info.run_id)
        return self._ids[name]

    def _search(self, condition: str) -> list[Any]:
        condition = f"tags.`kedro.run_id` = '{self._tags['kedro.run_id']}' and {condition}"
        oldest = ["attributes.start_time ASC"]
        return self._client.search_runs(
            [self._experiment], condition, max_results=MOST_RUNS, order_by=oldest
        )

    def _child(self, cell: Cell) -> str:
        tags = {"cell": cell.name, "dataset": cell.dataset, "method": cell.label}
        return self._run(cell.name, {PARENT: self._parent, **tags})

    def begin(self) -> None:
        """Log the parameters of the parent run."""
        grid, used = (self._manifest.get(name) or {} for name in ("grid", "used"))
        seeds = {f"seeds.{name}": count for name, count in grid.get("seeds", {}).items()}
        listed = {name: ", ".join(values) for name, values in used.items()}
        run = {"environment": self._manifest["environment"], "cells": len(grid.get("cells", ()))}
        self._log(self._parent, {**run, **listed, **seeds})
        if os.environ.get(SYSTEM_METRICS, "").lower() in ("1", "true"):
            from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor

            self._monitor = SystemMetricsMonitor(
                self._parent, resume_logging=True, tracking_uri=self._store
            )
            self._monitor.start()

    def training(self, cell: Cell, samples: Any, history: Any) -> None:
        """Log the settings of a cell, its data, and curves: means over replicas by epoch."""
        import pandas as pd
        from mlflow import MlflowException
        from mlflow.entities import Dataset, DatasetInput, InputTag

        run = self._child(cell)
        (settings,) = pd.json_normalize(cell.model_dump()).to_dict("records")
        profile = json.dumps({"num_rows": len(samples)})
        source = json.dumps(samples.sources)
        data = Dataset(cell.dataset, digest_of(samples), "local", source, profile=profile)
        inputs = [DatasetInput(data, [InputTag("mlflow.data.context", "training")])]
        for logged in (run, self._parent):
            try:
                self._client.log_inputs(logged, inputs)
            except MlflowException:  # another process has logged the same data meanwhile
                self._client.log_inputs(logged, inputs)
        curves = history.groupby(["trial", "quantity", "epoch"], sort=False)["value"].mean()
        self._log(
            run,
            hidden(settings),
            (
                (key("training", quantity, "" if trial == DEFAULT_TRIAL else trial), value, epoch)
                for (trial, quantity, epoch), value in curves.items()
            ),
        )

    def model(self, cell: Cell, samples: Any, models: Any, selection: Any) -> None:
        """Log the selected replicas as a model of the cell's run."""
        from mlflow.entities import LoggedModelOutput

        from robust_fairness.runs.serving import save

        run = self._child(cell)
        with TemporaryDirectory() as folder:
            made = Path(folder) / "model"
            if not save(made, cell, samples, models, selection):
                return
            model = self._client.create_logged_model(
                self._experiment,
                name=re.sub(r"[/:.%\"']", "_", f"{cell.name}-{self._tags['kedro.run_id']}"),
                source_run_id=run,
                params={"method": cell.method.name, "network": cell.network.name},
                tags={"dataset": cell.dataset, "method": cell.label},
                model_type="classifier" if samples.classes else "regressor",
            )
            self._client.log_model_artifacts(model.model_id, str(made))
        self._client.finalize_logged_model(model.model_id, "READY")
        self._client.log_outputs(run, [LoggedModelOutput(model.model_id, step=0)])
        self._models[cell.name] = model.model_id

    def scores(self, cell: Cell, samples: Any, metrics: Any, trials: Any) -> None:
        """Log the scores of a cell and close its run, with a run below it per trial and seed.

        A replica that several criteria selected counts once.
        """
        import pandas as pd

        from robust_fairness.metrics.criteria import EVERY

        run = self._child(cell)
        rows = metrics[metrics["group"] == ""].dropna(subset="value")
        selected = rows[rows["selection"] == cell.criterion]
        if cell.criterion == EVERY and rows["trial"].nunique() > 1:
            selected = rows.iloc[:0]
        tags = {
            "network": ", ".join(metrics["network"].unique()),
            "shifts": ", ".join(metrics["shift"].unique()),
            "selection": cell.criterion,
            "trial": ", ".join(selected["trial"].unique()),
            NOTE: "",  # of an earlier attempt
        }
        of = {"dataset_name": cell.dataset, "dataset_digest": digest_of(samples)}
        of |= {"model_id": model} if (model := self._models.get(cell.name)) else {}
        self._log(run, {}, means(selected), of, tags)
        below = self._search(f"tags.`{PARENT}` = '{run}'")  # of an earlier attempt
        self._ids |= {known.info.run_name: known.info.run_id for known in reversed(below)}
        self._continued |= {known.info.run_id for known in below}
        if len(trials) > 1:
            searched = [name for name in trials if name.startswith(HPARAMS)]
            for trial in trials.to_dict("records"):
                name, score = trial["trial"], trial["score"]
                params = {"trial": name, **hyperparameters(cell, trial, searched)}
                scored = [*means(rows[rows["trial"] == name])]
                if pd.notna(score):
                    scored.append((key("validation", trial["criterion"]), score, 0))
                self._below(cell, name, params, scored)
        seeds = selected.groupby("seed", sort=False)
        if len(seeds) > 1:
            for seed, replica in seeds:
                params = {"seed": seed, "trial": ", ".join(replica["trial"].unique())}
                self._below(cell, f"seed {seed}", params, means(replica))
        self._client.set_terminated(run)

    def _below(
        self, cell: Cell, name: str, params: Mapping[str, Any], metrics: Iterable[Any]
    ) -> None:
        """A closed run below that of a cell."""
        tags = {PARENT: self._child(cell), "dataset": cell.dataset, "method": cell.label}
        name = f"{cell.name}, {name.replace(chr(39), '')}"
        run = self._run(name, tags, is_new=True)
        self._log(run, params, metrics)
        self._client.set_terminated(run)

    def close(
        self,
        state: str,
        note: str,
        failed: Sequence[tuple[Cell, Failure]],
        headlines: Mapping[str, float],
        texts: Mapping[str, str],
    ) -> None:
        """Close all runs that are still open, those of failed cells with their failures."""
        for cell, failure in failed:
            self._end(self._child(cell), "FAILED", str(failure))
        children = f"tags.`{PARENT}` = '{self._parent}'"
        for run in self._search(f"{children} and attributes.status = 'RUNNING'"):
            self._end(run.info.run_id, state)
        if self._monitor is not None:
            self._monitor.finish()
        manifest = provenance.load_manifest(self._tags["kedro.run_id"])
        inputs = [*(manifest.get("inputs") or {}).items()][:PARAMETERS_PER_REQUEST]
        hashes = {key("data", name): json.dumps(files) for name, files in inputs}
        scores = ((name, value, 0) for name, value in headlines.items())
        self._log(self._parent, {}, scores, tags=hashes)
        texts = {"manifest.json": json.dumps(manifest, indent=2), **texts}
        for name, text in texts.items():
            self._client.log_text(self._parent, text, name)
        self._end(self._parent, state, note)

    def _end(self, run: str, state: str, note: str = "") -> None:
        """Close a run; MLflow shows the note as its description."""
        self._client.set_tag(run, NOTE, note[:LONGEST_TAG])
        self._client.set_terminated(run, state)

    def _log(
        self,
        run: str,
        params: Mapping[str, Any],
        metrics: Iterable[tuple[str, float, int]] = (),
        of: Mapping[str, str] = NOTHING,
        tags: Mapping[str, str] = NOTHING,
    ) -> None:
        """Log parameters, tags, and names, values and steps of metrics.

        ``of`` are the dataset and the logged model that the metrics belong to.
        """
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.utils import chunk_list
        from mlflow.utils.time import get_current_time_millis

        now = get_current_time_millis()
        logged = [
            Param(key(str(name)), plain(value)[:LONGEST_PARAMETER])
            for name, value in params.items()
        ]
        scored = [Metric(name, float(value), now, step, **of) for name, value, step in metrics]
        if run in self._continued:  # a process that was killed may have logged them
            logged_before = {
                (metric.key, metric.step, metric.value)
                for name in {metric.key for metric in scored}
                for metric in self._client.get_metric_history(run, name)
            }
            scored = [
                metric
                for metric in scored
                if (metric.key, metric.step, metric.value) not in logged_before
            ]
        tagged = [RunTag(name, value[:LONGEST_TAG]) for name, value in tags.items()]
        requests = zip_longest(
            chunk_list(scored, METRICS_PER_REQUEST),
            chunk_list(logged, PARAMETERS_PER_REQUEST),
            chunk_list(tagged, PARAMETERS_PER_REQUEST),
            fillvalue=(),
        )
        for some_metrics, some_params, some_tags in requests:
            self._client.log_batch(run, metrics=some_metrics, params=some_params, tags=some_tags)


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
    with locked(Path(f"{path}.lock")):
        yield
