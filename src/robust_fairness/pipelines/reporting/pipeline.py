"""The reporting pipeline."""

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import fan_in
from robust_fairness.pipelines.reporting.nodes import (
    COLLECTED,
    FURTHER,
    collect,
    describe_cells,
    report,
    summarise,
)
from robust_fairness.runs.configuration import loader

NAMESPACE = "reporting"
EXPERIMENT = "params:experiment"  # all of it, whatever a run selects


def create_pipeline() -> Pipeline:
    """Collect, summarise and report."""
    datasets = loader().selected_experiment.datasets
    results = {
        name: name for name in (names.of_dataset(dataset.name, "results") for dataset in datasets)
    }
    shown = {name: name for name in ("manifest", "metrics", *FURTHER)} | results
    shown["experiment"] = EXPERIMENT
    summary = ["summary", "trade_off"]
    return Pipeline(
        [
            fan_in(collect, results, {name: name for name in COLLECTED}, "collect", NAMESPACE),
            Node(describe_cells, EXPERIMENT, "cells", name="describe_cells", namespace=NAMESPACE),
            Node(summarise, "metrics", summary, name="summarise", namespace=NAMESPACE),
            fan_in(report, shown, "report", "report", NAMESPACE),
        ]
    )
