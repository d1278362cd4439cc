"""Datasets of questions on images, one per file."""
