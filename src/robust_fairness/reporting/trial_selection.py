"""Views of model selection: the trial that each criterion selects, used by the run or not."""

import pandas as pd

from robust_fairness.reporting.results import CELL, Results
from robust_fairness.reporting.views import Section, View


def selected_trials(results: Results) -> pd.DataFrame:
    """The trial that each criterion selects on validation rows, used or only compared."""
    used = results.choices["used"].map({True: "used", False: "compared"})
    return results.choices.assign(used=used)


def agreement(results: Results) -> pd.DataFrame:
    """In how many cells a criterion selects the trial that the first one used selects."""
    choices = results.choices
    first = choices[choices["used"]].drop_duplicates(CELL)[[*CELL, "trial"]]
    both = choices.merge(first, on=CELL, suffixes=("", " of the first"))
    same = both.assign(same=both["trial"] == both["trial of the first"])
    return same.groupby("criterion", as_index=False, sort=False).agg(
        cells=("same", "size"), same=("same", "sum")
    )


VIEWS = (
    View(
        "choices",
        "The trial that each criterion selects",
        selected_trials,
        needs=("choices",),
        note="Scores are means over seeds on validation rows. Test rows select nothing.",
    ),
    View(
        "choices_agreement",
        "Cells in which a criterion selects the trial that the run used",
        agreement,
        needs=("choices",),
        note="If several criteria were used, the first of them counts.",
    ),
)
SECTION = Section("", "Model selection", VIEWS, published=False)
