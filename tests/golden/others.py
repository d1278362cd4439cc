"""Metrics of random arrays, monitors of random periods, and results of stored scores."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.command import Monitored, TableFile, audit_file
from robust_fairness.auditing.predictions import Options
from robust_fairness.core.errors import InputError
from robust_fairness.metrics import Metric, all_metrics, metric_function
from robust_fairness.papers import SECTIONS
from robust_fairness.report.results import Results
from tests.golden.audits import SEED
from tools.pages import STUDIES

GROUPS = (["f", "m"], ["a", "b", "c"], ["I", "II", "V", "VI"])  # skin types, too
PAPERS = ("latent_shift", "bias_mitigation", "fair_metric_learning", "equalized_robustness",
          "kernel_fairness")  # fmt: skip


def arrays(number: int) -> tuple[str, bool, dict[str, Any]]:
    """The task, whether there are weights, and random arrays by name.

    The target is binary in two of five inputs, of three classes in two, and a number in one.
    """
    rng = np.random.default_rng([SEED, 1, number])
    classes = (2, 3, 2, 3, 0)[number % 5]
    rows, rows_of_training = rng.integers(60, 200, 2)
    groups = GROUPS[rng.integers(len(GROUPS))]
    y = rng.integers(classes, size=rows) if classes else rng.normal(size=rows)
    score = rng.random(rows)
    decided = np.where(rng.random(rows) < 0.6, y, rng.integers(max(classes, 2), size=rows))
    attributes = [
        pd.DataFrame({"sex": rng.choice(["f", "m"], n), "site": rng.choice(["n", "s"], n)})
        for n in (rows, rows_of_training)
    ]
    given = {
        "y_true": y, "y_pred": decided, "y_score": score,
        "y_standard": rng.integers(max(classes, 2), size=rows),
        "y_train": rng.integers(max(classes, 2), size=rows_of_training),
        "sensitive_features": rng.choice(groups, rows),
        "sensitive_features_train": rng.choice(groups, rows_of_training),
        "sample_weight": rng.lognormal(size=rows),
        "curvature": rng.random(rows), "curvature_one_shot": rng.random(rows),
        "cluster": rng.integers(4, size=rows), "same_class_rank": rng.integers(1, 9, rows),
        "embedding": rng.normal(size=(rows, 3)), "outputs": rng.normal(size=(rows, classes or 1)),
        "sensitive_columns": rng.integers(3, size=(rows, 1)),
        "conditioning_columns": rng.integers(2, size=(rows, 1)),
        "attributes": attributes[0], "attributes_train": attributes[1],
    }  # fmt: skip
    return ("classification" if classes else "regression"), bool(rng.random() < 0.3), given


def metrics(numbers: range) -> pd.DataFrame:
    """Every metric of random arrays; one that is refused has no value."""
    return pd.DataFrame(
        {"case": number, "metric": metric.name, "group": group, "value": value}
        for number in numbers
        for task, weighted, given in [arrays(number)]
        for metric in all_metrics()
        if metric.task in (task, "any")
        for group, value in value_of(metric, given, weighted=weighted).items()
    )


def value_of(metric: Metric, given: dict[str, Any], *, weighted: bool) -> dict[str, float]:
    """The values by group, "" is all."""
    second = "y_score" if "y_score" in metric.needs else "y_pred"
    needed = {*metric.needs} - {"y_true", second, "classes"}
    if weighted and metric.definition.takes_weights:
        needed.add("sample_weight")
    try:
        value = metric_function(metric.name)(
            given["y_true"], given[second], **{name: given[name] for name in sorted(needed)}
        )
    except InputError:
        return {"": np.nan}
    return value if isinstance(value, dict) else {"": value}


def monitors(numbers: range) -> pd.DataFrame:
    """Gaps over random periods, some of which grow."""
    return pd.concat([monitor(number).assign(case=number) for number in numbers])


@cache
def monitor(number: int) -> pd.DataFrame:
    """A monitor of a random number of months."""
    rng = np.random.default_rng([SEED, 2, number])
    months, parts = int(rng.integers(3, 9)), []
    grown, since = rng.choice([0, 0.2, 0.4]), months // 2
    for month in range(months):
        rows = int(rng.integers(200, 600))
        sex, site = (
            rng.choice(["f", "m"], rows),
            rng.choice(["n", "s", "w"], rows, p=[0.6, 0.3, 0.1]),
        )
        y = rng.random(rows) < 0.4
        rate = 0.3 + 0.3 * y + grown * ((sex == "m") & (month >= since))
        part = {"month": f"2024-{month + 1:02d}", "sex": sex, "site": site, "y": y.astype(int)}
        parts.append(pd.DataFrame({**part, "p": (rng.random(rows) < rate).astype(int)}))
    options = Options("y", "p", ["sex", "site"], intersections=bool(rng.random() < 0.3))
    periods = Monitored("month", first=int(rng.integers(1, 3)), margin=float(rng.choice([0, 0.05])))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "months.csv"
        pd.concat(parts).to_csv(path, index=False)
        made = audit_file(TableFile(path), options, monitored=periods).monitor
    assert made is not None
    return made.to_frame()


@cache
def results_of(paper: str) -> Results:
    """The stored scores of a paper."""
    tables = {
        path.stem: pd.read_parquet(path) for path in (STUDIES / paper / "scores").glob("*.parquet")
    }
    return Results.of(tables.pop("metrics"), **tables)


def claims(numbers: range) -> pd.DataFrame:
    """Effects of the claims of papers with their verdicts."""
    columns = ["claim", "at", "part", "published", "ours", "low", "high", "p", "margin", "verdict",
               "state"]  # fmt: skip
    papers = [PAPERS[number] for number in numbers]
    return pd.concat(
        [SECTIONS[name].claims(results_of(name))[columns].assign(paper=name) for name in papers]
    )


def views(numbers: range) -> pd.DataFrame:
    """Cells of the tables of results, by place: a number, or a text."""
    cells = pd.DataFrame(
        [
            (paper, view.id, row, str(column), value)
            for paper in [PAPERS[number] for number in numbers]
            for view in SECTIONS[paper].views
            for column, values in view.rows(results_of(paper)).items()
            for row, value in enumerate(values)
        ],
        columns=["paper", "view", "row", "column", "cell"],
    )
    is_text = cells["cell"].map(lambda cell: isinstance(cell, str))
    return cells.assign(
        value=pd.to_numeric(cells["cell"].mask(is_text)), text=cells["cell"].where(is_text)
    )
