"""What criteria choose, as the report shows it."""

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.papers import SECTIONS
from robust_fairness.report import Results
from robust_fairness.report.methods import agreement, selected_trials

ROWS = [
    ("adult", "cuma", "accuracy", True, "default"),
    ("adult", "cuma", "delta_eo", True, "alpha=4"),
    ("adult", "cuma", "worst_group_accuracy", False, "default"),
    ("adult", "erm", "accuracy", True, "default"),
    ("adult", "erm", "worst_group_accuracy", False, "weight_decay=0.1"),
]


def test_criteria_are_compared_with_the_first_that_was_used():
    """Cell by cell."""
    rows = [dict(zip(tables.CHOICES, (*row, 0.5, 2), strict=True)) for row in ROWS]
    choices = tables.table(tables.CHOICES, rows)
    run = Results(tables.table(tables.METRICS, []), choices=choices)
    table = agreement(run).set_index("criterion")
    assert table["cells"].to_dict() == {"accuracy": 2, "delta_eo": 1, "worst_group_accuracy": 2}
    assert table["same"].to_dict() == {"accuracy": 2, "delta_eo": 0, "worst_group_accuracy": 1}
    assert list(selected_trials(run)["used"]) == [
        "used", "used", "compared", "used", "compared",
    ]  # fmt: skip


def test_nothing_to_choose_shows_nothing():
    """A grid whose cells have one trial."""
    assert all(
        view.rows(Results(pd.DataFrame())).empty for view in SECTIONS["trial_selection"].views
    )
