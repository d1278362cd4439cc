"""The registry of pipelines, by name of their package."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from kedro.framework import project
from kedro.pipeline import Pipeline

from robust_fairness.pipelines.robust_fairness.pipeline import PARTS

END_TO_END = "robust_fairness"


def register_pipelines() -> dict[str, Pipeline]:
    """The requested pipelines, or all; the default is the end-to-end pipeline.

    They are those of this package and those below ``pipelines`` in the package of the project.
    """
    requested = project.pipelines._requested_pipelines
    if requested is None or "__default__" in requested:
        requested = [END_TO_END, *_added()]
    names = PARTS if END_TO_END in requested else PARTS.keys() & requested
    created = {name: PARTS[name].create_pipeline() for name in names}
    if END_TO_END in requested:
        created[END_TO_END] = created["__default__"] = Pipeline(list(created.values()))
    for name in _added() & {*requested}:
        module = import_module(f"{project.PACKAGE_NAME}.pipelines.{name}")
        created[name] = module.create_pipeline()
    return created


def _added() -> set[str]:
    """Names of the packages below ``pipelines`` that are not this package's own."""
    package = f"{project.PACKAGE_NAME}.pipelines"
    if project.PACKAGE_NAME is None or find_spec(package) is None:
        return set()
    modules = iter_modules(import_module(package).__path__)
    return {module.name for module in modules if module.ispkg} - {*PARTS, END_TO_END}
