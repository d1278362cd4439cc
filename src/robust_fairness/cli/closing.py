"""The last lines of a run: what it found, and where."""

from collections.abc import Iterator

import pandas as pd


def closing_lines(run_id: str) -> list[str]:
    """The verdict of a run's report, how often each method's gap grew, and the report's place.

    A run without a report has no lines.
    """
    from robust_fairness.runs import provenance

    report = provenance.load_manifest(run_id)["outputs"].get("report")
    if report is None:
        return []
    return [*_answer(run_id), f"Report: {report['path']}"]


def _answer(run_id: str) -> Iterator[str]:
    """The answers of the first screen, and a line for each method; nothing without a gap."""
    from robust_fairness.cli.finished_run import results_of
    from robust_fairness.reporting.first_screen import answers
    from robust_fairness.reporting.matrix import STATES, preferred, words_of

    results = results_of(run_id)
    gaps = preferred(results)
    if gaps is None:
        return
    yield f"Does fairness survive the shift? Gap: {words_of(gaps[0])}."
    for part in answers(results):
        place = ", ".join(filter(None, (part["data"], part["attribute"])))
        yield f"{place}: {part['answer']}. {part['told']}"
        yield from (f"  {part[line]}" for line in ("other", "limit", "refits") if part[line])
    rows = gaps[1]
    if rows.empty:
        return
    states = pd.crosstab(rows["method"], rows["state"])
    states = states[[state for state in STATES if state in states]]
    home = rows.groupby("method", sort=False)[["accuracy", "at_home"]].mean().mul(100).round()
    home = home.astype("Int64").rename(
        columns={"accuracy": "accuracy at home (%)", "at_home": "mean gap at home (points)"}
    )
    yield from home.join(states).rename_axis(None).to_string().splitlines()
