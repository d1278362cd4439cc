"""The reporting pipeline."""

from functools import partial, update_wrapper
from itertools import chain

from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog import names
from robust_fairness.pipelines.builders import fan_in, tables_of
from robust_fairness.pipelines.reporting.nodes import (
    collect,
    describe_cells,
    join,
    report,
    summarise,
)
from robust_fairness.runs.configuration import loader

NAMESPACE = "reporting"
EXPERIMENT = "params:experiment"  # all of it, whatever a run selects


def create_pipeline() -> Pipeline:
    """Collect what every dataset made, join, summarise and report."""
    datasets = loader().selected_experiment.datasets
    results = {
        name: name for name in (names.of_dataset(dataset.name, "results") for dataset in datasets)
    }
    collecting = []  # what each dataset and its cells made
    for dataset in datasets:
        inputs = [*chain.from_iterable(tables_of(dataset).values())]
        # not for the report: what nothing reads would lie beside the box of the dataset
        inputs += [names.of_cell(cell.name, "history") for cell in dataset.cells]
        if dataset.contact_sheet:
            inputs.append(names.of_dataset(dataset.name, "contact_sheet"))
        made, place = names.of_dataset(dataset.name, "results"), f"dataset.{dataset.name}"
        read = {name: name for name in inputs}
        collecting.append(fan_in(collect, read, made, "collect", dataset.name, place))
    joined = dict.fromkeys(table for dataset in datasets for table in tables_of(dataset))
    joining = update_wrapper(partial(join, *joined), join)
    shown = {name: name for name in ("manifest", "cells", *joined)} | results
    shown["experiment"] = EXPERIMENT
    summary = ["summary", "trade_off"]
    return Pipeline(
        [
            *collecting,
            fan_in(joining, results, {name: name for name in joined}, "join", NAMESPACE),
            Node(describe_cells, EXPERIMENT, "cells", name="describe_cells", namespace=NAMESPACE),
            Node(summarise, "metrics", summary, name="summarise", namespace=NAMESPACE),
            fan_in(report, shown, "report", "report", NAMESPACE),
        ]
    )
