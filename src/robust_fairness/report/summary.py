"""Summary of a run: its grid, an overview of every dataset, and the ranks."""

from collections.abc import Mapping, Sequence

import pandas as pd

from robust_fairness.core.numbers import counted, written
from robust_fairness.metrics.criteria import EVERY
from robust_fairness.report import ranks
from robust_fairness.report.figures import FAIRNESS, QUALITY
from robust_fairness.report.results import UNSHIFTED, Results, distinct, where

KEYS = [
    "dataset", "method", "trial", "selection", "shift", "severity", "domain", "attribute", "metric",
]  # fmt: skip
STATES = ("done", "failed", "not selected")


def summary_table(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of all scores but those of single groups.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns dataset, method, trial, selection, shift, severity, domain, attribute, metric,
        mean, std, seeds, note. A missing mean has its reason in the note.
    """
    return (
        where(metrics, group="")
        .groupby(KEYS, as_index=False, sort=False)
        .agg(
            mean=("value", "mean"),
            std=("value", "std"),
            seeds=("value", "count"),
            note=("note", "first"),
        )
    )


def grid_in_words(results: Results, cells: Sequence[Mapping[str, str]]) -> str:
    """The numbers of datasets, methods and so on of a run, and the states of its cells."""
    metrics = results.metrics
    shifted = metrics[metrics["shift"] != UNSHIFTED]
    counts = {
        "datasets": metrics["dataset"].nunique(),
        "methods": metrics["method"].nunique(),
        "networks": metrics["network"].nunique(),
        "domains": results.by_domain["domain"].nunique(),
        "shifts": shifted["shift"].nunique(),
        "seeds": metrics["seed"].nunique(),
    }
    counts = {name: n for name, n in counts.items() if n}
    states = [cell["state"] for cell in cells if cell["state"] != "not selected"]
    ended = ", ".join(f"{states.count(state)} {state}" for state in ("done", "failed"))
    return f"{counted(counts)}; {counted({'cells': len(states)})}: {ended}."


def grid_table(metrics: pd.DataFrame, cells: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """A row per dataset: its methods, networks, shifts and seeds, and its cells by state."""
    rows = []
    for name in dict.fromkeys(cell["dataset"] for cell in cells):
        subset = where(metrics, dataset=name)
        states = [cell["state"] for cell in cells if cell["dataset"] == name]
        rows.append(
            {
                "dataset": name,
                "methods": ", ".join(subset["method"].unique()),
                "networks": ", ".join(subset["network"].unique()),
                "shifts": _shifts(subset),
                "seeds": subset["seed"].nunique(),
                **{state: states.count(state) for state in STATES},
            }
        )
    return pd.DataFrame(
        rows, columns=["dataset", "methods", "networks", "shifts", "seeds", *STATES]
    )


def _shifts(metrics: pd.DataFrame) -> str:
    """Shifts with their severities."""
    shifted = metrics[metrics["shift"] != UNSHIFTED]
    severities = shifted.groupby("shift", sort=False)["severity"].unique()
    return "; ".join(
        f"{shift} {', '.join(f'{severity:g}' for severity in sorted(values))}"
        for shift, values in severities.items()
    )


def overview(metrics: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Metrics by methods on the unshifted rows, of the selected trials.

    Args:
        metrics: rows of one dataset.

    Returns:
        The table, and why some metrics are not in it: they are defined for none of the methods.
    """
    rows = where(metrics, shift=UNSHIFTED)
    selected = rows[rows["selection"] != EVERY]
    rows = selected if len(selected) else distinct(rows)
    summary = summary_table(rows)
    summary["shown"] = summary.apply(_shown, axis=1)
    summary["metric"] += summary["attribute"].map(lambda name: f" ({name})" if name else "")
    defined = summary.groupby("metric", sort=False)["seeds"].transform("max") > 0
    kept, nowhere = summary[defined], summary[~defined]
    reasons = (
        nowhere.drop_duplicates("metric").groupby("shown", sort=False)["metric"].agg(", ".join)
    )
    methods = list(summary["method"].unique())
    wide = kept.pivot_table(
        index="metric", columns="method", values="shown", aggfunc="first", sort=False
    ).reindex(columns=methods)
    seeds = kept.groupby("metric", sort=False)["seeds"].max()
    missing = [f"{reason} ({names})" for reason, names in reasons.items()]
    return wide.assign(seeds=seeds).reset_index(), missing


def _shown(row: pd.Series) -> str:
    """Mean ± standard deviation of a row of the summary, or why there is none."""
    if not row["seeds"]:
        return str(row["note"]) or "n/a"
    mean, std = row["mean"], row["std"]
    return written(mean) if pd.isna(std) else f"{written(mean)} ± {written(std, 2)}"


def comparisons(metrics: pd.DataFrame) -> dict[str, ranks.Comparison]:
    """Methods ranked over datasets by one quality and one unfairness, unshifted and shifted.

    Of the metrics that the figures show, each is the one with scores on most datasets.
    """
    names = filter(None, (_commonest(metrics, QUALITY), _commonest(metrics, FAIRNESS)))
    return {
        f"{name}, {'shifted' if shifted else 'unshifted'}": ranks.comparison_of(
            metrics, name, shifted
        )
        for name in names
        for shifted in (False, True)
    }


def _commonest(metrics: pd.DataFrame, names: Sequence[str]) -> str:
    """The first metric that most datasets have, "" if there is none."""
    rows = where(metrics, metric=names).dropna(subset="value")
    datasets = rows.groupby("metric")["dataset"].nunique()
    return max(names, key=lambda name: datasets.get(name, 0)) if len(datasets) else ""


def rank_table(compared: Mapping[str, ranks.Comparison]) -> pd.DataFrame:
    """Average rank of every method in each comparison; missing if it was left out."""
    columns = {title: item.ranks for title, item in compared.items() if len(item.ranks)}
    table = pd.DataFrame(columns).sort_values(list(columns)[:1]) if columns else pd.DataFrame()
    return table.rename_axis("method").reset_index()
