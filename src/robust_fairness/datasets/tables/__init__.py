"""Datasets of tables, one per file."""
