"""The registry of pipelines, by name of their package."""

from kedro.framework.project import find_pipelines
from kedro.pipeline import Pipeline

from robust_fairness.pipelines.robust_fairness.pipeline import PARTS

END_TO_END = "robust_fairness"
PIPELINES = (*PARTS, END_TO_END, "__default__")


def register_pipelines() -> dict[str, Pipeline]:
    """All pipelines, or the requested ones; the default is the end-to-end pipeline.

    Where all are requested, the end-to-end pipeline is made of the others instead of once more.
    """
    found: dict[str, Pipeline] = find_pipelines(raise_errors=True, pipelines_to_find=[*PARTS])
    if found.keys() == PARTS.keys():
        found[END_TO_END] = Pipeline(list(found.values()))
    if END_TO_END in found:
        found["__default__"] = found[END_TO_END]
    return found
