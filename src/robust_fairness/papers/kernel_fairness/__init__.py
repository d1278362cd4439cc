"""FairCOCCO: views, claims and printed numbers."""
