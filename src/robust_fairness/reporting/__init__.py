"""Reports: views of the one table, figures, and the HTML page that holds them."""

from robust_fairness.reporting.page import report, summary_table, trade_off_figure

__all__ = ["report", "summary_table", "trade_off_figure"]
