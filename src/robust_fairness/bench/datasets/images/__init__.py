"""Datasets of images, one per file."""
