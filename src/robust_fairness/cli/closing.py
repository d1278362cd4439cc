"""The last lines of a run: what it found, and where."""

from collections.abc import Iterator
from typing import Any

ANSWER = "natural_changes"  # the view that answers
SHOWN = ("accuracy", "equalized_odds_difference")  # its measures


def closing_lines(run_id: str) -> list[str]:
    """What a run found in other domains, if it has any, and the place of its report.

    A run without a report has no lines.
    """
    from robust_fairness.runs import provenance

    report = provenance.load_manifest(run_id)["outputs"].get("report")
    if report is None:
        return []
    return [*_answer(run_id), f"Report: {report['path']}"]


def _answer(run_id: str) -> Iterator[str]:
    from robust_fairness.catalog.files import TableDataset
    from robust_fairness.reporting import VIEWS, Results
    from robust_fairness.runs import provenance

    tables = {name: provenance.load(run_id, name, TableDataset) for name in ("metrics", "cells")}
    answer = VIEWS[ANSWER].rows(Results.of(**tables))
    if answer.empty:
        return
    shown = answer[answer["metric"].isin(SHOWN)]
    for (data, metric, attribute), rows in shown.groupby(["data", "metric", "attribute"]):
        of = f" by {attribute}" if attribute else ""
        yield f"{data}: {metric.replace('_', ' ')}{of}, in -> out of distribution"
        width = max(map(len, rows["method"]))
        yield from (_line(row, width) for row in rows.itertuples())


def _line(row: Any, width: int) -> str:
    return (
        f"  {row.method:{width}}  {row.at_home:.2f} -> {row.elsewhere:.2f}  "
        f"change {row.change:+.2f} ({row.low:+.2f} to {row.high:+.2f})  {row.says}"
    )
