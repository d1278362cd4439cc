"""Post-processing: decisions from the scores of any trained classifier, one rule per file."""
