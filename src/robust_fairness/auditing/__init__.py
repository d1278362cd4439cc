"""Audit of existing predictions: scores, intervals, gates and a page."""
