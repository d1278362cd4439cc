"""Critical Issues in Bias Mitigation: views, claims and printed numbers."""
