"""Views of what was chosen: which criterion a run went on with, and what others would choose."""

import pandas as pd

from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.views import View

TITLE = "Selection of trials"


def choices_of_criteria(metrics: pd.DataFrame, choices: pd.DataFrame) -> pd.DataFrame:
    """The trial that each criterion chooses on validation rows, used or not.

    Args:
        metrics: rows of the tidy table.
        choices: ``tables.CHOICES``.
    """
    return choices.assign(used=choices["used"].map({True: "used", False: "compared"}))


def agreement(metrics: pd.DataFrame, choices: pd.DataFrame) -> pd.DataFrame:
    """In how many cells a criterion chooses the trial that the first one used chooses.

    Args:
        metrics: rows of the tidy table.
        choices: ``tables.CHOICES``.
    """
    cell = ["dataset", "method"]
    first = choices[choices["used"]].drop_duplicates(cell)[[*cell, "trial"]]
    both = choices.merge(first, on=cell, suffixes=("", " of the first"))
    same = both.assign(same=both["trial"] == both["trial of the first"])
    return same.groupby("criterion", as_index=False, sort=False).agg(
        cells=("same", "size"), same=("same", "sum")
    )


VIEWS = [
    View(
        "choices",
        "What each criterion chooses",
        choices_of_criteria,
        needs=("choices",),
        note="Scores are means over seeds on validation rows. Test rows choose nothing.",
    ),
    View(
        "choices_agreement",
        "Cells in which a criterion chooses the trial that the run went on with",
        agreement,
        needs=("choices",),
        note="Where several criteria were used, the first of them counts.",
    ),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """None: no paper speaks of these."""
    return claimed.table([])
