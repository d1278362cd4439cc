"""Equalized Robustness: views, claims and printed numbers."""
