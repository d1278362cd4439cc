"""Settings of the Kedro project."""

from kedro_viz.integrations.kedro.hooks import DatasetStatsHook

from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.runs.hooks import RunRecord
from robust_fairness.runs.provenance import Session
from robust_fairness.runs.tracking import MlflowTracking
from robust_fairness.runs.viz import RunTimes

# Kedro-Viz's own are here and not among the plugins': it would note no times of our runner.
HOOKS = (RunRecord(), MlflowTracking(), DatasetStatsHook(), RunTimes())
SESSION_CLASS = Session
CONFIG_LOADER_CLASS = ConfigLoader
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "local",
    "config_patterns": {"experiment": ["experiment*", "experiment*/**"]},
    "merge_strategy": {"parameters": "soft"},
}
# Sensitive attributes are in here: nothing is told to anyone.
DISABLE_HOOKS_FOR_PLUGINS = ("kedro-telemetry", "kedro-viz")
# Runners of our own that may be named on the command line.
RUNNER_MODULE_ALLOWLIST = ("robust_fairness.runs.runners",)
