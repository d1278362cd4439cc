"""Settings of the Kedro project."""

from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.runs.hooks import RunRecord, VizFiles
from robust_fairness.runs.session import CheckedCatalog, Context, Session
from robust_fairness.runs.session import change_server as change_kedro_server
from robust_fairness.runs.tracking import MlflowTracking

change_kedro_server()
# VizFiles replaces the hooks of Kedro-Viz, which record runs of Kedro's sequential runner only.
HOOKS = (RunRecord(), MlflowTracking(), VizFiles())
SESSION_CLASS = Session
DATA_CATALOG_CLASS = CheckedCatalog
CONTEXT_CLASS = Context
CONFIG_LOADER_CLASS = ConfigLoader
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "local",
    "config_patterns": {"experiment": ["experiment*", "experiment*/**"], "mlflow": ["mlflow*"]},
    "merge_strategy": {"parameters": "soft"},
}
# The data contain sensitive attributes: no telemetry.
DISABLE_HOOKS_FOR_PLUGINS = ("kedro-telemetry", "kedro-viz")
# Runners that the command line accepts.
RUNNER_MODULE_ALLOWLIST = ("robust_fairness.runs.runners",)
