"""Reports: views of the results of a run, figures, and the HTML page that holds them."""

from robust_fairness.report.first_screen import comparison
from robust_fairness.report.page import report, summary_table, trade_off_figure
from robust_fairness.report.results import Results

__all__ = ["Results", "comparison", "report", "summary_table", "trade_off_figure"]
