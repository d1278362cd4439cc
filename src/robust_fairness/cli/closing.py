"""The last lines of a run: its answer in a few lines."""

ANSWER = "natural_changes"  # the view that answers
SHOWN = ("accuracy", "equalized_odds_difference")  # its measures


def closing_lines(run_id: str) -> list[str]:
    """What a run found out about its measures out of distribution; nothing without domains."""
    from robust_fairness.catalog.files import TableDataset
    from robust_fairness.reporting import VIEWS, Results
    from robust_fairness.runs import provenance

    metrics = provenance.load(run_id, "metrics", TableDataset)
    further = {"cells": provenance.load(run_id, "cells", TableDataset)}
    answer = VIEWS[ANSWER].rows(Results.of(metrics, **further))
    if answer.empty:
        return []
    answer = answer[answer["metric"].isin(SHOWN)]
    lines = []
    for (metric, attribute), rows in answer.groupby(["metric", "attribute"], sort=False):
        of = f" by {attribute}" if attribute else ""
        lines.append(f"{metric.replace('_', ' ')}{of}, in and out of distribution")
        width = max(map(len, rows["method"]))
        for row in rows.itertuples():
            lines.append(
                f"  {row.method:{width}}  {row.at_home:.2f} -> {row.elsewhere:.2f}  "
                f"change {row.change:+.2f} ({row.low:+.2f} to {row.high:+.2f})  {row.says}"
            )
    return lines
