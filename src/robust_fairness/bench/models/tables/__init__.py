"""Networks for rows of features, one per file."""
