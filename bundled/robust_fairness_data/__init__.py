"""Public tables of the default run of robust_fairness; ATTRIBUTION.md names their sources."""
