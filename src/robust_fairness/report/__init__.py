"""Reports: views of the results of a run, figures, and the HTML page that holds them."""

from robust_fairness.reporting.first_screen import comparison
from robust_fairness.reporting.page import VIEWS, report, trade_off_figure
from robust_fairness.reporting.results import Results
from robust_fairness.reporting.summary import summary_table

__all__ = ["VIEWS", "Results", "comparison", "report", "summary_table", "trade_off_figure"]
