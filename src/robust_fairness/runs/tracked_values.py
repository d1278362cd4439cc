"""What MLflow gets of a run: parameters, names and values of metrics, sentences."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.core.numbers import exact

DIGEST = 16  # hexadecimal digits of a hash of data
HPARAMS = "hparams."  # before the names of hyperparameters in the table of trials


def plain(value: Any) -> str:
    """A parameter as text: numbers and words as they are, collections as JSON.

    >>> plain("erm"), plain(0.1), plain(("sex", "race"))
    ('erm', '0.1', '["sex", "race"]')
    """
    return json.dumps(value, default=str) if isinstance(value, dict | list | tuple) else str(value)


def hyperparameters(
    cell: Cell, trial: Mapping[str, Any], searched: Iterable[str]
) -> dict[str, Any]:
    """Values of the hyperparameters that any trial of a cell changes, for one of its trials.

    Those that this trial leaves as they are have the value of the cell, so that MLflow's parallel
    coordinates show every trial.
    """
    import pandas as pd

    settings = cell.model_dump()
    usual = settings["protocol"] | settings["network"] | settings["method"] | cell.settings
    values = {}
    for column in searched:
        name, value = column.removeprefix(HPARAMS), trial[column]
        value = usual.get(name, "") if pd.isna(value) or value == "" else value
        if value != "":
            values[name] = value
    return values


def digest_of(samples: Any) -> str:
    """Hash of the files that samples were read from, their labels and splits."""
    digest = hashlib.sha256(json.dumps(samples.sources, sort_keys=True).encode())
    digest.update(samples.y.tobytes())
    for name in samples.splits:
        digest.update(samples.splits[name].cat.codes.to_numpy().tobytes())
    return digest.hexdigest()[:DIGEST]


def means(rows: Any) -> Iterator[tuple[str, float, int]]:
    """Means over seeds with their names in MLflow; without single domains trained on."""
    rows = rows[(rows["domain"] == "") | (rows["shift"] != "none")]
    columns = ["metric", "attribute", "shift", "severity", "domain"]
    distinct = rows.drop_duplicates([*columns, "trial", "seed"])
    for place, value in distinct.groupby(columns, sort=False)["value"].mean().items():
        metric, attribute, shift, severity, domain = place
        if domain:
            section = ("domain", domain)
        elif shift != "none":
            section = ("shift", f"{shift}_{exact(severity)}")
        else:
            section = ("home", "")
        yield key(*section, metric, attribute), value, 0


def answers_of(outputs: Collection[str], catalog: Any) -> list[str]:
    """The sentences that the report of a run begins with; none where it made no table of counts."""
    from robust_fairness.report.first_screen import answers
    from robust_fairness.report.results import TABLES, Results

    made = [name for name in TABLES if name in outputs and catalog.exists(name)]
    if not {"metrics", "counts"} <= {*made}:
        return []
    results = Results.of(**{name: catalog.load(name) for name in made})
    return [f"{line}." for line in answers(results)]


def headlines(metrics: Any) -> dict[str, float]:
    """Accuracy and the worst gap of every dataset at home and away, the latter by attribute.

    Accuracy is the mean over cells; the gap is the largest of all cells and test sets, of the
    measure that the report prefers.
    """
    from robust_fairness.report.matrix import gaps_among
    from robust_fairness.report.results import distinct, where

    rows = distinct(where(metrics, group="")).dropna(subset="value")
    gap = next(iter(gaps_among(rows["metric"].unique())), "")
    is_home = (rows["shift"] == "none") & (rows["domain"] == "")
    places = {"home": rows[is_home], "away": rows[rows["shift"] != "none"]}
    scores: dict[str, float] = {}
    for place, part in places.items():
        accuracy = where(part, metric="accuracy").groupby("dataset")["value"].mean()
        scores |= {key(place, "accuracy", str(name)): value for name, value in accuracy.items()}
        columns = ["dataset", "method", "trial", "shift", "severity", "domain", "attribute"]
        cells = where(part, metric=gap).groupby(columns)["value"].mean()
        worst = cells.groupby(["dataset", "attribute"]).max().reset_index()
        for row in worst.to_dict("records"):
            scores[key(place, "worst_gap", row["attribute"], row["dataset"])] = row["value"]
    return scores


def key(*parts: str) -> str:
    """A name in MLflow from its nonempty parts, the first its section in MLflow's page.

    MLflow takes everything before the last "/" for a section: a name has one.
    """
    section, *rest = filter(None, parts)
    names = [section, " ".join(rest).replace("/", "_")] if rest else [section]
    return re.sub(r"[^\w\-./ ]", "_", "/".join(names))
