"""MLflow: a run per Kedro run, below it a run per cell, below that a run per trial and per seed.

Only ``MlflowClient`` with explicit ids is used, so that nothing depends on the active run of the
process. Without a server there is one warning and the run continues. MLflow's own variables
``MLFLOW_TRACKING_URI``, ``MLFLOW_EXPERIMENT_NAME`` and ``MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING`` are
honoured; ``mlflow.yml`` of the configuration may set the first two (``SETTINGS``).
``ROBUST_FAIRNESS_MLFLOW=off`` turns tracking off, ``no-models`` leaves out the models. A server
gets no rows of the data, neither in models that keep training rows nor in contact sheets of the
report, unless it is ``with-data``.

Metrics of a cell are those of the trial that its first criterion selected, means over seeds. Their
names begin with the section in which MLflow's page shows them: ``home/<metric> <attribute>``,
``domain/<domain> ...``, ``shift/<shift>_<severity> ...``, ``validation/<criterion>`` and
``training/<quantity>``.
"""

import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from kedro.framework.hooks import hook_impl

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL, Cell
from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.locks import locked
from robust_fairness.core.numbers import exact
from robust_fairness.core.registry import find
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import reason_of
from robust_fairness.runs.secrets import hidden
from robust_fairness.runs.session import environment

logger = logging.getLogger(__name__)

SWITCH = "ROBUST_FAIRNESS_MLFLOW"
URI, EXPERIMENT_NAME = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
SYSTEM_METRICS = "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"
EXPERIMENT = "robust_fairness"  # unless another is named
# Fields of ``mlflow.yml``, named as for kedro-mlflow; variables of the environment come first.
SETTINGS = {"server.mlflow_tracking_uri": URI, "tracking.experiment.name": EXPERIMENT_NAME}
SHEET = '<img src="data:image'  # of a report that shows images of the data
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
DIGEST = 16  # hexadecimal digits of a hash of data
PARENT, NOTE = "mlflow.parentRunId", "mlflow.note.content"
HPARAMS = "hparams."  # before the names of hyperparameters in the table of trials


class MlflowTracking:
    """Logs the outputs of nodes to MLflow.

    MLflow runs are found by their tags: a node may run in any process, and the completion of a
    run continues its MLflow run.
    """

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._without: set[str] = set()
        self._configuration: Any = None
        self._set: dict[str, str] = {}  # variables, by this hook

    def _attempt(self, run_id: str, action: Callable[["Record"], None]) -> None:
        """Log something of a run; the first failure is a warning and turns tracking off."""
        if run_id in self._without or is_off():
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
                hidden(reason_of(error))[:200],
            )

    @hook_impl
    def after_context_created(self, context: Any) -> None:
        """Take over ``mlflow.yml``, also for the workers, which get the variables."""
        loader = context.config_loader
        for name, value in self._set.items():  # of an earlier run of this process
            if os.environ.get(name) == value:
                del os.environ[name]
        self._set = {k: v for k, v in configured(loader).items() if k not in os.environ}
        os.environ.update(self._set)
        self._configuration = loader

    @hook_impl(trylast=True)  # after the checks of other hooks
    def before_pipeline_run(self, run_params: Mapping[str, Any]) -> None:
        """Open the parent run; without a server tracking is turned off."""
        self._without.discard(run_params["run_id"])
        self._attempt(run_params["run_id"], Record.begin)

    @hook_impl
    def after_node_run(
        self,
        node: Any,
        catalog: Any,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        run_id: str,
    ) -> None:
        """Log hyperparameters and curves of a training, models, and scores."""
        cell: Any = inputs.get(f"params:{node.namespace}.cell")
        if cell is None or is_off():
            return
        made = {names.parse(name).part: data for name, data in {**inputs, **outputs}.items()}
        if node.short_name == "train":
            self._attempt(
                run_id, lambda record: record.training(cell, made["samples"], made["history"])
            )
        elif node.short_name == "evaluate":
            self._attempt(
                run_id,
                lambda record: record.scores(
                    cell, made["samples"], made["metrics"], _trials(cell.name, run_id, catalog)
                ),
            )
        elif node.short_name == "predict" and os.environ.get(SWITCH, "").lower() != "no-models":
            network = find("network", cell.network.name)
            if getattr(network, "keeps_training_rows", False) and not may_send_data():
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
        failures = getattr(error, "failures", [Failure("", reason_of(error))])
        self._end(run_params["run_id"], failures, "FAILED", pipeline, catalog)

    def interrupted(self, run_id: str, note: str) -> None:
        """End all runs as killed."""
        self._attempt(run_id, lambda record: record.close("KILLED", note, [], {}, {}))
        self._records.pop(run_id, None)

    def _end(
        self, run_id: str, failures: list[Failure], state: str, pipeline: Any, catalog: Any
    ) -> None:
        def close(record: Record) -> None:
            outputs = pipeline.all_outputs()
            made = {
                name: catalog.load(name)
                for name in ("report", "metrics")
                if name in outputs and catalog.exists(name)
            }
            texts = {}
            if "report" in made and not may_send_data() and SHEET in made["report"]:
                logger.warning(
                    "the report shows images of the data and is not sent to the MLflow server; "
                    "%s=with-data sends it", SWITCH,
                )  # fmt: skip
            elif "report" in made:
                texts["report.html"] = made["report"]
            if self._configuration is not None:
                experiment = hidden(self._configuration.written_experiment)
                texts["experiment.json"] = json.dumps(experiment, indent=2, default=str)
            cells = [f"params:{failure.namespace}.cell" for failure in failures]
            failed = [
                (catalog.load(cell), failure)
                for cell, failure in zip(cells, failures, strict=True)
                if cell in catalog
            ]
            scores = headlines(made["metrics"]) if "metrics" in made else {}
            note = "\n".join([*answers_of(outputs, catalog), *map(str, failures)])
            record.close(state, note, failed, scores, texts)

        self._attempt(run_id, close)
        self._records.pop(run_id, None)


def configured(loader: Any) -> dict[str, str]:
    """MLflow's variables that ``mlflow.yml`` sets; none without the file.

    Other fields, as kedro-mlflow has them, are ignored with a warning.

    Raises:
        InputError: a wrong value.
    """
    from kedro.config import MissingConfigException
    from pandas import json_normalize

    try:
        written: dict[Any, Any] = json_normalize(loader["mlflow"] or {}).to_dict("records")[0]
    except MissingConfigException:
        return {}
    values = {EXPERIMENT_NAME: EXPERIMENT}
    for field, name in SETTINGS.items():
        value = written.pop(field, None)
        if value is not None and not isinstance(value, str):
            raise InputError(f"mlflow.yml: {field}: {value!r}, allowed: text")
        values |= {name: value} if value else {}
    if written:
        logger.warning(
            "mlflow.yml: %s: ignored; read are %s", ", ".join(written), ", ".join(SETTINGS)
        )
    return values


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

    def _run(self, name: str, tags: dict[str, str]) -> str:
        """The open run of this name, also if it had ended before."""
        if name not in self._ids:
            known = self._search(f"attributes.run_name = '{name}'")
            self._ids[name] = known[0].info.run_id if known else self._created(name, tags)
            if known:
                self._continued.add(self._ids[name])
                self._client.update_run(self._ids[name], status="RUNNING")
        return self._ids[name]

    def _created(self, name: str, tags: dict[str, str]) -> str:
        run = self._client.create_run(self._experiment, run_name=name, tags=self._tags | tags)
        return str(run.info.run_id)

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
        from mlflow.entities import Dataset, DatasetInput, InputTag

        run = self._child(cell)
        (settings,) = pd.json_normalize(cell.model_dump()).to_dict("records")
        profile = json.dumps({"num_rows": len(samples)})
        source = json.dumps(samples.sources)
        data = Dataset(cell.dataset, digest_of(samples), "local", source, profile=profile)
        context = [InputTag("mlflow.data.context", "training")]
        for logged in (run, self._parent):
            self._client.log_inputs(logged, [DatasetInput(data, context)])
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
        run = self._ids.get(name) or self._created(name, tags)
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
            batches(scored, METRICS_PER_REQUEST),
            batches(logged, PARAMETERS_PER_REQUEST),
            batches(tagged, PARAMETERS_PER_REQUEST),
            fillvalue=(),
        )
        for some_metrics, some_params, some_tags in requests:
            self._client.log_batch(run, metrics=some_metrics, params=some_params, tags=some_tags)


def plain(value: Any) -> str:
    """A parameter as text: numbers and words as they are, collections as JSON.

    >>> plain("erm"), plain(0.1), plain(("sex", "race"))
    ('erm', '0.1', '["sex", "race"]')
    """
    return json.dumps(value, default=str) if isinstance(value, dict | list | tuple) else str(value)


def hyperparameters(
    cell: Cell, trial: Mapping[str, Any], searched: Iterable[str]
) -> dict[str, Any]:
    """Values of the hyperparameters that any trial of a cell changes, for one of its trials.

    Those that this trial leaves as they are have the value of the cell, so that MLflow's parallel
    coordinates show every trial.
    """
    import pandas as pd

    settings = cell.model_dump()
    usual = settings["protocol"] | settings["network"] | settings["method"] | cell.settings
    values = {}
    for column in searched:
        name, value = column.removeprefix(HPARAMS), trial[column]
        value = usual.get(name, "") if pd.isna(value) or value == "" else value
        if value != "":
            values[name] = value
    return values


def is_off() -> bool:
    """Whether the user has turned tracking off."""
    return os.environ.get(SWITCH, "").lower() == "off"


def _trials(cell: str, run_id: str, catalog: Any) -> Any:
    """The table of the trials of a cell; the catalog of a worker has only the files of a node."""
    name = names.of_cell(cell, "trials")
    if name in catalog:
        return catalog.load(name)
    from robust_fairness.catalog import files

    return provenance.load(run_id, name, files.table)


def may_send_data() -> bool:
    """Whether what is logged stays on this machine, or rows of the data may be sent."""
    uri = os.environ.get(URI, "")
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
    with locked(Path(f"{path}.lock")):
        yield


def digest_of(samples: Any) -> str:
    """Hash of the files that samples were read from, their labels and splits."""
    digest = hashlib.sha256(json.dumps(samples.sources, sort_keys=True).encode())
    digest.update(samples.y.tobytes())
    for name in samples.splits:
        digest.update(samples.splits[name].cat.codes.to_numpy().tobytes())
    return digest.hexdigest()[:DIGEST]


def means(rows: Any) -> Iterator[tuple[str, float, int]]:
    """Means over seeds with their names in MLflow; without single domains trained on."""
    rows = rows[(rows["domain"] == "") | (rows["shift"] != "none")]
    columns = ["metric", "attribute", "shift", "severity", "domain"]
    distinct = rows.drop_duplicates([*columns, "trial", "seed"])
    for place, value in distinct.groupby(columns, sort=False)["value"].mean().items():
        metric, attribute, shift, severity, domain = place
        if domain:
            section = ("domain", domain)
        elif shift != "none":
            section = ("shift", f"{shift}_{exact(severity)}")
        else:
            section = ("home", "")
        yield key(*section, metric, attribute), value, 0


def answers_of(outputs: Collection[str], catalog: Any) -> list[str]:
    """The sentences that the report of a run begins with; none where it made no table of counts."""
    from robust_fairness.report.first_screen import answers
    from robust_fairness.report.results import TABLES, Results

    if not {"metrics", "counts"} <= {*outputs}:
        return []
    made = [name for name in TABLES if name in outputs and catalog.exists(name)]
    if not {"metrics", "counts"} <= {*made}:
        return []
    return [
        f"{line}." for line in answers(Results.of(**{name: catalog.load(name) for name in made}))
    ]


def headlines(metrics: Any) -> dict[str, float]:
    """Accuracy and the worst gap of every dataset at home and away, the latter by attribute.

    Accuracy is the mean over cells; the gap is the largest of all cells and test sets, of the
    measure that the report prefers.
    """
    from robust_fairness.report.matrix import gaps_among
    from robust_fairness.report.results import distinct, where

    rows = distinct(where(metrics, group="")).dropna(subset="value")
    gap = next(iter(gaps_among(rows["metric"].unique())), "")
    is_home = (rows["shift"] == "none") & (rows["domain"] == "")
    places = {"home": rows[is_home], "away": rows[rows["shift"] != "none"]}
    scores: dict[str, float] = {}
    for place, part in places.items():
        accuracy = where(part, metric="accuracy").groupby("dataset")["value"].mean()
        scores |= {key(place, "accuracy", str(name)): value for name, value in accuracy.items()}
        columns = ["dataset", "method", "trial", "shift", "severity", "domain", "attribute"]
        cells = where(part, metric=gap).groupby(columns)["value"].mean()
        worst = cells.groupby(["dataset", "attribute"]).max().reset_index()
        for row in worst.to_dict("records"):
            scores[key(place, "worst_gap", row["attribute"], row["dataset"])] = row["value"]
    return scores


def batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Parts of at most ``size`` items."""
    return (items[start : start + size] for start in range(0, len(items), size))


def key(*parts: str) -> str:
    """A name in MLflow from its nonempty parts, the first its section in MLflow's page.

    MLflow takes everything before the last "/" for a section: a name has one.
    """
    section, *rest = filter(None, parts)
    names = [section, " ".join(rest).replace("/", "_")] if rest else [section]
    return re.sub(r"[^\w\-./ ]", "_", "/".join(names))
