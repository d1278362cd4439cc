"""The verdict of an audit in a word and a sentence, and what the console shows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from robust_fairness.auditing.gates import VERDICTS, Judgement, Verdict

MOST_GATES = 3  # of each verdict, which the console shows
WORST = {"accuracy_by_group": "accuracy", "mean_squared_error_by_group": "mean squared error"}
NONE = "no gate; set a limit such as --fail-if 'equalized_odds_difference>0.1'"


class Said(NamedTuple):
    """A verdict, or "AUDITED" without gates, and the sentence that explains it."""

    word: str
    sentence: str


def sentence_of(verdicts: Sequence[Verdict], first: str) -> Said:
    """The worst verdict, and the numbers of all.

    Args:
        verdicts: of every value with a gate, the worst ones first.
        first: the line of the first one.
    """
    if not verdicts:
        return Said("AUDITED", NONE)
    parts = [f"{verdicts.count(one)} {one}" for one in VERDICTS if one in verdicts]
    values = "value" if len(verdicts) == 1 else "values"
    return Said(verdicts[0], f"{len(verdicts)} {values} with a gate: {', '.join(parts)}. {first}")


def worst_group(rows: pd.DataFrame) -> str:
    """The group with the lowest accuracy or the largest error; "" without groups."""
    found = rows[rows["metric"].isin(list(WORST)) & rows["value"].notna()]
    if found.empty:
        return ""
    accuracy = found["metric"].iloc[0] == "accuracy_by_group"
    place = found["value"].argmin() if accuracy else found["value"].argmax()
    row = found.iloc[int(place)]
    within = "" if np.isnan(row["low"]) else f" ({row['low']:.3f} to {row['high']:.3f})"
    return (
        f"worst group: {row['attribute']} {row['group']}, {WORST[row['metric']]} "
        f"{row['value']:.3f}{within}, {row['n']:,} rows"
    )


def console(
    rows: pd.DataFrame, judgements: Sequence[Judgement], warning: str, assumption: str, then: str
) -> Iterator[tuple[str, bool]]:
    """At most ten lines: warning, verdict, gates, worst group; whether each is a failure.

    ``then`` is the name of the period that is compared with, "" without one.
    """
    for text in filter(None, (warning, assumption)):
        yield f"warning: {text}", False
    verdicts = sorted((one.verdict for one in judgements), key=VERDICTS.index)
    said = sentence_of(verdicts, "")
    compared = f" ({rows['dataset'].iloc[0]} against {then})" if then else ""
    yield f"{said.word}{compared}: {said.sentence}".strip(), False
    undecided = _lines(judgements, "INCONCLUSIVE")
    yield from ((f"failed: {line}", True) for line in _lines(judgements, "FAIL"))
    yield from ((f"inconclusive: {line}", False) for line in undecided)
    if worst := worst_group(rows):
        yield worst, False


def _lines(judgements: Sequence[Judgement], verdict: Verdict) -> list[str]:
    """The gates of a verdict, one line each, and how many more there are."""
    found = [one.reason for one in judgements if one.verdict == verdict]
    if len(found) <= MOST_GATES:
        return found
    return [*found[: MOST_GATES - 1], f"{len(found) - MOST_GATES + 1} more are on the page"]
