"""The registry of pipelines, by name of their package."""

from kedro.framework.project import find_pipelines
from kedro.pipeline import Pipeline


def register_pipelines() -> dict[str, Pipeline]:
    """All pipelines, or the requested ones; the default is the end-to-end pipeline."""
    pipelines = find_pipelines(raise_errors=True)
    if "robust_fairness" in pipelines:
        pipelines["__default__"] = pipelines["robust_fairness"]
    return pipelines
