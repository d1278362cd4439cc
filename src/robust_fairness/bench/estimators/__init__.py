"""Models that one call fits, such as every estimator of scikit-learn, one per file."""
