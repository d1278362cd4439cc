"""Datasets: raw files to samples, one dataset per file."""
