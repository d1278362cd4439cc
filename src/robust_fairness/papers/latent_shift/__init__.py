"""Control+Shift: views, claims and printed numbers."""
