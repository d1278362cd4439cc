"""What a grid costs before its first node: CPU seconds by number of cells.

Cells of one dataset, the diabetes data, and cells of many datasets with ten methods each, in a
project of their own. Nothing is trained: the runner stops where it would start the first node.

    python benchmarks/growth.py --cells 100 1000
"""

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from _results import rounded, save
from kedro.framework.project import pipelines, settings
from kedro.framework.startup import bootstrap_project
from kedro.pipeline import Pipeline

from robust_fairness.runs import project, provenance
from robust_fairness.runs.runners import SequentialRunner
from robust_fairness.runs.session import Session

METHODS = 10  # of a dataset, where there are many datasets
# What a session tells its hooks about a run.
RUN = {
    **dict.fromkeys(("namespaces", "load_versions", *provenance.FILTERS)),
    "run_id": "one", "env": "grown", "pipeline_names": ["__default__"], "runtime_params": {},
    "only_missing_outputs": False, "runner": "SequentialRunner",
}  # fmt: skip


class Ready(Exception):
    """The first node could start."""


class Starting(SequentialRunner):
    """Stops before the first node."""

    def _get_executor(self, max_workers: int) -> Any:
        raise Ready


def write_grid(folder: Path, datasets: int, methods: int) -> None:
    """Write an environment ``grown`` with that many datasets and methods of each."""
    names = [f"table_{number}" for number in range(datasets)]
    labels = {f"erm_{number}": {"method": "erm"} for number in range(methods)}
    dataset = {"protocol": "tabular", "network": "mlp", "shifts": {"gaussian_noise": [0.06]}}
    parameters = {"datasets": {name: {"source": "diabetes"} for name in names}}
    experiment = {"datasets": {name: {**dataset, "methods": labels} for name in names}}
    place = folder / "conf" / "grown"
    place.mkdir()
    (place / "parameters.yml").write_text(yaml.safe_dump(parameters))
    (place / "experiment.yml").write_text(yaml.safe_dump(experiment))


def measure(datasets: int, methods: int) -> dict[str, float]:
    """CPU seconds of every part of the start of a run, in a new project."""
    seconds: dict[str, float] = {}

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        seconds[part] = rounded(time.process_time() - begun)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        project.create(folder)
        write_grid(folder, datasets, methods)
        os.chdir(folder)
        bootstrap_project(folder)
        with Session.create(project_path=folder, env="grown") as session:
            with timed("configuration"):
                context = session.load_context({})
                context.config_loader.validated_experiment  # noqa: B018
            with timed("pipelines"):
                made = pipelines["__default__"]
            with timed("filter"):
                filtered = (Pipeline([]) + made).filter()
            with timed("catalog"):
                catalog = context._get_catalog(settings.DATA_CATALOG_CLASS, "one")
            given = {"run_params": RUN, "pipeline": filtered, "catalog": catalog}
            with timed("manifest"):
                session._hook_manager.hook.before_pipeline_run(**given)
            with timed("runner"), suppress(Ready):
                Starting().run(filtered, catalog, session._hook_manager, run_id="one")
        os.chdir("/")
    return {**seconds, "CPU s": rounded(sum(seconds.values()))}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[100, 1000, 5000])
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    os.environ["ROBUST_FAIRNESS_MLFLOW"] = "off"
    measure(1, 1)  # imports
    rows = []
    for cells in options.cells:
        for datasets in (1, cells // METHODS):
            methods = cells // datasets
            rows.append({"cells": cells, "datasets": datasets, **measure(datasets, methods)})
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
