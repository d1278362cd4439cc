"""The last lines of a run: what it found, and where."""

from collections.abc import Iterator

import pandas as pd


def closing_lines(run_id: str) -> list[str]:
    """The answer of a run's report, how often each model's gap grew, and the report's place.

    A run without a report has no lines.
    """
    from robust_fairness.runs import provenance

    report = provenance.load_manifest(run_id)["outputs"].get("report")
    if report is None:
        return []
    return [*_answer(run_id), f"Report: {report['path']}"]


def _answer(run_id: str) -> Iterator[str]:
    """The answers of the first screen, and a line for each model; nothing without a gap."""
    from robust_fairness.cli.finished_run import results_of
    from robust_fairness.report.first_screen import answers
    from robust_fairness.report.matrix import STATES, preferred, words_of

    results = results_of(run_id)
    gaps = preferred(results)
    if gaps is None:
        return
    answer, *parts = answers(results)
    yield f"Does fairness survive the shift? {answer}."
    yield from (f"  {part}." for part in parts)
    gap, rows = gaps
    if rows.empty:
        return
    states = pd.crosstab(rows["method"], rows["state"])
    states = states[[state for state in STATES if state in states]]
    home = rows.groupby("method", sort=False)[["accuracy"]].mean().mul(100).round().astype("Int64")
    home = home.rename(columns={"accuracy": "accuracy at home (%)"})
    yield f"Comparisons of the {words_of(gap)} at home and in each test set:"
    yield from home.join(states).rename_axis(None).to_string().splitlines()
