"""Audit of given predictions: measures, intervals, gates and a page."""
