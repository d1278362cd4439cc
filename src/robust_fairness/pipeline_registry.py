"""The registry of pipelines, by name of their package."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from kedro.framework import project
from kedro.pipeline import Pipeline

from robust_fairness.pipelines import evaluation, generation, ingestion, reporting, shifts, training
from robust_fairness.runs.configuration import loader

PARTS = {
    "generation": generation,
    "ingestion": ingestion,
    "shifts": shifts,
    "training": training,
    "evaluation": evaluation,
    "reporting": reporting,
}
END_TO_END = "robust_fairness"  # from raw files to the report
DEFAULT = "__default__"


class Registered(Mapping[str, Pipeline]):
    """The pipelines of the experiment that is configured, each made when it is first used.

    They are those of this package and those below ``pipelines`` in the package of the project; the
    default is the end-to-end pipeline.
    """

    def __iter__(self) -> Iterator[str]:
        return iter((*PARTS, END_TO_END, DEFAULT, *_added()))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, name: str) -> Pipeline:
        made = loader().pipelines
        if name not in made:
            if name == DEFAULT:
                made[name] = self[END_TO_END]
            elif name == END_TO_END:
                made[name] = Pipeline([self[part] for part in PARTS])
            elif name in PARTS:
                made[name] = PARTS[name].create_pipeline()
            elif name in _added():
                added = import_module(f"{project.PACKAGE_NAME}.pipelines.{name}")
                made[name] = added.create_pipeline()
        pipeline: Pipeline = made[name]
        return pipeline

    def __repr__(self) -> str:
        return repr(dict(self))


def register_pipelines() -> Mapping[str, Pipeline]:
    """The pipelines of the project."""
    return Registered()


def _added() -> set[str]:
    """Names of the packages below ``pipelines`` that are not this package's own."""
    package = f"{project.PACKAGE_NAME}.pipelines"
    if project.PACKAGE_NAME is None or find_spec(package) is None:
        return set()
    modules = iter_modules(import_module(package).__path__)
    return {module.name for module in modules if module.ispkg} - {*PARTS, END_TO_END}
