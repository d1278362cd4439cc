"""Networks for embeddings, and the classifiers fitted on them, one per file."""
