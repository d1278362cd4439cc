"""finDML and PARADE: views, claims and printed numbers."""
