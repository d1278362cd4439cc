"""Domains and splits of samples."""
