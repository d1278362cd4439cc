"""Datasets of tables."""
