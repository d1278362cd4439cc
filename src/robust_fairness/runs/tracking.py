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

import json
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from kedro.framework.hooks import hook_impl

from robust_fairness.catalog import names
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.escaping import hidden
from robust_fairness.core.registry import find
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import reason_of
from robust_fairness.runs.tracked_values import answers_of, headlines
from robust_fairness.runs.tracking_record import (
    EXPERIMENT,
    EXPERIMENT_NAME,
    URI,
    WAITS,
    Record,
    waiting,
)

logger = logging.getLogger(__name__)
SWITCH = "ROBUST_FAIRNESS_MLFLOW"
# Fields of ``mlflow.yml``, named as for kedro-mlflow; variables of the environment come first.
SETTINGS = {"server.mlflow_tracking_uri": URI, "tracking.experiment.name": EXPERIMENT_NAME}
SHEET = '<img src="data:image'  # of a report that shows images of the data


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
