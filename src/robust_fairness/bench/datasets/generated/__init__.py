"""Datasets of images that a generator makes, one per file."""
